package wire

import (
	"net/url"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire/markdown"
)

// maxMissedMessageText is how much of a message a mail shows, in code points: it is to be read where it was written.
const maxMissedMessageText = 2000

// MissedMessageEmails is the mails that tell somebody of messages he has not read, one for each conversation. What he has read
// meanwhile, or may no longer read, is left out. elsewhere says that he has accounts in other organizations, which makes
// it worth naming this one.
func MissedMessageEmails(v realm.View, u *realm.User, list []realm.OutboxJob, s Site, elsewhere bool, text func(realm.BodyRef) (realm.Body, bool)) (out []realm.Email) {
	shown := v.OrgBool("message_content_allowed_in_email_notifications") && u.BoolSetting("message_content_in_email_notifications")
	type conversation struct {
		talk    realm.DirectConversationID
		channel realm.ChannelID
		topic   string
	}
	at := map[conversation]int{}
	for i := range list {
		m, ok := v.UnreadJobMessage(&list[i])
		if !ok {
			continue
		}
		body, ok := text(m.Ref)
		if !ok {
			continue // erased
		}
		k := conversation{m.Talk, m.Channel, strings.ToLower(m.Topic)}
		n, known := at[k]
		if !known {
			n = len(out)
			at[k] = n
			out = append(out, realm.Email{To: u.Email, Subject: missedMessageSubject(v, u, m, shown, elsewhere)})
			if !shown {
				out[n].Paragraphs = []string{"There are messages for you that you have not read. Mails do not show what they say, as your settings or those of the organization ask."}
			}
			out[n].Paragraphs = append(out[n].Paragraphs, s.URL+missedMessagePath(m))
		}
		if shown {
			l := &out[n]
			link := len(l.Paragraphs) - 1 // stays the last
			said := visibleSenderName(v, u, m) + ": " + truncate(strings.TrimSpace(markdown.PlainText(body.HTML)), maxMissedMessageText)
			l.Paragraphs = append(l.Paragraphs[:link:link], said, l.Paragraphs[link])
		}
	}
	return out
}

// visibleSenderName is the sender's name, unless the reader may not know him.
func visibleSenderName(v realm.View, u *realm.User, m realm.MessageInfo) string {
	if m.Channel != 0 && !v.ViewAs(realm.Caller{User: u.ID}, v.Now).MaySeeUser(v.Find(m.Sender.ID)) {
		return unknownName
	}
	return m.Sender.Name
}

const (
	// The values of realm_name_in_email_notifications_policy that put the organization's name into subjects: always, and
	// for those who have several organizations to tell apart.
	realmNameAutomatic = 1
	realmNameAlways    = 2
	// maxNamesInSubject is how many people a subject names: mail programs show little more.
	maxNamesInSubject = 3
)

func missedMessageSubject(v realm.View, u *realm.User, m realm.MessageInfo, shown, elsewhere bool) string {
	subject := "New messages"
	switch {
	case !shown:
	case m.Channel != 0:
		topic := m.Topic
		if topic == "" {
			topic = realm.EmptyTopicName
		}
		subject = "#" + m.ChannelName + " > " + topic
	default:
		var names []string
		for _, p := range m.People {
			if p.ID != u.ID {
				names = append(names, p.Name)
			}
		}
		if more := len(names) - maxNamesInSubject; more > 0 {
			names = append(names[:maxNamesInSubject:maxNamesInSubject], strconv.Itoa(more)+" others")
		}
		subject = "Direct messages with " + strings.Join(names, ", ")
	}
	if policy := u.IntSetting("realm_name_in_email_notifications_policy"); policy == realmNameAlways || policy == realmNameAutomatic && elsewhere {
		subject = "[" + v.Org().Name + "] " + subject
	}
	return subject
}

// missedMessagePath is where the web client shows a message, in the spelling of its addresses.
func missedMessagePath(m realm.MessageInfo) string {
	near := "/near/" + m.ID.String()
	if m.Channel != 0 {
		topic := strings.NewReplacer(".", ".2E", "%", ".", "+", ".20").Replace(url.QueryEscape(m.Topic))
		return "/#narrow/channel/" + m.Channel.String() + "/topic/" + topic + near
	}
	var people []string
	for _, p := range m.People {
		people = append(people, p.ID.String())
	}
	return "/#narrow/dm/" + strings.Join(people, ",") + near
}
