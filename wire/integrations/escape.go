package integrations

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// block is a text of several lines that a template has asked for, such as a quoted description. Its Markdown is kept.
type block string

// mark is between the @ and the stars of a mention that a template has asked for. It is a character for private use,
// which is taken out of payloads.
const mark = "\uE000"

// gap breaks up a sequence of characters that would have a meaning. It is a space without width.
const gap = "\u200B"

// text returns a value as text: strings as they are, numbers as they are spelled. It returns an *Anomaly for maps,
// lists and null.
func text(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case block:
		return string(v), nil
	case json.Number:
		return v.String(), nil
	case bool, int, int64, float64:
		return fmt.Sprint(v), nil
	}
	return "", &Anomaly{Reason: fmt.Sprintf("a value that is printed is %T", v)}
}

var inlineReplacer = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "](", "]"+gap+"(", mark, "")

// inline makes a text one line that cannot end a link's label or begin a block.
func inline(s string) string { return inlineReplacer.Replace(s) }

// multiline returns a text of several lines.
func multiline(s string) block { return block(strings.ReplaceAll(s, mark, "")) }

var (
	mentionStart = regexp.MustCompile(`@(_?\*)`)
	slashCommand = regexp.MustCompile(`^/(me|poll|todo)\b`)
)

// finish makes a rendered text ready to be sent: nothing in it mentions users but the mentions of templates, and it is
// no command of the compose box.
func finish(s string) string {
	s = strings.TrimRight(strings.TrimLeft(s, "\n"), " \n\t")
	s = mentionStart.ReplaceAllString(s, "@"+gap+"$1")
	s = strings.NewReplacer(mark, "", gone, "").Replace(s)
	if slashCommand.MatchString(s) {
		s = gap + s
	}
	return strings.ReplaceAll(s, "\x00", "")
}

// truncate shortens a text to at most n characters, of which end is a part.
func truncate(s string, n int, end string) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	keep := max(n-utf8.RuneCountInString(end), 0)
	for i := range s {
		if keep == 0 {
			return s[:i] + end
		}
		keep--
	}
	return s
}
