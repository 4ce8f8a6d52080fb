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

// Sealed is a letter as it leaves: with its link, if it has one. linkToken is the tools'.
func Sealed(l Letter, id realm.ID, s Site, linkToken func(realm.ID, int64) string) Letter {
	if l.Link == 0 {
		return l
	}
	out := l
	out.Paragraphs = nil
	for _, p := range l.Paragraphs {
		if p == realm.LinkHere {
			p = s.URL + JoinPath + linkToken(id, l.Link)
		}
		out.Paragraphs = append(out.Paragraphs, p)
	}
	return out
}
