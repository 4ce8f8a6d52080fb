package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// A link in an email switches off emails of its kind and no others, for its user only.
func TestUnsubscribeFromEachKindOfEmails(t *testing.T) {
	for topic, off := range map[realm.EmailTopic][]string{
		"missed_messages": {"enable_offline_email_notifications", "enable_followed_topic_email_notifications"},
		"login":           {"enable_login_emails"},
		"digest":          {"enable_digest_emails"},
		"marketing":       {"enable_marketing_emails"},
	} {
		s := New(t)
		ann, bo := s.Join("Ann"), s.Join("Bo")
		before := map[string]any{}
		for _, x := range realm.UserSettings {
			before[x.Name] = s.Realm.Find(ann).Setting(x.Name)
		}
		link := realm.StopEmails{Unsubscription: realm.Unsubscription{User: ann, Topic: topic}}
		ExpectRefusal(s, ann, link, "Insufficient permission")
		Do(s, System, link)
		for _, name := range off {
			if before[name] != true || s.Realm.Find(ann).Setting(name) != false || !s.Realm.Find(bo).BoolSetting(name) {
				t.Errorf("%s: %s was %v and is %v; of another user %v", topic, name, before[name],
					s.Realm.Find(ann).Setting(name), s.Realm.Find(bo).Setting(name))
			}
			before[name] = false
		}
		for name, value := range before {
			if got := s.Realm.Find(ann).Setting(name); got != value {
				t.Errorf("%s changed %s from %v to %v", topic, name, value, got)
			}
		}
		events := len(off)
		if got := len(ListEventsOf[*realm.UserSettingChanged](s, ann)); got != events {
			t.Errorf("%s: %d events, want %d", topic, got, events)
		}
		s.ExpectNoEvents(bo)
	}
	s := New(t)
	ann := s.Join("Ann")
	bot := s.JoinBot("Robo", ann)
	for _, u := range []realm.Unsubscription{{User: bot, Topic: "login"}, {User: realm.NotificationBot, Topic: "login"},
		{User: 999, Topic: "login"}, {User: ann, Topic: "nonesuch"}} {
		ExpectRefusal(s, System, realm.StopEmails{Unsubscription: u}, realm.ErrEmailedLink().Error())
	}
}
