package integrations

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// mutation is one changed value of a payload.
type mutation struct {
	at   string // the path of the field, and the change to it
	do   func()
	undo func()
}

// wrong are the values that take the place of each field and element of a payload.
var wrong = map[string]any{"null": nil, "empty text": "", "empty list": []any{}, "a number": json.Number("7"),
	"true": true, "an object": map[string]any{}, "a text": "a text", "a list": []any{map[string]any{}, nil, []any{"x"}}}

// mutations calls visit with each mutation of a payload: each field of each map removed, each list without its first
// element, and each of wrong in place of each field and element. If names is not nil, other fields are left alone. The
// payload is as before when it returns.
func mutations(v any, at string, names map[string]bool, visit func(mutation)) {
	change := func(path string, old any, set func(any)) {
		for _, name := range slices.Sorted(maps.Keys(wrong)) {
			visit(mutation{path + " " + name, func() { set(wrong[name]) }, func() { set(old) }})
		}
		if list, ok := old.([]any); ok && len(list) > 0 {
			visit(mutation{path + " shorter", func() { set(list[1:]) }, func() { set(old) }})
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			old, path := v[name], at+"."+name
			if names != nil && !names[name] {
				continue
			}
			visit(mutation{path + " removed", func() { delete(v, name) }, func() { v[name] = old }})
			change(path, old, func(x any) { v[name] = x })
			mutations(old, path, names, visit)
		}
	case []any:
		for i, old := range v[:min(len(v), maxElements)] {
			path := fmt.Sprint(at, ".", i)
			change(path, old, func(x any) { v[i] = x })
			mutations(old, path, names, visit)
		}
	}
}

// maxElements is how many elements of a list are changed, one at a time. Further ones are like them.
const maxElements = 3

// TestNoFieldIsNeeded holds that a payload becomes a message even if any one of its fields is missing, null or of
// another type. The exceptions are those of the recorded requests: they say that the service's form is refused.
func TestNoFieldIsNeeded(t *testing.T) {
	set, given := servicesWithCases(t)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := set.Find(name)
			for _, c := range given[name] {
				if c.Error == "" && c.ErrorRegex == "" && c.Status < 400 && c.Weak == nil {
					checkMutations(t, s, c)
				}
			}
		})
	}
}

// refused are the fields without which the recorded requests of a service expect no message.
var refused = map[string][]string{
	"slack_incoming": {".text", ".payload", ".attachments", ".attachments.0", ".attachments.0.blocks"}, // empty
	"slack":          {".user_name", ".channel_name", ".text"},
	"bitbucket2":     {".push.changes"}, // a push without changes
	"librato":        {".payload"},      // the JSON of the alert
	"uptimerobot":    {".monitor_friendly_name"},
	"stripe":         {".data.previous_attributes.status"}, // another change of the invoice
}

// maxReported bounds the faults of one service that a test prints.
const maxReported = 8

// maxAllFields is the size of payloads, in bytes, up to which all fields are changed. In larger ones, only fields with
// a name that occurs in the templates are changed, because others cannot matter.
const maxAllFields = 3 << 10

func checkMutations(t *testing.T, s *Service, c givenCase) {
	r, filter := c.request(t), c.filter(t)
	root, err := s.decode(r)
	if err != nil {
		return
	}
	before, err := s.respond(root, r, filter)
	if err != nil {
		return
	}
	faults, total := 0, 0
	var names map[string]bool
	if len(r.Body) > maxAllFields {
		names = s.program().read
	}
	mutations(root, "", names, func(m mutation) {
		m.do()
		defer m.undo()
		total++
		after, err := s.respond(root, r, filter)
		fault := ""
		field, other, _ := strings.Cut(m.at, " ")
		switch {
		case slices.Contains(refused[s.Name], field), s.Name == "ifttt" && other == "an object":
			return
		case (other == "a text" || other == "true") && (errors.As(err, new(*Unsupported)) ||
			err == nil && slices.Contains(s.Ignore, after.Event)):
			return // the field names the event, which is now another one
		case err != nil && !s.recognizes(root), after.filtered, r.Params.Has("branches"):
			return // not the service's payload any more, or not wanted any more
		case err != nil:
			fault = "error " + err.Error()
		case len(after.Messages) == 0 && len(before.Messages) > 0:
			fault = "no message"
		}
		for _, got := range after.Messages {
			if why := unfinished(got); why != "" {
				fault = why
			}
		}
		if fault == "" {
			return
		}
		if faults++; faults <= maxReported {
			t.Errorf("%s%s: %s", c.ID, m.at, fault)
		}
	})
	if faults > maxReported {
		t.Errorf("%s: %d of %d changed payloads are lost", c.ID, faults, total)
	}
}

// unfinished returns the text of a message that people must not see, or "".
func unfinished(m Message) string {
	if strings.TrimSpace(m.Text) == "" || strings.TrimSpace(m.Topic) == "" {
		return "an empty text or topic"
	}
	for _, bad := range []string{gone, "<nil>", "<no value>", "%!", "map["} {
		if strings.Contains(m.Text+m.Topic, bad) {
			return fmt.Sprintf("%q in %q", bad, m.Text)
		}
	}
	return ""
}
