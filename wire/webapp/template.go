package webapp

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
)

// The constructs that templates of the page use. Every other one is rejected.
var (
	// texts are the variables that {{ }} can contain.
	texts = []string{"csrf_input", "csp_nonce", "s3_avatar_public_url_prefix"}
	// conditions are the variables that if can test. Those without a value are false.
	conditions = []string{"embedded", "has_web_public_streams", "is_firefox_android", "enable_gravatar",
		"s3_avatar_public_url_prefix"}
)

// block is one parsed block of a template.
type block []node

// node is a part of a block. It is either text, or one of the constructs.
type node struct {
	kind nodeKind
	text string   // of a text; the variable, the text to translate, or the name of the static file
	then []branch // of a condition, in order
}

// branch is a part of a condition. The first one that holds is shown.
type branch struct {
	variable string // "": holds always
	negated  bool
	block    block
}

type nodeKind int

const (
	plainText nodeKind = iota
	variable
	translated      // a text, which is escaped
	translatedBlock // a text with HTML
	staticFile
	condition
)

// values are the values that a template can show.
type values struct {
	texts map[string]string // HTML
	flags map[string]bool
	// translate returns the translation of a text, or the text.
	translate func(string) string
}

var (
	tag      = regexp.MustCompile(`(?s)\{#.*?#\}|\{\{.*?\}\}|\{%.*?%\}`)
	call     = regexp.MustCompile(`(?s)^(_|static)\(\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*\)$`)
	word     = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	blockTag = regexp.MustCompile(`\{%-?\s*block\s+([a-z_]+)\s*-?%\}`)
	endTag   = regexp.MustCompile(`\{%-?\s*endblock\b[^%]*-?%\}`)
	spaces   = regexp.MustCompile(`\s+`)
)

// parseBlock returns the named block of a template. A block that does not exist is empty, and found is false.
func parseBlock(template, name string) (b block, found bool, err error) {
	for _, m := range blockTag.FindAllStringSubmatchIndex(template, -1) {
		if template[m[2]:m[3]] != name {
			continue
		}
		rest := template[m[1]:]
		end := endTag.FindStringIndex(rest)
		if end == nil {
			return nil, true, fmt.Errorf("block %s has no end", name)
		}
		p := parser{rest: rest[:end[0]]}
		b, err = p.parse()
		if err == nil && p.stopped != "" {
			err = fmt.Errorf("{%% %s %%} has no beginning", p.stopped)
		}
		if err != nil {
			return nil, true, fmt.Errorf("block %s: %w", name, err)
		}
		return b, true, nil
	}
	return nil, false, nil
}

// parser parses a block. depth is bounded by maxTemplateDepth, so that no template exhausts the stack.
type parser struct {
	rest    string
	stopped string // the statement that ended the last part: else, elif NAME or endif; "" at the end
	depth   int
}

// maxTemplateDepth is how deep conditions can be nested.
const maxTemplateDepth = 20

// parse parses up to the end, or up to a statement that ends a part of a condition.
func (p *parser) parse() (b block, err error) {
	for {
		at := tag.FindStringIndex(p.rest)
		if at == nil {
			p.stopped = ""
			return append(b, node{text: p.rest}), nil
		}
		before, found := p.rest[:at[0]], p.rest[at[0]:at[1]]
		p.rest = p.rest[at[1]:]
		inner := found[2 : len(found)-2]
		if strings.HasPrefix(inner, "-") {
			before, inner = strings.TrimRight(before, " \t\r\n"), inner[1:]
		}
		if strings.HasSuffix(inner, "-") {
			p.rest, inner = strings.TrimLeft(p.rest, " \t\r\n"), inner[:len(inner)-1]
		}
		b, inner = append(b, node{text: before}), strings.TrimSpace(inner)
		var n node
		switch found[1] {
		case '#':
			continue
		case '{':
			n, err = parseExpression(inner)
		default:
			if statement, _, _ := strings.Cut(inner, " "); slices.Contains([]string{"else", "elif", "endif"},
				statement) {
				p.stopped = inner
				return b, nil
			}
			n, err = p.parseStatement(inner)
		}
		if err != nil {
			return nil, err
		}
		b = append(b, n)
	}
}

func parseExpression(text string) (node, error) {
	if slices.Contains(texts, text) {
		return node{kind: variable, text: text}, nil
	}
	if m := call.FindStringSubmatch(text); m != nil {
		argument := m[2] + m[3]
		if m[1] == "_" {
			return node{kind: translated, text: argument}, nil
		}
		return node{kind: staticFile, text: argument}, nil
	}
	return node{}, fmt.Errorf("unknown construct {{ %s }}", text)
}

func (p *parser) parseStatement(text string) (node, error) {
	switch {
	case text == "trans":
		return p.parseTranslation()
	case strings.HasPrefix(text, "if "):
		return p.parseCondition(text)
	}
	return node{}, fmt.Errorf("unknown construct {%% %s %%}", text)
}

// parseTranslation parses the text up to endtrans. It cannot contain other constructs.
func (p *parser) parseTranslation() (node, error) {
	at := tag.FindStringIndex(p.rest)
	if at == nil || strings.Trim(p.rest[at[0]:at[1]], "{%- }") != "endtrans" {
		return node{}, fmt.Errorf("unknown construct inside {%% trans %%}")
	}
	text := p.rest[:at[0]]
	p.rest = p.rest[at[1]:]
	return node{kind: translatedBlock, text: spaces.ReplaceAllString(strings.TrimSpace(text), " ")}, nil
}

// parseCondition parses the branches up to endif.
func (p *parser) parseCondition(text string) (node, error) {
	n := node{kind: condition}
	if p.depth++; p.depth > maxTemplateDepth {
		return n, fmt.Errorf("more than %d nested conditions", maxTemplateDepth)
	}
	for {
		statement, name, _ := strings.Cut(text, " ")
		name, negated := strings.CutPrefix(strings.TrimSpace(name), "not ")
		name = strings.TrimSpace(name)
		last := statement == "else"
		if last != (name == "") || !last && (!word.MatchString(name) || !slices.Contains(conditions, name)) {
			return n, fmt.Errorf("unknown construct {%% %s %%}", text)
		}
		b, err := p.parse()
		if err != nil {
			return n, err
		}
		n.then = append(n.then, branch{name, negated, b})
		switch text = p.stopped; {
		case text == "endif":
			p.depth--
			return n, nil
		case text == "":
			return n, fmt.Errorf("{%% if %%} has no end")
		case last:
			return n, fmt.Errorf("{%% %s %%} after else", text)
		}
	}
}

// appendTo appends the HTML of a block.
func (b block) appendTo(out []byte, v *values) []byte {
	for _, n := range b {
		switch n.kind {
		case plainText:
			out = append(out, n.text...)
		case variable:
			out = append(out, v.texts[n.text]...)
		case translated:
			out = append(out, html.EscapeString(v.translate(n.text))...)
		case translatedBlock:
			out = append(out, v.translate(n.text)...)
		case staticFile:
			out = append(out, html.EscapeString(StaticPath+n.text)...)
		case condition:
			for _, x := range n.then {
				if x.variable == "" || (v.flags[x.variable] || v.texts[x.variable] != "") != x.negated {
					out = x.block.appendTo(out, v)
					break
				}
			}
		}
	}
	return out
}

// translatable returns the texts of a block that are translated.
func (b block) translatable() (list []string) {
	for _, n := range b {
		switch n.kind {
		case translated, translatedBlock:
			list = append(list, n.text)
		case condition:
			for _, x := range n.then {
				list = append(list, x.block.translatable()...)
			}
		}
	}
	return list
}
