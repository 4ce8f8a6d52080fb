package markdown

import (
	"slices"
	"strings"
)

// tag is one of the elements that a message can contain; the renderer cannot build others.
type tag uint8

const (
	tagNone tag = iota // a text node
	tagA
	tagAudio
	tagBlockquote
	tagBr
	tagCode
	tagDel
	tagDiv
	tagEm
	tagH1
	tagH2
	tagH3
	tagH4
	tagH5
	tagH6
	tagHr
	tagImg
	tagLi
	tagOl
	tagP
	tagPre
	tagSpan
	tagStrong
	tagTable
	tagTbody
	tagTd
	tagTh
	tagThead
	tagTime
	tagTr
	tagUl
	tagVideo
	tagRoot   // the message itself; never written
	tagBorder // the border of a spoiler, replaced before writing
	tagCount
)

// element describes a tag: its name, its attributes in the order in which they are written, and its layout.
type element struct {
	name  string
	attrs []string
	block bool
	void  bool
}

var elements = [tagCount]element{
	tagA:          {name: "a", attrs: []string{"class", "data-id", "data-stream-id", "href", "style", "title"}},
	tagAudio:      {name: "audio", attrs: []string{"controls", "preload", "src", "title"}},
	tagBlockquote: {name: "blockquote", block: true},
	tagBr:         {name: "br", void: true},
	tagCode:       {name: "code"},
	tagDel:        {name: "del"},
	tagDiv:        {name: "div", attrs: []string{"class", "aria-hidden", "data-code-language"}, block: true},
	tagEm:         {name: "em"},
	tagH1:         {name: "h1", block: true},
	tagH2:         {name: "h2", block: true},
	tagH3:         {name: "h3", block: true},
	tagH4:         {name: "h4", block: true},
	tagH5:         {name: "h5", block: true},
	tagH6:         {name: "h6", block: true},
	tagHr:         {name: "hr", block: true, void: true},
	tagImg: {name: "img", attrs: []string{"alt", "class", "data-animated", "data-original-content-type",
		"data-original-dimensions", "src", "title"}, void: true},
	tagLi:  {name: "li", block: true},
	tagOl:  {name: "ol", attrs: []string{"start"}, block: true},
	tagP:   {name: "p", block: true},
	tagPre: {name: "pre", block: true},
	tagSpan: {name: "span", attrs: []string{"aria-label", "class", "data-user-group-id", "data-user-id", "role",
		"title"}},
	tagStrong: {name: "strong"},
	tagTable:  {name: "table", block: true},
	tagTbody:  {name: "tbody", block: true},
	tagTd:     {name: "td", attrs: []string{"style"}, block: true},
	tagTh:     {name: "th", attrs: []string{"style"}, block: true},
	tagThead:  {name: "thead", block: true},
	tagTime:   {name: "time", attrs: []string{"datetime"}},
	tagTr:     {name: "tr", block: true},
	tagUl:     {name: "ul", block: true},
	tagVideo:  {name: "video", attrs: []string{"preload", "src"}},
	tagRoot:   {block: true},
}

// attr is one attribute of an element.
type attr struct{ name, value string }

// kind is the way in which the text of a text node is written.
type kind uint8

const (
	kindElement  kind = iota
	kindSource        // Markdown source that the inline passes have not parsed yet
	kindText          // finished text: entities are kept, the rest is escaped
	kindVerbatim      // code: everything is escaped
	kindQuoted        // code whose quotes are escaped too
	kindFailed        // math that failed: code with apostrophes and quotes as entities
	kindMath          // output of the math engine, checked against its list of elements
)

// node is one element or one run of text.
type node struct {
	tag    tag
	kind   kind
	atomic bool // written without line ends inside and after it, like previews and code
	// opened means that the content starts on a new line although a preview has replaced its first paragraph.
	opened bool
	// spaced means that the code ends with an additional line end, as clients expect of indented code.
	spaced bool
	text   string
	attrs  []attr
	parent *node
	first  *node
	last   *node
	prev   *node
	next   *node
}

// Nodes are allocated in groups: first enough for a plain paragraph, then enough for a typical message.
const (
	nodesFirst  = 3
	nodesAtOnce = 12
)

// nodePool allocates the nodes of one rendering.
type nodePool struct {
	free []node
	more bool // the first group is allocated
}

func (g *nodePool) element(t tag, attrs ...attr) *node {
	n := g.node()
	n.tag, n.attrs = t, attrs
	return n
}

func (g *nodePool) textNode(k kind, s string) *node {
	n := g.node()
	n.kind, n.text = k, s
	return n
}

func (g *nodePool) node() *node {
	if len(g.free) == 0 {
		n := nodesFirst
		if g.more {
			n = nodesAtOnce
		}
		g.free, g.more = make([]node, n), true
	}
	n := &g.free[0]
	g.free = g.free[1:]
	return n
}

func (n *node) append(c *node) {
	c.parent, c.prev, c.next = n, n.last, nil
	if n.last != nil {
		n.last.next = c
	} else {
		n.first = c
	}
	n.last = c
}

// insertAfter inserts c after the child at; if at is nil it inserts c first.
func (n *node) insertAfter(at, c *node) {
	if at == n.last {
		n.append(c)
		return
	}
	next := n.first
	if at != nil {
		next = at.next
	}
	c.parent, c.prev, c.next = n, at, next
	next.prev = c
	if at != nil {
		at.next = c
	} else {
		n.first = c
	}
}

func (n *node) remove() {
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		n.parent.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		n.parent.last = n.prev
	}
	n.parent, n.prev, n.next = nil, nil, nil
}

func (n *node) attr(name string) string {
	for i := range n.attrs {
		if n.attrs[i].name == name {
			return n.attrs[i].value
		}
	}
	return ""
}

// lastElement returns the last child that is an element, or nil.
func (n *node) lastElement() *node {
	c := n.last
	for c != nil && c.kind != kindElement {
		c = c.prev
	}
	return c
}

// innerText joins the text below n.
func (n *node) innerText() string {
	if n.kind != kindElement {
		return n.text
	}
	if n.first == nil {
		return ""
	}
	if n.first == n.last && n.first.kind != kindElement {
		return n.first.text
	}
	var b strings.Builder
	for c := n.first; c != nil; c = c.next {
		b.WriteString(c.innerText())
	}
	return b.String()
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// html writes the children of n. Block elements are on lines of their own.
func (n *node) html(out []byte) []byte {
	for c := n.first; c != nil; c = c.next {
		out = c.write(out)
	}
	return out
}

func (n *node) write(out []byte) []byte {
	switch n.kind {
	case kindSource, kindText:
		if n.blankTail() {
			return out
		}
		return escapeText(out, n.text)
	case kindVerbatim:
		return escapeCode(out, n.text, "\"", "'")
	case kindQuoted:
		return escapeCode(out, n.text, "&quot;", "&#39;")
	case kindFailed:
		return escapeCode(out, n.text, "&quot;", "&#x27;")
	case kindMath:
		return append(out, n.text...)
	}
	e := &elements[n.tag]
	if e.name == "" {
		panic("BUG: an element that is not allowed: " + n.text)
	}
	out = append(out, '<')
	out = append(out, e.name...)
	out = n.writeAttrs(out, e)
	out = append(out, '>')
	if n.tag == tagBr {
		return append(out, '\n')
	}
	if !e.void {
		if e.block && n.opensLine() {
			out = append(out, '\n')
		}
		out = n.html(out)
		out = append(out, '<', '/')
		out = append(out, e.name...)
		out = append(out, '>')
	}
	if n.spaced {
		out = append(out, '\n')
	}
	if e.block && !n.atomic && (n.next == nil || n.next.kind == kindElement || n.next.blankTail()) {
		out = append(out, '\n')
	}
	return out
}

// blankTail reports whether n is blank text next to elements on lines of their own, which is not written.
func (n *node) blankTail() bool {
	p := n.prev
	return (n.kind == kindText || n.kind == kindSource) && p != nil && p.kind == kindElement &&
		(p.tag == tagBr || elements[p.tag].block && !p.atomic) &&
		(n.next == nil || n.next.kind == kindElement) && blank(n.text)
}

// opensLine reports whether the content of n starts on a new line: its first child is a block.
func (n *node) opensLine() bool {
	switch n.attr("class") {
	case "spoiler-header", "spoiler-content":
		return true
	case "codehilite", "spoiler-block", "message_inline_image", "message_embed":
		return false
	}
	if n.tag == tagPre || n.atomic {
		return false
	}
	if n.opened {
		return true
	}
	c := n.first
	for c != nil && c.kind <= kindText && c.kind != kindElement && blank(c.text) {
		c = c.next
	}
	return c != nil && c.kind == kindElement && elements[c.tag].block && !c.atomic
}

func (n *node) writeAttrs(out []byte, e *element) []byte {
	if len(n.attrs) == 0 {
		return out
	}
	for _, name := range e.attrs {
		i := slices.IndexFunc(n.attrs, func(a attr) bool { return a.name == name })
		if i < 0 {
			continue
		}
		v := n.attrs[i].value
		if (name == "href" || name == "src") && !safeAddress(v) {
			continue
		}
		out = append(out, ' ')
		out = append(out, name...)
		out = append(out, '=', '"')
		out = escapeAttr(out, v)
		out = append(out, '"')
	}
	return out
}

// entity returns the length of the character reference at the start of s, or 0.
func entity(s string) int {
	i := 1
	if i < len(s) && s[i] == '#' {
		i++
		hex := i < len(s) && (s[i] == 'x' || s[i] == 'X')
		if hex {
			i++
		}
		start := i
		for i < len(s) && (isDigit(s[i]) || hex && isHex(s[i])) {
			i++
		}
		if i == start {
			return 0
		}
	} else {
		start := i
		for i < len(s) && isAlnum(s[i]) {
			i++
		}
		if i == start {
			return 0
		}
	}
	if i < len(s) && s[i] == ';' {
		return i + 1
	}
	return 0
}

// endsEntity reports whether s ends in a character reference: its semicolon is no punctuation.
func endsEntity(s string) bool {
	if !strings.HasSuffix(s, ";") {
		return false
	}
	s = s[max(0, len(s)-maxEntity):]
	i := strings.LastIndexByte(s, '&')
	return i >= 0 && entity(s[i:]) == len(s)-i
}

// maxEntity is the length of the longest character reference, in bytes; longer ones are text. It keeps escaping
// linear.
const maxEntity = 64

func escapeText(out []byte, s string) []byte { return escape(out, s, false) }
func escapeAttr(out []byte, s string) []byte { return escape(out, s, true) }

func escape(out []byte, s string, quotes bool) []byte {
	from := 0
	for i := 0; i < len(s); i++ {
		var to string
		switch s[i] {
		case '&':
			if entity(s[i:min(len(s), i+maxEntity)]) > 0 {
				continue
			}
			to = "&amp;"
		case '<':
			to = "&lt;"
		case '>':
			to = "&gt;"
		case '"':
			if !quotes {
				continue
			}
			to = "&quot;"
		default:
			continue
		}
		out = append(append(out, s[from:i]...), to...)
		from = i + 1
	}
	return append(out, s[from:]...)
}

// escapeCode writes code with the given forms of quotes and apostrophes: clients expect different ones by context.
func escapeCode(out []byte, s, quote, apostrophe string) []byte {
	from := 0
	for i := 0; i < len(s); i++ {
		var to string
		switch s[i] {
		case '&':
			to = "&amp;"
		case '<':
			to = "&lt;"
		case '>':
			to = "&gt;"
		case '"':
			to = quote
		case '\'':
			to = apostrophe
		default:
			continue
		}
		out = append(append(out, s[from:i]...), to...)
		from = i + 1
	}
	return append(out, s[from:]...)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isAlnum(c byte) bool { return isDigit(c) || isAlpha(c) }
