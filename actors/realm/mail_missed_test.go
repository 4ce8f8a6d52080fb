package realm_test

import (
	"fmt"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// TestMissedMessageJobs: those whom it is meant for, as far as their settings ask for mails, and as long as they may
// read it.
func TestMissedMessageJobs(t *testing.T) {
	s := New(t)
	s.Mails = true
	olive, ann, bo, cy := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo"), s.Join("Cy")
	everyone := []realm.Principal{{ID: ann}, {ID: bo}, {ID: cy}}
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "secret"}}, New: realm.NewChannel{Private: true}, Principals: everyone, AllOrNothing: true})
	secret := s.Realm.FindChannelByName("secret").ID
	finishOutbox(s)
	missed := func(c realm.SendMessage) map[realm.UserID]string {
		c.Body = realm.Body{Text: "hi"}
		Do(s, ann, c)
		out := map[realm.UserID]string{}
		for _, e := range outboxJobs(s, realm.OutboxMissedMessage) {
			out[e.User] = e.Why
		}
		finishOutbox(s)
		return out
	}
	same := func(what string, got, want map[realm.UserID]string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	type who = map[realm.UserID]string
	in := func(topic string, c realm.ContentInfo) realm.SendMessage {
		return realm.SendMessage{ToChannel: true, Channel: secret, Topic: topic, Content: c}
	}
	mention := realm.ContentInfo{Users: []realm.UserID{bo}}
	same("direct", missed(realm.SendMessage{People: everyone}), who{bo: "direct_message", cy: "direct_message"})
	same("nobody mentioned", missed(in("x", realm.ContentInfo{})), who{})
	same("a mention", missed(in("x", mention)), who{bo: "mentioned"})
	same("everybody", missed(in("w", realm.ContentInfo{ChannelWildcard: true})), who{bo: "stream_wildcard_mentioned", cy: "stream_wildcard_mentioned"})
	Do(s, bo, realm.SetTopicPolicy{Channel: secret, Topic: "w", Policy: realm.TopicMuted})
	same("everybody, in a topic that Bo muted", missed(in("w", realm.ContentInfo{ChannelWildcard: true})), who{cy: "stream_wildcard_mentioned"})
	Do(s, cy, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "enable_offline_email_notifications", Value: false}}})
	same("direct, but Cy wants no mail", missed(realm.SendMessage{People: everyone}), who{bo: "direct_message"})
	s.Mails = false
	same("without mail", missed(realm.SendMessage{People: everyone}), who{})
	s.Mails = true

	unheard := func(e realm.OutboxJob) bool { _, ok := s.ViewAs(System).UnreadJobMessage(&e); return ok }
	wait := func(c realm.SendMessage) (realm.MessageID, realm.OutboxJob) {
		c.Body = realm.Body{Text: "hi"}
		id := Do(s, ann, c).ID
		list := s.ViewAs(System).MissedMessageJobs(bo)
		return id, list[len(list)-1]
	}
	_, left := wait(in("y", mention))
	read, gone := realm.MessageID(0), realm.MessageID(0)
	var ofRead, ofGone, ofKept realm.OutboxJob
	read, ofRead = wait(realm.SendMessage{People: everyone})
	gone, ofGone = wait(realm.SendMessage{People: everyone})
	_, ofKept = wait(realm.SendMessage{People: everyone})
	for _, e := range []realm.OutboxJob{left, ofRead, ofGone, ofKept} {
		if !unheard(e) {
			t.Errorf("%+v is missed by nobody", e)
		}
	}
	Do(s, bo, realm.Flag{Messages: []realm.MessageID{read}, Op: "add", Flag: "read"})
	Do(s, ann, realm.DeleteMessage{Message: gone})
	Do(s, olive, realm.Unsubscribe{Names: []string{"secret"}, Principals: []realm.Principal{{ID: bo}}})
	for what, e := range map[string]realm.OutboxJob{"unsubscribed": left, "read": ofRead, "deleted": ofGone} {
		if unheard(e) {
			t.Errorf("%s: still to be mailed", what)
		}
	}
	if !unheard(ofKept) {
		t.Error("what is unread is no longer missed")
	}
	ids := []int64{left.ID, ofRead.ID, ofGone.ID, ofKept.ID}
	ExpectRefusal(s, ann, realm.SendMissedEmails{IDs: ids}, "Insufficient permission")
	for range 2 { // the second time nothing is left to do
		Do(s, System, realm.SendMissedEmails{IDs: ids, Emails: []realm.Email{{To: "bo@example.com"}}})
	}
	if n := len(outboxJobs(s, realm.OutboxEmail)); n != 1 {
		t.Errorf("%d letters", n)
	}
	finishOutbox(s)
	for range 70 {
		Do(s, ann, realm.SendMessage{People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "hi"}})
	}
	if n := len(s.ViewAs(System).MissedMessageJobs(bo)); n != 50 {
		t.Errorf("%d wait for one user", n)
	}
	Do(s, olive, realm.DeactivateUser{User: bo, FarewellEmail: func(*realm.User, string) realm.Email { return realm.Email{} }})
	for _, e := range s.ViewAs(System).MissedMessageJobs(bo) {
		if unheard(e) {
			t.Fatal("a deactivated account is written to")
		}
	}
}

// TestMissedMessagesOfFollowedTopicsAndChannels: whoever follows a topic, or asked for mails of a channel or of all, as far
// as he has not muted what it is about; nobody else, and nobody who left.
func TestMissedMessagesOfFollowedTopicsAndChannels(t *testing.T) {
	s := New(t)
	s.Mails = true
	ann, bo, cy := s.Join("Ann"), s.Join("Bo"), s.Join("Cy")
	channel := func(name string) realm.ChannelID {
		Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: name}}, Principals: []realm.Principal{{ID: ann}, {ID: bo}, {ID: cy}}, AllOrNothing: true})
		return s.Realm.FindChannelByName(name).ID
	}
	here, there := channel("here"), channel("there")
	finishOutbox(s)
	type who = map[realm.UserID]string
	mailed := func(what string, c realm.ChannelID, topic string, content realm.ContentInfo, want who) {
		t.Helper()
		Do(s, ann, realm.SendMessage{ToChannel: true, Channel: c, Topic: topic, Content: content, Body: realm.Body{Text: "hi"}})
		got := who{}
		for _, e := range outboxJobs(s, realm.OutboxMissedMessage) {
			got[e.User] = e.Why
		}
		finishOutbox(s)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	policy := func(u realm.UserID, topic string, p int) {
		t.Helper()
		Do(s, u, realm.SetTopicPolicy{Channel: here, Topic: topic, Policy: p})
	}
	property := func(u realm.UserID, name string, value bool) {
		t.Helper()
		Do(s, u, realm.SetSubscriptionProperties{Changes: []realm.PropertyChange{{Channel: here, Property: name, Bool: &value}}})
	}
	setting := func(u realm.UserID, name string, value bool) {
		t.Helper()
		Do(s, u, realm.ChangeSettings{Values: []realm.SettingValue{{Name: name, Value: value}}})
	}
	plain, everybody, everybodyOfTopic := realm.ContentInfo{}, realm.ContentInfo{ChannelWildcard: true}, realm.ContentInfo{TopicWildcard: true}

	mailed("nobody asked", here, "t", plain, who{})
	policy(bo, "T", realm.TopicFollowed)
	mailed("a followed topic", here, "t", plain, who{bo: "followed_topic_push_notify"})
	mailed("another topic", here, "u", plain, who{})
	mailed("the same topic elsewhere", there, "t", plain, who{})
	property(bo, "is_muted", true)
	mailed("a followed topic of a muted channel", here, "t", plain, who{bo: "followed_topic_push_notify"})
	property(bo, "is_muted", false)
	setting(bo, "enable_followed_topic_email_notifications", false)
	mailed("a followed topic, no mails of those", here, "t", plain, who{})

	setting(cy, "wildcard_mentions_notify", false)
	setting(bo, "wildcard_mentions_notify", false)
	mailed("everybody, whom only followers want to hear", here, "t", everybody, who{bo: "stream_wildcard_mentioned_in_followed_topic"})
	setting(bo, "enable_followed_topic_wildcard_mentions_notify", false)
	mailed("everybody, whom nobody wants to hear", here, "t", everybody, who{})
	property(cy, "wildcard_mentions_notify", true)
	mailed("everybody, heard in this channel", here, "t", everybody, who{cy: "stream_wildcard_mentioned"})
	mailed("everybody, in another", there, "t", everybody, who{})
	Do(s, cy, realm.SendMessage{ToChannel: true, Channel: here, Topic: "t", Body: realm.Body{Text: "I too"}})
	finishOutbox(s)
	mailed("everybody who wrote there", here, "t", everybodyOfTopic, who{cy: "topic_wildcard_mentioned"})

	property(cy, "email_notifications", true)
	mailed("mails of the channel", here, "v", plain, who{cy: "stream_push_notify"})
	mailed("of another", there, "v", plain, who{})
	policy(cy, "v", realm.TopicMuted)
	mailed("but of a muted topic", here, "v", plain, who{})
	property(cy, "is_muted", true)
	mailed("of the muted channel", here, "w", plain, who{})
	policy(cy, "w", realm.TopicUnmuted)
	mailed("but an unmuted topic", here, "w", plain, who{cy: "stream_push_notify"})
	property(cy, "is_muted", false)
	setting(bo, "enable_stream_email_notifications", true)
	mailed("mails of all channels", there, "w", plain, who{bo: "stream_push_notify"})
	property(bo, "email_notifications", false)
	mailed("but of this one", here, "w", plain, who{cy: "stream_push_notify"})
	Do(s, cy, realm.Unsubscribe{Names: []string{"here"}})
	mailed("Cy has left", here, "w", plain, who{})
	Do(s, cy, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "here"}}})
	mailed("and is back", here, "w", plain, who{cy: "stream_push_notify"})
	property(cy, "email_notifications", false)
	mailed("wants no more", here, "w", plain, who{})
	setting(bo, "enable_stream_email_notifications", false)
	mailed("nor does Bo", there, "w", plain, who{})
}

// TestNotifyVeryManyUsers: where more people may be to be told of a message than one turn looks at, further turns do. Who has
// read it by then is told no more, and a message that is gone is told nobody.
func TestNotifyVeryManyUsers(t *testing.T) {
	s := New(t)
	s.Mails, s.Pushes = true, true
	ann := s.Join("Ann", realm.Owner)
	var people []realm.UserID
	principals := []realm.Principal{{ID: ann}}
	for i := range 1200 {
		u := Do(s, System, realm.CreateUser{Name: fmt.Sprint("User ", i), Email: fmt.Sprintf("user%d@example.com", i)})
		people, principals = append(people, u), append(principals, realm.Principal{ID: u})
	}
	Do(s, people[7], realm.AddPushToken{Kind: realm.PushFCM, Token: "t"})
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "all"}}, Principals: principals, AllOrNothing: true})
	finishOutbox(s)
	send := func() realm.MessageID {
		return Do(s, ann, realm.SendMessage{ToChannel: true, ChannelName: "all", Topic: "t", Body: realm.Body{Text: "hi"}, Content: realm.ContentInfo{ChannelWildcard: true}}).ID
	}
	tick := func() {
		if due := s.Realm.Due(s.Now); due != nil {
			RunTurn(s, System, due)
		}
	}
	id := send()
	if n := len(s.ViewAs(System).OutboxJobs()); n != 0 {
		t.Errorf("the turn that sends a message makes %d errands", n)
	}
	tick()
	Do(s, people[1000], realm.Flag{Messages: []realm.MessageID{id}, Op: "add", Flag: "read"})
	for range 5 {
		tick()
	}
	told := map[realm.UserID]bool{}
	for _, e := range outboxJobs(s, realm.OutboxMissedMessage) {
		if told[e.User] || e.Message != id || e.Why != "stream_wildcard_mentioned" {
			t.Fatalf("%+v", e)
		}
		told[e.User] = true
	}
	if len(told) != 1199 || told[people[1000]] || told[ann] {
		t.Errorf("%d people are mailed, among them who has read it (%v) and who wrote it (%v)", len(told), told[people[1000]], told[ann])
	}
	if list := outboxJobs(s, realm.OutboxPush); len(list) != 1 || list[0].User != people[7] || list[0].Told == 0 {
		t.Errorf("pushed: %+v", list)
	}
	finishOutbox(s)
	Do(s, ann, realm.DeleteMessage{Message: send()})
	for range 6 {
		tick()
	}
	if n := len(s.ViewAs(System).OutboxJobs()); n != 0 {
		t.Errorf("%d errands of a message that is gone", n)
	}
}
