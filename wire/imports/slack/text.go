package slack

import (
	"strings"

	"parley/wire/imports"
)

// converter converts texts of Slack to Markdown.
type converter struct {
	mentions *imports.Mentions
	user     func(id string) string // key of a user
	channels map[string]string      // names of channels by id
}

// span is a part of a text that the emphasis does not change.
type span struct {
	from, to int
	code     bool
}

// spans returns the code and the <...> of a text.
func spans(s string) (list []span) {
	for i := 0; i < len(s); {
		end := -1
		code := s[i] == '`'
		switch {
		case strings.HasPrefix(s[i:], "```"):
			if n := strings.Index(s[i+3:], "```"); n >= 0 {
				end = i + n + 6
			}
		case code:
			if n := strings.IndexAny(s[i+1:], "`\n"); n > 0 && s[i+1+n] == '`' {
				end = i + n + 2
			}
		case s[i] == '<':
			if n := strings.IndexAny(s[i+1:], "<>\n"); n >= 0 && s[i+1+n] == '>' {
				end = i + n + 2
			}
		}
		if end < 0 {
			i++
			continue
		}
		list = append(list, span{i, end, code})
		i = end
	}
	return list
}

// text converts a text.
func (c *converter) text(s string) string {
	for _, m := range []struct {
		mark byte
		to   string
	}{{'*', "**"}, {'~', "~~"}, {'_', "*"}} {
		s = emphasis(s, m.mark, m.to)
	}
	var out strings.Builder
	at := 0
	for _, p := range spans(s) {
		out.WriteString(unescape(s[at:p.from]))
		switch {
		case p.code:
			out.WriteString(s[p.from:p.to])
		default:
			out.WriteString(c.reference(s[p.from:p.to]))
		}
		at = p.to
	}
	out.WriteString(unescape(s[at:]))
	return out.String()
}

var entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

func unescape(s string) string { return entities.Replace(s) }

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
		if s[i] == mark && (i == 0 || edge(s[i-1], mark, "({[")) {
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
			i = list[0].to
			continue
		}
		switch {
		case s[i] == mark:
			if i > from && (i+1 == len(s) || edge(s[i+1], mark, ")}]")) {
				return i
			}
			return -1
		case s[i] < ' ' || s[i] >= 0x7f:
			return -1
		}
		i++
	}
	return -1
}

// edge reports whether a character may be beside an emphasis: a blank, punctuation, another mark or a bracket.
func edge(c, mark byte, brackets string) bool {
	switch {
	case c == mark:
		return false
	case c == '\n' || c == '\t' || strings.IndexByte(brackets, c) >= 0:
		return true
	}
	return strings.IndexByte(" !\"#$%&'+,-./:;<=>?|^*_~", c) >= 0
}

// reference converts one <...>: a mention, a channel or a link.
func (c *converter) reference(s string) string {
	inner := s[1 : len(s)-1]
	target, label, labelled := strings.Cut(inner, "|")
	switch {
	case strings.HasPrefix(target, "@"):
		if mention, ok := c.mentions.Of(c.user(target[1:])); ok {
			return mention
		}
	case strings.HasPrefix(target, "#"):
		if name := c.channels[target[1:]]; name != "" {
			return "#**" + name + "**"
		}
	case target == "!everyone" || target == "!channel" || target == "!here":
		return "@**all**"
	case strings.HasPrefix(target, "!"):
		if labelled { // a user group or a date
			return unescape(label)
		}
	case strings.HasPrefix(target, "mailto:"):
		return unescape(target)
	case strings.Contains(target, "://") || strings.HasPrefix(target, "tel:"):
		if labelled {
			return imports.Link(unescape(label), unescape(target))
		}
		return unescape(target)
	}
	return s
}
