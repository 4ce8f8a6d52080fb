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

// PlainText is what a notification shows of a rendered message: no pictures, quotes cut short beside other text, spoilers as
// their header and (…), emoji as characters, custom ones as :name:, math as its source.
func PlainText(rendered string) string {
	p := plainer{}
	return p.message(rendered)
}

// SearchText is all the text of a rendered message: what a search looks through.
func SearchText(rendered string) string {
	p := plainer{whole: true}
	return p.message(rendered)
}

type plainer struct {
	whole bool // everything, also what is hidden or quoted
	out   strings.Builder
}

const cutShort = "[…]"

func (p *plainer) message(rendered string) string {
	if strings.IndexByte(rendered, '<') < 0 {
		return html.UnescapeString(rendered)
	}
	if inner, ok := strings.CutPrefix(rendered, "<p>"); ok { // as most are, one paragraph of words
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
		context.AppendChild(n) // gives them back their neighbours
	}
	cut := p.cuts(top)
	for i := 0; i < len(top); i++ {
		n := top[i]
		if !cut || !quoted(n) {
			p.node(n)
			continue
		}
		p.out.WriteString(cutShort)
		// The line end behind the first quote goes with it; those behind further ones stay.
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

// cuts says that quotes stand beside something else.
func (p *plainer) cuts(top []*html.Node) bool {
	quotes, others := false, false
	for _, n := range top {
		if n.Type == html.ElementNode {
			quotes = quotes || quoted(n)
			others = others || !quoted(n)
		}
	}
	return quotes && others && !p.whole
}

// quoted says that n is a quote or the line that says who is quoted: a mention, a link to the message and a colon.
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

// isMessageAddress says that an address in this organization names a message.
func isMessageAddress(href string) bool {
	href = strings.TrimPrefix(href, "/")
	if !strings.HasPrefix(href, "#narrow/") {
		return false
	}
	parts := strings.Split(href, "/")
	return len(parts) >= 3 && parts[len(parts)-2] == "near" && isNumber(parts[len(parts)-1])
}

// textOnly drops the tags.
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

func (p *plainer) node(n *html.Node) {
	if n.Type == html.TextNode {
		if !p.whole && p.endsLine(n) {
			return
		}
		p.out.WriteString(n.Data)
		return
	}
	switch class := attribute(n, "class"); {
	case hasClass(n, "emoji") && n.Data != "img":
		if _, code, ok := strings.Cut(class, "emoji-"); ok {
			p.out.WriteString(emoji.Character(code))
			return
		}
	case n.Data == "img":
		p.out.WriteString(attribute(n, "alt"))
		return
	case class == "katex":
		p.out.WriteString("$$" + annotation(n) + "$$")
		return
	case n.Data == "ol" && !p.whole:
		p.numbered(n)
		return
	case hasClass(n, "spoiler-block") && !p.whole:
		inner := plainer{}
		inner.children(n.FirstChild)
		if header := strings.TrimSpace(inner.out.String()); header != "" {
			p.out.WriteString(header + " ")
		}
		p.out.WriteString("(…)\n")
		return
	case n.Data == "blockquote" && !p.whole:
		inner := plainer{}
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

func (p *plainer) children(n *html.Node) {
	if n == nil {
		return
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		p.node(c)
	}
}

// endsLine says that n is only the line end behind something that has written its own.
func (p *plainer) endsLine(n *html.Node) bool {
	b := n.PrevSibling
	return b != nil && b.Type == html.ElementNode && (b.Data == "ol" || hasClass(b, "spoiler-block")) && blank(n.Data)
}

// numbered writes a numbered list with its numbers.
func (p *plainer) numbered(ol *html.Node) {
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
		inner := plainer{}
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

// Highlight wraps what a search hit in the text of rendered, whatever its case: words where they stand as a whole, and
// phrases wherever they are.
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
		if strings.HasPrefix(tag, "math ") { // a span would break it, and nobody sees it
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

// HighlightText does the same for text that is not HTML yet, such as a topic.
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
		if !goesOn(before, first) {
			for _, w := range words {
				n := foldedPrefix(text[i:], w)
				last, _ := utf8.DecodeLastRuneInString(text[i : i+n])
				if next, _ := utf8.DecodeRuneInString(text[i+n:]); n > hit && !goesOn(last, next) {
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
		if first == '&' { // what is escaped is one character
			size += strings.IndexByte(text[i:], ';')
		}
		before = first
		i += size
	}
	b.WriteString(text[from:])
}

// goesOn is whether a word goes on from one character to the next.
func goesOn(from, to rune) bool { return inRun(from) && inRun(to) }

// inRun is whether a character makes a word together with its neighbours: scripts that do not part words do not.
func inRun(c rune) bool {
	if c >= 0x0E00 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar) {
		return false
	}
	return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c))
}

// foldedPrefix returns how many bytes of text are key, whatever their case, or 0.
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
