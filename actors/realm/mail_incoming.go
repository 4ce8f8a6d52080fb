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
	var links strings.Builder
	for _, f := range c.Files {
		links.WriteByte('\n')
		x, err := f.save(t, sender.ID)
		if err != nil {
			// Such as an exceeded quota. The text is posted without this file.
			links.WriteString(linkText(cleanFileName(f.Name)) + ": " + err.Error())
			continue
		}
		links.WriteString("[" + linkText(x.Name) + "](/user_uploads/" + x.Path + ")")
		a.Files = append(a.Files, x)
	}
	text := c.Text
	if links.Len() > 0 {
		links := "\n" + links.String()
		if room := MaxMessage - runeCount(links); runeCount(text) > room {
			text = firstRunes(text, room-runeCount(truncationMark)) + truncationMark
		}
		text += links
	}
	a.Message = t.SendBotMessage(BotMessage{Bot: sender.ID, Channel: ch.ID, Topic: topic, Text: text})
	return a, nil
}

// linkText returns a file's name as the text of a link, without characters that would end it.
func linkText(name string) string {
	name = strings.NewReplacer("[", "(", "]", ")", "`", "'", "\\", "/").Replace(name)
	return firstRunes(name, maxLinkTextRunes)
}

// maxLinkTextRunes limits the shown part of a name, in code points.
const maxLinkTextRunes = 100

func errMailAddress() *Refusal { return Missing("No channel has this address.") }
