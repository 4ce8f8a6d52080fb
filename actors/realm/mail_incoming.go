package realm

import "strings"

// PostEmail asks to post an email that arrived at a channel's address. Only the server may ask for it. Anyone who
// knows the address may post, as long as the user the address was made for may post there.
type PostEmail struct {
	Token       string
	Topic, Text string
	Files       []SaveUpload // attachments, at most MaxEmailFiles
}

// MaxEmailFiles is how many attachments of one email are stored. The message has a link to each, within its 10,000
// characters.
const MaxEmailFiles = 20

// EmailPosted answers PostEmail.
type EmailPosted struct {
	Message MessageID
	Files   []Upload
}

func (c PostEmail) Decide(t *Turn) (a EmailPosted, err error) {
	if !t.System {
		return a, errPermission()
	}
	m := t.FindMailAddress(c.Token)
	if m == nil {
		return a, errMailAddress()
	}
	u, sender, ch := t.Find(m.User), t.Find(m.Sender), t.channels.must(m.Channel)
	if u == nil || !u.Active || sender == nil || !sender.Active || !sender.System && sender.outranks(u) ||
		t.checkMaySend(u, ch) != nil {
		return a, errMailAddress()
	}
	topic := strings.TrimSpace(RemoveUnprintable(c.Topic, ""))
	if runeCount(topic) > MaxTopic {
		topic = firstRunes(topic, MaxTopic-1) + "…"
	}
	if _, err := NormalizeContent(c.Text); err != nil {
		return a, err
	}
	links := ""
	a.Files, links = t.saveEmailFiles(sender.ID, c.Files)
	text := withFileLinks(c.Text, links)
	a.Message = t.SendBotMessage(BotMessage{Bot: sender.ID, Channel: ch.ID, Topic: topic, Text: text})
	return a, nil
}

// saveEmailFiles records the files of an email for their owner. It returns those that were stored, and a line for each
// file: a link, or why it was not stored, such as an exceeded quota. The text is posted without such a file.
func (t *Turn) saveEmailFiles(owner UserID, files []SaveUpload) (saved []Upload, links string) {
	for _, f := range files {
		x, err := f.save(t, owner)
		if err != nil {
			links += "\n" + linkText(cleanFileName(f.Name)) + ": " + err.Error()
			continue
		}
		links += "\n[" + linkText(x.Name) + "](/user_uploads/" + x.Path + ")"
		saved = append(saved, x)
	}
	return saved, links
}

// withFileLinks returns a text with the links of saveEmailFiles behind it. A long text is cut, but not the links.
func withFileLinks(text, links string) string {
	if links == "" {
		return text
	}
	if text == "" {
		return links[1:]
	}
	links = "\n" + links
	if room := MaxMessage - runeCount(links); runeCount(text) > room {
		text = firstRunes(text, room-runeCount(truncationMark)) + truncationMark
	}
	return text + links
}

// linkText returns a file's name as the text of a link, without characters that would end it.
func linkText(name string) string {
	name = strings.NewReplacer("[", "(", "]", ")", "`", "'", "\\", "/").Replace(name)
	return firstRunes(name, maxLinkTextRunes)
}

// maxLinkTextRunes limits the shown part of a name, in code points.
const maxLinkTextRunes = 100

func errMailAddress() *Refusal { return Missing("No channel has this address.") }
