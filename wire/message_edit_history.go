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

// getMessageHistory answers what a message was at each time, the original first.
func getMessageHistory(c *Call, f messageHistoryForm) (Answer, error) {
	s, err := readHistory(c, f.Message)
	if err != nil {
		return nil, err
	}
	text := func(version uint16) (realm.Body, error) {
		if s.movesOnly {
			version = s.info.Ref.Version // earlier texts are nobody's business
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
	now, version := originalTopicAndVersion(&s.info)
	body, err := text(version)
	if err != nil {
		return nil, err
	}
	shown := func(t string) any {
		if s.info.Channel == 0 {
			return ""
		}
		return topic(t)
	}
	list := []any{obj{"topic": shown(now), "content": body.Text, "rendered_content": body.HTML, "timestamp": s.info.Time, "user_id": s.info.Sender.ID}}
	for n, r := range s.info.History {
		o := obj{"timestamp": r.At, "user_id": r.User}
		edited := r.Content && !s.movesOnly
		if r.TopicBefore == nil && r.ChannelBefore == 0 && !edited {
			continue
		}
		if r.TopicBefore != nil {
			now = *r.TopicAfter
			o["prev_topic"] = shown(*r.TopicBefore)
		}
		if r.ChannelBefore != 0 {
			o["prev_stream"], o["stream"] = r.ChannelBefore, r.ChannelAfter
		}
		if edited {
			before := body
			if body, err = text(versionAfter(&s.info, n)); err != nil {
				return nil, err
			}
			o["prev_content"], o["prev_rendered_content"], o["content_html_diff"] = before.Text, before.HTML, htmlDiff(before.HTML, body.HTML)
		}
		o["topic"], o["content"], o["rendered_content"] = shown(now), body.Text, body.HTML
		list = append(list, o)
	}
	return Answer{"message_history": list}, nil
}

// messageHistory is a message with its history; where only moves may be seen, its texts are not.
type messageHistory struct {
	info      realm.MessageInfo
	movesOnly bool
}

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

// originalTopicAndVersion is the topic a message was sent to, and the version of its first text.
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

// versionAfter is the text's version that entry n of the history made.
func versionAfter(i *realm.MessageInfo, n int) uint16 {
	for _, r := range i.History[n+1:] {
		if r.Content {
			return r.Version
		}
	}
	return i.Ref.Version
}

// maxDiffTokens bounds how much is compared: beyond it the whole text counts as changed.
const maxDiffTokens = 20000

// htmlDiff shows what changed between two renderings: the new one's elements, with inserted words and, before them,
// deleted ones marked. Elements stay balanced, because marks enclose only text.
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

// tokenDiff compares token by token: each different token is one character of what the library sees.
func tokenDiff(a, b []string) []diffmatchpatch.Diff {
	if len(a)+len(b) > maxDiffTokens {
		return []diffmatchpatch.Diff{{Type: diffmatchpatch.DiffDelete, Text: strings.Join(a, "")}, {Type: diffmatchpatch.DiffInsert, Text: strings.Join(b, "")}}
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
					n += 0x800 // these are no characters
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

// htmlTokens cuts HTML into elements' tags, words, and what is between words.
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

// writeMarked writes the text of a changed stretch inside spans; its tags are written as they are, or left out.
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
