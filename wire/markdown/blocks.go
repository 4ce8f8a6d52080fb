package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDepth is the greatest depth of nested blocks; deeper ones are text. Each level costs one pass over its lines.
const maxDepth = 100

// parseState is the context in which blocks are parsed.
type parseState uint8

const (
	stateNone parseState = iota
	stateTight
	stateLoose
	stateDetabbed
	stateQuote
)

// chunk is a block of lines that is not parsed yet.
type chunk struct {
	text      string
	noHeading bool // no line of it is a heading
}

// chunks is a queue of blocks; the rest of a partly parsed block goes back to the front.
type chunks struct {
	list []chunk
	pos  int
}

func (c *chunks) pop() chunk {
	c.pos++
	return c.list[c.pos-1]
}

func (c *chunks) unpop(text string, noHeading bool) {
	c.pos--
	c.list[c.pos] = chunk{text, noHeading}
}

// parseText parses the blocks of text into parent.
func (r *renderer) parseText(parent *node, text string) {
	n := strings.Count(text, "\n\n") + 1
	q := chunks{list: make([]chunk, 0, n)}
	for part := range strings.SplitSeq(text, "\n\n") {
		q.list = append(q.list, chunk{text: part})
	}
	r.parseChunks(parent, &q)
}

// parseOne parses one block into parent.
func (r *renderer) parseOne(parent *node, text string) {
	q := chunks{list: []chunk{{text: text}}}
	r.parseChunks(parent, &q)
}

func (r *renderer) in(s parseState, parse func()) {
	before := r.state
	r.state = s
	parse()
	r.state = before
}

func (r *renderer) parseChunks(parent *node, q *chunks) {
	r.depth++
	deep := r.depth > maxDepth
	for q.pos < len(q.list) {
		c := q.pop()
		switch {
		case c.text == "" || c.text[0] == '\n':
			r.blankBlock(parent, q, c)
		case deep:
			r.paragraph(parent, c.text)
		case c.text[0] == placeholderOpen && r.placePlaceholder(parent, c.text):
		case r.indented(parent, c.text):
			r.indentedBlock(parent, c.text)
		case strings.HasPrefix(c.text, "    "):
			r.indentedCode(parent, q, c)
		case r.heading(parent, q, c), r.table(parent, c.text), r.rule(parent, q, c),
			r.list(parent, c.text), r.quote(parent, c.text):
		default:
			r.paragraph(parent, c.text)
		}
	}
	r.depth--
}

// blankBlock drops a blank line, or appends it to the code before it.
func (r *renderer) blankBlock(parent *node, q *chunks, c chunk) {
	filler := "\n\n"
	if c.text != "" {
		filler = "\n"
		if rest := c.text[1:]; rest != "" {
			q.unpop(rest, c.noHeading)
		}
	}
	if code := parent.lastCode(); code != nil {
		code.append(r.textNode(kindVerbatim, filler))
	}
}

// lastCode returns the indented code at the end of n, or nil.
func (n *node) lastCode() *node {
	if e := n.lastElement(); e != nil && e.tag == tagPre {
		return e
	}
	return nil
}

func (r *renderer) placePlaceholder(parent *node, text string) bool {
	n, length := r.placeholderAt(text)
	if blank(text[length:]) && n.parent == nil {
		parent.append(n)
		return true
	}
	return false
}

// indentedCode parses the lines at the start of a block that are indented by four spaces.
func (r *renderer) indentedCode(parent *node, q *chunks, c chunk) {
	code, rest := detab(c.text, 4)
	code = strings.TrimRight(code, " \n")
	if before := parent.lastCode(); before != nil {
		before.append(r.textNode(kindVerbatim, "\n"+code+"\n"))
	} else {
		pre := r.element(tagPre)
		pre.append(r.textNode(kindVerbatim, code+"\n"))
		parent.append(pre)
		r.indentedCodes = append(r.indentedCodes, pre)
	}
	if rest != "" {
		q.unpop(rest, c.noHeading)
	}
}

// detab removes the indentation of the leading lines and returns the lines from the first with less indentation as
// rest.
func detab(text string, width int) (lines, rest string) {
	indent := "        "[:width]
	var b strings.Builder
	for i := 0; i < len(text); {
		line, _, more := strings.Cut(text[i:], "\n")
		switch {
		case strings.HasPrefix(line, indent):
			b.WriteString(line[width:])
		case blank(line):
		default:
			return strings.TrimSuffix(b.String(), "\n"), text[i:]
		}
		i += len(line)
		if more {
			b.WriteByte('\n')
			i++
		}
	}
	return b.String(), ""
}

// heading parses the first heading line of a block, after the lines before it.
func (r *renderer) heading(parent *node, q *chunks, c chunk) bool {
	if c.noHeading {
		return false
	}
	text := c.text
	start, level, from := -1, 0, 0
	for i := 0; i < len(text); {
		if text[i] == '#' {
			n := i
			for n < len(text) && text[n] == '#' {
				n++
			}
			if c, size := utf8.DecodeRuneInString(text[n:]); n-i <= 6 && n < len(text) && isBlank(c) &&
				!endsInBackslash(text[n+size:]) {
				start, level, from = i, n-i, n+size // the space may be a line end: then the next line is the title
				break
			}
		}
		n := strings.IndexByte(text[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
	}
	if start < 0 {
		return false
	}
	end := strings.IndexByte(text[from:], '\n')
	after := ""
	if end < 0 {
		end = len(text)
	} else {
		end += from
		after = text[end+1:]
	}
	if start > 1 {
		r.parseOne(parent, text[:start-1])
	}
	h := r.element(tagH1 + tag(level-1))
	line := text[from:end]
	title := strings.TrimRight(line, "#")
	if len(title) < len(line) && backslashes(title)%2 == 1 {
		title += "#" // escaped
	}
	if title = strings.TrimSpace(title); title != "" {
		h.append(r.textNode(kindSource, title))
	}
	parent.append(h)
	if after != "" {
		if r.state == stateLoose { // the text belongs to the item that contains the heading
			after = looseDetab(after, 4/listIndent)
		}
		q.unpop(after, false)
	}
	return true
}

// endsInBackslash reports whether the first line of s ends in a backslash that escapes its end; then it is no
// heading.
func endsInBackslash(s string) bool {
	if end := strings.IndexByte(s, '\n'); end >= 0 {
		s = s[:end]
	}
	return backslashes(s)%2 == 1
}

// backslashes returns the number of backslashes at the end of s.
func backslashes(s string) int {
	return len(s) - len(strings.TrimRight(s, `\`))
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// isBlank reports whether c is white space in any script, or a control character that other servers treat as white
// space.
func isBlank(c rune) bool { return unicode.IsSpace(c) || 0x1c <= c && c <= 0x1f }

func trimLeft(s string) string { return strings.TrimLeftFunc(s, isBlank) }

// rule parses the first line of a block that consists of three or more dashes, stars or underscores.
func (r *renderer) rule(parent *node, q *chunks, c chunk) bool {
	text := c.text
	for i := 0; i < len(text); {
		end := strings.IndexByte(text[i:], '\n')
		if end < 0 {
			end = len(text)
		} else {
			end += i
		}
		if isRule(text[i:end]) {
			if before := strings.TrimRight(text[:i], "\n"); before != "" {
				r.parseOne(parent, before)
			}
			parent.append(r.element(tagHr))
			if after := strings.TrimLeft(text[end:], "\n"); after != "" {
				q.unpop(after, true)
			}
			return true
		}
		i = end + 1
	}
	return false
}

func isRule(line string) bool {
	s := strings.TrimLeft(line, " ")
	if len(line)-len(s) > 3 || s == "" || s[0] != '-' && s[0] != '_' && s[0] != '*' {
		return false
	}
	n, spaces := 0, 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == s[0] && spaces <= 2:
			n++
			spaces = 0
		case s[i] == ' ':
			spaces++
		default:
			return false
		}
	}
	return n >= 3
}

// quote parses a block from its first quoted line on, after the lines before it. Later lines belong to the quote
// without a mark.
func (r *renderer) quote(parent *node, text string) bool {
	start := quoteStart(text)
	if start < 0 {
		return false
	}
	if start > 1 {
		r.parseOne(parent, text[:start-1])
	}
	var b strings.Builder
	for i, line := range strings.Split(text[start:], "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(unquote(line))
	}
	quote := r.element(tagBlockquote)
	parent.append(quote)
	r.in(stateQuote, func() { r.parseText(quote, silenceMentions(b.String())) })
	r.groupSpoilers(quote)
	return true
}

// quoteStart returns the first quoted line that is followed by text: quote marks alone are text.
func quoteStart(text string) int {
	if strings.IndexByte(text, '>') < 0 {
		return -1
	}
	last := -1 // after this line there are only empty quoted lines
	for end := len(text); end > 0; {
		begin := strings.LastIndexByte(text[:end], '\n') + 1
		line := strings.TrimRightFunc(text[begin:end], isBlank)
		if (strings.TrimLeft(line, " ") != ">" || len(line) > 4) && !(line == "" && end == len(text)) {
			last = begin
			break
		}
		end = begin - 1
	}
	for i := 0; last >= 0 && i <= last; {
		if quoteMark(text[i:]) > 0 {
			return i
		}
		n := strings.IndexByte(text[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
	}
	return -1
}

// quoteMark returns the length of the quote mark at the start of a line, including up to three spaces before and one
// after.
func quoteMark(line string) int {
	i := 0
	for i < 3 && i < len(line) && line[i] == ' ' {
		i++
	}
	if i >= len(line) || line[i] != '>' {
		return 0
	}
	if i++; i < len(line) && line[i] == ' ' {
		i++
	}
	return i
}

func unquote(line string) string {
	if strings.TrimSpace(line) == ">" {
		return ""
	}
	return line[quoteMark(line):]
}

// paragraph parses a block that matches no other rule.
func (r *renderer) paragraph(parent *node, text string) {
	if blank(text) {
		return
	}
	if r.state != stateTight {
		p := r.element(tagP)
		p.append(r.textNode(kindSource, trimLeft(text)))
		parent.append(p)
		return
	}
	// The text of a tight item has no paragraph; it is appended to the existing text.
	if parent.last != nil && parent.last.kind == kindSource {
		if parent.last.prev == nil {
			text = trimLeft(text)
		}
		parent.last.text += "\n" + text
	} else if parent.last != nil {
		parent.append(r.textNode(kindSource, "\n"+text))
	} else {
		parent.append(r.textNode(kindSource, trimLeft(text)))
	}
}
