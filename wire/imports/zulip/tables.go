package zulip

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// maxRow limits one row of a table in bytes.
const maxRow = 64 << 20

// rowReader fails if more than maxRow bytes are read for one row.
type rowReader struct {
	r    io.Reader
	left int
	read int64
	seen func(n int)
}

func (r *rowReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("a row of more than %d bytes", maxRow)
	}
	n, err := r.r.Read(p)
	r.left -= n
	r.read += int64(n)
	if r.seen != nil {
		r.seen(n)
	}
	return n, err
}

// tables reads a file whose content is an object of tables. want returns the function for the rows of a table: it
// decodes one row. A table with nil is skipped. other gets the names and lengths of skipped tables; it may be nil.
func tables(
	archive fs.FS, file string, seen func(n int), want func(table string) func(row func(any) error) error,
	other func(table string, rows int),
) error {
	f, err := archive.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	r := &rowReader{r: f, left: maxRow, seen: seen}
	d := json.NewDecoder(bufio.NewReaderSize(r, 256<<10))
	fail := func(err error) error { return fmt.Errorf("%s, byte %d: %w", file, d.InputOffset(), err) }
	if err := expect(d, json.Delim('{')); err != nil {
		return fail(err)
	}
	names := map[string]bool{}
	for d.More() {
		r.left = maxRow
		t, err := d.Token()
		if err != nil {
			return fail(err)
		}
		name, _ := t.(string)
		if names[name] {
			return fail(fmt.Errorf("the table %q occurs twice", name))
		}
		names[name] = true
		fn := want(name)
		n, err := table(d, r, fn)
		if err != nil {
			return fail(fmt.Errorf("table %s: %w", name, err))
		}
		if fn == nil && other != nil {
			other(name, n)
		}
	}
	if err := expect(d, json.Delim('}')); err != nil {
		return fail(err)
	}
	return nil
}

// isTrue is the number of rows of a value true instead of a table.
const isTrue = -1

// table reads one table, or another value, which is skipped.
func table(d *json.Decoder, r *rowReader, fn func(row func(any) error) error) (n int, err error) {
	t, err := d.Token()
	if err != nil {
		return 0, err
	}
	if t != json.Delim('[') {
		if t == json.Delim('{') {
			return 0, skip(d, r, 1)
		}
		if t == true {
			return isTrue, nil
		}
		return 0, nil
	}
	for ; d.More(); n++ {
		r.left = maxRow
		if fn == nil {
			err = skip(d, r, 0)
		} else {
			err = fn(d.Decode)
		}
		if err != nil {
			return n, err
		}
	}
	return n, expect(d, json.Delim(']'))
}

// maxDepth limits how deeply skipped values are nested.
const maxDepth = 1000

// skip skips a value, or the rest of one in which so many objects and lists are open.
func skip(d *json.Decoder, r *rowReader, depth int) error {
	for {
		t, err := d.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth > maxDepth {
			return errors.New("a value is nested too deeply")
		}
		r.left = maxRow
		if depth <= 0 {
			return nil
		}
	}
}

func expect(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("found %v instead of %v", t, want)
	}
	return nil
}
