package markdown

import (
	"strings"
)

// maxLinkWork is the number of bytes that may be read in search of the ends of addresses, for each byte of a text.
// Without the bound a text of unclosed links takes quadratic time; ordinary texts need two.
const maxLinkWork = 16

// namedLinks replaces [text](address) and [text](address "title"). The text does not change.
func (r *renderer) namedLinks(text string) string {
	if !strings.Contains(text, "](") {
		return text
	}
	closing := brackets(text)
	work := maxLinkWork * len(text)
	e := rewriter{src: text}
	for i := 0; i < len(text); {
		next := strings.IndexByte(text[i:], '[')
		if next < 0 {
			break
		}
		i += next
		end := closing[i]
		if end == 0 || end+1 >= len(text) || text[end+1] != '(' {
			i++
			continue
		}
		d, ok := destination(text, end+2, &work)
		if !ok {
			i++
			continue
		}
		href, ok := cleanAddress(strings.TrimSpace(r.unmark(d.href)))
		if !ok {
			i++
			continue
		}
		href = r.localAddress(href)
		attrs := []attr{{"href", href}}
		if d.title != "" || d.titled {
			attrs = append(attrs, attr{"title", r.unmark(d.title)})
		}
		a := r.element(tagA, attrs...)
		if name := text[i+1 : end]; !blank(name) {
			r.emit(a, name, false)
		} else {
			a.append(r.textNode(kindText, href))
		}
		r.result.HasLink = true
		e.replace(i, d.end, r.placeholder(a))
		i = d.end
	}
	return e.finish()
}

// brackets maps the position of each [ to that of the ] that closes it; 0 means none.
func brackets(text string) []int {
	closing := make([]int, len(text))
	var open []int
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[':
			open = append(open, i)
		case ']':
			if n := len(open); n > 0 {
				closing[open[n-1]] = i
				open = open[:n-1]
			}
		}
	}
	return closing
}

// target is the content of the parentheses of a link.
type target struct {
	href, title string
	titled      bool
	end         int
}

// destination reads from the opening parenthesis to the closing one. Parentheses can nest; a title in quotes can be
// at the end. Quotes that are not a title belong to the address.
func destination(text string, from int, work *int) (target, bool) {
	i := from
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	if d, ok := angled(text, i, work); ok {
		return d, true
	}
	d := scanDestination(text, i, work)
	if d.end < 0 {
		return d, false
	}
	d.href = strings.TrimSpace(d.href)
	d.title = strings.Map(func(c rune) rune {
		if c < 0x80 && isSpace(byte(c)) {
			return ' '
		}
		return c
	}, strings.TrimSpace(d.title))
	return d, true
}

// angled reads <address> "title").
func angled(text string, i int, work *int) (target, bool) {
	if i >= len(text) || text[i] != '<' {
		return target{}, false
	}
	n := strings.IndexAny(text[i+1:], "<>")
	if *work -= n; n < 0 || *work < 0 || text[i+1+n] != '>' {
		return target{}, false
	}
	d := target{href: strings.TrimSpace(text[i+1 : i+1+n])}
	i += n + 2
	i = skipSpace(text, i)
	if i < len(text) && (text[i] == '"' || text[i] == '\'') {
		n := strings.IndexByte(text[i+1:], text[i])
		if *work -= max(n, 0); n < 0 || *work < 0 {
			return target{}, false
		}
		d.title, d.titled = text[i+1:i+1+n], true
		i = skipSpace(text, i+n+2)
	}
	if i >= len(text) || text[i] != ')' {
		return target{}, false
	}
	d.end = i + 1
	return d, true
}

func skipSpace(text string, i int) int {
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

func scanDestination(text string, from int, work *int) target {
	depth := 1 // open parentheses
	// fallback is the depth at the start of a title, backup the position at which all parentheses would be closed.
	fallback, backup := 0, -1
	quote, openQuote := byte(0), -1
	closeQuote := -1
	other, openOther := byte(0), -1
	closeOther := -1
	titled := false
	last := byte(0)
	i := from
	for ; i < len(text) && depth > 0; i++ {
		if *work--; *work < 0 {
			return target{end: -1}
		}
		c := text[i]
		switch c {
		case '(':
			if !titled {
				depth++
			} else if fallback > 0 {
				fallback++
			}
		case ')':
			switch {
			case closeQuote >= 0 && last == quote, closeOther >= 0 && last == other:
				depth = 0
			case !titled:
				depth--
			case fallback > 0:
				if fallback--; fallback == 0 {
					backup = i + 1
				}
			}
		case '"', '\'':
			switch {
			case quote == 0:
				titled, fallback, depth = true, depth, 1
				quote, openQuote = c, i+1
			case c != quote && other == 0:
				other, openOther = c, i+1
			case c == quote:
				closeQuote = i
			case c == other:
				closeOther = i
			}
		}
		if depth > 0 && c != ' ' {
			last = c
		}
	}
	d := target{end: i}
	switch {
	case depth == 0 && closeQuote >= 0 && last == quote:
		d.href, d.title, d.titled = text[from:openQuote-1], text[openQuote:closeQuote], true
	case depth == 0 && closeOther >= 0 && last == other:
		d.href, d.title, d.titled = text[from:openOther-1], text[openOther:closeOther], true
	case depth == 0:
		d.href = text[from : i-1]
	case backup >= 0:
		d.href, d.end = text[from:backup-1], backup
	default:
		d.end = -1
	}
	return d
}
