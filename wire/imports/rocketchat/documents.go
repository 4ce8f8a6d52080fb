package rocketchat

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	// maxDocument limits one document in bytes: MongoDB stores no larger ones.
	maxDocument = 16<<20 + 16<<10
	// minDocument is the size of an empty document in bytes.
	minDocument = 5
)

var errDocument = errors.New("not a BSON document")

// eachDocument passes the documents of a file to fn, with their positions. fn must not keep them. A file that is
// missing has no documents. seen, which may be nil, gets the number of bytes of each document.
func eachDocument(archive fs.FS, file string, seen func(n int), fn func(d bson.Raw, at int64) error) error {
	f, err := archive.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 256<<10)
	var buf []byte
	for at := int64(0); ; {
		buf, err = readDocument(r, buf)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = fn(buf, at)
		}
		if err != nil {
			return fmt.Errorf("%s, byte %d: %w", file, at, err)
		}
		at += int64(len(buf))
		if seen != nil {
			seen(len(buf))
		}
	}
}

// readDocument reads one document into buf, or into larger memory. It returns io.EOF at the end.
func readDocument(r io.Reader, buf []byte) (bson.Raw, error) {
	var head [4]byte
	if n, err := io.ReadFull(r, head[:]); err != nil {
		if n > 0 {
			err = errDocument
		}
		return nil, err
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length < minDocument || length > maxDocument {
		return nil, errDocument
	}
	// The memory grows with the bytes that are read: a wrong length alone costs nothing.
	buf = append(buf[:0], head[:]...)
	for step := 64 << 10; len(buf) < int(length); step *= 2 {
		from := len(buf)
		n := min(step, int(length)-from)
		if cap(buf) < from+n {
			larger := make([]byte, from, min(2*(from+n), int(length)))
			copy(larger, buf)
			buf = larger
		}
		buf = buf[:from+n]
		if _, err := io.ReadFull(r, buf[from:]); err != nil {
			return nil, errDocument
		}
	}
	if err := bson.Raw(buf).Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", errDocument, err)
	}
	return buf, nil
}

// The functions below return a value in its Go type, or the zero value if it is missing or of another type.

// text returns a string, or the hexadecimal digits of an object id.
func text(v bson.RawValue) string {
	if id, ok := v.ObjectIDOK(); ok {
		return id.Hex()
	}
	s, _ := v.StringValueOK()
	return s
}

// millis returns a time in Unix milliseconds.
func millis(v bson.RawValue) int64 {
	if t, ok := v.DateTimeOK(); ok {
		return t
	}
	return number(v)
}

// number returns a whole number.
func number(v bson.RawValue) int64 {
	if f, ok := v.DoubleOK(); ok && (math.IsNaN(f) || math.Abs(f) > 1<<53) {
		return 0
	}
	n, _ := v.AsInt64OK()
	return n
}

func flag(v bson.RawValue) bool { b, _ := v.BooleanOK(); return b }

// document returns a document inside of another one; an empty one has no values.
func document(v bson.RawValue) bson.Raw { d, _ := v.DocumentOK(); return d }

// list returns the values of an array.
func list(v bson.RawValue) []bson.RawValue {
	a, ok := v.ArrayOK()
	if !ok {
		return nil
	}
	values, err := a.Values()
	if err != nil {
		return nil
	}
	return values
}

// texts returns the strings of an array.
func texts(v bson.RawValue) (out []string) {
	for _, x := range list(v) {
		if s := text(x); s != "" {
			out = append(out, s)
		}
	}
	return out
}
