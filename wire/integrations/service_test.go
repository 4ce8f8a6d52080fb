package integrations

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"
)

// request returns a request with a JSON body and headers in pairs.
func request(body string, headers ...string) Request {
	return Request{
		Body:        []byte(body),
		ContentType: "application/json",
		Params:      url.Values{},
		Header: func(name string) string {
			for i := 0; i+1 < len(headers); i += 2 {
				if strings.EqualFold(headers[i], name) {
					return headers[i+1]
				}
			}
			return ""
		},
	}
}

// service returns the service of a file with one event that takes every payload.
func service(t testing.TB, text, more string) *Service {
	t.Helper()
	file := "display = \"Test\"\n" + more + "\n[[events]]\nname = \"*\"\ntopic = \"t\"\ntext = '''\n" + text + "'''\n"
	s, err := parseService("test", file, newProgram())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// textOf returns the text of the only message that a payload becomes.
func textOf(t testing.TB, s *Service, body string) string {
	t.Helper()
	result, err := s.Handle(request(body), Filter{})
	if err != nil || len(result.Messages) != 1 {
		t.Fatalf("%d messages, %v", len(result.Messages), err)
	}
	return result.Messages[0].Text
}

// TestNothingInAPayloadMentions holds that texts of a payload mention no users and make no links of their own, in
// names and in quoted texts.
func TestNothingInAPayloadMentions(t *testing.T) {
	s := service(t, "{{.a}} {{.b}}** {{quote .c}} {{link .a .url}}", "")
	for _, hostile := range []string{"@**all**", "@_**Ann**", "@*admins*", "x@**all**", "@\uE000**all**", "@\n**all**",
		"a](javascript:alert(1)) [b", "```\n@**all**", "~~~\n@**all**\n~~~", "/poll", "\x00@**all**"} {
		b, _ := json.Marshal(
			map[string]string{"a": hostile, "b": hostile, "c": hostile, "url": "http://e.com/a) [x](http://evil"},
		)
		got := textOf(t, s, string(b))
		if mentionStart.MatchString(got) {
			t.Errorf("%q became a mention: %q", hostile, got)
		}
		if strings.Contains(strings.Split(got, "~~~ quote")[0], "](javascript:") {
			t.Errorf("%q became a link: %q", hostile, got)
		}
		if strings.Contains(got, mark) {
			t.Errorf("%q left a mark: %q", hostile, got)
		}
	}
	if got := textOf(t, service(t, `{{mention .a}}`, ""), `{"a": "all"}`); got != "@**all**" {
		t.Errorf("the function mention made %q", got)
	}
	if got := textOf(t, service(t, `{{.a}}`, ""), `{"a": "/me waves"}`); strings.HasPrefix(got, "/") {
		t.Errorf("a payload made a command of the compose box: %q", got)
	}
	// A fence in a quoted text does not end the quote.
	if got := textOf(t, service(t, `{{quote .a}}`, ""), `{"a": "x\n~~~\n# big"}`); !strings.HasPrefix(
		got,
		"~~~~ quote\n",
	) {
		t.Errorf("a quoted fence: %q", got)
	}
}

// TestPayloadsThatDoNotFit holds that each fault of a payload is an error of its kind and never a panic.
func TestPayloadsThatDoNotFit(t *testing.T) {
	s := service(t, "{{.a.b}}", "")
	deep := strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000)
	for body, want := range map[string]any{
		"":                  new(*Malformed),
		"{":                 new(*Malformed),
		"{} {}":             new(*Malformed),
		"\xff":              new(*Malformed),
		"{\"a\": \"\xff\"}": new(*Malformed),
		deep:                new(*Malformed),
		"[]":                new(*Anomaly),
		"null":              new(*Anomaly),
		"7":                 new(*Anomaly),
		`"x"`:               new(*Anomaly),
		"{}":                new(*Anomaly),
		`{"c": {"b": "x"}}`: new(*Anomaly),
	} {
		_, err := s.Handle(request(body), Filter{})
		if err == nil || !errors.As(err, want) {
			t.Errorf("%.40q: %v, expected %T", body, err, want)
		}
	}
	// A payload with a field of the service is never refused.
	for _, body := range []string{`{"a": null}`, `{"a": 7}`, `{"a": {"b": null}}`, `{"a": {"b": {}}}`} {
		if got := textOf(t, s, body); !strings.Contains(got, `"a":`) {
			t.Errorf("%s became %q", body, got)
		}
	}
	if got := textOf(t, s, `{"a": {"b": 1e400}}`); got != "1e400" {
		t.Errorf("a large number is shown as %q", got)
	}
}

// TestTemplatesAreBounded holds that no template runs or writes without bound, whatever the payload.
func TestTemplatesAreBounded(t *testing.T) {
	list := "[" + strings.Repeat("1,", 2000) + "1]"
	for name, text := range map[string]string{
		"nested loops":         `{{range $a := .}}{{range $}}{{range $}}{{end}}{{end}}{{end}}x`,
		"a loop over a number": `{{range 1000000000}}{{end}}x`,
		"recursion":            `{{define "r"}}{{template "r" .}}{{end}}{{template "r" .}}`,
		"two-fold recursion":   `{{define "r"}}{{template "r" .}}{{template "r" .}}{{end}}{{template "r" .}}`,
		"growing lists": `{{$l := list 1}}{{range $}}{{range $}}{{$l = append $l 1}}{{$x := join "," $l}}` +
			`{{end}}{{end}}`,
	} {
		if _, err := service(t, text, "").Handle(request(list), Filter{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	long := service(t, `{{range .}}{{range $}}abcdefghij{{end}}{{end}}`, "")
	got := textOf(t, long, "["+strings.Repeat("1,", 300)+"1]")
	if n := utf8.RuneCountInString(got); n != MaxText || !strings.HasSuffix(got, "\n[message truncated]") {
		t.Errorf("a long text has %d characters", n)
	}
	b, _ := json.Marshal(map[string]string{"a": strings.Repeat("x", 1<<20)})
	if got := textOf(t, service(t, `{{.a}}`, ""), string(b)); len(got) != MaxText {
		t.Errorf("a text of a megabyte became %d bytes", len(got))
	}
	many := service(t, "{{.}}", "")
	many.Events[0].Each = "."
	const each = "display='T'\n[[events]]\nname='*'\neach='.'\ntopic='t'\ntext='{{.}}'"
	if s, err := parseService("test", each, newProgram()); err != nil {
		t.Fatal(err)
	} else if r, err := s.Handle(request(list), Filter{}); err != nil || len(r.Messages) != MaxMessages {
		t.Errorf("%d messages of one request, %v", len(r.Messages), err)
	}
}

// TestBrokenFiles holds that a file with a fault is refused with the place of the fault.
func TestBrokenFiles(t *testing.T) {
	const event = "[[events]]\nname = \"a\"\ntopic = \"t\"\n"
	for text, want := range map[string]string{
		"display = \"x":                                             "line 1",
		"\n\nnonsense":                                              "line 3",
		"categories = []\n" + event:                                 "display is missing",
		"display = \"x\"":                                           "no [[events]]",
		"display = \"x\"\nunknown = 1\n" + event:                    `unknown key "unknown"`,
		"display = \"x\"\nbody = \"yaml\"\n" + event:                "body is",
		"display = \"x\"\n" + event + event:                         "described twice",
		"display = \"x\"\n" + event + "text = '{{.a'":               "events 1 text:1",
		"display = \"x\"\n" + event + "text = '{{nosuch .}}'":       `function "nosuch" not defined`,
		"display = \"x\"\n" + event + "text = '{{template \"x\"}}'": `calls "x", which is not defined`,
		"display = \"x\"\n" + event + "text = '{{match \"[\" .a}}'": "missing closing ]",
		"display = \"x\"\n" + event + "text = '{{match .a .b}}'":    "must be a constant",
		"display = \"x\"\n[[events]]\nname = 5\ntopic = 't'":        "name must be",
		"display = \"x\"\n[[events]]\nname = 'a'\ntext = 'x'":       "has no topic",
		"display = \"x\"\n[signature]\nkind = \"magic\"\n" + event:  "signature.kind",
		"display = \"x\"\n[[options]]\nlabel = \"l\"\n" + event:     "a key is needed",
	} {
		files := fstest.MapFS{"mine.toml": {Data: []byte(text)}}
		_, err := new(Set).With(files)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "mine.toml: ") {
			t.Errorf("%q: %v, expected %q", text, err, want)
		}
	}
	for _, name := range []string{"Big.toml", "a b.toml", "..toml", strings.Repeat("a", 41) + ".toml"} {
		if _, err := new(Set).With(fstest.MapFS{name: {Data: []byte("display = 'x'\n" + event)}}); err == nil {
			t.Errorf("a file named %q was accepted", name)
		}
	}
	if _, err := new(Set).With(fstest.MapFS{"a.toml": {Data: make([]byte, maxFile+1)}}); err == nil {
		t.Error("a file that is too large was accepted")
	}
}

// TestOwnFiles holds that files of an operator replace included ones and use the shared templates.
func TestOwnFiles(t *testing.T) {
	included, err := Included()
	if err != nil {
		t.Fatal(err)
	}
	own, err := included.With(fstest.MapFS{
		"github.toml": {
			Data: []byte("display = 'Ours'\n[[events]]\nname = '*'\ntopic = 't'\ntext = '{{template \"hi\" .}}'"),
		},
		"ours.tmpl": {Data: []byte(`{{define "hi"}}hello{{end}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := textOf(t, own.Find("github"), "{}"); got != "hello" || included.Find("github").Display != "GitHub" {
		t.Errorf("%q; the included service is now %q", got, included.Find("github").Display)
	}
	if len(own.Names()) != len(included.Names()) {
		t.Errorf("%d services instead of %d", len(own.Names()), len(included.Names()))
	}
}

// TestFilters holds that only_events and exclude_events choose by the type of events, with patterns.
func TestFilters(t *testing.T) {
	s, err := parseService("test", "display='T'\nevent_types=['push']\nevent='{{.e}}'\ntopic='t'\n"+
		"[[events]]\nname='*'\ntext='x'", newProgram())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		only, except string
		sent         bool
	}{{"", "", true}, {"push", "", true}, {"pu*", "", true}, {"pull", "", false}, {"", "push", false}, {"", "*", false},
		{"push", "push", false}, {"p?sh", "pull", true}} {
		var f Filter
		if x.only != "" {
			f.Only = []string{x.only}
		}
		if x.except != "" {
			f.Except = []string{x.except}
		}
		r, err := s.Handle(request(`{"e": "push"}`), f)
		if err != nil || (len(r.Messages) > 0) != x.sent {
			t.Errorf("only %q, except %q: %d messages, %v", x.only, x.except, len(r.Messages), err)
		}
	}
}

// TestSignatures checks each kind of signature: right, wrong, absent and old.
func TestSignatures(t *testing.T) {
	const secret, body = "s3cret", `{"a":1}`
	now := time.Unix(1_700_000_000, 0)
	// printf '%s' TEXT | openssl dgst -sha256 -hmac s3cret
	digest := map[string]string{
		"body":   "5910e62016ef5034272c926c27071992a465c2335cecf41851bda071577f4f6d",
		"slack":  "bd185b05da99402f371e04f620aeca81515f08c0ef7fcf979fccaa4d2f87d47c",
		"stripe": "1698a50bc74d1ff1db85c4e0a5297c2ad9fdba245d5737cdb789e4cc6e098940",
	}
	for _, x := range []struct {
		s       Signature
		headers []string
	}{
		{Signature{Kind: "token", Header: "X-Gitlab-Token"}, []string{"X-Gitlab-Token", secret}},
		{Signature{Kind: "hmac", Header: "X-Hub-Signature-256", Prefix: "sha256="},
			[]string{"X-Hub-Signature-256", "sha256=" + digest["body"]}},
		{Signature{Kind: "slack", Header: "X-Slack-Signature"},
			[]string{"X-Slack-Signature", "v0=" + digest["slack"], "X-Slack-Request-Timestamp", "1700000000"}},
		{Signature{Kind: "stripe", Header: "Stripe-Signature"},
			[]string{"Stripe-Signature", "t=1700000000,v0=abc,v1=" + digest["stripe"]}},
	} {
		if err := x.s.Verify(request(body, x.headers...), secret, now); err != nil {
			t.Errorf("%s: the right signature: %v", x.s.Kind, err)
		}
		if x.s.Verify(request(body, x.headers...), "other", now) == nil {
			t.Errorf("%s: a wrong secret was accepted", x.s.Kind)
		}
		if x.s.Verify(request(body), secret, now) == nil {
			t.Errorf("%s: a request without signature was accepted", x.s.Kind)
		}
		if x.s.Kind == "token" {
			continue
		}
		if x.s.Verify(request(body+" ", x.headers...), secret, now) == nil {
			t.Errorf("%s: a changed body was accepted", x.s.Kind)
		}
		if timed := x.s.Kind != "hmac"; timed &&
			x.s.Verify(request(body, x.headers...), secret, now.Add(6*time.Minute)) == nil {
			t.Errorf("%s: an old request was accepted", x.s.Kind)
		}
	}
}

// FuzzServices changes payloads of every included service. There must be no panic, no mention, and no text beyond the
// limits.
func FuzzServices(f *testing.F) {
	set, err := Included()
	if err != nil {
		f.Fatal(err)
	}
	for i := range set.Names() {
		f.Add(
			i,
			"push",
			[]byte(`{"action":"opened","repository":{"name":"@**all**"},"alerts":[{"labels":{}}],"event":{}}`),
		)
	}
	f.Fuzz(func(t *testing.T, i int, event string, body []byte) {
		names := set.Names()
		s := set.Find(names[((i%len(names))+len(names))%len(names)])
		r := request(
			string(body),
			s.EventHeader,
			event,
			"X-Event-Key",
			event,
			"Content-Type",
			"multipart/form-data; boundary=x",
		)
		for _, kind := range []string{"application/json", "application/x-www-form-urlencoded",
			"multipart/form-data; boundary=x"} {
			r.ContentType = kind
			result, err := s.Handle(r, Filter{})
			if err != nil && len(result.Messages) > 0 {
				t.Fatalf("%s: messages beside the error %v", s.Name, err)
			}
			for _, m := range result.Messages {
				if utf8.RuneCountInString(m.Text) > MaxText || utf8.RuneCountInString(m.Topic) > MaxTopic {
					t.Fatalf("%s: too long", s.Name)
				}
				if s.Name != "slack" && mentionStart.MatchString(m.Text) {
					t.Fatalf("%s: a mention in %q", s.Name, m.Text)
				}
			}
		}
	})
}

// BenchmarkServices measures the recorded requests of all services, one after another.
func BenchmarkServices(b *testing.B) {
	set, err := Included()
	if err != nil {
		b.Fatal(err)
	}
	type one struct {
		s *Service
		r Request
	}
	var all []one
	for name, cases := range givenCases(b) {
		for _, c := range cases {
			if s := set.Find(name); s != nil {
				all = append(all, one{s, c.request(b)})
			}
		}
	}
	if len(all) == 0 {
		b.Skip("there are no recorded requests beside the project")
	}
	b.ResetTimer()
	for i := range b.N {
		x := all[i%len(all)]
		if _, err := x.s.Handle(x.r, Filter{}); err != nil && fmt.Sprint(err) == "" {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "payloads/s")
}

// BenchmarkIncluded measures the reading of all included services, which every start does.
func BenchmarkIncluded(b *testing.B) {
	for range b.N {
		if _, err := Included(); err != nil {
			b.Fatal(err)
		}
	}
}
