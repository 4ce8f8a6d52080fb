package realm

// EmailTopic is a kind of emails that users can switch off, in the words of links (protocol).
type EmailTopic string

const (
	MissedMessageEmails EmailTopic = "missed_messages"
	LoginEmails         EmailTopic = "login"
	DigestEmails        EmailTopic = "digest"
	MarketingEmails     EmailTopic = "marketing"
)

// emailTopicSettings are the settings that a link in an email of each kind switches off.
var emailTopicSettings = map[EmailTopic][]string{
	MissedMessageEmails: {"enable_offline_email_notifications", "enable_followed_topic_email_notifications",
		"enable_stream_email_notifications"},
	LoginEmails:     {"enable_login_emails"},
	DigestEmails:    {"enable_digest_emails"},
	MarketingEmails: {"enable_marketing_emails"},
}

// Known reports whether emails of this kind can be switched off.
func (e EmailTopic) Known() bool { return emailTopicSettings[e] != nil }

// Unsubscription names the user and the kind of an email. A link in the email switches the kind off without a login.
type Unsubscription struct {
	User  UserID
	Topic EmailTopic
}

// StopEmails switches a kind of emails off for the user of a link. Emails about single channels that have a setting of
// their own continue. The server sends it after it has checked the link.
type StopEmails struct{ Unsubscription }

func (c StopEmails) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	switch {
	case !t.System:
		return Done{}, errPermission()
	case u == nil || u.IsBot() || u.System || !c.Topic.Known():
		return Done{}, ErrEmailedLink()
	}
	for _, name := range emailTopicSettings[c.Topic] {
		if u.Setting(name) != false {
			t.Record(t.planSettingChange(u, SettingValue{Name: name, Value: false}))
		}
	}
	return Done{}, nil
}
