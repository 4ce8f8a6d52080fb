package realm_test

import (
	"fmt"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// A message makes jobs for its recipients, as far as their settings allow emails, and as long as they may read it.
func TestMissedMessageJobs(t *testing.T) {
	s := New(t)
	s.EmailEnabled = true
	olive, ann, bo, cy := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo"), s.Join("Cy")
	everyone := []realm.Principal{{ID: ann}, {ID: bo}, {ID: cy}}
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "secret"}},
		New: realm.NewChannel{Private: true}, Principals: everyone, AllOrNothing: true})
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
	type triggers = map[realm.UserID]string
	in := func(topic string, c realm.ContentInfo) realm.SendMessage {
		return realm.SendMessage{ToChannel: true, Channel: secret, Topic: topic, Content: c}
	}
	mention := realm.ContentInfo{Users: []realm.UserID{bo}}
	same("direct", missed(realm.SendMessage{People: everyone}), triggers{bo: "direct_message", cy: "direct_message"})
	same("no mention", missed(in("x", realm.ContentInfo{})), triggers{})
	same("a mention", missed(in("x", mention)), triggers{bo: "mentioned"})
	wildcard := realm.ContentInfo{ChannelWildcard: true}
	same("a channel wildcard", missed(in("w", wildcard)),
		triggers{bo: "stream_wildcard_mentioned", cy: "stream_wildcard_mentioned"})
	Do(s, bo, realm.SetTopicPolicy{Channel: secret, Topic: "w", Policy: realm.TopicMuted})
	same("a channel wildcard in a topic that Bo muted", missed(in("w", wildcard)),
		triggers{cy: "stream_wildcard_mentioned"})
	noEmails := []realm.SettingValue{{Name: "enable_offline_email_notifications", Value: false}}
	Do(s, cy, realm.ChangeSettings{Values: noEmails})
	same("direct, but Cy wants no emails", missed(realm.SendMessage{People: everyone}), triggers{bo: "direct_message"})
	s.EmailEnabled = false
	same("emails disabled", missed(realm.SendMessage{People: everyone}), triggers{})
	s.EmailEnabled = true

	toBeSent := func(e realm.OutboxJob) bool { _, ok := s.ViewAs(System).UnreadJobMessage(&e); return ok }
	wait := func(c realm.SendMessage) (realm.MessageID, realm.OutboxJob) {
		c.Body = realm.Body{Text: "hi"}
		id := Do(s, ann, c).ID
		list := s.ViewAs(System).MissedMessageJobs(bo)
		return id, list[len(list)-1]
	}
	_, left := wait(in("y", mention))
	read, gone := realm.MessageID(0), realm.MessageID(0)
	var ofRead, ofGone, ofUnread realm.OutboxJob
	read, ofRead = wait(realm.SendMessage{People: everyone})
	gone, ofGone = wait(realm.SendMessage{People: everyone})
	_, ofUnread = wait(realm.SendMessage{People: everyone})
	for _, e := range []realm.OutboxJob{left, ofRead, ofGone, ofUnread} {
		if !toBeSent(e) {
			t.Errorf("%+v is not missed", e)
		}
	}
	Do(s, bo, realm.Flag{Messages: []realm.MessageID{read}, Op: "add", Flag: "read"})
	Do(s, ann, realm.DeleteMessage{Message: gone})
	Do(s, olive, realm.Unsubscribe{Names: []string{"secret"}, Principals: []realm.Principal{{ID: bo}}})
	for what, e := range map[string]realm.OutboxJob{"unsubscribed": left, "read": ofRead, "deleted": ofGone} {
		if toBeSent(e) {
			t.Errorf("%s: still to be emailed", what)
		}
	}
	if !toBeSent(ofUnread) {
		t.Error("an unread message is no longer missed")
	}
	ids := []int64{left.ID, ofRead.ID, ofGone.ID, ofUnread.ID}
	ExpectRefusal(s, ann, realm.SendMissedEmails{IDs: ids}, "Insufficient permission")
	for range 2 { // the second run finds all jobs finished
		Do(s, System, realm.SendMissedEmails{IDs: ids, Emails: []realm.Email{{To: "bo@example.com"}}})
	}
	if n := len(outboxJobs(s, realm.OutboxEmail)); n != 1 {
		t.Errorf("%d emails, want 1", n)
	}
	finishOutbox(s)
	for range 70 {
		Do(s, ann, realm.SendMessage{People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "hi"}})
	}
	if n := len(s.ViewAs(System).MissedMessageJobs(bo)); n != 50 {
		t.Errorf("%d jobs of one user, want 50", n)
	}
	noText := func(*realm.User, realm.Letterhead) realm.Email { return realm.Email{} }
	Do(s, olive, realm.DeactivateUser{User: bo, FarewellEmail: noText})
	for _, e := range s.ViewAs(System).MissedMessageJobs(bo) {
		if toBeSent(e) {
			t.Fatal("a deactivated account gets an email")
		}
	}
}

// Emails about a message go to users that follow its topic, and to users that want emails of its channel or of all
// channels, unless they muted the topic or channel. Other users and former subscribers get none.
func TestMissedMessagesOfFollowedTopicsAndChannels(t *testing.T) {
	s := New(t)
	s.EmailEnabled = true
	ann, bo, cy := s.Join("Ann"), s.Join("Bo"), s.Join("Cy")
	channel := func(name string) realm.ChannelID {
		Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: name}},
			Principals: []realm.Principal{{ID: ann}, {ID: bo}, {ID: cy}}, AllOrNothing: true})
		return s.Realm.FindChannelByName(name).ID
	}
	here, there := channel("here"), channel("there")
	finishOutbox(s)
	type triggers = map[realm.UserID]string
	mailed := func(what string, c realm.ChannelID, topic string, content realm.ContentInfo, want triggers) {
		t.Helper()
		Do(s, ann, realm.SendMessage{ToChannel: true, Channel: c, Topic: topic, Content: content,
			Body: realm.Body{Text: "hi"}})
		got := triggers{}
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
		change := realm.PropertyChange{Channel: here, Property: name, Bool: &value}
		Do(s, u, realm.SetSubscriptionProperties{Changes: []realm.PropertyChange{change}})
	}
	setting := func(u realm.UserID, name string, value bool) {
		t.Helper()
		Do(s, u, realm.ChangeSettings{Values: []realm.SettingValue{{Name: name, Value: value}}})
	}
	plain, channelWildcard := realm.ContentInfo{}, realm.ContentInfo{ChannelWildcard: true}
	topicWildcard := realm.ContentInfo{TopicWildcard: true}

	mailed("no setting", here, "t", plain, triggers{})
	policy(bo, "T", realm.TopicFollowed)
	mailed("a followed topic", here, "t", plain, triggers{bo: "followed_topic_push_notify"})
	mailed("another topic", here, "u", plain, triggers{})
	mailed("the same topic elsewhere", there, "t", plain, triggers{})
	property(bo, "is_muted", true)
	mailed("a followed topic of a muted channel", here, "t", plain, triggers{bo: "followed_topic_push_notify"})
	property(bo, "is_muted", false)
	setting(bo, "enable_followed_topic_email_notifications", false)
	mailed("a followed topic without emails for these", here, "t", plain, triggers{})

	setting(cy, "wildcard_mentions_notify", false)
	setting(bo, "wildcard_mentions_notify", false)
	mailed("a wildcard, wanted by followers only", here, "t", channelWildcard,
		triggers{bo: "stream_wildcard_mentioned_in_followed_topic"})
	setting(bo, "enable_followed_topic_wildcard_mentions_notify", false)
	mailed("a wildcard, wanted by no one", here, "t", channelWildcard, triggers{})
	property(cy, "wildcard_mentions_notify", true)
	mailed("a wildcard, wanted in this channel", here, "t", channelWildcard, triggers{cy: "stream_wildcard_mentioned"})
	mailed("a wildcard in another channel", there, "t", channelWildcard, triggers{})
	Do(s, cy, realm.SendMessage{ToChannel: true, Channel: here, Topic: "t", Body: realm.Body{Text: "I too"}})
	finishOutbox(s)
	mailed("a topic wildcard", here, "t", topicWildcard, triggers{cy: "topic_wildcard_mentioned"})

	property(cy, "email_notifications", true)
	mailed("a channel with emails", here, "v", plain, triggers{cy: "stream_push_notify"})
	mailed("another channel", there, "v", plain, triggers{})
	policy(cy, "v", realm.TopicMuted)
	mailed("a muted topic of the channel", here, "v", plain, triggers{})
	property(cy, "is_muted", true)
	mailed("the channel is muted", here, "w", plain, triggers{})
	policy(cy, "w", realm.TopicUnmuted)
	mailed("an unmuted topic of the muted channel", here, "w", plain, triggers{cy: "stream_push_notify"})
	property(cy, "is_muted", false)
	setting(bo, "enable_stream_email_notifications", true)
	mailed("emails for all channels", there, "w", plain, triggers{bo: "stream_push_notify"})
	property(bo, "email_notifications", false)
	mailed("all channels but this one", here, "w", plain, triggers{cy: "stream_push_notify"})
	Do(s, cy, realm.Unsubscribe{Names: []string{"here"}})
	mailed("Cy has unsubscribed", here, "w", plain, triggers{})
	Do(s, cy, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "here"}}})
	mailed("Cy has subscribed again", here, "w", plain, triggers{cy: "stream_push_notify"})
	property(cy, "email_notifications", false)
	mailed("emails turned off for the channel", here, "w", plain, triggers{})
	setting(bo, "enable_stream_email_notifications", false)
	mailed("emails turned off for all channels", there, "w", plain, triggers{})
}

// If a message may notify more users than one turn checks, further turns check the rest. Users that have read the
// message by then are not notified, and a deleted message notifies no one.
func TestNotifyVeryManyUsers(t *testing.T) {
	s := New(t)
	s.EmailEnabled, s.PushEnabled = true, true
	ann := s.Join("Ann", realm.Owner)
	var people []realm.UserID
	principals := []realm.Principal{{ID: ann}}
	for i := range 1200 {
		u := Do(s, System, realm.CreateUser{Name: fmt.Sprint("User ", i), Email: fmt.Sprintf("user%d@example.com", i)})
		people, principals = append(people, u), append(principals, realm.Principal{ID: u})
	}
	Do(s, people[7], realm.AddPushToken{Kind: realm.PushFCM, Token: "t"})
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "all"}}, Principals: principals,
		AllOrNothing: true})
	finishOutbox(s)
	send := func() realm.MessageID {
		return Do(s, ann, realm.SendMessage{ToChannel: true, ChannelName: "all", Topic: "t",
			Body: realm.Body{Text: "hi"}, Content: realm.ContentInfo{ChannelWildcard: true}}).ID
	}
	tick := func() {
		if due := s.Realm.Due(s.Now); due != nil {
			RunTurn(s, System, due)
		}
	}
	id := send()
	if n := len(s.ViewAs(System).OutboxJobs()); n != 0 {
		t.Errorf("the turn that sends the message makes %d outbox jobs, want none", n)
	}
	tick()
	Do(s, people[1000], realm.Flag{Messages: []realm.MessageID{id}, Op: "add", Flag: "read"})
	for range 5 {
		tick()
	}
	notified := map[realm.UserID]bool{}
	for _, e := range outboxJobs(s, realm.OutboxMissedMessage) {
		if notified[e.User] || e.Message != id || e.Why != "stream_wildcard_mentioned" {
			t.Fatalf("%+v", e)
		}
		notified[e.User] = true
	}
	if len(notified) != 1199 || notified[people[1000]] || notified[ann] {
		t.Errorf("%d users get an email, among them the one that has read it (%v) and the sender (%v)",
			len(notified), notified[people[1000]], notified[ann])
	}
	if list := outboxJobs(s, realm.OutboxPush); len(list) != 1 || list[0].User != people[7] || list[0].Told == 0 {
		t.Errorf("push jobs: %+v", list)
	}
	finishOutbox(s)
	Do(s, ann, realm.DeleteMessage{Message: send()})
	for range 6 {
		tick()
	}
	if n := len(s.ViewAs(System).OutboxJobs()); n != 0 {
		t.Errorf("%d outbox jobs for a deleted message", n)
	}
}
