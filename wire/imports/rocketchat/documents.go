package rocketchat

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"parley/wire/imports"
)

const (
	// maxDocument limits one document in bytes: MongoDB stores no larger ones.
	maxDocument = 16<<20 + 16<<10
	// minDocument is the size of an empty document in bytes.
	minDocument = 5
)

var (
	errDocument = errors.New("not a BSON document")
	// errContent is the error of a document whose length is right: the one after it can be read.
	errContent = errors.New("not a BSON document")
)

// eachDocument passes the documents of a collection to fn, with their positions. fn must not keep them. A collection
// that is missing has no documents. Documents that cannot be read are left out and reported. A file of which nothing
// can be read is an error.
func (s *source) eachDocument(collection string, in imports.Reading, fn func(d bson.Raw, at position) error) error {
	file := s.collection(collection)
	f, err := s.open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 256<<10)
	var buf []byte
	at := position{file: path.Base(file)}
	for sound := 0; ; at.index++ {
		d, err := readDocument(r, buf)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errContent):
			report(in, "documents", "not a valid document: it is left out", at.String())
		case err != nil && sound > 0 && (errors.Is(err, errDocument) || imports.Damaged(err)):
			report(in, "files", "damaged: the rest of the file is left out", fmt.Sprintf("%s, byte %d", at, at.byte))
			return nil
		case err != nil:
			return fmt.Errorf("%s, byte %d: %w", file, at.byte, err)
		default:
			sound++
			checkFields(d, fieldsOf[collection], in, at)
			if err := fn(d, at); err != nil {
				return fmt.Errorf("%s, byte %d: %w", file, at.byte, err)
			}
		}
		buf = d
		at.byte += int64(len(d))
		if in.Seen != nil {
			in.Seen(len(d))
		}
	}
}

func report(in imports.Reading, kind, reason, place string) {
	if in.Bad != nil {
		in.Bad(kind, reason, place)
	}
}

// position is where a document is.
type position struct {
	file  string
	index int // counted from 0
	byte  int64
}

func (p position) String() string { return p.file + ", index " + strconv.Itoa(p.index) }

// readDocument reads one document into buf, or into larger memory. It returns io.EOF at the end.
func readDocument(r io.Reader, buf []byte) (bson.Raw, error) {
	var head [4]byte
	if n, err := io.ReadFull(r, head[:]); err != nil {
		if n > 0 && !imports.Damaged(err) || errors.Is(err, io.ErrUnexpectedEOF) {
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
		return buf, fmt.Errorf("%w: %w", errContent, err)
	}
	return buf, nil
}

// The functions below return a value in its Go type, or the zero value if it is missing or of another type.

// text returns a string, the hexadecimal digits of an object id, or the digits of a number.
func text(v bson.RawValue) string {
	if id, ok := v.ObjectIDOK(); ok {
		return id.Hex()
	}
	if f, ok := v.DoubleOK(); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	if n, ok := v.AsInt64OK(); ok {
		return strconv.FormatInt(n, 10)
	}
	s, _ := v.StringValueOK()
	return s
}

// millis returns a time in Unix milliseconds.
func millis(v bson.RawValue) int64 {
	if t, ok := v.DateTimeOK(); ok {
		return t
	}
	if s, ok := v.StringValueOK(); ok {
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return t.UnixMilli()
		}
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
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
