package zulip

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strconv"

	"parley/wire/imports"
)

// rowFunc takes one row of a table, and where it is. It must not keep the row.
type rowFunc func(row json.RawMessage, place string) error

// tables reads a file whose content is an object of tables. want returns the function for the rows of a table. A table
// with nil is skipped. other gets the names and lengths of skipped tables; it may be nil.
func tables(
	archive fs.FS, file string, seen func(n int), want func(table string) rowFunc, other func(table string, rows int),
) error {
	return imports.Decode(archive, file, seen, func(d *json.Decoder, r *imports.LimitedReader) error {
		if err := expect(d, json.Delim('{')); err != nil {
			return err
		}
		names := map[string]bool{}
		for d.More() {
			r.NextRow()
			t, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := t.(string)
			if names[name] {
				return fmt.Errorf("the table %q occurs twice", name)
			}
			names[name] = true
			fn := want(name)
			n, err := table(d, r, fn, file+", "+name)
			if err != nil {
				return fmt.Errorf("table %s: %w", name, err)
			}
			if fn == nil && other != nil {
				other(name, n)
			}
		}
		return expect(d, json.Delim('}'))
	})
}

// isTrue is the number of rows of a value true instead of a table.
const isTrue = -1

// table reads one table, or another value, which is skipped.
func table(d *json.Decoder, r *imports.LimitedReader, fn rowFunc, place string) (n int, err error) {
	t, err := d.Token()
	if err != nil {
		return 0, err
	}
	if t != json.Delim('[') {
		if t == json.Delim('{') {
			err = skip(d, r, 1)
		}
		if err == nil && fn != nil { // it counts as one row that cannot be read
			err = fn(json.RawMessage("null"), place)
		}
		if err != nil || t == json.Delim('{') {
			return 0, err
		}
		if t == true {
			return isTrue, nil
		}
		return 0, nil
	}
	var row json.RawMessage
	for ; d.More(); n++ {
		r.NextRow()
		if fn == nil {
			err = skip(d, r, 0)
		} else if err = d.Decode(&row); err == nil {
			err = fn(row, place+", index "+strconv.Itoa(n))
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
func skip(d *json.Decoder, r *imports.LimitedReader, depth int) error {
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
			return fmt.Errorf("%w: a value is nested too deeply", imports.ErrDamaged)
		}
		r.NextRow()
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
		return fmt.Errorf("%w: found %v instead of %v", imports.ErrDamaged, t, want)
	}
	return nil
}
