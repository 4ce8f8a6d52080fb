package integrations

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"mime/multipart"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// givenCase is one recorded request of a service with the message that people expect.
type givenCase struct {
	ID          string            `json:"id"`
	Method      string            `json:"method"`
	Channel     *string           `json:"channel"`
	Headers     map[string]string `json:"headers"`
	Params      map[string]string `json:"url_params"`
	ContentType string            `json:"content_type"`
	Kind        string            `json:"payload_kind"`
	Payload     json.RawMessage   `json:"payload"`
	Raw         string            `json:"payload_raw"`
	Topic       *string           `json:"expected_topic"`
	Message     *string           `json:"expected_message"`
	Messages    []struct {
		Topic   *string `json:"topic"`
		Content string  `json:"content"`
	} `json:"expected_messages"`
	Status         int    `json:"expected_status"`
	Error          string `json:"expected_error"`
	ErrorRegex     string `json:"expected_error_regex"`
	TopicUnchecked bool   `json:"topic_unchecked"`
	Weak           any    `json:"weak"`
}

// request returns the request as a template sees it.
func (c givenCase) request(t testing.TB) Request {
	r := Request{ContentType: c.ContentType, Params: url.Values{}}
	r.Person = func(address string) string {
		return map[string]string{"othello@zulip.com": "Othello, the Moor of Venice"}[address]
	}
	headers := map[string]string{}
	for name, value := range c.Headers {
		headers[strings.ToLower(name)] = value
	}
	headers["content-type"] = c.ContentType
	r.Header = func(name string) string { return headers[strings.ToLower(name)] }
	for name, value := range c.Params {
		r.Params.Set(name, value)
	}
	switch {
	case c.Raw != "":
		r.Body = []byte(c.Raw)
	case c.Kind == "json":
		r.Body = c.Payload
	case c.Kind == "form" || c.Kind == "multipart":
		fields := map[string]any{}
		if json.Unmarshal(c.Payload, &fields) != nil {
			t.Fatalf("%s: the payload is no object", c.ID)
		}
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		for name, value := range fields {
			if s, ok := value.(string); ok {
				form.WriteField(name, s)
			}
		}
		form.Close()
		r.Body, r.ContentType = body.Bytes(), form.FormDataContentType()
		headers["content-type"] = r.ContentType
	case len(c.Payload) > 0:
		var body string
		if err := json.Unmarshal(c.Payload, &body); err != nil && string(c.Payload) != "null" {
			t.Fatalf("%s: the payload is no text", c.ID)
		}
		r.Body = []byte(body)
	}
	return r
}

// filter returns the filter of the address.
func (c givenCase) filter(t testing.TB) (f Filter) {
	for name, to := range map[string]*[]string{"only_events": &f.Only, "exclude_events": &f.Except} {
		if v, ok := c.Params[name]; ok {
			if err := json.Unmarshal([]byte(v), to); err != nil {
				t.Fatalf("%s: %s is no list", c.ID, name)
			}
		}
	}
	return f
}

// difference returns how the result of a case differs from the expected one, or "".
func (c givenCase) difference(t testing.TB, s *Service) string {
	if c.Error == "" {
		c.Error = c.ErrorRegex
	}
	result, err := s.Handle(c.request(t), c.filter(t))
	var unsupported *Unsupported
	switch {
	case errors.As(err, &unsupported) && c.Message == nil && c.Error == "" && c.Status < 400:
		return "" // answered with success
	case err != nil && c.Error != "":
		if a := (*Anomaly)(nil); errors.As(err, &a) && strings.HasPrefix(c.Error, "Unable to parse request") {
			return ""
		}
		if m := (*Malformed)(nil); errors.As(err, &m) && m.Message == c.Error {
			return ""
		}
		if m := (*Missing)(nil); errors.As(err, &m) && c.Error == "Missing '"+m.Parameter+"' argument" {
			return ""
		}
		if strings.Contains(err.Error(), c.Error) {
			return ""
		}
		return "error " + err.Error() + ", expected " + c.Error
	case err != nil && c.Status >= 400 && c.Message == nil:
		return ""
	case err != nil:
		return "error " + err.Error()
	case c.Error != "" || c.Status >= 400:
		return "no error, expected " + c.Error
	case c.Weak != nil:
		return ""
	case c.Message == nil && len(result.Messages) > 0:
		return "an unexpected message: " + result.Messages[0].Text
	case c.Message == nil:
		return ""
	case len(result.Messages) == 0:
		return "no message"
	}
	if c.Channel != nil && *c.Channel == "nonexistent" {
		return "" // the notice to the bot's owner is not made here
	}
	got := result.Messages[len(result.Messages)-1]
	if topic, ok := c.Params["topic"]; ok {
		for range 2 { // some services encode the address twice
			if plain, err := url.QueryUnescape(topic); err == nil {
				topic = plain
			}
		}
		got.Topic = topic
	}
	if got.Topic == "(no topic)" {
		got.Topic = ""
	}
	switch {
	case got.Text != *c.Message:
		return "text\n--- have\n" + got.Text + "\n--- want\n" + *c.Message + "\n---"
	case c.Topic != nil && !c.TopicUnchecked && got.Topic != *c.Topic:
		return "topic " + got.Topic + ", expected " + *c.Topic
	}
	return ""
}

// givenCases returns the recorded requests beside the project, by service.
func givenCases(t testing.TB) map[string][]givenCase {
	files, err := filepath.Glob("../../../shared/fixtures/webhooks/*.json")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]givenCase{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var given struct{ Cases []givenCase }
		if err := json.Unmarshal(text, &given); err != nil {
			t.Fatal(file, err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = given.Cases
	}
	return out
}

// servicesWithCases returns the services and their recorded requests. The test is skipped if there are none.
func servicesWithCases(t *testing.T) (*Set, map[string][]givenCase) {
	t.Helper()
	given := givenCases(t)
	if len(given) == 0 {
		t.Skip("there are no recorded requests beside the project")
	}
	set, err := Included()
	if err != nil {
		t.Fatal(err)
	}
	return set, given
}

// TestGivenCases holds that the recorded requests of services become the messages that people expect, at least 95 of
// 100 exactly.
func TestGivenCases(t *testing.T) {
	set, given := servicesWithCases(t)
	total, equal := 0, 0
	for _, name := range slices.Sorted(maps.Keys(given)) {
		total += len(given[name])
		s := set.Find(name)
		if s == nil {
			t.Errorf("%s: there is no such service", name)
			continue
		}
		good := 0
		for _, c := range given[name] {
			if d := c.difference(t, s); d != "" {
				t.Logf("%s: %s", c.ID, d)
			} else {
				good++
			}
		}
		t.Logf("%s: %d of %d", name, good, len(given[name]))
		equal += good
	}
	t.Logf("%d of %d cases are exactly equal", equal, total)
	if equal*100 < total*95 {
		t.Errorf("%d of %d cases are exactly equal; at least 95 of 100 must be", equal, total)
	}
}

// TestByteOrderMark begins the body of each recorded request with a byte order mark, as programs on Windows do. The
// message is the same, also where a template shows the fields of a map in the order of the payload.
func TestByteOrderMark(t *testing.T) {
	set, given := servicesWithCases(t)
	marked := 0
	for name, cases := range given {
		s := set.Find(name)
		for _, c := range cases {
			r := c.request(t)
			if !bytes.HasPrefix(bytes.TrimSpace(r.Body), []byte("{")) {
				continue
			}
			plain, err := s.Handle(r, c.filter(t))
			if err != nil {
				continue
			}
			marked++
			r.Body = append([]byte("\uFEFF"), r.Body...)
			if got, err := s.Handle(r, c.filter(t)); err != nil || !reflect.DeepEqual(got.Messages, plain.Messages) {
				t.Errorf("%s: %v\n%v\nwithout the mark\n%v", name, err, got.Messages, plain.Messages)
			}
		}
	}
	if marked < 100 {
		t.Errorf("only %d requests", marked)
	}
}
