package integrations

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// indented returns the JSON text of the request with line breaks, in the order and spelling of the payload.
func (e *execution) indented() (block, error) {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimPrefix(e.request.Body, byteOrderMark), "", "  ") != nil {
		return "", errMalformed
	}
	return multiline(unfenced(b.String())), e.spend(1 + b.Len()/256)
}

// ofText makes a function of a text a function of a value, which must have a text.
func ofText[T any](e *execution, f func(string) T) func(any) (T, error) {
	return func(v any) (out T, err error) {
		s, err := e.textOf(v)
		if err != nil {
			return out, err
		}
		return f(s), nil
	}
}

// ofTexts is ofText for two texts.
func ofTexts[T any](e *execution, f func(a, b string) T) func(a, b any) (T, error) {
	return func(a, b any) (out T, err error) {
		x, err := e.textOf(a)
		if err != nil {
			return out, err
		}
		return ofText(e, func(y string) T { return f(x, y) })(b)
	}
}

// fenced returns a text between fences that the text does not contain.
func fenced(fence, kind, s string) block {
	for strings.Contains(s, fence) {
		fence += fence[:1]
	}
	return block(fence+kind+"\n") + multiline(s) + block("\n"+fence)
}

// unfenced breaks up fences in a text that is put between fences by the template itself.
func unfenced(s string) string { return strings.ReplaceAll(s, "```", "``"+gap+"`") }

// fence puts a text between fences of backticks: fence "quote" .text, fence "python" .text. An empty kind is allowed.
func (e *execution) fence(kind string, v any) (block, error) {
	s, err := e.textOf(v)
	return fenced("```", inline(kind), s), err
}

// code shows a text of one line in the font of code.
func code(s string) block {
	s = inline(s)
	ticks := "`"
	for strings.Contains(s, ticks) {
		ticks += "`"
	}
	return block(ticks + s + ticks)
}

// link returns a link. If the address is null or empty, it is the label alone.
func (e *execution) link(label, to any) (block, error) {
	s, err := e.textOf(label)
	if err != nil {
		return "", err
	}
	kept, isBlock := label.(block)
	if !isBlock {
		kept = block(inline(s))
	}
	if to == nil || to == "" {
		return kept, nil
	}
	address, err := e.textOf(to)
	if err != nil {
		return "", err
	}
	if strings.Contains(address, gone) {
		return kept, nil
	}
	return "[" + kept + "](" + block(linkTarget(address)) + ")", nil
}

// linkTarget returns an address that cannot end the link in which it is.
func linkTarget(s string) string {
	s = strings.NewReplacer("\n", "", "\r", "", " ", "%20", "<", "%3C", ">", "%3E", mark, "").Replace(s)
	depth := 0
	for _, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return strings.NewReplacer("(", "%28", ")", "%29").Replace(s)
			}
		}
	}
	if depth != 0 {
		return strings.NewReplacer("(", "%28", ")", "%29").Replace(s)
	}
	return s
}

// mention mentions a user, or "all" in the topic. Only data that a service's own people control may be passed to it.
func (e *execution) mention(name any) (block, error) {
	s, err := e.textOf(name)
	return block("@" + mark + "**" + strings.NewReplacer("*", "", "|", "").Replace(inline(s)) + "**"), err
}

// person returns the name of the user with an address, or the address if there is none. It is no mention.
func (e *execution) person(address any) (string, error) {
	s, err := e.textOf(address)
	if err == nil && e.request.Person != nil {
		s = cmp.Or(e.request.Person(s), s)
	}
	return s, err
}

// plural returns "1 commit" or "3 commits" for plural .n "commit" "commits".
func (e *execution) plural(v any, one, many string) (string, error) {
	n, err := e.number(v)
	if err != nil {
		return gone + " " + many, e.absent("%v", err)
	}
	if n == 1 {
		many = one
	}
	return formatNumber(n) + " " + many, nil
}

func titled(s string) string {
	start := true
	return strings.Map(func(c rune) rune {
		was := start
		start = !unicode.IsLetter(c)
		if was {
			return unicode.ToUpper(c)
		}
		return unicode.ToLower(c)
	}, s)
}

// capital makes the first letter of a text large and leaves the rest.
func capital(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(c)) + s[n:]
}

// truncate shortens a text to n characters, the last three of which are dots.
func (e *execution) truncate(n int, v any) (any, error) {
	s, err := e.textOf(v)
	if b, ok := v.(block); ok {
		return block(truncate(string(b), n, "...")), err
	}
	return truncate(s, n, "..."), err
}

func (e *execution) replace(old, with string, v any) (string, error) {
	s, err := e.textOf(v)
	if err != nil || old == "" {
		return s, err
	}
	s = strings.ReplaceAll(s, old, with)
	return s, e.spend(1 + len(s)/256)
}

func (e *execution) match(pattern string, v any) (bool, error) {
	s, err := e.textOf(v)
	return err == nil && s != gone && e.program.patterns[pattern].MatchString(s), err
}

// find returns the first match and its groups as a list, or nil.
func (e *execution) find(pattern string, v any) (any, error) {
	s, err := e.textOf(v)
	if err != nil {
		return nil, err
	}
	found := e.program.patterns[pattern].FindStringSubmatch(s)
	if found == nil || s == gone {
		return nil, nil
	}
	out := make([]any, len(found))
	for i, f := range found {
		out[i] = f
	}
	return out, nil
}

func (e *execution) replaceAll(pattern, with string, v any) (string, error) {
	s, err := e.textOf(v)
	if err != nil {
		return "", err
	}
	s = e.program.patterns[pattern].ReplaceAllString(s, with)
	return s, e.spend(1 + len(s)/256)
}

func (e *execution) split(separator string, v any) ([]any, error) {
	s, err := e.textOf(v)
	if err != nil {
		return nil, err
	}
	var out []any
	for part := range strings.SplitSeq(s, separator) {
		out = append(out, part)
	}
	return out, e.spend(len(out))
}

func (e *execution) texts(list any) ([]string, error) {
	in, err := e.listOf(list)
	out := make([]string, len(in))
	for i := 0; err == nil && i < len(in); i++ {
		out[i], err = e.textOf(in[i])
	}
	return out, err
}

// join joins the texts of a list. Blocks in it stay blocks.
func (e *execution) join(separator string, list any) (block, error) {
	in, err := e.listOf(list)
	parts := make([]string, len(in))
	for i := 0; err == nil && i < len(in); i++ {
		if parts[i], err = e.printed(in[i]); err == nil {
			err = e.spend(1 + len(parts[i])/256)
		}
	}
	return block(strings.Join(parts, separator)), err
}

// sentence returns a function that joins the texts of a list as in a sentence: a, b and c. A list of three or more ends
// with the text longEnd before its last element.
func (e *execution) sentence(longEnd string) func(list any) (block, error) {
	return func(list any) (block, error) {
		in, err := e.listOf(list)
		if err != nil || len(in) < 2 {
			return e.join(", ", list)
		}
		end := block(longEnd)
		if len(in) == 2 {
			end = " and "
		}
		start, err := e.join(", ", in[:len(in)-1])
		if err != nil {
			return "", err
		}
		last, err := e.printed(in[len(in)-1])
		return start + end + block(last), err
	}
}

// fieldText shows a value that a user of the service has added: booleans and null with a capital letter, lists with
// commas. A list with other lists or maps is not supported.
func (e *execution) fieldText(v any) (block, error) {
	const unsupported = "*Value is not a supported data type*"
	switch v := v.(type) {
	case nil:
		return "None", nil
	case bool:
		return block(capital(fmt.Sprint(v))), nil
	case map[string]any:
		return unsupported, nil
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			switch x.(type) {
			case map[string]any, []any:
				return unsupported, e.spend(1 + len(v))
			}
			p, err := e.fieldText(x)
			if err != nil {
				return "", err
			}
			parts[i] = string(p)
		}
		return block(strings.Join(parts, ", ")), e.spend(1 + len(v))
	}
	s, err := e.textOf(v)
	return block(inline(s)), err
}

// wanted reports whether a name is in a list separated by commas, in which * matches everything. An empty list wants
// every name. It is made for the parameter branches.
func (e *execution) wanted(list string, v any) (bool, error) {
	name, err := e.textOf(v)
	if err != nil || strings.TrimSpace(list) == "" || name == "" || name == gone {
		return err == nil, err
	}
	if len(list) > 4096 {
		return false, &Anomaly{Reason: "the list of names is longer than 4096 bytes"}
	}
	for pattern := range strings.SplitSeq(list, ",") {
		if matchName(strings.TrimSpace(pattern), name) {
			return true, nil
		}
	}
	return false, nil
}

// matchName reports whether a name fits a pattern in which * is any text and ? any character.
func matchName(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(name, "/", "\x01"))
	return err == nil && ok
}
