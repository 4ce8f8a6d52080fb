package realm

import "strings"

// PostMail asks to post a mail that came to a channel's address. The server asks for it: whoever knows the address may
// write there, as long as whoever got the address may.
type PostMail struct {
	Token       string
	Topic, Text string
	Files       []SaveUpload // that came with it, at most MaxMailFiles
}

// MaxMailFiles is how many files of one mail are kept: the message links to each, and has 10,000 characters.
const MaxMailFiles = 20

// MailPosted answers PostMail.
type MailPosted struct {
	Message MessageID
	Files   []Upload
}

func (c PostMail) Decide(t *Turn) (a MailPosted, err error) {
	if !t.System {
		return a, errPermission()
	}
	m := t.FindMailAddress(c.Token)
	if m == nil {
		return a, errMailAddress()
	}
	u, sender, ch := t.Find(m.User), t.Find(m.Sender), t.chans.must(m.Channel)
	if u == nil || !u.Active || sender == nil || !sender.Active || t.maySend(u, ch) != nil {
		return a, errMailAddress()
	}
	topic := strings.TrimSpace(c.Topic)
	if length(topic) > MaxTopic {
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
			links.WriteString(linkText(fileName(f.Name)) + ": " + err.Error())
			continue
		}
		links.WriteString("[" + linkText(x.Name) + "](/user_uploads/" + x.Path + ")")
		a.Files = append(a.Files, x)
	}
	text := c.Text
	if links.Len() > 0 {
		links := "\n" + links.String()
		if room := MaxMessage - length(links); length(text) > room {
			text = firstRunes(text, room-length(truncated)) + truncated
		}
		text += links
	}
	a.Message = t.Say(BotMessage{Bot: sender.ID, Channel: ch.ID, Topic: topic, Text: text})
	return a, nil
}

// linkText is a file's name as the text of a link, without what would end it.
func linkText(name string) string {
	name = strings.NewReplacer("[", "(", "]", ")", "`", "'", "\\", "/").Replace(name)
	return firstRunes(name, maxLinkText)
}

// maxLinkText is how much of a name is shown, in code points.
const maxLinkText = 100

func errMailAddress() *Refusal { return Missing("No channel has this address.") }
