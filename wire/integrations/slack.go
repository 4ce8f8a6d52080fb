package integrations

import (
	"regexp"
	"strconv"
	"strings"
)

// Slack's markup, where it differs from Markdown: <address|text>, <address>, *strong*, _emphasis_, ~deleted~.
var (
	slackAngle    = regexp.MustCompile(`<([^<>\n|]+)(?:\|([^<>\n]*))?>`)
	slackStrong   = regexp.MustCompile(`(^|[\s({\[<"'.,:;!?_~*-])([*_~])([^\s*_~](?:[^*_~\n]*[^\s*_~])?)([*_~])`)
	slackAddress  = regexp.MustCompile(`^(?:https?|mailto|tel):[^\s]+$`)
	slackEntities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
	slackMarks    = map[string]string{"*": "**", "_": "*", "~": "~~"}
)

// slackMarkdown converts Slack's markup to Markdown. Users, channels and groups are shown as they are named in the
// text, because their names are known only to Slack; only the mentions of everybody in a channel become mentions if
// mention is set.
func slackMarkdown(s string, mention bool) string {
	s = strings.NewReplacer("\uE001", "", "\uE002", "").Replace(s)
	var kept []string
	s = slackAngle.ReplaceAllStringFunc(s, func(m string) string {
		p := slackAngle.FindStringSubmatch(m)
		kept = append(kept, slackReference(m, p[1], p[2], mention))
		return "\uE001" + strconv.Itoa(len(kept)-1) + "\uE002"
	})
	s = slackStrong.ReplaceAllStringFunc(s, func(m string) string {
		p := slackStrong.FindStringSubmatch(m)
		if p[2] != p[4] {
			return m
		}
		return p[1] + slackMarks[p[2]] + p[3] + slackMarks[p[2]]
	})
	for i, k := range kept {
		s = strings.Replace(s, "\uE001"+strconv.Itoa(i)+"\uE002", k, 1)
	}
	return s
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
				line = append(line, slackText(x["text"]))
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

func slackTextOf(v any) string {
	m, _ := v.(map[string]any)
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
