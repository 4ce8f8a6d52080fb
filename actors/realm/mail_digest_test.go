package realm_test

import (
	"slices"
	"testing"
	"time"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// tickAll runs all turns that are due.
func tickAll(s *Scene) {
	s.Realm.SetClock(s.Now)
	for range 1000 {
		due := s.Realm.Due(s.Now)
		if due == nil {
			return
		}
		RunTurn(s, System, due)
	}
	s.T.Fatal("the realm is always due")
}

// digestUsers returns the users with a waiting digest, and finishes the digests.
func digestUsers(s *Scene) (out []realm.UserID) {
	for _, job := range outboxJobs(s, realm.OutboxDigest) {
		out = append(out, job.User)
	}
	finishOutbox(s)
	return out
}

// Digests are made once a week, on the organization's day, for users that want them.
func TestDigestsAreWeekly(t *testing.T) {
	s := New(t)
	s.EmailEnabled = true
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	gone := s.Join("Gone")
	s.JoinBot("Robo", ann)
	Do(s, olive, realm.DeactivateUser{User: gone, FarewellEmail: func(*realm.User, realm.Letterhead) realm.Email {
		return realm.Email{}
	}})
	Do(s, bo, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "enable_digest_emails", Value: false}}})
	finishOutbox(s)
	monday := time.Unix(s.Now, 0).UTC().Truncate(7 * 24 * time.Hour) // the zero time was a Monday
	at := func(days, hour int) []realm.UserID {
		s.Now = monday.AddDate(0, 0, 7+days).Unix() + int64(hour)*3600
		tickAll(s)
		return digestUsers(s)
	}
	if got := at(1, 9); len(got) != 0 {
		t.Errorf("digests that the organization does not want: %v", got)
	}
	Do(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "digest_emails_enabled", Value: true}}})
	for _, x := range []struct {
		days, hour int
		want       []realm.UserID
	}{
		{7, 23, nil}, {8, 7, nil}, {8, 8, []realm.UserID{olive, ann}}, {8, 9, nil}, {9, 9, nil}, {14, 9, nil},
		{15, 20, []realm.UserID{olive, ann}}, {21, 9, nil},
	} {
		if got := at(x.days, x.hour); !slices.Equal(got, x.want) {
			t.Errorf("day %d, hour %d: %v, want %v", x.days, x.hour, got, x.want)
		}
	}
	Do(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "digest_weekday", Value: int64(3)}}})
	if got := at(24, 9); !slices.Equal(got, []realm.UserID{olive, ann}) {
		t.Errorf("on the new day: %v", got)
	}
	Do(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "digest_weekday", Value: int64(4)}}})
	if got := at(25, 9); len(got) != 0 {
		t.Errorf("one day after a digest: %v", got)
	}
}

// Many digests are added in portions, while there is room for them.
func TestDigestsWaitForRoom(t *testing.T) {
	s := New(t)
	s.EmailEnabled = true
	olive := s.Join("Olive", realm.Owner)
	for range realm.MaxDigests {
		s.Join("User " + time.Duration(s.Realm.Org().NextUser).String())
	}
	Do(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "digest_emails_enabled", Value: true}}})
	finishOutbox(s)
	monday := time.Unix(s.Now, 0).UTC().Truncate(7 * 24 * time.Hour)
	s.Now = monday.AddDate(0, 0, 8).Unix() + 9*3600
	tickAll(s)
	first := digestUsers(s)
	tickAll(s)
	second := digestUsers(s)
	if len(first) != realm.MaxDigests || len(second) != 1 || slices.Contains(first, second[0]) {
		t.Errorf("%d and then %d digests", len(first), len(second))
	}
}

// A digest has unread messages of the last week that the user may still read, and nothing that the user muted or left.
func TestDigestContent(t *testing.T) {
	s := New(t)
	s.EmailEnabled = true
	olive, ann, bo, cy := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo"), s.Join("Cy")
	Do(s, olive, realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "digest_emails_enabled", Value: true}}})
	channel := func(name string, private bool) realm.ChannelID {
		Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: name}},
			New:        realm.NewChannel{Private: private},
			Principals: []realm.Principal{{ID: ann}, {ID: bo}, {ID: cy}}, AllOrNothing: true})
		return s.Realm.FindChannelByName(name).ID
	}
	plans, muted, left, closed := channel("plans", false), channel("muted", false), channel("left", false),
		channel("closed", true)
	post := func(who realm.UserID, c realm.ChannelID, topic string) realm.MessageID {
		return Do(s, who, realm.SendMessage{ToChannel: true, Channel: c, Topic: topic, ReadBySender: true,
			Body: realm.Body{Text: "hi"}}).ID
	}
	post(ann, plans, "old")
	s.Advance(8 * 24 * 3600)
	post(ann, plans, "boats")
	post(ann, plans, "lively")
	post(cy, plans, "lively")
	read := post(ann, plans, "read")
	post(ann, plans, "quiet")
	deleted := post(ann, plans, "deleted")
	for _, c := range []realm.ChannelID{muted, left, closed} {
		post(ann, c, "x")
	}
	Do(s, ann, realm.SendMessage{People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "you?"}})
	Do(s, bo, realm.SetTopicPolicy{Channel: plans, Topic: "quiet", Policy: realm.TopicMuted})
	yes := true
	Do(s, bo, realm.SetSubscriptionProperties{Changes: []realm.PropertyChange{
		{Channel: muted, Property: "is_muted", Bool: &yes}}})
	Do(s, bo, realm.Flag{Messages: []realm.MessageID{read}, Op: "add", Flag: "read"})
	unread := s.ViewAs(bo).Unread().Sorted() // found before the rest changes
	Do(s, ann, realm.DeleteMessage{Message: deleted})
	Do(s, bo, realm.Unsubscribe{Names: []string{"left"}})
	Do(s, ann, realm.Unsubscribe{Names: []string{"closed"}, Principals: []realm.Principal{{ID: bo}}})
	d := s.ViewAs(System).DigestOf(s.Realm.Find(bo), unread, s.Now)
	var topics []string
	for _, x := range d.Topics {
		topics = append(topics, x.ChannelName+" > "+x.Topic)
	}
	want := []string{"plans > lively", "plans > boats"}
	if !slices.Equal(topics, want) || d.Direct != 1 || d.More != 0 {
		t.Errorf("the digest has %q, want %q; %d direct messages, %d more", topics, want, d.Direct, d.More)
	}
	if x := d.Topics[0]; x.Count != 2 || x.Senders != 2 || len(x.Messages) != 2 {
		t.Errorf("the lively topic: %+v", x)
	}
	Do(s, bo, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "enable_digest_emails", Value: false}}})
	if d := s.ViewAs(System).DigestOf(s.Realm.Find(bo), unread, s.Now); d.Direct != 0 || d.Topics != nil {
		t.Errorf("a digest that Bo does not want: %+v", d)
	}
}
