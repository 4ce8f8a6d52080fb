package httpd

import (
	"bytes"
	"errors"
	"testing"
)

// countingWriter counts writes. If failing is not 0, the write of that number and all later ones fail.
type countingWriter struct {
	bytes.Buffer
	writes, failing int
}

func (c *countingWriter) Write(b []byte) (int, error) {
	if c.writes++; c.failing != 0 && c.writes >= c.failing {
		return 0, errors.New("broken")
	}
	return c.Buffer.Write(b)
}

func TestPartsBodyCombinesWrites(t *testing.T) {
	for _, sizes := range [][]int{{}, {0, 0}, {1}, {300, 200, 100}, {writeBufferBytes}, {writeBufferBytes - 1, 1},
		{writeBufferBytes - 1, 2}, {10, 3*writeBufferBytes + 5, 7}} {
		var parts [][]byte
		size := 0
		for i, n := range sizes {
			parts, size = append(parts, bytes.Repeat([]byte{byte('a' + i)}, n)), size+n
		}
		var w countingWriter
		n, err := (&partsBody{parts: parts}).WriteTo(&w)
		if whole := bytes.Join(parts, nil); err != nil || n != int64(size) || !bytes.Equal(w.Bytes(), whole) {
			t.Errorf("parts of %v: WriteTo returned %d, %v; %d bytes written, want %d", sizes, n, err, w.Len(),
				len(whole))
		}
		if most := size/writeBufferBytes + 1; w.writes > most {
			t.Errorf("parts of %v: %d writes", sizes, w.writes)
		}
	}
}

func TestPartsBodyStopsAtAnError(t *testing.T) {
	w := countingWriter{failing: 2}
	n, err := (&partsBody{[][]byte{make([]byte, 3*writeBufferBytes)}}).WriteTo(&w)
	if err == nil || n != writeBufferBytes || w.writes != 2 {
		t.Errorf("%d bytes in %d writes, %v", n, w.writes, err)
	}
}
