package realm

import "strings"

// PostEmail asks to post a mail that came to a channel's address. The server asks for it: whoever knows the address may
// write there, as long as whoever got the address may.
type PostEmail struct {
	Token       string
	Topic, Text string
	Files       []SaveUpload // that came with it, at most MaxEmailFiles
}

// MaxEmailFiles is how many files of one mail are kept: the message links to each, and has 10,000 characters.
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
	if u == nil || !u.Active || sender == nil || !sender.Active || t.checkMaySend(u, ch) != nil {
		return a, errMailAddress()
	}
	topic := strings.TrimSpace(c.Topic)
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
		if err != nil { // such as more than the organization may keep: the mail is worth reading without
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

// linkText is a file's name as the text of a link, without what would end it.
func linkText(name string) string {
	name = strings.NewReplacer("[", "(", "]", ")", "`", "'", "\\", "/").Replace(name)
	return firstRunes(name, maxLinkTextRunes)
}

// maxLinkTextRunes is how much of a name is shown, in code points.
const maxLinkTextRunes = 100

func errMailAddress() *Refusal { return Missing("No channel has this address.") }
