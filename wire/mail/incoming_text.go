package mail

import (
	"cmp"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

// unifyLines returns a text whose lines end with LF only.
func unifyLines(text string) string {
	return strings.NewReplacer("\r\r\n", "\n", "\r\n", "\n", "\r", "\n").Replace(text)
}

// decodePage returns an HTML page in UTF-8. The page names its character set if the mail does not.
func decodePage(contentType, set string, page []byte) string {
	if set == "" {
		if e, name, _ := charset.DetermineEncoding(page, contentType); name != "utf-8" &&
			name != "windows-1252" {
			if text, err := e.NewDecoder().Bytes(page); err == nil {
				return string(text)
			}
		}
	}
	return decodeCharset(set, page)
}

// htmlToText returns the visible text of an HTML page as Markdown: one line for each block, links with their
// addresses, list entries with bullets, and bars between the cells of a table.
func htmlToText(page string, quotes bool) string {
	if text := renderHTML(page, quotes); text != "" || quotes {
		return text
	}
	return renderHTML(page, true) // nothing but a quoted mail
}

// cellMark is written between two cells of a table. It is no character of a text.
const cellMark = "\x00"

func renderHTML(page string, quotes bool) string {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return strings.TrimSpace(page)
	}
	r := htmlRenderer{quotes: quotes}
	r.children(root)
	return trimLines(r.b.String())
}

type htmlRenderer struct {
	b      strings.Builder
	quotes bool // quoted mails are shown
}

func (r *htmlRenderer) children(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if !r.quotes && c.Type == html.ElementNode && attribute(c, "id") == "divRplyFwdMsg" {
			return // Outlook puts the quoted mail behind this element
		}
		r.node(c)
	}
}

func (r *htmlRenderer) node(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		r.b.WriteString(strings.NewReplacer("\n", " ", "\r", " ", cellMark, "").Replace(n.Data))
		return
	case html.ElementNode:
	default:
		r.children(n)
		return
	}
	if !r.quotes && isQuote(n) {
		return
	}
	switch n.Data {
	case "style", "script", "title", "template":
	case "br", "hr":
		r.b.WriteByte('\n')
	case "img":
		r.b.WriteString(attribute(n, "alt"))
	case "a":
		r.link(n)
	case "li":
		r.b.WriteString("\n* ")
		r.children(n)
		r.b.WriteByte('\n')
	case "td", "th":
		r.b.WriteString(cellMark)
		r.children(n)
	case "p", "div", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "table", "ul", "ol", "dl", "dt", "dd",
		"pre", "section", "article", "header", "footer", "center", "address":
		r.b.WriteByte('\n')
		r.children(n)
		r.b.WriteByte('\n')
	default:
		r.children(n)
	}
}

// link writes a link. Its address alone is written if the text is the same or the text has several lines.
func (r *htmlRenderer) link(n *html.Node) {
	inner := htmlRenderer{quotes: r.quotes}
	inner.children(n)
	text, to := trimLines(inner.b.String()), strings.TrimSpace(attribute(n, "href"))
	scheme, _, _ := strings.Cut(strings.ToLower(to), ":")
	switch {
	case scheme != "http" && scheme != "https" && scheme != "mailto" && scheme != "ftp" && scheme != "tel":
		r.b.WriteString(inner.b.String())
	case text == to || "mailto:"+text == to || text == "":
		r.b.WriteString(strings.TrimPrefix(to, "mailto:"))
	case strings.ContainsAny(text, "[]\n"):
		r.b.WriteString(inner.b.String() + " " + to)
	default:
		to = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "\n", "").Replace(to)
		r.b.WriteString("[" + text + "](" + to + ")")
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// isQuote reports whether an element is the quoted mail of a reply, in the forms of common mail programs.
func isQuote(n *html.Node) bool {
	if n.Data == "blockquote" && strings.EqualFold(attribute(n, "type"), "cite") {
		return true
	}
	for _, class := range strings.Fields(attribute(n, "class")) {
		switch class {
		case "gmail_quote", "gmail_quote_container", "moz-cite-prefix", "yahoo_quoted", "protonmail_quote":
			return true
		}
	}
	return false
}

// trimLines removes empty lines, and white space at both ends of and repeated within lines. Cells become separated by
// bars; empty ones are left out, because pages use tables for their layout.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	out := lines[:0]
	bullet := false // the text of a list entry follows
	for _, l := range lines {
		var cells []string
		for _, cell := range strings.Split(l, cellMark) {
			if cell = strings.Join(strings.Fields(cell), " "); cell != "" {
				cells = append(cells, cell)
			}
		}
		switch l = strings.Join(cells, " | "); {
		case l == "":
		case l == "*":
			bullet = true
		case bullet && !strings.HasPrefix(l, "* "):
			out, bullet = append(out, "* "+l), false
		default:
			out, bullet = append(out, l), false
		}
	}
	return strings.Join(out, "\n")
}

// cutFooter removes a signature: everything behind the only line that is two dashes.
func cutFooter(text string) string {
	lines := strings.Split(text, "\n")
	at := -1
	for i, l := range lines {
		if strings.TrimSpace(l) == "--" {
			if at >= 0 {
				return text
			}
			at = i
		}
	}
	if at < 0 {
		return text
	}
	if rest := strings.TrimSpace(strings.Join(lines[:at], "\n")); rest != "" {
		return rest
	}
	return text
}

var (
	// quoteIntroduction is the line above a quoted mail, in the languages that mail programs write most.
	quoteIntroduction = regexp.MustCompile(`(?is)^(on|am|le|el|il|em|op|den|w dniu|dnia) .{4,300}` +
		`(wrote|schrieb[^\n]{0,80}|a écrit|escribió|ha scritto|escreveu|schreef[^\n]{0,80}|skrev[^\n]{0,80}|napisał(\(a\))?)\s*:$`)
	quoteSeparator = regexp.MustCompile(`(?i)^-{2,}\s*(original message|ursprüngliche nachricht|original-nachricht|` +
		`message d'origine|mensaje original|messaggio originale|mensagem original|reply message)\s*-{2,}$`)
	quoteHeader = regexp.MustCompile(`(?im)^\*?(from|von|de|da|van):\*? .+\n(.*\n){0,2}` +
		`\*?(sent|date|gesendet|datum|envoyé|enviado|inviato|verzonden):`)
)

// cutQuotes removes the quoted mail of a reply. It leaves a text alone that answers between the quoted lines, and one
// that is nothing but a quote.
func cutQuotes(text string) string { return cmp.Or(withoutQuotes(text), text) }

// withoutQuotes is cutQuotes, but returns "" for a text that is nothing but a quote.
func withoutQuotes(text string) string {
	lines := strings.Split(text, "\n")
	start, headed := quoteStart(lines)
	if start < 0 {
		return text
	}
	first, last, count := -1, -1, 0 // quoted lines
	for i := start; i < len(lines); i++ {
		if strings.HasPrefix(lines[i], ">") {
			if first < 0 {
				first = i
			}
			last = i
			count++
		}
	}
	var rest []string
	switch {
	case headed && first < 0:
		rest = lines[:start]
	case !headed && count < minQuotedLines:
		return text
	default:
		for i := first; i <= last; i++ {
			if l := strings.TrimSpace(lines[i]); l != "" && l[0] != '>' {
				return text
			}
		}
		rest = append(rest, lines[:start]...)
		rest = append(rest, lines[last+1:]...)
	}
	return strings.TrimSpace(strings.Join(rest, "\n"))
}

// minQuotedLines is how many quoted lines without an introduction are a quoted mail. Fewer may be a citation.
const minQuotedLines = 3

// quoteStart returns the index of the first line of a quoted mail, or -1, and whether an introduction is there.
func quoteStart(lines []string) (start int, headed bool) {
	for i, l := range lines {
		l = strings.TrimSpace(l)
		if quoteSeparator.MatchString(l) {
			return i, true
		}
		if strings.HasPrefix(l, ">") || l == "" {
			continue
		}
		for n := 1; n <= 3 && i+n <= len(lines); n++ { // long introductions are wrapped
			intro := strings.TrimSpace(strings.Join(lines[i:i+n], "\n"))
			if quoteIntroduction.MatchString(intro) {
				return i, true
			}
		}
		block := strings.Join(lines[i:min(i+5, len(lines))], "\n")
		if at := quoteHeader.FindStringIndex(block); at != nil && at[0] == 0 {
			if i > 0 && strings.HasPrefix(lines[i-1], "____") {
				i--
			}
			return i, true
		}
	}
	for i, l := range lines {
		if strings.HasPrefix(l, ">") {
			return i, false
		}
	}
	return -1, false
}
