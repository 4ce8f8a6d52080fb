package katex

import (
	"strings"

	"golang.org/x/net/html"
)

// elements are the elements that KaTeX writes, and attributes all their attributes. None of them is an address.
var (
	elements = set("span annotation math menclose mfrac mglyph mi mn mo mover mpadded mphantom mroot mrow ms " +
		"mspace msqrt mstyle " +
		"msub msubsup msup mtable mtd mtext mtr munder munderover semantics svg path line mlabeledtr merror")
	attributes = set("class style aria-hidden xmlns display encoding mathvariant mathcolor mathbackground mathsize " +
		"stretchy fence " +
		"separator lspace rspace symmetric accent accentunder linethickness scriptlevel displaystyle minsize " +
		"maxsize movablelimits " +
		"width height depth voffset rowspacing columnspacing columnalign columnlines rowlines rowalign side notation " +
		"viewBox viewbox preserveAspectRatio preserveaspectratio d x1 y1 x2 y2 stroke-width largeop title form align")
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// Safe reports whether html consists only of the elements and attributes that KaTeX writes.
func Safe(s string) bool {
	z := html.NewTokenizer(strings.NewReader(s))
	var open []string
	for {
		switch z.Next() {
		case html.ErrorToken:
			return len(open) == 0 && len(z.Raw()) == 0
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if !elements[t.Data] {
				return false
			}
			for _, a := range t.Attr {
				if !attributes[a.Key] || a.Key == "style" && !safeStyle(a.Val) {
					return false
				}
			}
			if t.Type == html.StartTagToken {
				open = append(open, t.Data)
			}
		case html.EndTagToken:
			t := z.Token()
			if n := len(open); n == 0 || open[n-1] != t.Data {
				return false
			}
			open = open[:len(open)-1]
		case html.CommentToken, html.DoctypeToken:
			return false
		}
	}
}

// safeStyle reports whether a style has only lengths, colours and keywords, so that it loads and runs nothing.
func safeStyle(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte(" #%.,:;+-()", c) >= 0) {
			return false
		}
	}
	s = strings.ToLower(s)
	return !strings.Contains(s, "url") && !strings.Contains(s, "expression") && !strings.Contains(s, "import")
}
