package integrations

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"unicode/utf8"
)

const (
	// MaxMessages bounds the messages that one request makes. The largest known number is that of the alerts of one
	// group with different topics.
	MaxMessages = 20
	// MaxTopic and MaxText are the numbers of characters of a topic and of a text (protocol). Longer ones are
	// shortened.
	MaxTopic = 60
	MaxText  = 10_000
)

// The formats of bodies.
const (
	bodyJSON = "json" // one JSON value, whatever the content type says
	bodyForm = "form" // fields of a form or of the address; with a parameter: JSON in that field
	bodyXML  = "xml"  // or JSON, if it begins with {
	bodyText = "text"
)

// Service is one service: its description, and its compiled templates.
type Service struct {
	Name       string   `toml:"-"`
	Display    string   `toml:"display"`
	Client     string   `toml:"client"`       // the client name on messages; Zulip<Name>Webhook by default
	Webhook    string   `toml:"webhook_name"` // the name in errors; by default the client's without Zulip and Webhook
	Categories []string `toml:"categories"`
	Docs       string   `toml:"docs"`      // the page of the service that says how to enter an address
	Body       string   `toml:"body"`      // json, form, xml or text
	Parameter  string   `toml:"parameter"` // with form: the field that holds JSON
	EventTypes []string `toml:"event_types"`
	Options    []Option `toml:"options"`
	// EventHeader is the header that names the event. Requests without it are refused.
	EventHeader string     `toml:"event_header"`
	Signature   *Signature `toml:"signature"`

	Event    string   `toml:"event"`    // the template that names the event
	Defines  string   `toml:"defines"`  // templates for several events
	Topic    string   `toml:"topic"`    // the topic of events without their own
	Ignore   []string `toml:"ignore"`   // events without a message
	Answer   Answer   `toml:"answer"`   // fields of the answer, each a template
	Identify string   `toml:"identify"` // "true" if the answer contains the name and address of the bot
	Invalid  string   `toml:"invalid"`  // the error for a body in a wrong format, instead of "Malformed JSON"
	Events   []event  `toml:"events"`
	// Fields are names in payloads that no template reads. A payload with only these is the service's too.
	Fields []string `toml:"fields"`

	program func() *program // compiles the templates when it is first called
	byName  map[string]int  // index into Events
}

// Option is a parameter of a service's address.
type Option struct {
	Key   string `toml:"key"`
	Label string `toml:"label"`
	Type  string `toml:"type"` // text or checkbox
}

// event says which message an event becomes.
type event struct {
	Name  any    `toml:"name"` // a name or a list of names
	Type  string `toml:"type"` // the name for only_events and exclude_events, if it differs
	Skip  string `toml:"skip"`
	Each  string `toml:"each"` // a pipeline with a list: one message for each element, which is the dot
	Topic string `toml:"topic"`
	Text  string `toml:"text"`
}

// Filter chooses events by their type. Patterns have * and ?.
type Filter struct{ Only, Except []string }

// wants reports whether events of a type pass.
func (f Filter) wants(kind string) bool {
	matches := func(patterns []string) bool {
		for _, p := range patterns {
			if matchName(p, kind) {
				return true
			}
		}
		return false
	}
	return (len(f.Only) == 0 || matches(f.Only)) && !matches(f.Except)
}

// Message is a topic and a text to send.
type Message struct{ Topic, Text string }

// errSkipped ends a template whose event is not worth a message.
var errSkipped = errors.New("skipped")

// Anomaly says that a payload is not as the service's payloads are.
type Anomaly struct {
	Service, Reason string
	Foreign         bool // the payload is not the service's at all
}

func (a *Anomaly) Error() string { return a.Service + ": the payload does not fit: " + a.Reason }

// Unsupported says that there is no text for an event.
type Unsupported struct{ Event string }

func (u *Unsupported) Error() string { return fmt.Sprintf("the event %q is not supported", u.Event) }

// Refused is an error that a service's file words itself.
type Refused struct{ Message string }

func (r *Refused) Error() string { return r.Message }

// Malformed says that a body is not in the format of its service.
type Malformed struct{ Message string }

func (m *Malformed) Error() string { return m.Message }

// Missing says that a parameter is missing.
type Missing struct{ Parameter string }

func (m *Missing) Error() string { return "the parameter " + m.Parameter + " is missing" }

// MissingHeader says that the header with the event's name is missing.
type MissingHeader struct{ Service, Header string }

func (m *MissingHeader) Error() string { return "the header " + m.Header + " is missing" }

// index sets byName.
func (s *Service) index() error {
	s.byName = map[string]int{}
	for i := range s.Events {
		names, err := s.Events[i].names()
		if err != nil {
			return fmt.Errorf("event %d: %w", i+1, err)
		}
		for _, n := range names {
			if _, ok := s.byName[n]; ok {
				return fmt.Errorf("event %d: the event %q is described twice", i+1, n)
			}
			s.byName[n] = i
		}
		if s.Events[i].Topic == "" && s.Topic == "" {
			return fmt.Errorf("event %d has no topic, and the file neither", i+1)
		}
	}
	return nil
}

// compile parses the templates of a service. Those of shared are available in it. Errors name the template.
func (s *Service) compile(shared *program) (*program, error) {
	p := shared.clone()
	for _, name := range s.Fields {
		p.read[name] = true
	}
	add := func(name, text string) error {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		return p.add(name, text)
	}
	for name, text := range map[string]string{"service defines": s.Defines, "service event": s.Event,
		"service topic": s.Topic, "service identify": s.Identify, "answer ok": s.Answer.OK,
		"answer challenge": s.Answer.Challenge} {
		if err := add(name, text); err != nil {
			return nil, err
		}
	}
	for i := range s.Events {
		e := &s.Events[i]
		if e.Each != "" {
			if err := add(templateName(i, "each"), "{{capture ("+e.Each+")}}"); err != nil {
				return nil, err
			}
		}
		for part, text := range map[string]string{"skip": e.Skip, "topic": e.Topic, "text": e.Text} {
			if err := add(templateName(i, part), text); err != nil {
				return nil, err
			}
		}
	}
	return p, p.finish()
}

func templateName(i int, part string) string { return fmt.Sprintf("events %d %s", i+1, part) }

// names returns the names of an event, which are one text or a list in the file.
func (e *event) names() ([]string, error) {
	switch n := e.Name.(type) {
	case string:
		return []string{n}, nil
	case []any:
		var out []string
		for _, v := range n {
			name, ok := v.(string)
			if !ok {
				return nil, errors.New("a name is no text")
			}
			out = append(out, name)
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	return nil, errors.New("name must be a text or a list of texts")
}

// Answer has the fields that some services expect. Empty fields are left out.
type Answer struct {
	OK        string `toml:"ok"`        // "true" or another text for false
	Challenge string `toml:"challenge"` // a text of the request, which proves that the address is read
}

// Result is the outcome of a request: the messages to send and the fields of the answer.
type Result struct {
	Event    string // the name of the event
	Messages []Message
	Answer   Answer
	Identify bool // the answer contains the name and address of the bot
	filtered bool // the filter did not want the event
	empty    bool // the text of a message was empty
}

// Handle turns a request into messages. No message and no error means that the event is not worth one. It returns a
// *Malformed, *Missing, *MissingHeader, *Anomaly, *Unsupported or *Refused.
func (s *Service) Handle(r Request, filter Filter) (Result, error) {
	var out Result
	if s.EventHeader != "" && r.Header(s.EventHeader) == "" {
		return out, &MissingHeader{s.Name, s.EventHeader}
	}
	root, err := s.decode(r)
	if err != nil {
		return out, s.explain(err)
	}
	return s.respond(root, r, filter)
}

// respond turns a decoded payload into messages.
func (s *Service) respond(root any, r Request, filter Filter) (Result, error) {
	p := s.program()
	i := p.take(root, r)
	defer p.give(i)
	out, err := s.handle(i, root, filter)
	lost := err == nil && out.empty && len(out.Messages) == 0
	if (lost || doesNotFit(err)) && s.recognizes(root) {
		out, err = s.handleOptional(i, root, filter)
	}
	if err != nil {
		return Result{Event: out.Event, Answer: out.Answer}, s.explain(err)
	}
	return out, nil
}

// explain turns an error of a template into one for the service.
func (s *Service) explain(err error) error {
	var (
		anomaly     *Anomaly
		unsupported *Unsupported
		refused     *Refused
		missing     *Missing
		exec        template.ExecError
	)
	switch {
	case errors.Is(err, errSkipped):
		return nil
	case errors.Is(err, errMalformed):
		return &Malformed{Message: s.Invalid}
	case errors.As(err, &unsupported):
		return unsupported
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &missing):
		return missing
	case errors.As(err, &anomaly):
		return &Anomaly{Service: s.Name, Reason: anomaly.Reason, Foreign: anomaly.Foreign}
	case errors.As(err, &exec):
		return &Anomaly{Service: s.Name, Reason: exec.Error()}
	}
	return &Anomaly{Service: s.Name, Reason: err.Error()}
}

func (s *Service) handle(i *instance, root any, filter Filter) (out Result, err error) {
	if s.Event != "" {
		if out.Event, err = i.render("service event", root); err != nil {
			return out, err
		}
		out.Event = strings.TrimSpace(strings.ReplaceAll(out.Event, gone, ""))
	}
	identify, err := i.renderOptional("service identify", s.Identify, root)
	if err != nil {
		return out, err
	}
	out.Identify = strings.TrimSpace(identify) == "true"
	if out.Answer.OK, err = i.renderOptional("answer ok", s.Answer.OK, root); err != nil {
		return out, err
	}
	if out.Answer.Challenge, err = i.renderOptional("answer challenge", s.Answer.Challenge, root); err != nil {
		return out, err
	}
	for _, name := range s.Ignore {
		if name == out.Event {
			return out, nil
		}
	}
	at, ok := s.byName[out.Event]
	if !ok {
		if at, ok = s.byName["*"]; !ok {
			return out, &Unsupported{out.Event}
		}
	}
	e := &s.Events[at]
	if len(s.EventTypes) > 0 && !filter.wants(cmp.Or(e.Type, out.Event)) {
		out.filtered = true
		return out, nil
	}
	dots := []any{root}
	if e.Each != "" {
		if _, err := i.render(templateName(at, "each"), root); err != nil {
			return out, err
		}
		if dots, err = i.run.listOf(i.run.captured); err != nil {
			return out, err
		}
		out.empty = len(dots) == 0
	}
	for _, dot := range dots {
		m, send, err := s.message(i, at, dot)
		out.empty = out.empty || send && m.Text == ""
		send = send && m.Text != ""
		if err != nil && !(errors.Is(err, errSkipped) && e.Each != "") {
			return out, err
		}
		if send && err == nil {
			if out.Messages = append(out.Messages, m); len(out.Messages) == MaxMessages {
				break
			}
		}
	}
	return out, nil
}

// message renders one message of an event. send is false if there is nothing to send.
func (s *Service) message(i *instance, at int, dot any) (m Message, send bool, err error) {
	e := &s.Events[at]
	if e.Skip != "" {
		skip, err := i.render(templateName(at, "skip"), dot)
		if err != nil || strings.TrimSpace(skip) == "true" {
			return m, false, err
		}
	}
	if strings.TrimSpace(e.Text) == "" {
		return m, false, nil
	}
	if m.Text, err = i.render(templateName(at, "text"), dot); err != nil {
		return m, false, err
	}
	topic := "service topic"
	if e.Topic != "" {
		topic = templateName(at, "topic")
	}
	if m.Topic, err = i.render(topic, dot); err != nil {
		return m, false, err
	}
	m.Topic = s.topicOf(m.Topic)
	if strings.Contains(m.Text, gone) {
		m.Text = withoutGone(m.Text)
	}
	m.Text = finish(m.Text)
	if utf8.RuneCountInString(m.Text) > MaxText {
		m.Text = truncate(m.Text, MaxText, "\n[message truncated]")
	}
	return m, true, nil
}

// plainTopic removes the characters of a topic that are there for Markdown only.
func plainTopic(s string) string { return strings.NewReplacer(gap, "", mark, "").Replace(s) }
