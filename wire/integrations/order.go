package integrations

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// orders holds the order of the keys of a payload's maps, by the address of the map.
type orders map[uintptr][]string

// entries returns the keys and values of a map in the order of the payload, as maps with key and value.
func (e *execution) entries(v any) ([]any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		if v == nil {
			return nil, nil
		}
		return nil, e.absent("a map is %T", v)
	}
	if e.orders == nil {
		e.orders = orders{}
		d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(e.request.Body, byteOrderMark)))
		d.UseNumber()
		e.orders.read(d, e.root)
		if err := e.spend(1 + len(e.request.Body)/16); err != nil {
			return nil, err
		}
	}
	names, err := e.keys(v)
	if err != nil {
		return nil, err
	}
	if order := e.orders[reflect.ValueOf(m).Pointer()]; len(order) == len(m) {
		names = names[:0]
		for _, name := range order {
			names = append(names, name)
		}
	}
	out := make([]any, len(names))
	for i, name := range names {
		out[i] = map[string]any{"key": name, "value": m[name.(string)]}
	}
	return out, nil
}

// read reads the next value of a decoder, which v is the decoded form of, and notes the order of keys in it. It
// returns false if the text is another one, for example because the payload is a part of it.
func (o orders) read(d *json.Decoder, v any) bool {
	t, err := d.Token()
	if err != nil {
		return false
	}
	switch t {
	case json.Delim('{'):
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		var names []string
		seen := map[string]bool{}
		for d.More() {
			name, err := d.Token()
			key, isText := name.(string)
			if err != nil || !isText {
				return false
			}
			if !seen[key] {
				seen[key] = true
				names = append(names, key)
			}
			if !o.read(d, m[key]) {
				return false
			}
		}
		o[reflect.ValueOf(m).Pointer()] = names
	case json.Delim('['):
		list, ok := v.([]any)
		for i := 0; d.More(); i++ {
			if !ok || i >= len(list) || !o.read(d, list[i]) {
				return false
			}
		}
	default:
		return true
	}
	_, err = d.Token()
	return err == nil
}
