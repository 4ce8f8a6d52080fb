package imports

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
)

// MaxRow limits one row of a file of an archive, in bytes. A row of Mattermost contains all replies of a message.
const MaxRow = 64 << 20

// ErrDamaged says that a part of an archive cannot be read: its bytes are not those that were written. A format leaves
// that part out and counts it.
var ErrDamaged = errors.New("damaged")

var errLongRow = fmt.Errorf("%w: a row of more than %d bytes", ErrDamaged, MaxRow)

// Damaged reports whether an error of reading is a fault of the archive, and not of the disk or of the program.
func Damaged(err error) bool {
	var syntax *json.SyntaxError
	var corrupt flate.CorruptInputError
	for _, fault := range []error{ErrDamaged, zip.ErrChecksum, zip.ErrFormat, zip.ErrAlgorithm, gzip.ErrChecksum,
		gzip.ErrHeader, io.ErrUnexpectedEOF} {
		if errors.Is(err, fault) {
			return true
		}
	}
	return errors.As(err, &syntax) || errors.As(err, &corrupt)
}

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
		return 0, errLongRow
	}
	n, err := r.from.Read(p)
	r.left -= n
	if r.seen != nil {
		r.seen(n)
	}
	return n, err
}

// Reading contains the functions that a reader of a file calls. Both functions may be nil.
type Reading struct {
	// Seen gets the number of bytes of each read.
	Seen func(n int)
	// Bad gets a value, a row or the rest of a file that is left out.
	Bad func(kind, reason, place string)
}

func (in Reading) bad(kind, reason, place string) {
	if in.Bad != nil {
		in.Bad(kind, reason, place)
	}
}

// Row is one row of a file.
type Row struct {
	Raw   []byte // its JSON; valid until the called function returns
	place Place
}

// Place returns where the row is.
func (r Row) Place() string { return r.place.String() }

// Place is where a row is in an archive.
type Place struct {
	File  string
	Line  int // counted from 1; 0: the file is a list
	Index int // in the list, counted from 0
}

func (p Place) String() string {
	if p.Line > 0 {
		return p.File + ", line " + strconv.Itoa(p.Line)
	}
	return p.File + ", index " + strconv.Itoa(p.Index)
}

// byteOrderMark is written by some editors before UTF-8 text.
const byteOrderMark = "\ufeff"

// open opens a file behind its byte order mark.
func open(archive fs.FS, file string, seen func(n int)) (*bufio.Reader, *LimitedReader, io.Closer, error) {
	f, err := archive.Open(file)
	if err != nil {
		return nil, nil, nil, err
	}
	limited := newLimitedReader(f, seen)
	r := bufio.NewReaderSize(limited, 64<<10)
	if head, _ := r.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
		r.Discard(len(head))
	}
	return r, limited, f, nil
}

// Decode opens a file of JSON and calls fn with its decoder. An error of fn gets the name of the file and the position.
func Decode(
	archive fs.FS, file string, seen func(n int), fn func(d *json.Decoder, limited *LimitedReader) error,
) error {
	r, limited, f, err := open(archive, file, seen)
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(r)
	if err := fn(d, limited); err != nil {
		return fmt.Errorf("%s, byte %d: %w", file, d.InputOffset(), err)
	}
	return nil
}

// EachRow reads a file whose content is a JSON list of objects, and passes each one to fn, which must not keep it. Bad
// values, bad rows and the rest of a damaged file are left out and reported. It returns the errors of fn and of the
// disk.
func EachRow[T any](archive fs.FS, file string, in Reading, fn func(*T, Row) error) error {
	r, limited, f, err := open(archive, file, in.Seen)
	if Damaged(err) {
		in.bad("files", "it cannot be read", file)
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(r)
	rest := func(err error) error {
		if !Damaged(err) && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", file, err)
		}
		in.bad("files", "damaged: the rest of the file is left out", file+", byte "+
			strconv.FormatInt(d.InputOffset(), 10))
		return nil
	}
	t, err := d.Token()
	switch {
	case err != nil:
		return rest(err)
	case t == nil: // null
		return nil
	case t != json.Delim('['):
		in.bad("files", "not a list: the file is left out", file)
		return nil
	}
	var raw json.RawMessage
	for n := 0; d.More(); n++ {
		limited.NextRow()
		if err := d.Decode(&raw); err != nil {
			return rest(err)
		}
		if err := decodeRow(Row{raw, Place{File: file, Index: n}}, in, fn); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return rest(err)
	}
	limited.NextRow()
	if _, err := io.Copy(io.Discard, r); Damaged(err) { // the checksum is compared at the end
		in.bad("files", "damaged: its rows are read as they are", file)
	} else if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// EachLine reads a file of JSON objects, one in each line, and passes each one to fn, which must not keep it. Bad
// values and bad lines are left out and reported. It returns the errors of fn and of the disk.
func EachLine[T any](archive fs.FS, file string, in Reading, fn func(*T, Row) error) error {
	r, limited, f, err := open(archive, file, in.Seen)
	if err != nil {
		return err
	}
	defer f.Close()
	var line []byte
	for n := 1; ; n++ {
		limited.NextRow()
		at := Place{File: file, Line: n}
		line, err = readLine(r, limited, line[:0])
		switch text := bytes.TrimSpace(line); {
		case errors.Is(err, errLongRow):
			in.bad("lines", "too long: the line is left out", at.String())
			err = nil
		case err != nil && !errors.Is(err, io.EOF):
			if !Damaged(err) {
				return fmt.Errorf("%s: %w", file, err)
			}
			in.bad("files", "damaged: the rest of the file is left out", at.String())
			return nil
		case len(text) == 0:
		case !json.Valid(text):
			in.bad("lines", "not JSON: the line is left out", at.String())
		default:
			if err := decodeRow(Row{text, at}, in, fn); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// readLine appends the next line to buf. After errLongRow the reader is behind the line.
func readLine(r *bufio.Reader, limited *LimitedReader, buf []byte) ([]byte, error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(buf)+len(part) > MaxRow; !long {
			buf = append(buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			limited.NextRow()
		case long && (err == nil || errors.Is(err, io.EOF)):
			return buf[:0], errLongRow
		default:
			return buf, err
		}
	}
}

// decodeRow decodes a row and passes it to fn.
func decodeRow[T any](row Row, in Reading, fn func(*T, Row) error) error {
	var v T
	if !DecodeRow(row.Raw, &v, func(field, reason string) { in.bad("values", reason, row.Place()+", "+field) }) {
		in.bad("rows", "not an object: the row is left out", row.Place())
		return nil
	}
	return fn(&v, row)
}
