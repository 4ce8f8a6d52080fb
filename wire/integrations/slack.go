package integrations

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Slack's markup, where it differs from Markdown: <address|text>, <address>, *strong*, _emphasis_, ~deleted~.
var (
	slackAngle    = regexp.MustCompile(`<([^<>\n|]+)(?:\|([^<>\n]*))?>`)
	slackCode     = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	slackAddress  = regexp.MustCompile(`^(?:https?|mailto|tel):[^\s]+$`)
	slackEntities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// slackMarkdown converts Slack's markup to Markdown. Users, channels and groups are shown as they are named in the
// text, because their names are known only to Slack; only the mentions of all users of a channel become mentions if
// mention is set.
func slackMarkdown(s string, mention bool) string {
	s = strings.NewReplacer("\uE001", "", "\uE002", "").Replace(s)
	var kept []string
	keep := func(text string) string {
		kept = append(kept, text)
		return "\uE001" + strconv.Itoa(len(kept)-1) + "\uE002"
	}
	s = slackAngle.ReplaceAllStringFunc(s, func(m string) string {
		p := slackAngle.FindStringSubmatch(m)
		return keep(slackReference(m, p[1], p[2], mention))
	})
	s = slackCode.ReplaceAllStringFunc(s, keep)
	s = slackEmphasis(s, '*', "**")
	s = slackEmphasis(s, '_', "*")
	s = slackEmphasis(s, '~', "~~")
	for i, k := range slices.Backward(kept) { // a code can contain references
		s = strings.Replace(s, "\uE001"+strconv.Itoa(i)+"\uE002", k, 1)
	}
	return s
}

// slackEmphasis replaces a sign before and after a text of one line with the sign of Markdown. As in Slack, the text
// begins after a space or a sign and ends before one. The reference leaves _ and ~ at the start of a line alone if
// there are other signs in the text.
func slackEmphasis(s string, sign byte, with string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		size := strings.IndexByte(s[i+1:], sign)
		if s[i] != sign || size <= 0 || i > 0 && strings.IndexByte(" \t\n({[<\"'.,:;!?_~*-", s[i-1]) < 0 {
			b.WriteByte(s[i])
			continue
		}
		inner, end := s[i+1:i+1+size], i+1+size
		next, _ := utf8.DecodeRuneInString(s[end+1:])
		switch {
		case i > 0 && s[i-1] == sign, strings.Contains(inner, "\n"), inner != strings.TrimSpace(inner),
			unicode.IsLetter(next), unicode.IsDigit(next), next == rune(sign),
			sign != '*' && i > 0 && s[i-1] == '\n' && strings.ContainsAny(inner, "*_~"):
			b.WriteByte(s[i])
		default:
			b.WriteString(with + inner + with)
			i = end
		}
	}
	return b.String()
}

// slackReference returns the Markdown of a text in angle brackets: a link, a user, a channel or a command.
func slackReference(whole, target, label string, mention bool) string {
	switch {
	case slackAddress.MatchString(target) && label != "":
		return "[" + strings.NewReplacer("]", "", "[", "").Replace(label) + "](" + linkTarget(target) + ")"
	case slackAddress.MatchString(target):
		return target
	case target == "!channel", target == "!everyone", target == "!here":
		if mention {
			return "@" + mark + "**all**"
		}
		return "**" + target[1:] + "**"
	case strings.HasPrefix(target, "!") && label != "": // a group or a date
		return label
	case strings.HasPrefix(target, "@"), strings.HasPrefix(target, "#"):
		if label == "" {
			label = target[1:]
		}
		return "**" + target[:1] + strings.ReplaceAll(label, "*", "") + "**"
	}
	return whole
}

// slackText converts a value that is a text in Slack's markup, with its entities.
func slackText(v any) string {
	s, _ := v.(string)
	return strings.TrimSpace(slackEntities.Replace(slackMarkdown(strings.ReplaceAll(s, mark, ""), false)))
}

// slackMessage returns the text of a message in Slack's format: blocks, or else the text, and the attachments.
func (e *execution) slackMessage(v any) (block, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return "", &Anomaly{Reason: "the message is no object", Foreign: true}
	}
	if text, ok := m["text"]; ok && text != nil {
		if _, ok := text.(string); !ok {
			return "", &Anomaly{Reason: "the text is no text"}
		}
	}
	parts, err := e.slackBlocks(m["blocks"])
	if err != nil {
		return "", err
	}
	if len(parts) == 0 {
		said := slackText(m["text"])
		if icon, ok := m["icon_emoji"].(string); ok && said != "" && icon != "" {
			said = inline(icon) + " " + said
		}
		parts = append(parts, said)
	}
	attachments, err := e.listOf(m["attachments"])
	for i := 0; err == nil && i < len(attachments); i++ {
		var more []string
		more, err = e.slackAttachment(attachments[i])
		parts = append(parts, more...)
	}
	return block(joinParts(parts)), err
}

// joinParts joins the parts that are not empty with empty lines.
func joinParts(parts []string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "\n\n")
}

func (e *execution) slackAttachment(v any) ([]string, error) {
	a, ok := v.(map[string]any)
	if !ok {
		return nil, &Anomaly{Reason: "an attachment is no object"}
	}
	var parts []string
	if title := inline(slackText(a["title"])); title != "" {
		if to, ok := a["title_link"].(string); ok && to != "" {
			title = "[" + title + "](" + linkTarget(to) + ")"
		}
		parts = append(parts, "## "+title)
	}
	parts = append(parts, slackText(a["pretext"]), slackText(a["text"]))
	blocks, err := e.slackBlocks(a["blocks"])
	if err != nil {
		return nil, err
	}
	parts = append(parts, blocks...)
	fields, err := e.listOf(a["fields"])
	var lines []string
	for i := 0; err == nil && i < len(fields); i++ {
		f, _ := fields[i].(map[string]any)
		title, value := slackText(f["title"]), slackText(f["value"])
		switch {
		case title != "" && value != "":
			lines = append(lines, "**"+title+"**: "+value)
		case title != "":
			lines = append(lines, "**"+title+"**")
		case value != "":
			lines = append(lines, value)
		}
	}
	parts = append(parts, strings.Join(lines, "\n"))
	if to, ok := a["image_url"].(string); ok && to != "" {
		parts = append(parts, "[]("+linkTarget(to)+")")
	}
	parts = append(parts, slackText(a["footer"]))
	if at, err := text(a["ts"]); err == nil && at != "" {
		parts = append(parts, "<time:"+inline(at)+">")
	}
	if joinParts(parts) == "" {
		parts = append(parts, slackText(a["fallback"]))
	}
	return parts, err
}

func (e *execution) slackBlocks(v any) ([]string, error) {
	list, err := e.listOf(v)
	var parts []string
	for i := 0; err == nil && i < len(list); i++ {
		b, ok := list[i].(map[string]any)
		if !ok {
			return nil, &Anomaly{Reason: "a block is no object"}
		}
		var more []string
		more, err = e.slackBlock(b)
		parts = append(parts, more...)
	}
	return parts, err
}

// slackBlock returns the texts of a block. Buttons and inputs are left out.
func (e *execution) slackBlock(b map[string]any) (parts []string, err error) {
	switch b["type"] {
	case "markdown":
		text, _ := b["text"].(string)
		parts = append(parts, string(multiline(text)))
	case "rich_text":
		parts = append(parts, slackRichText(b["elements"]))
	case "header":
		parts = append(parts, "## "+inline(slackTextOf(b["text"])))
	case "divider":
		parts = append(parts, "----")
	case "image":
		parts = append(parts, slackImage(b))
	case "context":
		var line []string
		elements, err := e.listOf(b["elements"])
		if err != nil {
			return nil, err
		}
		for _, v := range elements {
			if x, _ := v.(map[string]any); x["type"] == "image" {
				line = append(line, slackImage(x))
			} else {
				line = append(line, slackTextOf(x))
			}
		}
		parts = append(parts, strings.Join(line, " "))
	case "section":
		parts = append(parts, slackTextOf(b["text"]))
		fields, err := e.listOf(b["fields"])
		if err != nil {
			return nil, err
		}
		parts = append(parts, slackTable(fields))
		if x, _ := b["accessory"].(map[string]any); x["type"] == "image" {
			parts = append(parts, slackImage(x))
		}
	}
	return parts, nil
}

// slackTextOf returns the Markdown of a text object. Its type says whether there is markup in it.
func slackTextOf(v any) string {
	m, _ := v.(map[string]any)
	if text, ok := m["text"].(string); ok && m["type"] == "plain_text" {
		return strings.TrimSpace(slackEntities.Replace(strings.ReplaceAll(text, mark, "")))
	}
	return slackText(m["text"])
}

func slackImage(m map[string]any) string {
	to, _ := m["image_url"].(string)
	alt, _ := m["alt_text"].(string)
	return "[" + inline(alt) + "](" + linkTarget(to) + ")"
}

// slackTable shows the fields of a section: a table of two columns, or the only field as it is.
func slackTable(fields []any) string {
	if len(fields) == 0 {
		return ""
	}
	if len(fields) == 1 {
		return slackTextOf(fields[0])
	}
	cell := func(i int) string {
		if i >= len(fields) {
			return ""
		}
		return strings.ReplaceAll(inline(slackTextOf(fields[i])), "|", "/")
	}
	var b strings.Builder
	b.WriteString("| | |\n|-|-|")
	for i := 0; i < len(fields); i += 2 {
		b.WriteString("\n| " + cell(i) + " | " + cell(i+1) + " |")
	}
	return b.String()
}
