package integrations

import (
	"fmt"
	"strings"
)

// slackRichText returns the Markdown of the elements of a rich_text block: sections, lists, quotes and code. Elements
// of an unknown type are left out.
func slackRichText(v any) string {
	elements, _ := v.([]any)
	var parts []string
	for _, v := range elements {
		x, _ := v.(map[string]any)
		text := slackInlines(x["elements"], x["type"] != "rich_text_preformatted")
		switch x["type"] {
		case "rich_text_list":
			parts = append(parts, slackList(x))
		case "rich_text_quote":
			parts = append(parts, string(fenced("```", " quote", text)))
		case "rich_text_preformatted":
			language, _ := x["language"].(string)
			parts = append(parts, string(fenced("```", inline(language), text)))
		case "rich_text_section":
			parts = append(parts, strings.TrimSpace(text))
		}
	}
	return strings.Join(parts, "\n")
}

// maxIndent bounds the levels of a list.
const maxIndent = 8

// slackList returns a list, one line for each element.
func slackList(list map[string]any) string {
	elements, _ := list["elements"].([]any)
	level := 0
	if s, err := text(list["indent"]); err == nil {
		fmt.Sscan(s, &level) // no number: level 0
	}
	indent := strings.Repeat("  ", min(max(level, 0), maxIndent))
	var lines []string
	for i, v := range elements {
		x, _ := v.(map[string]any)
		sign := "* "
		if list["style"] == "ordered" {
			sign = fmt.Sprintf("%d. ", i+1)
		}
		lines = append(lines, indent+sign+strings.ReplaceAll(slackInlines(x["elements"], true), "\n", " "))
	}
	return strings.Join(lines, "\n")
}

// slackInlines returns the text of the elements of a line, with their styles if styled is set.
func slackInlines(v any, styled bool) string {
	elements, _ := v.([]any)
	var b strings.Builder
	for _, v := range elements {
		x, _ := v.(map[string]any)
		s := slackInline(x)
		if style, _ := x["style"].(map[string]any); styled {
			s = slackStyled(s, style)
		}
		b.WriteString(s)
	}
	return string(multiline(b.String()))
}

// slackInline returns the text of one element of a line.
func slackInline(x map[string]any) string {
	field := func(name string) string { s, _ := x[name].(string); return s }
	switch x["type"] {
	case "text":
		return field("text")
	case "link":
		if field("text") == "" {
			return field("url")
		}
		return "[" + inline(field("text")) + "](" + linkTarget(field("url")) + ")"
	case "emoji":
		return ":" + inline(field("name")) + ":"
	case "user":
		return "**@" + inline(field("user_id")) + "**"
	case "usergroup":
		return "**@" + inline(field("usergroup_id")) + "**"
	case "channel":
		return "**#" + inline(field("channel_id")) + "**"
	case "broadcast":
		return "**" + inline(field("range")) + "**"
	case "color":
		return "`" + inline(field("value")) + "`"
	case "date":
		if field("fallback") != "" {
			return field("fallback")
		}
		if at, err := text(x["timestamp"]); err == nil {
			return "<time:" + inline(at) + ">"
		}
	}
	return field("text")
}

// slackStyled puts the signs of styles around a text. Space at its ends stays outside.
func slackStyled(s string, style map[string]any) string {
	inner := strings.TrimSpace(s)
	if inner == "" {
		return s
	}
	start := s[:strings.Index(s, inner)]
	end := s[len(start)+len(inner):]
	for _, x := range []struct{ name, sign string }{{"code", "`"}, {"strike", "~~"}, {"italic", "*"}, {"bold", "**"}} {
		if style[x.name] == true {
			inner = x.sign + inner + x.sign
		}
	}
	return start + inner + end
}
