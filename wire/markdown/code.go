package markdown

import (
	_ "embed"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

//go:embed languages.txt
var languageList string

// language is a language of code blocks.
type language struct {
	name       string
	aliases    []string
	whiteSpace bool // its white space is marked with a class
}

// languages are the known languages by alias; the list is generated.
var languages = func() map[string]*language {
	m := map[string]*language{}
	for line := range strings.Lines(languageList) {
		parts := strings.Split(strings.TrimSpace(line), "\t")
		if line[0] == '#' || len(parts) < 3 {
			continue
		}
		l := &language{name: parts[1], aliases: parts[2:], whiteSpace: parts[0] == "w"}
		for _, a := range l.aliases {
			m[strings.ToLower(a)] = l
		}
	}
	return m
}()

// codeBlock returns a block of code. With a language its quotes are literal, as clients expect.
func (r *renderer) codeBlock(lang, code string) *node {
	div := r.element(tagDiv, attr{"class", "codehilite"})
	k := kindQuoted
	by := lang
	if lang != "" {
		name := lang
		if l := languages[strings.ToLower(lang)]; l != nil {
			name = l.name
		}
		div.attrs = append(div.attrs, attr{"data-code-language", name})
		k = kindVerbatim
	}
	code = strings.Trim(code, "\n")
	if lang == "" {
		by = firstLineLanguage(code)
	}
	code = strings.TrimRightFunc(code, isBlank) + "\n"
	pre, body := r.element(tagPre), r.element(tagCode)
	pre.atomic = true
	pre.append(r.element(tagSpan))
	pre.append(body)
	div.append(pre)
	if !r.highlight(body, k, by, code) {
		body.first, body.last = nil, nil
		body.append(r.textNode(k, code))
	}
	return div
}

// highlightIndented highlights the indented code, after all its lines are parsed.
func (r *renderer) highlightIndented() {
	for _, pre := range r.indentedCodes {
		var b strings.Builder
		for c := pre.first; c != nil; c = c.next {
			b.WriteString(c.text)
		}
		block := r.codeBlock("", b.String())
		block.spaced = true
		pre.parent.insertAfter(pre, block)
		pre.remove()
	}
}

// firstLineLanguage returns the language of a first line like #!python, #!/usr/bin/python or :::python.
func firstLineLanguage(code string) string {
	line, _, _ := strings.Cut(code, "\n")
	switch {
	case strings.HasPrefix(line, "#!"):
		line = line[2:]
		if strings.HasPrefix(line, "/") {
			line, _, _ = strings.Cut(line, " ")
			line = line[strings.LastIndexByte(line, '/')+1:]
		}
	case strings.HasPrefix(line, "::"):
		line = strings.TrimLeft(line, ":")
	default:
		return ""
	}
	n := 0
	for n < len(line) && (isAlnum(line[n]) || strings.IndexByte("_#.+-", line[n]) >= 0) {
		n++
	}
	return strings.ToLower(line[:n])
}

// chromaNames are the languages that have another name in the highlighter.
var chromaNames = map[string]string{
	"Python 2.x": "python2", "TeX": "tex", "CSS+PHP": "php", "HTML+PHP": "php", "JavaScript+PHP": "php",
	"XML+PHP": "php",
}

func lexerFor(lang string) (chroma.Lexer, *language) {
	l := languages[strings.ToLower(lang)]
	if l == nil || l.name == "Text only" {
		return nil, l
	}
	if name := chromaNames[l.name]; name != "" {
		if name == "php" {
			l = languages[name]
		}
		return lexers.Get(name), l
	}
	for _, a := range l.aliases {
		if lexer := lexers.Get(a); lexer != nil && !strings.EqualFold(lexer.Config().Name, "plaintext") {
			return lexer, l
		}
	}
	return nil, l
}

// highlight appends the tokens of code to body. It returns false if the highlighter does not have the language, or
// outOfTime.
func (r *renderer) highlight(body *node, k kind, lang, code string) bool {
	if lang == "" {
		return false
	}
	lexer, l := lexerFor(lang)
	if lexer == nil {
		return false
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(&chroma.TokeniseOptions{State: "root", EnsureLF: true}, code)
	if err != nil {
		return false
	}
	h := highlighter{r: r, body: body, kind: k, language: l}
	for t := tokens(); t != chroma.EOF; t = tokens() {
		if r.outOfTime() {
			return false
		}
		if t.Value != "" {
			h.tokens = append(h.tokens, token{chroma.StandardTypes[t.Type], t.Value})
		}
	}
	h.write()
	return true
}
