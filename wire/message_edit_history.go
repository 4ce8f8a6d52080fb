package wire

import (
	"errors"
	"slices"
	"strings"

	"github.com/sergi/go-diff/diffmatchpatch"

	"parley/actors/realm"
)

// Limits of one answer with the edit history of a message. Old texts expand to twenty times their size as HTML, so the
// history of one message could otherwise fill the memory. A longer history is read with several requests.
const (
	maxHistoryBytes = 4 << 20 // bytes of texts, HTML and comparisons
	// maxDiffTokens bounds one comparison of two texts, and maxHistoryDiffTokens all comparisons of an answer: together
	// some tens of milliseconds. A text beyond that is shown as replaced completely.
	maxDiffTokens        = 20000
	maxHistoryDiffTokens = 60000
)

// messageHistoryAnswer is a page of the edit history. Next is the offset of the next page, if there is one.
type messageHistoryAnswer struct {
	Versions listOf[pastMessageJSON] `json:"message_history"`
	Next     int64                   `json:"next_offset,omitzero"`
}

// pastMessageJSON is a version of a message, with the changes of the edit or move that made it.
type pastMessageJSON struct {
	Topic      string          `json:"topic"`
	Text       string          `json:"content"`
	HTML       string          `json:"rendered_content"`
	At         int64           `json:"timestamp"`
	User       realm.UserID    `json:"user_id"`
	OldTopic   *string         `json:"prev_topic,omitzero"`
	OldText    *string         `json:"prev_content,omitzero"`
	OldHTML    *string         `json:"prev_rendered_content,omitzero"`
	Diff       *string         `json:"content_html_diff,omitzero"`
	OldChannel realm.ChannelID `json:"prev_stream,omitzero"`
	Channel    realm.ChannelID `json:"stream,omitzero"`
}

type messageHistoryForm struct {
	Message    realm.MessageID `path:"message_id"`
	EmptyTopic bool            `form:"allow_empty_topic_name,default=false"`
	Offset     int64           `form:"offset,min=0,default=0,extension=long histories have pages"`
}

// getMessageHistory answers all versions of a message, the original first. If they do not fit into one answer, the
// answer contains next_offset, which the client sends as offset to get the next ones. Both are additions to the
// protocol.
func getMessageHistory(c *Call, f messageHistoryForm) (*messageHistoryAnswer, error) {
	for range maxEditAttempts {
		past, err := readHistory(c, f.Message)
		if err != nil {
			return nil, err
		}
		if past.comparesTexts() { // each comparison may take milliseconds, and hundreds of kB
			if err := c.waitForSlot(); err != nil {
				return nil, err
			}
		}
		p := historyPage{messageHistory: past, call: c, form: f, diffTokens: maxHistoryDiffTokens}
		if err := p.build(); !errors.Is(err, errTextErased) {
			return &messageHistoryAnswer{listOf[pastMessageJSON]{p.list.elements()}, p.next}, err
		}
	}
	return nil, realm.BadRequest("Invalid message(s)")
}

// errTextErased means that a text was erased after the history was read: by a deletion or by an edit.
var errTextErased = errors.New("a text of the history was erased in the meantime")

// historyPage is one answer to a request for the edit history.
type historyPage struct {
	messageHistory
	call       *Call
	form       messageHistoryForm
	list       *encodedList // as JSON; it counts the memory
	next       int64        // the first entry of the next page; 0: none
	number     int64        // of the next entry
	bytes      int          // of the entries in list
	diffTokens int          // that comparisons can still use

	body        realm.Body // the last text that was read
	bodyVersion int        // 1 + its version; 0: none was read
}

// text returns a version of the message's text. If only moves are visible, that is always the newest one.
func (p *historyPage) text(version uint16) (realm.Body, error) {
	if p.movesOnly {
		version = p.info.Ref.Version
	}
	if p.bodyVersion == int(version)+1 {
		return p.body, nil
	}
	b, ok, err := p.call.Server.Text(p.call.Realm, realm.BodyRef{Message: p.form.Message, Version: version})
	if err != nil {
		return b, err
	}
	if !ok {
		return b, errTextErased
	}
	p.body, p.bodyVersion = b, int(version)+1
	return b, nil
}

// topic returns a topic as the client wants it. Direct messages have none.
func (p *historyPage) topic(t string) string {
	switch {
	case p.info.Channel == 0:
		return ""
	case t == "" && !p.form.EmptyTopic:
		return realm.EmptyTopicName
	}
	return t
}

// add adds an entry with the given text. It reports false if the page is full.
func (p *historyPage) add(o *pastMessageJSON, size int, body realm.Body) (bool, error) {
	size += len(body.Text) + len(body.HTML)
	if p.bytes > 0 && p.bytes+size > maxHistoryBytes {
		p.next = p.number
		return false, nil
	}
	o.Text, o.HTML = body.Text, body.HTML
	p.bytes, p.number = p.bytes+size, p.number+1
	return true, p.list.add(o)
}

// skips reports whether the next entry comes before the offset, and counts it.
func (p *historyPage) skips() bool {
	if p.number >= p.form.Offset {
		return false
	}
	p.number++
	return true
}

// build collects the entries.
func (p *historyPage) build() error {
	p.list = newEncodedList(p.call)
	current, version := originalTopicAndVersion(&p.info)
	if !p.skips() {
		body, err := p.text(version)
		if err != nil {
			return err
		}
		first := &pastMessageJSON{Topic: p.topic(current), At: p.info.Time, User: p.info.Sender.ID}
		if _, err := p.add(first, 0, body); err != nil {
			return err
		}
	}
	for n, r := range p.info.History {
		edited := r.Content && !p.movesOnly
		if r.TopicBefore == nil && r.ChannelBefore == 0 && !edited {
			continue
		}
		before := version
		if edited {
			version = versionAfter(&p.info, n)
		}
		if r.TopicBefore != nil {
			current = *r.TopicAfter
		}
		if p.skips() {
			continue
		}
		if more, err := p.addRevision(r, current, before, version); !more || err != nil {
			return err
		}
	}
	return nil
}

// addRevision adds the entry of an edit or a move. It reports false if the page is full.
func (p *historyPage) addRevision(r realm.Revision, topic string, before, version uint16) (bool, error) {
	o, size := &pastMessageJSON{At: r.At, User: r.User, Topic: p.topic(topic)}, 0
	if r.TopicBefore != nil {
		o.OldTopic = ptr(p.topic(*r.TopicBefore))
	}
	if r.ChannelBefore != 0 {
		o.OldChannel, o.Channel = r.ChannelBefore, r.ChannelAfter
	}
	old, err := p.text(before)
	if err != nil {
		return false, err
	}
	body, err := p.text(version)
	if err != nil {
		return false, err
	}
	if r.Content && !p.movesOnly {
		if p.bytes > 0 && p.bytes+len(old.Text)+len(old.HTML)+len(body.Text)+2*len(body.HTML) > maxHistoryBytes {
			p.next = p.number // without the comparison, which is the expensive part
			return false, nil
		}
		diff := p.diff(old.HTML, body.HTML)
		o.OldText, o.OldHTML, o.Diff = &old.Text, &old.HTML, &diff
		size = len(old.Text) + len(old.HTML) + len(diff)
	}
	return p.add(o, size, body)
}

// diff compares two texts within the answer's limit.
func (p *historyPage) diff(before, after string) string {
	a, b := htmlTokens(before), htmlTokens(after)
	limit := min(maxDiffTokens, p.diffTokens)
	if len(a)+len(b) <= limit {
		p.diffTokens -= len(a) + len(b)
	}
	return htmlDiff(a, b, limit)
}

// messageHistory is a message with its history. movesOnly is set where the organization shows moves but no earlier
// texts.
type messageHistory struct {
	info      realm.MessageInfo
	movesOnly bool
}

// comparesTexts reports whether the history contains edits of the text.
func (h *messageHistory) comparesTexts() bool {
	return !h.movesOnly && slices.ContainsFunc(h.info.History, func(r realm.Revision) bool { return r.Content })
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

// htmlDiff returns the new HTML with inserted words marked, and deleted words marked before them. Marks enclose only
// text, so that elements stay balanced. Texts with more tokens than the limit are shown as replaced completely.
func htmlDiff(before, after []string, limit int) string {
	var out strings.Builder
	out.WriteString("<div>")
	for _, d := range tokenDiff(before, after, limit) {
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
func tokenDiff(a, b []string, limit int) []diffmatchpatch.Diff {
	if len(a)+len(b) > limit {
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
