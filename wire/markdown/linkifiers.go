package markdown

//lint:file-ignore ST1005 these errors are shown to administrators as they are: the protocol defines them.

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/yosida95/uritemplate/v3"
)

// maxPattern is the longest pattern or template of a linkifier, in bytes.
const maxPattern = 4096

// Linkifier turns text that matches a pattern into links.
type Linkifier struct {
	Pattern  string
	Template string
	match    *regexp.Regexp // the pattern with the characters around it: group 1 before the match, group 2 the match
	expand   *uritemplate.Template
	names    []string // of the groups of match
	prefix   string   // literal text at the start of every match, if there is any
}

// CompileLinkifier checks and compiles a linkifier. Its errors are texts of the protocol, shown to administrators.
func CompileLinkifier(pattern, urlTemplate string) (Linkifier, error) {
	l := Linkifier{Pattern: pattern, Template: urlTemplate}
	if len(pattern) > maxPattern || len(urlTemplate) > maxPattern {
		return l, fmt.Errorf("Bad regular expression: pattern too large - compile failed")
	}
	bare, err := regexp.Compile(pattern)
	if err != nil {
		return l, badPattern(err)
	}
	l.prefix, _ = bare.LiteralPrefix()
	if l.match, err = regexp.Compile(`(^|[\s\x{85}\pZ'"(,:<])(` + pattern + `)(?:$|[^\pL\pN])`); err != nil {
		return l, badPattern(err)
	}
	if l.expand, err = uritemplate.New(urlTemplate); err != nil {
		return l, fmt.Errorf("Invalid URL template.")
	}
	l.names = l.match.SubexpNames()
	var groups []string
	for _, n := range l.names {
		if n != "" {
			groups = append(groups, n)
		}
	}
	variables := l.expand.Varnames()
	for _, v := range sorted(variables) {
		if !slices.Contains(groups, v) {
			return l, fmt.Errorf("Group %s in URL template is not present in linkifier pattern.", quoteName(v))
		}
	}
	for _, g := range sorted(groups) {
		if !slices.Contains(variables, g) {
			return l, fmt.Errorf("Group %s in linkifier pattern is not present in URL template.", quoteName(g))
		}
	}
	return l, nil
}

// IsWebTemplate reports whether every address of a URL template begins with http:// or https://.
func IsWebTemplate(template string) bool {
	scheme, _, ok := strings.Cut(strings.ToLower(template), "://")
	return ok && (scheme == "http" || scheme == "https")
}

// patternErrors are the messages of RE2, the library of the reference server, for the errors of Go's package.
var patternErrors = map[syntax.ErrorCode]string{
	syntax.ErrInvalidNamedCapture:   "invalid named capture group",
	syntax.ErrInvalidPerlOp:         "invalid perl operator",
	syntax.ErrInvalidRepeatOp:       "bad repetition operator",
	syntax.ErrInvalidRepeatSize:     "invalid repetition size",
	syntax.ErrMissingBracket:        "missing ]",
	syntax.ErrMissingParen:          "missing )",
	syntax.ErrMissingRepeatArgument: "no argument for repetition operator",
	syntax.ErrTrailingBackslash:     "trailing \\",
	syntax.ErrLarge:                 "pattern too large - compile failed",
	syntax.ErrNestingDepth:          "pattern too large - compile failed",
}

// badPattern returns the error of a pattern in the words of RE2: the fault, then the part of the pattern that has it.
func badPattern(err error) error {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("Bad regular expression: %w", err)
	}
	text := cmp.Or(patternErrors[e.Code], string(e.Code))
	if e.Expr != "" && e.Code != syntax.ErrLarge && e.Code != syntax.ErrNestingDepth {
		text += ": " + e.Expr
	}
	return errors.New("Bad regular expression: " + text)
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return slices.Compact(s)
}

func quoteName(s string) string { return "'" + s + "'" }

// find returns the first match at i or later: its position and its address. A match at i itself needs a character
// before i that allows it.
func (l *Linkifier) find(text string, i int) (start, end int, href string, ok bool) {
	if !IsWebTemplate(l.Template) { // such linkifiers were accepted by older versions and come with imports
		return 0, 0, "", false
	}
	for i <= len(text) {
		if l.prefix != "" && !strings.Contains(text[i:], l.prefix) {
			return 0, 0, "", false
		}
		m := l.match.FindStringSubmatchIndex(text[i:])
		if m == nil {
			return 0, 0, "", false
		}
		start, end = i+m[4], i+m[5]
		if start == end || !opensLinkifier(text, start) {
			i = start + 1
			continue
		}
		values := uritemplate.Values{}
		for g, name := range l.names {
			if name != "" {
				v := ""
				if m[2*g] >= 0 {
					v = text[i+m[2*g] : i+m[2*g+1]]
				}
				values.Set(name, uritemplate.String(v))
			}
		}
		href, err := l.expand.Expand(values)
		if err != nil {
			i = end
			continue
		}
		return start, end, href, true
	}
	return 0, 0, "", false
}

// opensLinkifier checks the character before i, which the pattern cannot see when the search starts at i.
func opensLinkifier(text string, i int) bool {
	return opensLink(text, i)
}

// linkify replaces the matches of the organization's linkifiers, in their order.
func (r *renderer) linkify(text string) string {
	for i := range r.options.Linkifiers {
		l := &r.options.Linkifiers[i]
		e := rewriter{src: text}
		for at := 0; ; {
			start, end, href, ok := l.find(text, at)
			if !ok {
				break
			}
			at = end
			href, ok = cleanAddress(r.unmark(href))
			if !ok {
				continue
			}
			a := r.element(tagA, attr{"href", r.localAddress(href)})
			r.emit(a, text[start:end], false)
			r.result.HasLink = true
			e.replace(start, end, r.placeholder(a))
		}
		text = e.finish()
	}
	return text
}

// TopicLink is a link in the name of a topic.
type TopicLink struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}

// endsTopicLink are the characters that no bare link in a topic contains; each part between them has at most one
// link.
const endsTopicLink = " !;),'\""

// TopicLinks returns the links of a topic in order: the matches of linkifiers in their order, then bare links.
func TopicLinks(topic string, o *Options) []TopicLink {
	type found struct {
		start, end int
		url        string
	}
	var links []found
	free := func(start, end int) bool {
		return !slices.ContainsFunc(links, func(f found) bool { return start < f.end && f.start < end })
	}
	for i := range o.Linkifiers {
		l := &o.Linkifiers[i]
		for at := 0; ; {
			start, end, href, ok := l.find(topic, at)
			if !ok {
				break
			}
			at = end
			if href, ok = cleanAddress(href); ok && free(start, end) {
				links = append(links, found{start, end, href})
			}
		}
	}
	if mayLink(topic) {
		for from := 0; from < len(topic); {
			part := topic[from:]
			if n := strings.IndexAny(part, endsTopicLink); n >= 0 {
				part = part[:n]
			}
			s := linkScanner{text: part}
			if start, end := s.next(0); start >= 0 && free(from+start, from+end) {
				url := part[start:end]
				if a, ok := splitAddress(url); ok && a.scheme == "" {
					url = "https://" + url
				}
				links = append(links, found{from + start, from + end, url})
			}
			from += len(part) + 1
		}
	}
	slices.SortFunc(links, func(a, b found) int { return a.start - b.start })
	out := make([]TopicLink, len(links))
	for i, f := range links {
		out[i] = TopicLink{topic[f.start:f.end], f.url}
	}
	return out
}
