package snapshot

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncCounter notes how many bytes of a file were not synced at most.
type syncCounter struct {
	vfs.File
	unsynced, most int
}

func (f *syncCounter) Write(p []byte) (int, error) {
	f.unsynced += len(p)
	f.most = max(f.most, f.unsynced)
	return f.File.Write(p)
}

func (f *syncCounter) SyncData() error {
	f.unsynced = 0
	return f.File.SyncData()
}

// A large file is written as it is, and never has more than a chunk that is not synced.
func TestPacedWriter(t *testing.T) {
	fs := vfs.NewMem()
	f, err := fs.Create("large", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	counter := &syncCounter{File: f}
	w := NewPacedWriter(counter)
	var want []byte
	for i, size := range []int{1, 100_000, pacedChunk - 1, 3*pacedChunk + 17, 0, 32 << 10} {
		part := bytes.Repeat([]byte{byte('a' + i)}, size)
		want = append(want, part...)
		if n, err := w.Write(part); n != size || err != nil {
			t.Fatalf("writing %d bytes: %d, %v", size, n, err)
		}
	}
	if counter.most > pacedChunk || counter.unsynced >= pacedChunk {
		t.Errorf("%d bytes were not synced at a time, %d at the end", counter.most, counter.unsynced)
	}
	got := make([]byte, len(want)+1)
	if n, _ := f.ReadAt(got, 0); n != len(want) || !bytes.Equal(got[:n], want) {
		t.Errorf("the file has %d bytes of %d, or other ones", n, len(want))
	}
}
