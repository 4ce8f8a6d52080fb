package markdown

import (
	"strings"
	"unicode/utf8"

	"parley/wire/markdown/katex"
)

// maths replaces $$formula$$ within a line.
func (r *renderer) maths(text string) string {
	e := rewriter{src: text}
	for i := 0; ; {
		next := strings.Index(text[i:], "$$")
		if next < 0 {
			return e.finish()
		}
		i += next
		run := i
		for run < len(text) && text[run] == '$' {
			run++
		}
		if run-i != 2 || wordBefore(text, i) {
			i = run
			continue
		}
		end := mathEnd(text, run)
		if end < 0 {
			i = run
			continue
		}
		e.replace(i, end+2, r.placeholder(r.inlineMath(text[run:end])))
		i = end + 2
	}
}

func wordBefore(text string, i int) bool {
	c, _ := utf8.DecodeLastRuneInString(text[:i])
	return i > 0 && isWord(c)
}

// mathEnd returns the position of the dollars that end a formula that starts at i.
func mathEnd(text string, i int) int {
	if i >= len(text) || text[i] == '\n' || text[i] == '_' || text[i] == '$' {
		return -1
	}
	_, n := utf8.DecodeRuneInString(text[i:])
	ends := func(p int) bool {
		if !strings.HasPrefix(text[p:], "$$") || strings.HasPrefix(text[p:], "$$$") {
			return false
		}
		c, _ := utf8.DecodeRuneInString(text[p+2:])
		return p+2 == len(text) || !isWord(c)
	}
	for p := i + n; p < len(text); p++ {
		switch {
		case text[p] == '\n':
			return -1
		case text[p] == '\\' && p+1 < len(text) && text[p+1] == '$':
			p++
			if p+1 < len(text) && text[p+1] == '$' && !ends(p+1) {
				// Otherwise the backslash may be the formula's last character.
				if ends(p) {
					return p
				}
				return -1
			}
			if p+1 == len(text) {
				return -1
			}
		case text[p] == '$':
			if ends(p) {
				return p
			}
			return -1
		}
	}
	return -1
}

func (r *renderer) inlineMath(tex string) *node {
	source := r.unmark(tex)
	html, ok := r.tex(source, false)
	if !ok {
		return r.atom(tagSpan, "$$"+source+"$$", attr{"class", "tex-error"})
	}
	return r.textNode(kindMath, html)
}

// mathBlock returns the paragraph of a fenced formula. Blank lines separate its parts; an empty part is an empty
// formula (protocol).
func (r *renderer) mathBlock(tex string) *node {
	p := r.element(tagP)
	for part := range strings.SplitSeq(tex, "\n\n") {
		if p.first != nil {
			p.append(r.textNode(kindText, "\n\n"))
		}
		if html, ok := r.tex(part, true); ok {
			p.append(r.textNode(kindMath, html))
		} else {
			// Clients expect this entity for the apostrophe in a failed block.
			bad := r.element(tagSpan, attr{"class", "tex-error"})
			bad.append(r.textNode(kindFailed, part))
			p.append(bad)
		}
	}
	return p
}

func (r *renderer) tex(source string, display bool) (string, bool) {
	if r.options.NoMath || r.failed {
		return "", false
	}
	if r.outOfTime() {
		r.failed = true
		return "", false
	}
	html, ok, late := katex.Render(source, display, r.started.Add(maxTime))
	if late {
		r.failed = true
	}
	return html, ok
}
