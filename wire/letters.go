package wire

import (
	"html"
	"strings"
)

// Letter is a mail the server sends.
type Letter struct {
	To, Subject string
	Paragraphs  []string // plain text; one that is an address of the web is a link
}

// Text is the letter for readers without HTML.
func (l Letter) Text() string { return strings.Join(l.Paragraphs, "\n\n") + "\n" }

// HTML is the same letter as a page.
func (l Letter) HTML() string {
	var b strings.Builder
	b.WriteString("<!doctype html><html><body>")
	for _, p := range l.Paragraphs {
		p, link := html.EscapeString(p), strings.HasPrefix(p, "https://") || strings.HasPrefix(p, "http://")
		if link {
			p = `<a href="` + p + `">` + p + `</a>`
		}
		b.WriteString("<p>" + p + "</p>")
	}
	b.WriteString("</body></html>\n")
	return b.String()
}

// send hands a letter over; what becomes of it is the sender's to log.
func (c *Call) send(l Letter) {
	if c.Tools.Mail != nil {
		c.Tools.Mail(l)
	}
}
