package wire

import (
	"html"
	"strings"

	"parley/actors/realm"
)

// Email is a mail the server sends.
type Email = realm.Email

// EmailText is a letter for readers without HTML.
func EmailText(l Email) string { return strings.Join(l.Paragraphs, "\n\n") + "\n" }

// EmailHTML is the same letter as a page.
func EmailHTML(l Email) string {
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

// EmailWithLink is a letter as it leaves: with its link, if it has one.
func EmailWithLink(l Email, id realm.ID, s Site, t *Tools) Email {
	var link string
	switch {
	case l.Link != 0:
		link = s.URL + JoinPath + t.LinkToken(id, l.Link)
	case l.Address != nil:
		link = s.URL + ConfirmAddressPath + addressToken(t, id, *l.Address)
	default:
		return l
	}
	out := l
	out.Paragraphs = nil
	for _, p := range l.Paragraphs {
		if p == realm.LinkPlaceholder {
			p = link
		}
		out.Paragraphs = append(out.Paragraphs, p)
	}
	return out
}
