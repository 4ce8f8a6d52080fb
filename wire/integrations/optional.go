package integrations

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"
)

// A request is rendered up to three times, so that no alert is lost because a field is missing:
//
//   1. The templates run, and a missing field ends them. Complete payloads get their text here.
//   2. The templates run again, and a missing field is printed as the character gone. withoutGone then removes the
//      parts of the text that have no content.
//   3. If there is no text even so, the message shows the payload.
//
// Only a payload without any field that the templates know is refused.

// gone is printed instead of a value that is missing. It is a character for private use.
const gone = "\uE004"

// unknownForm says that an event is one of the service's, but has no text.
type unknownForm struct{ event string }

func (u *unknownForm) Error() string { return "the form of the event is not known: " + u.event }

// doesNotFit reports whether an error means that a field is missing or of another type.
func doesNotFit(err error) bool {
	var anomaly *Anomaly
	var unsupported *Unsupported
	var refused *Refused
	var missing *Missing
	var exec template.ExecError
	var unknown *unknownForm
	switch {
	case err == nil, errors.Is(err, errSkipped), errors.Is(err, errMalformed),
		errors.As(err, &refused), errors.As(err, &missing):
		return false
	case errors.As(err, &anomaly):
		return !anomaly.Foreign
	case errors.As(err, &unsupported):
		return !strings.ContainsFunc(unsupported.Event, unicode.IsLetter)
	}
	return errors.As(err, &exec) || errors.As(err, &unknown)
}

// ownParameters are the parameters of an address that are for this server. A form contains the address's parameters
// too.
var ownParameters = []string{"api_key", "stream", "topic", "only_events", "exclude_events"}

// recognizes reports whether a payload has a field that the service's templates read.
func (s *Service) recognizes(root any) bool {
	m, ok := root.(map[string]any)
	if !ok {
		return false
	}
	for name := range m {
		if s.program().read[name] && !(s.Body == bodyForm && slices.Contains(ownParameters, name)) {
			return true
		}
	}
	return false
}

// handleOptional handles a request whose templates ended with an error because a field is missing.
func (s *Service) handleOptional(i *instance, root any, filter Filter) (Result, error) {
	i.run.restart(true)
	out, err := s.handle(i, root, filter)
	var refused *Refused
	var missing *Missing
	var anomaly *Anomaly
	switch {
	case errors.As(err, &refused), errors.As(err, &missing), errors.As(err, &anomaly) && anomaly.Foreign:
		return out, err
	case err == nil && (len(out.Messages) > 0 || out.filtered):
		return out, nil
	}
	out.Messages = []Message{s.showPayload(i, root, out.Event)}
	return out, nil
}

// maxShown bounds the part of a payload that a message shows, in characters. The rest of a message is its introduction.
const maxShown = MaxText / 2

// showPayload returns the message about an event that has no text of its own.
func (s *Service) showPayload(i *instance, root any, event string) Message {
	i.run.restart(true)
	m := Message{Topic: s.Display}
	if s.Topic != "" {
		if topic, err := i.render("service topic", root); err == nil {
			m.Topic = s.topicOf(topic)
		}
	}
	name := ""
	if event != "" {
		name = " (" + string(code(truncate(event, MaxTopic, "..."))) + ")"
	}
	if object, ok := root.(map[string]any); ok && s.Body == bodyForm {
		fields := map[string]any{}
		for name, value := range object {
			if !slices.Contains(ownParameters, name) { // such as the bot's key
				fields[name] = value
			}
		}
		root = fields
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if e.Encode(root) != nil {
		panic("BUG: a decoded payload cannot be encoded")
	}
	shown := fenced("```", "json", truncate(strings.TrimSpace(b.String()), maxShown, "\n..."))
	m.Text = finish("**" + inline(s.Display) + "** sent an event" + name + " in a form that is not known here:\n\n" +
		string(fenced("```", "spoiler Payload", string(shown))))
	return m
}

// topicOf returns the topic of a message from the output of its template.
func (s *Service) topicOf(rendered string) string {
	rendered = plainTopic(rendered)
	if strings.Contains(rendered, gone) {
		rendered = strings.Trim(withoutGone(rendered), " \t\n/:-")
	}
	rendered = strings.TrimSpace(inline(rendered))
	return truncate(cmp.Or(rendered, s.Display), MaxTopic, "...")
}

var (
	// goneLines are lines and blocks without content.
	goneLines = regexp.MustCompile("(?m)(?:^[ ]*[*•-][ ]+)?(?:^|[ ])\\*\\*[^*\\n]+\\*\\*:?[ ]*[`*]*" + gone +
		"[`*]*[.]?[ ]*(?:\\n|$)" +
		"|^[ ]*[*•-][ ]+(?:[^\\n:*]*:)?[ ]*[`*]*" + gone + "[`*]*[.]?[ ]*(?:\\n|$)")
	goneFences = regexp.MustCompile("(?m)^(?:~{3,}|`{3,})[^`~\\n]*\\n(?:[ ]*" + gone + "[ ]*\\n)+(?:~{3,}|`{3,})$")
	// goneTargets are links without an address.
	goneTargets = regexp.MustCompile(`\[((?:[^\[\]\n]|\[[^\]\n]*\])*)\]\([^()\n]*` + gone + `[^()\n]*\)`)
	// goneLabels are links without a label.
	goneLabels = regexp.MustCompile(`\[[ #:]*` + gone + `[ #:]*\]\(([^()\s]+)\)`)
	// goneWrapped are the signs and words around a value.
	goneWrapped = regexp.MustCompile(`\*\*` + gone + `\*\*|~~` + gone + `~~|<time:[ ]?` + gone + `[ ]?>|\*` + gone +
		`\*` +
		"|`[ :]*" + gone + "[ :]*`" + `|"` + gone + `"|'` + gone + `'|\([a-z#: ]*` + gone +
		`[a-z ]*\)|\[` + gone + `\]|<` + gone + `>|[#$]` + gone + `|` + gone + `'s|` + gone + `,? +` + gone +
		`|\b(?:by|in|on|to|from|for|with|as|at|of|into|via|within) ` + gone)
	goneStart = regexp.MustCompile(`(?m)^([ ]*(?:[*•-][ ]+)?)` + gone + `[ :,-]*([a-z]?)`)
	goneEnd   = regexp.MustCompile(`(?m)[ ]+` + gone + `|[ :,]*` + gone + `[ ]*$`)
)

// maxGonePasses bounds how often withoutGone looks for signs around signs, such as "**[gone](gone)**".
const maxGonePasses = 8

// withoutGone removes the missing values from a text, with the words and signs that belong to them.
func withoutGone(s string) string {
	for range maxGonePasses {
		before := s
		s = goneFences.ReplaceAllString(s, gone)
		s = goneTargets.ReplaceAllString(s, "$1")
		s = goneLabels.ReplaceAllString(s, "$1")
		s = goneLines.ReplaceAllString(s, "")
		s = goneWrapped.ReplaceAllString(s, gone)
		if s == before {
			break
		}
	}
	s = goneStart.ReplaceAllStringFunc(s, func(m string) string {
		p := goneStart.FindStringSubmatch(m)
		c, n := utf8.DecodeRuneInString(p[2])
		if n == 0 {
			return p[1]
		}
		return p[1] + string(unicode.ToUpper(c))
	})
	s = goneEnd.ReplaceAllString(s, "")
	return strings.ReplaceAll(s, gone, "")
}

// Quoted returns the body of a request as hidden code that a message can show, at most maxShown characters of it.
func Quoted(body []byte) string {
	s := strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(string(body), "\uFFFD"), "\x00", ""))
	if s == "" {
		return ""
	}
	shown := fenced("```", "", truncate(s, maxShown, "\n..."))
	return finish(string(fenced("```", "spoiler Request", string(shown))))
}
