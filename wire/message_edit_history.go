package wire

import (
	"slices"
	"strings"

	"github.com/sergi/go-diff/diffmatchpatch"

	"parley/actors/realm"
)

type messageHistoryForm struct {
	Message    realm.MessageID `path:"message_id"`
	EmptyTopic bool            `form:"allow_empty_topic_name,default=false"`
}

// getMessageHistory answers all versions of a message, the original first.
func getMessageHistory(c *Call, f messageHistoryForm) (Answer, error) {
	past, err := readHistory(c, f.Message)
	if err != nil {
		return nil, err
	}
	text := func(version uint16) (realm.Body, error) {
		if past.movesOnly {
			version = past.info.Ref.Version // only moves are visible, so earlier texts are not shown
		}
		b, ok := c.Server.Text(c.Realm, realm.BodyRef{Message: f.Message, Version: version})
		if !ok {
			return b, realm.BadRequest("Invalid message(s)")
		}
		return b, nil
	}
	topic := func(t string) string {
		if t == "" && !f.EmptyTopic {
			return realm.EmptyTopicName
		}
		return t
	}
	current, version := originalTopicAndVersion(&past.info)
	body, err := text(version)
	if err != nil {
		return nil, err
	}
	topicOrEmpty := func(t string) any {
		if past.info.Channel == 0 {
			return ""
		}
		return topic(t)
	}
	list := []any{obj{"topic": topicOrEmpty(current), "content": body.Text, "rendered_content": body.HTML,
		"timestamp": past.info.Time, "user_id": past.info.Sender.ID}}
	for n, r := range past.info.History {
		o := obj{"timestamp": r.At, "user_id": r.User}
		edited := r.Content && !past.movesOnly
		if r.TopicBefore == nil && r.ChannelBefore == 0 && !edited {
			continue
		}
		if r.TopicBefore != nil {
			current = *r.TopicAfter
			o["prev_topic"] = topicOrEmpty(*r.TopicBefore)
		}
		if r.ChannelBefore != 0 {
			o["prev_stream"], o["stream"] = r.ChannelBefore, r.ChannelAfter
		}
		if edited {
			before := body
			if body, err = text(versionAfter(&past.info, n)); err != nil {
				return nil, err
			}
			o["prev_content"], o["prev_rendered_content"], o["content_html_diff"] = before.Text, before.HTML,
				htmlDiff(before.HTML, body.HTML)
		}
		o["topic"], o["content"], o["rendered_content"] = topicOrEmpty(current), body.Text, body.HTML
		list = append(list, o)
	}
	return Answer{"message_history": list}, nil
}

// messageHistory is a message with its history. movesOnly is set where the organization shows moves but no earlier
// texts.
type messageHistory struct {
	info      realm.MessageInfo
	movesOnly bool
}

// readHistory returns the history of a message that the caller can read, within the organization's visibility policy.
func readHistory(c *Call, id realm.MessageID) (messageHistory, error) {
	return Read(c, func(v realm.View) (messageHistory, error) {
		policy := v.OrgText("message_edit_history_visibility_policy")
		if policy == "none" {
			return messageHistory{}, realm.BadRequest("Message edit history is disabled in this organization")
		}
		i, err := v.ReadableMessage(id)
		return messageHistory{i, policy == "moves"}, err
	})
}

// originalTopicAndVersion returns the topic the message was sent to and the version of its first text.
func originalTopicAndVersion(i *realm.MessageInfo) (topic string, version uint16) {
	topic, version = i.Topic, i.Ref.Version
	for _, r := range slices.Backward(i.History) {
		if r.TopicBefore != nil {
			topic = *r.TopicBefore
		}
		if r.Content {
			version = r.Version
		}
	}
	return topic, version
}

// versionAfter returns the version of the text that entry n of the history created.
func versionAfter(i *realm.MessageInfo, n int) uint16 {
	for _, r := range i.History[n+1:] {
		if r.Content {
			return r.Version
		}
	}
	return i.Ref.Version
}

// maxDiffTokens bounds the comparison of two texts. A larger text is shown as replaced completely.
const maxDiffTokens = 20000

// htmlDiff returns the new HTML with inserted words marked, and deleted words marked before them. Marks enclose only
// text, so that elements stay balanced.
func htmlDiff(before, after string) string {
	a, b := htmlTokens(before), htmlTokens(after)
	var out strings.Builder
	out.WriteString("<div>")
	for _, d := range tokenDiff(a, b) {
		switch d.Type {
		case diffmatchpatch.DiffEqual:
			out.WriteString(d.Text)
		case diffmatchpatch.DiffInsert:
			writeMarked(&out, d.Text, "highlight_text_inserted", true)
		case diffmatchpatch.DiffDelete:
			writeMarked(&out, d.Text, "highlight_text_deleted", false)
		}
	}
	out.WriteString("</div>")
	return out.String()
}

// tokenDiff compares two lists of tokens. The library compares characters, so each distinct token is mapped to one
// character.
func tokenDiff(a, b []string) []diffmatchpatch.Diff {
	if len(a)+len(b) > maxDiffTokens {
		return []diffmatchpatch.Diff{{Type: diffmatchpatch.DiffDelete, Text: strings.Join(a, "")},
			{Type: diffmatchpatch.DiffInsert, Text: strings.Join(b, "")}}
	}
	number := map[string]rune{}
	var tokens []string
	encode := func(list []string) []rune {
		out := make([]rune, len(list))
		for i, t := range list {
			n, ok := number[t]
			if !ok {
				n = rune(len(tokens) + 1)
				if n >= 0xd800 {
					n += 0x800 // skips the surrogate range, which has no characters
				}
				number[t] = n
				tokens = append(tokens, t)
			}
			out[i] = n
		}
		return out
	}
	diffs := diffmatchpatch.New().DiffMainRunes(encode(a), encode(b), false)
	for i := range diffs {
		var text strings.Builder
		for _, n := range diffs[i].Text {
			if n >= 0xe000 {
				n -= 0x800
			}
			text.WriteString(tokens[n-1])
		}
		diffs[i].Text = text.String()
	}
	return diffs
}

// htmlTokens splits HTML into tags, words and white space.
func htmlTokens(s string) []string {
	var out []string
	for len(s) > 0 {
		n := 0
		switch {
		case s[0] == '<':
			if n = strings.IndexByte(s, '>') + 1; n == 0 {
				n = len(s)
			}
		case strings.IndexByte(" \n\t", s[0]) >= 0:
			for n < len(s) && strings.IndexByte(" \n\t", s[n]) >= 0 {
				n++
			}
		default:
			if n = strings.IndexAny(s, "< \n\t"); n < 0 {
				n = len(s)
			}
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// writeMarked writes a changed part with its text inside spans. Tags are written unchanged if tags is set, else left
// out.
func writeMarked(out *strings.Builder, html, class string, tags bool) {
	open := false
	end := func() {
		if open {
			out.WriteString("</span>")
		}
		open = false
	}
	for _, t := range htmlTokens(html) {
		if t[0] == '<' {
			end()
			if tags {
				out.WriteString(t)
			}
			continue
		}
		if !open && strings.TrimSpace(t) != "" {
			out.WriteString(`<span class="` + class + `">`)
			open = true
		}
		if open || tags {
			out.WriteString(t)
		}
	}
	end()
}
