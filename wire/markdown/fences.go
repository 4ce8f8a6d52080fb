package markdown

import (
	"strconv"
	"strings"
)

// fence is an opening line: its closing fence, the language, and the text after the language.
type fence struct {
	fence, lang, header string
}

// parseFence parses an opening line. A line with characters that a fence cannot have is text.
func parseFence(line string) (fence, bool) {
	if len(line) < 3 || line[0] != '`' && line[0] != '~' {
		return fence{}, false
	}
	n := 1
	for n < len(line) && line[n] == line[0] {
		n++
	}
	if n < 3 {
		return fence{}, false
	}
	f := fence{fence: line[:n]}
	rest := strings.TrimLeft(line[n:], " ")
	if rest == "" {
		return f, true
	}
	rest = strings.TrimPrefix(rest, "{")
	if len(rest) > 1 && rest[0] == '.' && isLangByte(rest[1]) {
		rest = rest[1:]
	}
	i := 0
	for i < len(rest) && isLangByte(rest[i]) {
		i++
	}
	if i == 0 || strings.ContainsAny(rest[i:], "`~") {
		return fence{}, false
	}
	f.lang, f.header = rest[:i], strings.TrimLeft(rest[i:], " ")
	return f, true
}

func isLangByte(c byte) bool {
	return isAlnum(c) || strings.IndexByte("_+-./#,", c) >= 0
}

// fenceBlock is an open fence with its lines so far.
type fenceBlock struct {
	fence
	kind  fenceKind
	lines []string
}

type fenceKind uint8

const (
	fenceOuter fenceKind = iota
	fenceCode
	fenceMath
	fenceQuote
	fenceSpoiler
)

// replaceFences replaces fenced blocks by placeholders on lines of their own, and quotes by quoted lines.
func (r *renderer) replaceFences(text string) string {
	if !strings.Contains(text, "```") && !strings.Contains(text, "~~~") {
		return text
	}
	stack := []fenceBlock{{}}
	finish := func() {
		n := len(stack) - 1
		done := stack[n]
		stack = stack[:n]
		outer := &stack[n-1]
		outer.lines = append(outer.lines, "")
		if r.wordsOnly {
			switch done.kind {
			case fenceQuote, fenceSpoiler:
				outer.lines = append(append(outer.lines, done.header), done.lines...)
			}
			return
		}
		switch done.kind {
		case fenceCode:
			outer.lines = append(outer.lines, r.placeholder(r.codeBlock(done.lang, strings.Join(done.lines, "\n"))))
		case fenceMath:
			outer.lines = append(outer.lines, r.placeholder(r.mathBlock(strings.Join(done.lines, "\n"))))
		case fenceQuote:
			for _, l := range withoutBlankEnds(done.lines) {
				outer.lines = append(outer.lines, "> "+l)
			}
		case fenceSpoiler:
			outer.lines = append(outer.lines, r.placeholder(r.element(tagBorder, attr{"spoiler", "open"})), "",
				done.header, "", r.placeholder(r.element(tagBorder, attr{"spoiler", "content"})), "")
			outer.lines = append(outer.lines, done.lines...)
			outer.lines = append(outer.lines, "", r.placeholder(r.element(tagBorder, attr{"spoiler", "close"})))
		}
		outer.lines = append(outer.lines, "")
	}
	for line := range strings.SplitSeq(text, "\n") {
		top := &stack[len(stack)-1]
		if top.kind != fenceOuter && strings.TrimRightFunc(line, isBlank) == top.fence.fence {
			finish()
			continue
		}
		if top.kind == fenceCode || top.kind == fenceMath {
			top.lines = append(top.lines, strings.TrimRightFunc(line, isBlank))
			continue
		}
		f, ok := parseFence(line)
		if !ok || len(stack) > maxFences {
			top.lines = append(top.lines, line)
			continue
		}
		if f.lang == "" {
			f.lang = r.options.DefaultCodeLanguage
		}
		block := fenceBlock{fence: f, kind: fenceCode}
		switch strings.ToLower(f.lang) {
		case "quote", "quoted":
			block.kind = fenceQuote
		case "math":
			block.kind = fenceMath
		case "spoiler":
			block.kind = fenceSpoiler
		}
		stack = append(stack, block)
	}
	if innermost := &stack[len(stack)-1]; len(stack) > 1 {
		innermost.lines = append(
			innermost.lines,
			"",
			"",
		) // text that ends in an open fence ends with two blank lines (protocol)
	}
	for len(stack) > 1 {
		finish()
	}
	return strings.Join(stack[0].lines, "\n")
}

// withoutBlankEnds drops blank lines at both ends. A quote that has only blank lines keeps them, and an empty quote
// gets one, so that its marks are shown.
func withoutBlankEnds(lines []string) []string {
	all := lines
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	switch {
	case len(lines) > 0:
		return lines
	case len(all) > 0:
		return all
	}
	return []string{""}
}

// placeholder stores a finished element and returns the text that represents it.
func (r *renderer) placeholder(n *node) string {
	r.placeholders = append(r.placeholders, n)
	number := strconv.AppendInt([]byte{placeholderOpen}, int64(len(r.placeholders)-1), 10)
	return string(append(number, placeholderClose))
}

// placeholderAt returns the element of the placeholder at the start of s, and the placeholder's length.
func (r *renderer) placeholderAt(s string) (*node, int) {
	i, n := 1, 0
	for i < len(s) && isDigit(s[i]) {
		n = n*10 + int(s[i]-'0')
		i++
	}
	if i >= len(s) || s[i] != placeholderClose || i == 1 || n >= len(r.placeholders) {
		panic("BUG: invalid placeholder: " + s[:min(len(s), 20)])
	}
	return r.placeholders[n], i + 1
}

// groupSpoilers replaces the border elements that fences left among the children of n by spoiler elements around the
// content.
func (r *renderer) groupSpoilers(n *node) {
	into := n
	for c := n.first; c != nil; {
		next := c.next
		if c.tag != tagBorder {
			if into != n {
				c.remove()
				into.append(c)
			}
			c = next
			continue
		}
		c.remove()
		switch c.attr("spoiler") {
		case "open":
			block := r.element(tagDiv, attr{"class", "spoiler-block"})
			header := r.element(tagDiv, attr{"class", "spoiler-header"})
			header.atomic = true
			block.append(header)
			if into == n {
				n.insertBefore(next, block)
			} else {
				into.append(block)
			}
			into = header
		case "content":
			content := r.element(tagDiv, attr{"class", "spoiler-content"}, attr{"aria-hidden", "true"})
			content.atomic = true
			into.parent.append(content)
			into = content
		case "close":
			into = into.parent.parent
		}
		c = next
	}
}

func (n *node) insertBefore(at, c *node) {
	if at == nil {
		n.append(c)
		return
	}
	n.insertAfter(at.prev, c)
}
