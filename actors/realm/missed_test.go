package realm_test

import (
	"fmt"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// TestWhoMayHaveMissedAMessage: those whom it is meant for, as far as their settings ask for mails, and as long as they may
// read it.
func TestWhoMayHaveMissedAMessage(t *testing.T) {
	s := New(t)
	s.Mails = true
	olive, ann, bo, cy := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo"), s.Join("Cy")
	everyone := []realm.Principal{{ID: ann}, {ID: bo}, {ID: cy}}
	Do(s, ann, realm.Subscribe{Channels: []realm.Joining{{Name: "secret"}}, New: realm.NewChannel{Private: true}, Principals: everyone, Fatal: true})
	secret := s.Realm.FindChannelByName("secret").ID
	settle(s)
	missed := func(c realm.SendMessage) map[realm.UserID]string {
		c.Body = realm.Body{Text: "hi"}
		Do(s, ann, c)
		out := map[realm.UserID]string{}
		for _, e := range errands(s, realm.MissedErrand) {
			out[e.User] = e.Why
		}
		settle(s)
		return out
	}
	same := func(what string, got, want map[realm.UserID]string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	type who = map[realm.UserID]string
	in := func(topic string, c realm.Content) realm.SendMessage {
		return realm.SendMessage{ToChannel: true, Channel: secret, Topic: topic, Content: c}
	}
	mention := realm.Content{Users: []realm.UserID{bo}}
	same("direct", missed(realm.SendMessage{People: everyone}), who{bo: "direct_message", cy: "direct_message"})
	same("nobody mentioned", missed(in("x", realm.Content{})), who{})
	same("a mention", missed(in("x", mention)), who{bo: "mentioned"})
	same("everybody", missed(in("w", realm.Content{ChannelWildcard: true})), who{bo: "stream_wildcard_mentioned", cy: "stream_wildcard_mentioned"})
	Do(s, bo, realm.SetTopicPolicy{Channel: secret, Topic: "w", Policy: realm.TopicMuted})
	same("everybody, in a topic that Bo muted", missed(in("w", realm.Content{ChannelWildcard: true})), who{cy: "stream_wildcard_mentioned"})
	Do(s, cy, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "enable_offline_email_notifications", Value: false}}})
	same("direct, but Cy wants no mail", missed(realm.SendMessage{People: everyone}), who{bo: "direct_message"})
	s.Mails = false
	same("without mail", missed(realm.SendMessage{People: everyone}), who{})
	s.Mails = true

	unheard := func(e realm.Errand) bool { _, ok := s.View(System).Unheard(&e); return ok }
	wait := func(c realm.SendMessage) (realm.MessageID, realm.Errand) {
		c.Body = realm.Body{Text: "hi"}
		id := Do(s, ann, c).ID
		list := s.View(System).MissedBy(bo)
		return id, list[len(list)-1]
	}
	_, left := wait(in("y", mention))
	read, gone := realm.MessageID(0), realm.MessageID(0)
	var ofRead, ofGone, ofKept realm.Errand
	read, ofRead = wait(realm.SendMessage{People: everyone})
	gone, ofGone = wait(realm.SendMessage{People: everyone})
	_, ofKept = wait(realm.SendMessage{People: everyone})
	for _, e := range []realm.Errand{left, ofRead, ofGone, ofKept} {
		if !unheard(e) {
			t.Errorf("%+v is missed by nobody", e)
		}
	}
	Do(s, bo, realm.Flag{Messages: []realm.MessageID{read}, Op: "add", Flag: "read"})
	Do(s, ann, realm.DeleteMessage{Message: gone})
	Do(s, olive, realm.Unsubscribe{Names: []string{"secret"}, Principals: []realm.Principal{{ID: bo}}})
	for what, e := range map[string]realm.Errand{"unsubscribed": left, "read": ofRead, "deleted": ofGone} {
		if unheard(e) {
			t.Errorf("%s: still to be mailed", what)
		}
	}
	if !unheard(ofKept) {
		t.Error("what is unread is no longer missed")
	}
	ids := []int64{left.ID, ofRead.ID, ofGone.ID, ofKept.ID}
	Refused(s, ann, realm.MailMissed{IDs: ids}, "Insufficient permission")
	for range 2 { // the second time nothing is left to do
		Do(s, System, realm.MailMissed{IDs: ids, Letters: []realm.Letter{{To: "bo@example.com"}}})
	}
	if n := len(errands(s, realm.LetterErrand)); n != 1 {
		t.Errorf("%d letters", n)
	}
	settle(s)
	for range 70 {
		Do(s, ann, realm.SendMessage{People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "hi"}})
	}
	if n := len(s.View(System).MissedBy(bo)); n != 50 {
		t.Errorf("%d wait for one user", n)
	}
	Do(s, olive, realm.DeactivateUser{User: bo, Farewell: func(*realm.User, string) realm.Letter { return realm.Letter{} }})
	for _, e := range s.View(System).MissedBy(bo) {
		if unheard(e) {
			t.Fatal("a deactivated account is written to")
		}
	}
}
