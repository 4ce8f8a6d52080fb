package markdown

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/wire/markdown/emoji"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// PlainText returns the text of a rendered message for a notification. It has no pictures; quotes next to other text
// are shortened, spoilers are their header and (…), emoji are characters, custom ones :name:, and math is its source.
func PlainText(rendered string) string {
	p := textWriter{}
	return p.message(rendered)
}

// SearchText returns the whole text of a rendered message, for searches. An emoji is its name and its character.
func SearchText(rendered string) string {
	p := textWriter{complete: true}
	return p.message(rendered)
}

// VisibleSource returns the Markdown source of a message without the addresses and titles of links that have a text of
// their own: readers do not see them. It may also drop such an address from code; SearchText has the text of code.
func VisibleSource(text string) string {
	if !strings.Contains(text, "](") {
		return text
	}
	var b strings.Builder
	work := maxLinkWork * len(text)
	for from := 0; ; {
		i := strings.Index(text[from:], "](")
		if i < 0 {
			b.WriteString(text[from:])
			return b.String()
		}
		i += from
		b.WriteString(text[from : i+1])
		if d, ok := destination(text, i+2, &work); ok {
			from = d.end
		} else {
			from = i + 1
		}
	}
}

type textWriter struct {
	complete bool // include hidden and quoted text
	out      strings.Builder
}

const ellipsis = "[…]"

func (p *textWriter) message(rendered string) string {
	if strings.IndexByte(rendered, '<') < 0 {
		return html.UnescapeString(rendered)
	}
	if inner, ok := strings.CutPrefix(rendered, "<p>"); ok { // most messages are one paragraph of text
		if inner, ok = strings.CutSuffix(inner, "</p>"); ok && strings.IndexByte(inner, '<') < 0 {
			return html.UnescapeString(inner)
		}
	}
	context := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	top, err := html.ParseFragment(strings.NewReader(rendered), context)
	if err != nil { // nested too deeply for the parser
		return textOnly(rendered)
	}
	for _, n := range top {
		context.AppendChild(n) // connects it to its siblings
	}
	cut := p.shortensQuotes(top)
	for i := 0; i < len(top); i++ {
		n := top[i]
		if !cut || !quoted(n) {
			p.node(n)
			continue
		}
		p.out.WriteString(ellipsis)
		// The line end after the first quote is removed too; those after further quotes stay.
		for first := true; i+1 < len(top) && (quoted(top[i+1]) ||
			top[i+1].Type == html.TextNode && blank(top[i+1].Data)); {
			i++
			if top[i].Type != html.TextNode {
				continue
			}
			if !first {
				p.out.WriteString(top[i].Data)
			}
			first = false
		}
	}
	return p.out.String()
}

// shortensQuotes reports whether quotes are shortened because there is other text.
func (p *textWriter) shortensQuotes(top []*html.Node) bool {
	quotes, others := false, false
	for _, n := range top {
		if n.Type == html.ElementNode {
			quotes = quotes || quoted(n)
			others = others || !quoted(n)
		}
	}
	return quotes && others && !p.complete
}

// quoted reports whether n is a quote or the line before it: a mention, a link to the message and a colon.
func quoted(n *html.Node) bool {
	if n.Type != html.ElementNode {
		return false
	}
	if n.Data == "blockquote" {
		return true
	}
	if n.Data != "p" {
		return false
	}
	mentions, links, rest := 0, 0, ""
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			rest += c.Data
		case c.Data == "span" && hasClass(c, "user-mention"):
			mentions++
		case c.Data == "a" && isMessageAddress(attribute(c, "href")):
			links++
		default:
			return false
		}
	}
	return mentions == 1 && links == 1 && strings.TrimSpace(rest) == ":"
}

// isMessageAddress reports whether an address of this organization refers to a message.
func isMessageAddress(href string) bool {
	href = strings.TrimPrefix(href, "/")
	if !strings.HasPrefix(href, "#narrow/") {
		return false
	}
	parts := strings.Split(href, "/")
	return len(parts) >= 3 && parts[len(parts)-2] == "near" && isNumber(parts[len(parts)-1])
}

// textOnly removes the tags.
func textOnly(rendered string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(rendered))
	for t := z.Next(); t != html.ErrorToken; t = z.Next() {
		if t == html.TextToken {
			b.Write(z.Text())
		}
	}
	return b.String()
}

func (p *textWriter) node(n *html.Node) {
	if n.Type == html.TextNode {
		if !p.complete && p.endsLine(n) {
			return
		}
		p.out.WriteString(n.Data)
		return
	}
	switch class := attribute(n, "class"); {
	case hasClass(n, "emoji") && n.Data != "img":
		if _, code, ok := strings.Cut(class, "emoji-"); ok {
			if p.complete {
				p.children(n)
				p.out.WriteByte(' ')
			}
			p.out.WriteString(emoji.Character(code))
			return
		}
	case n.Data == "img":
		p.out.WriteString(attribute(n, "alt"))
		return
	case class == "katex":
		p.out.WriteString("$$" + annotation(n) + "$$")
		return
	case n.Data == "ol" && !p.complete:
		p.numbered(n)
		return
	case hasClass(n, "spoiler-block") && !p.complete:
		inner := textWriter{}
		inner.children(n.FirstChild)
		if header := strings.TrimSpace(inner.out.String()); header != "" {
			p.out.WriteString(header + " ")
		}
		p.out.WriteString("(…)\n")
		return
	case n.Data == "blockquote" && !p.complete:
		inner := textWriter{}
		inner.children(n)
		for line := range strings.Lines(inner.out.String()) {
			if line = strings.TrimSuffix(line, "\n"); line != "" {
				p.out.WriteString("> " + line + "\n")
			}
		}
		return
	}
	p.children(n)
}

func (p *textWriter) children(n *html.Node) {
	if n == nil {
		return
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		p.node(c)
	}
}

// endsLine reports whether n is only a line end after an element that has already written a line end.
func (p *textWriter) endsLine(n *html.Node) bool {
	b := n.PrevSibling
	return b != nil && b.Type == html.ElementNode && (b.Data == "ol" || hasClass(b, "spoiler-block")) && blank(n.Data)
}

// numbered writes a numbered list with its numbers.
func (p *textWriter) numbered(ol *html.Node) {
	number := 1
	if n, err := strconv.Atoi(attribute(ol, "start")); err == nil {
		number = n
	}
	indent := ""
	for a := ol.Parent; a != nil; a = a.Parent {
		if a.Data == "ol" {
			if indent == "" {
				indent = "\n"
			}
			indent += "  "
		}
	}
	first := true
	for li := ol.FirstChild; li != nil; li = li.NextSibling {
		if li.Type != html.ElementNode {
			continue
		}
		if !first {
			p.out.WriteByte('\n')
		}
		first = false
		inner := textWriter{}
		inner.children(li)
		p.out.WriteString(indent + strconv.Itoa(number) + ". " + strings.TrimSpace(inner.out.String()))
		number++
	}
}

func annotation(n *html.Node) string {
	if n.Type == html.ElementNode && n.Data == "annotation" && n.FirstChild != nil {
		return n.FirstChild.Data
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if s := annotation(c); s != "" {
			return s
		}
	}
	return ""
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasClass(n *html.Node, class string) bool {
	for c := range strings.FieldsSeq(attribute(n, "class")) {
		if c == class {
			return true
		}
	}
	return false
}

const (
	highlightOpen  = `<span class="highlight">`
	highlightClose = `</span>`
)

// Highlight marks the hits of a search in the text of rendered, ignoring case: words only as whole words, and phrases
// anywhere.
func Highlight(rendered string, words, phrases []string) string {
	escaped := make([]string, 0, len(phrases))
	for _, p := range phrases {
		if p != "" {
			escaped = append(escaped, string(escapeText(nil, p)))
		}
	}
	if len(words) == 0 && len(escaped) == 0 {
		return rendered
	}
	var b strings.Builder
	for rendered != "" {
		text, tag, _ := strings.Cut(rendered, "<")
		markHits(&b, text, words, escaped)
		if len(text) == len(rendered) {
			break
		}
		end := strings.IndexByte(tag, '>') + 1
		if strings.HasPrefix(tag, "math ") { // an element inside would break the formula, and its text is invisible
			end = strings.Index(tag, "</math>") + len("</math>")
		}
		if end <= 0 || end > len(tag) {
			end = len(tag)
		}
		b.WriteString(rendered[len(text) : len(text)+1+end])
		rendered = rendered[len(text)+1+end:]
	}
	return b.String()
}

// HighlightText does the same for text that is not HTML, such as a topic.
func HighlightText(text string, words, phrases []string) string {
	return Highlight(string(escapeText(nil, text)), words, phrases)
}

func markHits(b *strings.Builder, text string, words, phrases []string) {
	from, before := 0, rune(0)
	for i := 0; i < len(text); {
		hit := 0
		for _, p := range phrases {
			hit = max(hit, foldedPrefix(text[i:], p))
		}
		first, size := utf8.DecodeRuneInString(text[i:])
		if !sameWord(before, first) {
			for _, w := range words {
				n := foldedPrefix(text[i:], w)
				last, _ := utf8.DecodeLastRuneInString(text[i : i+n])
				if next, _ := utf8.DecodeRuneInString(text[i+n:]); n > hit && !sameWord(last, next) {
					hit = n
				}
			}
		}
		if hit > 0 {
			b.WriteString(text[from:i])
			b.WriteString(highlightOpen)
			b.WriteString(text[i : i+hit])
			b.WriteString(highlightClose)
			i += hit
			from = i
			before, _ = utf8.DecodeLastRuneInString(text[:i])
			continue
		}
		if first == '&' { // an escaped character counts as one
			size += strings.IndexByte(text[i:], ';')
		}
		before = first
		i += size
	}
	b.WriteString(text[from:])
}

// sameWord reports whether two characters belong to the same word.
func sameWord(from, to rune) bool { return isWordRune(from) && isWordRune(to) }

// isWordRune reports whether a character forms words with its neighbours: characters of scripts without spaces do not.
func isWordRune(c rune) bool {
	if c >= 0x0E00 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar) {
		return false
	}
	return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c))
}

// foldedPrefix returns the number of bytes at the start of text that equal key, ignoring case, or 0.
func foldedPrefix(text, key string) int {
	i := 0
	for _, want := range key {
		c, n := utf8.DecodeRuneInString(text[i:])
		if n == 0 || c != want && unicode.ToLower(c) != unicode.ToLower(want) {
			return 0
		}
		i += n
	}
	return i
}
