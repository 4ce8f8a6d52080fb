package slack

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/wire/imports"
)

// converter converts texts of Slack to Markdown.
type converter struct {
	mentions *imports.Mentions
	user     func(id string) string // key of a user
	channels map[string]string      // names of channels by id
}

// span is a part of a text that the emphasis does not change: code or a reference <...>.
type span struct {
	from, to int
	kind     spanKind
}

type spanKind int

const (
	reference spanKind = iota
	inlineCode
	codeBlock
)

const fence = "```"

// spans returns the code and the references of a text.
func spans(s string) (list []span) {
	var ends map[int]int
	for i := 0; i < len(s); {
		end, kind := -1, reference
		switch {
		case strings.HasPrefix(s[i:], fence):
			if n := strings.Index(s[i+len(fence):], fence); n >= 0 {
				end, kind = i+n+2*len(fence), codeBlock
			}
		case s[i] == '`':
			if n := strings.IndexAny(s[i+1:], "`\n"); n > 0 && s[i+1+n] == '`' {
				end, kind = i+n+2, inlineCode
			}
		case s[i] == '<':
			if ends == nil {
				ends = referenceEnds(s)
			}
			if n, ok := ends[i]; ok && isReference(s[i+1:n]) {
				end = n + 1
			}
		}
		if end < 0 {
			i++
			continue
		}
		list = append(list, span{i, end, kind})
		i = end
	}
	return list
}

// referenceEnds returns the position of the > of each < that has one in its line. References may contain others.
func referenceEnds(s string) map[int]int {
	ends := map[int]int{}
	var stack []int
	for i := range len(s) {
		switch s[i] {
		case '<':
			stack = append(stack, i)
		case '>':
			if len(stack) > 0 {
				ends[stack[len(stack)-1]] = i
				stack = stack[:len(stack)-1]
			}
		case '\n':
			stack = stack[:0]
		}
	}
	return ends
}

// isReference reports whether the text between < and > is a mention, a channel, a command or a link. Other angle
// brackets are escaped in texts of Slack.
func isReference(inner string) bool {
	if inner == "" || strings.IndexByte("@#!", inner[0]) >= 0 {
		return inner != ""
	}
	for i, c := range []byte(inner) {
		if c == ':' {
			return i > 0
		}
		if !imports.Word(c) && strings.IndexByte("+.-", c) < 0 {
			return false
		}
	}
	return false
}

// text converts a text.
func (c *converter) text(s string) string {
	for _, m := range []struct {
		mark byte
		to   string
	}{{'*', "**"}, {'~', "~~"}, {'_', "*"}} {
		s = emphasis(s, m.mark, m.to)
	}
	var out []byte
	at := 0
	for _, p := range spans(s) {
		out = append(out, unescape(s[at:p.from])...)
		part := s[p.from:p.to]
		at = p.to
		switch p.kind {
		case codeBlock:
			out = appendBlock(out, c.plain(part[len(fence):len(part)-len(fence)]), s[at:])
			at += len(s[at:]) - len(strings.TrimLeft(s[at:], " \t"))
		case inlineCode:
			out = append(out, c.plain(part)...)
		case reference:
			out = append(out, c.reference(part)...)
		}
	}
	return string(append(out, unescape(s[at:])...))
}

// appendBlock appends a block of code. Its fences are alone in their lines, so that the first line of the code is no
// name of a language, and the rest of the message is behind the block. A block in a quoted line is quoted.
func appendBlock(out []byte, code, rest string) []byte {
	start := bytes.LastIndexByte(out, '\n') + 1
	prefix := string(out[start:])
	switch strings.Trim(prefix, "> \t") {
	case "":
		out = out[:start]
		prefix = strings.Repeat("> ", strings.Count(prefix, ">"))
	default:
		out = append(bytes.TrimRight(out, " \t"), '\n')
		prefix = ""
	}
	code = strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(code, "\r\n", "\n"), "\n"), "\n")
	for _, line := range append(append([]string{fence}, strings.Split(code, "\n")...), fence) {
		out = append(append(append(out, prefix...), line...), '\n')
	}
	switch rest = strings.TrimLeft(rest, " \t"); {
	case rest == "" || rest[0] == '\n':
		out = out[:len(out)-1]
	case prefix != "":
		out = append(out, prefix...)
	}
	return out
}

var entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

func unescape(s string) string { return entities.Replace(s) }

// plain returns a text without markup, as it is shown in code and in the labels of links.
func (c *converter) plain(s string) string {
	var out strings.Builder
	ends := referenceEnds(s)
	at := 0
	for i := 0; i < len(s); i++ {
		end, ok := ends[i]
		if s[i] != '<' || !ok || !isReference(s[i+1:end]) {
			continue
		}
		out.WriteString(unescape(s[at:i]))
		out.WriteString(c.label(s[i+1 : end]))
		i, at = end, end+1
	}
	out.WriteString(unescape(s[at:]))
	return out.String()
}

// label returns what Slack shows for a reference.
func (c *converter) label(inner string) string {
	target, label, _ := strings.Cut(inner, "|")
	label = unescape(label)
	switch target[0] {
	case '@':
		if name := c.mentions.Name(c.user(target[1:])); name != "" {
			return "@" + name
		}
		return "@" + cmp.Or(strings.TrimPrefix(label, "@"), target[1:])
	case '#':
		return "#" + cmp.Or(c.channels[target[1:]], strings.TrimPrefix(label, "#"), target[1:])
	case '!':
		return cmp.Or(label, "@"+strings.TrimPrefix(target[1:], "subteam^"))
	}
	return cmp.Or(label, unescape(target))
}

// emphasis replaces a mark before and after a text, at the edges of words.
func emphasis(s string, mark byte, to string) string {
	if strings.IndexByte(s, mark) < 0 {
		return s
	}
	var out strings.Builder
	list := spans(s)
	at := 0
	for i := 0; i < len(s); {
		if len(list) > 0 && i >= list[0].from {
			i, list = list[0].to, list[1:]
			continue
		}
		end := -1
		if before, n := utf8.DecodeLastRuneInString(s[:i]); s[i] == mark && (n == 0 || edge(before, mark, "({[")) {
			end = closing(s, i+1, mark, list)
		}
		if end < 0 {
			i++
			continue
		}
		out.WriteString(s[at:i] + to + s[i+1:end] + to)
		i, at = end+1, end+1
		for len(list) > 0 && list[0].to <= i {
			list = list[1:]
		}
	}
	out.WriteString(s[at:])
	return out.String()
}

// closing returns the position of the mark that ends an emphasis that begins at from; -1 if there is none.
func closing(s string, from int, mark byte, list []span) int {
	for i := from; i < len(s); {
		for len(list) > 0 && list[0].to <= i {
			list = list[1:]
		}
		if len(list) > 0 && i >= list[0].from {
			if list[0].kind == codeBlock {
				return -1
			}
			i = list[0].to
			continue
		}
		switch {
		case s[i] == mark:
			after, n := utf8.DecodeRuneInString(s[i+1:])
			if i > from && (n == 0 || edge(after, mark, ")}]")) {
				return i
			}
			return -1
		case s[i] < ' ' || s[i] == 0x7f:
			return -1
		}
		i++
	}
	return -1
}

// Code points that belong to the emoji before them.
const (
	variationSelector = 0xfe0f
	zeroWidthJoiner   = 0x200d
)

// edge reports whether a character may be beside an emphasis: a blank, punctuation, a symbol, another mark or a
// bracket, but no letter or digit of any script.
func edge(c rune, mark byte, brackets string) bool {
	switch {
	case c == rune(mark) || c == utf8.RuneError:
		return false
	case c == '\n' || c == '\t' || strings.ContainsRune(brackets, c):
		return true
	case c >= utf8.RuneSelf:
		return c == variationSelector || c == zeroWidthJoiner ||
			!unicode.IsLetter(c) && !unicode.IsNumber(c) && !unicode.IsMark(c)
	}
	return strings.ContainsRune(" !\"#$%&'+,-./:;<=>?|^*_~", c)
}

// reference converts one <...>: a mention, a channel or a link.
func (c *converter) reference(s string) string {
	inner := s[1 : len(s)-1]
	target, label, _ := strings.Cut(inner, "|")
	switch {
	case inner[0] == '@':
		if mention, ok := c.mentions.Of(c.user(target[1:])); ok {
			return mention
		}
		if label == "" {
			return s
		}
	case inner[0] == '#':
		if name := c.channels[target[1:]]; name != "" {
			return "#**" + name + "**"
		}
	case target == "!everyone" || target == "!channel" || target == "!here":
		return "@**all**"
	case strings.HasPrefix(target, "!date^"):
		return date(target, unescape(label))
	case inner[0] == '!':
	case strings.HasPrefix(target, "mailto:"):
		return unescape(target)
	case strings.Contains(target, "://") || strings.HasPrefix(target, "tel:"):
		if label != "" {
			return imports.Link(c.plain(label), unescape(target))
		}
		return unescape(target)
	default:
		return s
	}
	return c.label(inner)
}

// date converts <!date^seconds^format^link|label>: to its label, or without one to the time.
func date(target, label string) string {
	parts := strings.SplitN(target, "^", 4)
	if label == "" {
		seconds, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil || seconds < 0 || seconds >= 1<<33 {
			return parts[1]
		}
		return "<time:" + time.Unix(seconds, 0).UTC().Format(time.RFC3339) + ">"
	}
	if len(parts) == 4 && strings.Contains(parts[3], "://") {
		return imports.Link(label, unescape(parts[3]))
	}
	return label
}
