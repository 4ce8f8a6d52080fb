package imports

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// MaxRow limits one row of a file of an archive, in bytes. A row of Mattermost contains all replies of a message.
const MaxRow = 64 << 20

// LimitedReader reads a file row by row. It fails if one row has more than MaxRow bytes.
type LimitedReader struct {
	from io.Reader
	left int
	seen func(n int)
}

// newLimitedReader returns a reader of from. It calls seen, which may be nil, with the number of bytes of each read.
func newLimitedReader(from io.Reader, seen func(n int)) *LimitedReader {
	return &LimitedReader{from: from, left: MaxRow, seen: seen}
}

// NextRow allows the next row.
func (r *LimitedReader) NextRow() { r.left = MaxRow }

func (r *LimitedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("a row of more than %d bytes", MaxRow)
	}
	n, err := r.from.Read(p)
	r.left -= n
	if r.seen != nil {
		r.seen(n)
	}
	return n, err
}

// Decode opens a file of JSON and calls fn with its decoder. An error of fn gets the name of the file and the position.
func Decode(
	archive fs.FS, file string, seen func(n int), fn func(d *json.Decoder, limited *LimitedReader) error,
) error {
	f, err := archive.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	limited := newLimitedReader(f, seen)
	d := json.NewDecoder(bufio.NewReaderSize(limited, 64<<10))
	if err := fn(d, limited); err != nil {
		return fmt.Errorf("%s, byte %d: %w", file, d.InputOffset(), err)
	}
	return nil
}

// EachRow reads a file whose content is a JSON list. It decodes one element after the other and passes it to fn, which
// must not keep it.
func EachRow[T any](archive fs.FS, file string, seen func(n int), fn func(*T) error) error {
	return Decode(archive, file, seen, func(d *json.Decoder, limited *LimitedReader) error {
		return eachElement(d, limited, fn)
	})
}

func eachElement[T any](d *json.Decoder, limited *LimitedReader, fn func(*T) error) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t == nil { // null
		return nil
	}
	if t != json.Delim('[') {
		return errors.New("not a list")
	}
	for d.More() {
		limited.NextRow()
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		if err := fn(&v); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// EachValue reads a file of JSON values, one after the other. It passes each decoded value to fn, which must not keep
// it.
func EachValue[T any](archive fs.FS, file string, seen func(n int), fn func(*T) error) error {
	return Decode(archive, file, seen, func(d *json.Decoder, limited *LimitedReader) error {
		for {
			limited.NextRow()
			var v T
			err := d.Decode(&v)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				err = fn(&v)
			}
			if err != nil {
				return err
			}
		}
	})
}
