package mail

import (
	"net/url"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire"
)

const (
	// maxExcerpt is how much of a message an email shows, in code points: the whole text is read in the client.
	maxExcerpt = 2000
	// maxNamesInSubject is how many people a subject names: mail programs show little more.
	maxNamesInSubject = 3
)

// The values of realm_name_in_email_notifications_policy that put the organization's name into subjects (protocol).
const (
	organizationNameIfSeveral = 1 // for users with an account in another organization of this server
	organizationNameAlways    = 2
)

// hiddenContentNotice is shown where settings forbid message texts in emails.
const hiddenContentNotice = "There are messages for you that you have not read. Emails do not show what they say, as " +
	"your settings or those of the organization ask."

// missedReader is the user who missed messages.
type missedReader struct {
	*realm.User
	texts
	site            wire.Site
	hasOtherAccount bool // in another organization of this server
	showContent     bool // the user and the organization allow message texts in emails
	canReply        bool // the server receives replies
}

// replyHint is in emails that can be answered.
const replyHint = "Reply to this email to answer, or read it here:"

// composeMissed returns the emails about messages that the user has not read, one email for each conversation. It
// leaves out messages that the user has read meanwhile, may no longer read, or that were erased.
func composeMissed(
	v realm.View, r missedReader, jobs []realm.OutboxJob, text func(realm.BodyRef) (realm.Body, bool),
) (emails []realm.Email) {
	r.showContent = v.OrgBool("message_content_allowed_in_email_notifications") &&
		r.BoolSetting("message_content_in_email_notifications")
	type conversation struct {
		direct  realm.DirectConversationID
		channel realm.ChannelID
		topic   string
	}
	indexOf := map[conversation]int{}
	var paths []string // of the first message of each email
	for i := range jobs {
		m, ok := v.UnreadJobMessage(&jobs[i])
		if !ok {
			continue
		}
		body, ok := text(m.Ref)
		if !ok {
			continue // erased
		}
		k := conversation{m.Talk, m.Channel, strings.ToLower(m.Topic)}
		n, known := indexOf[k]
		if !known {
			n = len(emails)
			indexOf[k] = n
			email := realm.Email{To: r.Email, Subject: missedSubject(v, r, m),
				Unsubscribe: &realm.Unsubscription{User: r.ID, Topic: realm.MissedMessageEmails}}
			if !r.showContent {
				email.Paragraphs = []string{r.text(hiddenContentNotice)}
			}
			emails, paths = append(emails, email), append(paths, messagePath(m))
		}
		e := &emails[n]
		if r.showContent {
			sender := wire.VisibleSenderOf(v, r.ID, m, r.site)
			e.Paragraphs = append(e.Paragraphs, sender.Name+": "+wire.MessageExcerpt(body, maxExcerpt))
			if r.canReply {
				e.Reply = &realm.EmailReply{User: r.ID, Message: m.ID} // the newest message
			}
		}
	}
	for i := range emails {
		e := &emails[i]
		if e.Reply != nil {
			e.Paragraphs = append(e.Paragraphs, r.text(replyHint))
		}
		e.Paragraphs = append(e.Paragraphs, r.site.URL+paths[i])
	}
	return emails
}

func missedSubject(v realm.View, r missedReader, m realm.MessageInfo) string {
	subject := r.text("New messages")
	switch {
	case !r.showContent:
	case m.Channel != 0:
		topic := m.Topic
		if topic == "" {
			topic = realm.EmptyTopicName
		}
		subject = "#" + m.ChannelName + " > " + topic
	default:
		var names []string
		for _, p := range m.People {
			if p.ID != r.ID {
				names = append(names, p.Name)
			}
		}
		if more := len(names) - maxNamesInSubject; more > 0 {
			names = append(names[:maxNamesInSubject:maxNamesInSubject], "+"+strconv.Itoa(more))
		}
		subject = r.text("Direct messages with %s", strings.Join(names, ", "))
	}
	policy := r.IntSetting("realm_name_in_email_notifications_policy")
	if policy == organizationNameAlways || policy == organizationNameIfSeveral && r.hasOtherAccount {
		subject = "[" + v.Org().Name + "] " + subject
	}
	return subject
}

// messagePath returns where the web client shows a message, escaped as the web client escapes its addresses.
func messagePath(m realm.MessageInfo) string {
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
