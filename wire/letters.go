package wire

import (
	"html"
	"strings"

	"parley/actors/realm"
)

// Letter is a mail the server sends.
type Letter = realm.Letter

// LetterText is a letter for readers without HTML.
func LetterText(l Letter) string { return strings.Join(l.Paragraphs, "\n\n") + "\n" }

// LetterHTML is the same letter as a page.
func LetterHTML(l Letter) string {
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

// Sealed is a letter as it leaves: with its link, if it has one.
func Sealed(l Letter, id realm.ID, s Site, t *Tools) Letter {
	var link string
	switch {
	case l.Link != 0:
		link = s.URL + JoinPath + t.LinkToken(id, l.Link)
	case l.Address != nil:
		link = s.URL + AddressPath + addressToken(t, id, *l.Address)
	default:
		return l
	}
	out := l
	out.Paragraphs = nil
	for _, p := range l.Paragraphs {
		if p == realm.LinkHere {
			p = link
		}
		out.Paragraphs = append(out.Paragraphs, p)
	}
	return out
}
