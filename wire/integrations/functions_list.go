package integrations

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// listOf returns a list and counts the work on it. Null is an empty list.
func (e *execution) listOf(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return v, e.spend(1 + len(v))
	case []string:
		out := make([]any, len(v))
		for i, s := range v {
			out[i] = s
		}
		return out, e.spend(1 + len(v))
	}
	return nil, e.absent("a list is %T", v)
}

func dict(pairs ...any) (map[string]any, error) {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, errors.New("a key of dict is no text")
		}
		out[key] = pairs[i+1]
	}
	return out, nil
}

func (e *execution) append(list any, v ...any) ([]any, error) {
	in, err := e.listOf(list)
	return slices.Concat(in, v), err
}

// first returns the first element of a list: first .list, or the first n of them: first 3 .list.
func (e *execution) first(args ...any) (any, error) {
	switch len(args) {
	case 1:
		return e.nth(args[0], 0)
	case 2:
		n, err := e.number(args[0])
		if err != nil {
			return nil, err
		}
		in, err := e.listOf(args[1])
		return in[:min(max(int(n), 0), len(in))], err
	}
	return nil, errors.New("first takes a list, or a number and a list")
}

func (e *execution) nth(list any, i int) (any, error) {
	in, err := e.listOf(list)
	if err != nil || len(in) == 0 {
		return nil, err
	}
	return in[(i+len(in))%len(in)], nil
}

// keys returns the keys of a map, sorted.
func (e *execution) keys(v any) ([]any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, e.absent("a map is %T", v)
	}
	out := make([]any, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k)
	}
	return out, e.spend(len(m))
}

// pluck returns the values at a path of all elements of a list. Elements without it are left out.
func (e *execution) pluck(at string, list any) ([]any, error) {
	in, err := e.listOf(list)
	var out []any
	for i := 0; err == nil && i < len(in); i++ {
		var v any
		if v, err = e.get(in[i], at); v != nil {
			out = append(out, v)
		}
	}
	return out, err
}

// group returns the elements of a list by the text at a path, in the order of the first of each: maps with key and
// items.
func (e *execution) group(at string, list any) ([]any, error) {
	in, err := e.listOf(list)
	var out []any
	places := map[string]int{}
	for i := 0; err == nil && i < len(in); i++ {
		v, key := any(nil), ""
		if v, err = e.get(in[i], at); v != nil {
			key, err = e.textOf(v)
		}
		place, ok := places[key]
		if !ok {
			place = len(out)
			places[key] = place
			out = append(out, map[string]any{"key": key, "items": []any(nil)})
		}
		m := out[place].(map[string]any)
		m["items"] = append(m["items"].([]any), in[i])
	}
	return out, err
}

// alertGroups groups the alerts of a monitor by their status and an annotation, or else a label, of a name: maps with
// key and items.
func (e *execution) alertGroups(name string, alerts any) ([]any, error) {
	in, err := e.listOf(alerts)
	if name == "" {
		name = "instance"
	}
	var named []any
	for i := 0; err == nil && i < len(in); i++ {
		annotations, _ := e.get(in[i], "annotations")
		labels, _ := e.get(in[i], "labels")
		key := "unknown"
		for _, from := range []any{annotations, labels} {
			if m, ok := from.(map[string]any); ok && m[name] != nil {
				if s, notText := text(m[name]); notText == nil && s != "" {
					key = s
					break
				}
			}
		}
		status, _ := e.get(in[i], "status")
		both := fmt.Sprintf("%q %v", key, status)
		named = append(named, map[string]any{"key": key, "both": both, "alert": in[i]})
	}
	groups, err := e.group("both", named)
	for _, g := range groups {
		m := g.(map[string]any)
		m["key"], _ = e.get(m["items"], "0.key")
		m["items"], _ = e.pluck("alert", m["items"])
	}
	return groups, err
}

// tally counts equal texts: maps with name and count, the most frequent first, equally frequent ones by name.
func (e *execution) tally(list any) ([]any, error) {
	names, err := e.texts(list)
	counts := map[string]int{}
	var order []string
	for _, n := range names {
		if counts[n]++; counts[n] == 1 {
			order = append(order, n)
		}
	}
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	out := make([]any, len(order))
	for i, n := range order {
		out[i] = map[string]any{"name": n, "count": counts[n]}
	}
	return out, err
}

// uniq returns the different texts of a list in their order.
func (e *execution) uniq(list any) ([]any, error) {
	names, err := e.texts(list)
	seen := map[string]bool{}
	var out []any
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out, err
}

// in reports whether a value is one of others: in .state "open" "reopened".
func (e *execution) in(v any, others ...any) (bool, error) {
	for _, o := range others {
		if same, err := e.equal(v, o); same || err != nil {
			return same, err
		}
	}
	return false, nil
}
