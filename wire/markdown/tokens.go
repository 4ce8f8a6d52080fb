package markdown

import (
	"strings"
)

// token is a piece of code and the class that clients use for its kind.
type token struct{ class, text string }

// highlighter writes the tokens of one block of code. The classes are those of Pygments, which clients expect. The
// lexers are older than the ones clients were made for; the rules below correct the most common languages.
type highlighter struct {
	r        *renderer
	body     *node
	kind     kind
	language *language
	tokens   []token
}

func (h *highlighter) write() {
	fix := classFixes[h.language.name]
	if fix == nil && strings.HasPrefix(h.language.name, "Python") {
		fix = fixPython
	}
	h.split()
	for i := range h.tokens {
		t := &h.tokens[i]
		if t.class == "cp" && strings.HasPrefix(t.text, "#!") {
			t.class = "ch"
		}
		if fix != nil {
			fix(h.tokens, i)
		}
	}
	if h.language.name == "C" || h.language.name == "C++" {
		fixCalls(h.tokens)
	}
	for _, t := range h.tokens {
		h.lines(t)
	}
}

// lines writes a token. Spans end at line ends.
func (h *highlighter) lines(t token) {
	for text := t.text; text != ""; {
		line, rest, ended := strings.Cut(text, "\n")
		text = rest
		switch {
		case line == "":
		case t.class == "w" && strings.Trim(line, " ") != "", t.class == plainSpace:
			h.span("", line)
		default:
			h.span(t.class, line)
		}
		if ended {
			h.span("", "\n")
		}
	}
}

// plainSpace is the class of white space that is not marked, in languages whose white space is marked.
const plainSpace = " "

// split splits text without a class into line ends, white space and words.
func (h *highlighter) split() {
	marked := ""
	if h.language.whiteSpace || h.language.name == "Bash Session" || h.language.name == "YAML" {
		marked = "w"
	}
	out := make([]token, 0, len(h.tokens)+len(h.tokens)/2)
	for _, t := range h.tokens {
		if t.class != "" && t.class != "w" {
			out = append(out, t)
			continue
		}
		marked := marked
		if t.class == "w" {
			marked = "w"
		}
		for text := t.text; text != ""; {
			class, n := "", 1
			if text[0] == ' ' {
				class, n = marked, len(text)-len(strings.TrimLeft(text, " "))
			} else if text[0] != '\n' {
				if n = strings.IndexAny(text, " \n"); n < 0 {
					n = len(text)
				}
			}
			out = append(out, token{class, text[:n]})
			text = text[n:]
		}
	}
	h.tokens = out
}

// span appends text; neighbours with the same class share a span.
func (h *highlighter) span(class, text string) {
	last := h.body.last
	if class == "" {
		if last != nil && last.kind == h.kind {
			last.text += text
			return
		}
		h.body.append(h.r.textNode(h.kind, text))
		return
	}
	if last != nil && last.kind == kindElement && last.attr("class") == class {
		last.first.text += text
		return
	}
	s := h.r.element(tagSpan, attr{"class", class})
	s.append(h.r.textNode(h.kind, text))
	h.body.append(s)
}

// classFixes change the class of a token, by language.
var classFixes = map[string]func(tokens []token, i int){
	"JavaScript": fixScript, "TypeScript": fixScript, "JSX": fixScript, "TSX": fixScript, "Java": fixJava, "Go": fixGo,
	"Rust": fixRust,
	"YAML": fixYAML, "Bash": fixBash, "Bash Session": fixBash, "HTML": fixHTML, "TOML": fixTOML, "C": fixC, "C++": fixC,
}

// fixPython marks the white space of definitions and imports, and documentation strings.
func fixPython(tokens []token, i int) {
	t := &tokens[i]
	if t.class == "" && strings.Trim(t.text, " ") == "" {
		before, after := token{}, token{}
		if i > 0 {
			before = tokens[i-1]
		}
		if i+1 < len(tokens) {
			after = tokens[i+1]
		}
		switch {
		case before.text == "def", before.text == "class", before == token{"kn", "from"},
			before.class == "nn" && after == token{"kn", "import"},
			before == token{"kn", "import"} && after.class == "nn", before == token{"o", ","} && after.class == "nn":
			t.class = "w"
		}
		return
	}
	if t.class == "sd" || !strings.HasPrefix(t.class, "s") ||
		!strings.HasPrefix(t.text, `"""`) && !strings.HasPrefix(t.text, "'''") {
		return
	}
	// A string at the start of a line is documentation.
	space := i > 0 && strings.Trim(tokens[i-1].text, " ") == ""
	before := i - 1
	if space {
		before--
	}
	if before >= 0 && !strings.HasSuffix(tokens[before].text, "\n") {
		return
	}
	if space {
		tokens[i-1].class = "w"
	}
	quote := t.text[:3]
	for j := i; j < len(tokens) && strings.HasPrefix(tokens[j].class, "s"); j++ {
		tokens[j].class = "sd"
		if tokens[j].text == quote && j > i || len(tokens[j].text) >= 6 && strings.HasSuffix(tokens[j].text, quote) {
			break
		}
	}
}

var scriptClasses = map[string]string{
	"const": "kd", "let": "kd", "class": "kd", "interface": "kd", "enum": "kd", "async": "k", "await": "k",
	"export": "k", "extends": "k",
	"import": "k", "from": "k", "static": "k", "super": "k", "yield": "k", "of": "k", "new": "ow", "typeof": "ow",
	"instanceof": "ow",
	"delete":     "ow", "void": "ow", "in": "ow",
}

func fixScript(tokens []token, i int) {
	t := &tokens[i]
	switch {
	case strings.HasPrefix(t.class, "k"):
		if c := scriptClasses[t.text]; c != "" {
			t.class = c
		}
	case t.class == "ow" && t.text == "new", t.class == "o" && scriptClasses[t.text] == "ow":
		t.class = "ow"
	case t.class == "mi":
		t.class = "mf"
	case (t.class == "nb" || t.class == "nx" || t.class == "ne") && strings.HasSuffix(t.text, "Error") &&
		isError(t.text):
		t.class = "ne"
	case t.class == "" && t.text == ":":
		t.class = "o"
	}
}

func isError(name string) bool {
	switch strings.TrimSuffix(name, "Error") {
	case "", "Aggregate", "Eval", "Internal", "Range", "Reference", "Syntax", "Type", "URI":
		return true
	}
	return false
}

func fixJava(tokens []token, i int) {
	t := &tokens[i]
	switch {
	case t.class == "n" && isNumber(t.text):
		t.class = "mi"
	case (t.class == "" || t.class == "w") && i > 0 && (tokens[i-1].text == "class" || tokens[i-1].text == "interface"):
		t.class = plainSpace
	}
}

func fixGo(tokens []token, i int) {
	if tokens[i].class == "nf" {
		tokens[i].class = "nx"
	}
}

func fixRust(tokens []token, i int) {
	t := &tokens[i]
	switch {
	case t.class == "" && strings.TrimSpace(t.text) != "" && strings.Trim(t.text, ":->=") == "":
		t.class = "p"
	case t.class == "si":
		t.class = "s"
	}
}

const (
	yamlPlain     = "l l-Scalar l-Scalar-Plain"
	yamlIndicator = "p p-Indicator"
)

func fixYAML(tokens []token, i int) {
	t := &tokens[i]
	switch {
	case t.class == "l" || t.class == "m" || t.class == "kc" || t.class == "mi" || t.class == "mf":
		t.class = yamlPlain
	case t.class == "c":
		t.class = "c1"
	case t.class == "s2":
		t.class = "s"
	case (t.class == "" || t.class == "p") && strings.TrimSpace(t.text) != "" && strings.Trim(t.text, "-[]{},>|") == "":
		t.class = yamlIndicator
	}
}

func fixBash(tokens []token, i int) {
	t := &tokens[i]
	switch {
	case t.class == "" && isNumber(t.text):
		t.class = "m"
	case t.class == "" && t.text == "in":
		t.class = "k"
	case t.class == "gp" && i+1 < len(tokens) && tokens[i+1].text == " ":
		t.text, tokens[i+1].text = t.text+" ", ""
	}
}

func fixTOML(tokens []token, i int) {
	t := &tokens[i]
	switch {
	case t.class == "c":
		t.class = "c1"
	case t.class == "nx":
		t.class = "n"
	case t.text == "=":
		t.class = "o"
	case t.class == "p" && t.text == "[" && (i == 0 || strings.HasSuffix(tokens[i-1].text, "\n")):
		for j := i; j < len(tokens) && !strings.Contains(tokens[j].text, "\n"); j++ {
			tokens[j].class = "k"
		}
	}
}

func fixHTML(tokens []token, i int) {
	t := &tokens[i]
	if t.class == "c" {
		t.class = "cm"
	}
}

func fixC(tokens []token, i int) {
	if tokens[i].text == "nullptr" {
		tokens[i].class = "nb"
	}
}

// fixCalls distinguishes calls from definitions, which are outside of braces.
func fixCalls(tokens []token) {
	depth := 0
	for i := range tokens {
		t := &tokens[i]
		if t.class == "p" {
			depth += strings.Count(t.text, "{") - strings.Count(t.text, "}")
		}
		if t.class == "nf" && depth > 0 {
			t.class = "n"
		}
	}
}
