package realm_test

import (
	"reflect"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

const usageDay = 24 * 3600

// usageStory is an organization with three days of messages, two weeks of silence, and one more day.
type usageStory struct {
	*Scene
	begin                 int64 // of the first day
	olive, ann, gus, gone realm.UserID
	bot                   realm.UserID
	general, secret       realm.ChannelID
}

func newUsageStory(t *testing.T) *usageStory {
	s := &usageStory{Scene: New(t)}
	Do(s.Scene, System, realm.CreateFirstChannels{})
	s.Advance(usageDay - s.Now%usageDay)
	s.begin = s.Now
	s.olive, s.ann = s.Join("Olive", realm.Owner), s.Join("Ann")
	s.gus, s.gone = s.Join("Gus", realm.Guest), s.Join("Gone")
	s.bot = s.JoinBot("Robo", s.ann)
	for _, u := range []realm.UserID{s.olive, s.ann, s.gone} {
		Do(s.Scene, u, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "general"}}})
	}
	Do(s.Scene, s.olive, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "secret"}},
		New:        realm.NewChannel{Private: true},
		Principals: []realm.Principal{{ID: s.ann}, {ID: s.olive}}})
	v := s.ViewAs(s.olive)
	s.general, s.secret = v.FindChannelByName("general").ID, v.FindChannelByName("secret").ID
	return s
}

func (s *usageStory) post(u realm.UserID, channel realm.ChannelID) realm.MessageID {
	return Do(s.Scene, u, realm.SendMessage{ToChannel: true, Channel: channel, Topic: "t", ReadBySender: true,
		Body: realm.Body{Text: "hello"}}).ID
}

func (s *usageStory) direct(u realm.UserID, to ...realm.UserID) {
	var people []realm.Principal
	for _, p := range to {
		people = append(people, realm.Principal{ID: p})
	}
	Do(s.Scene, u, realm.SendMessage{People: people, Body: realm.Body{Text: "hi"}, ReadBySender: true})
}

// hours and days return the spans from the first day to the present time.
func (s *usageStory) hours() realm.UsageSpan { return realm.NewUsageSpan(s.begin+3600, s.Now, 3600, 0) }
func (s *usageStory) days() realm.UsageSpan {
	return realm.NewUsageSpan(s.begin+usageDay, s.Now, usageDay, 0)
}

func expectNumbers(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Messages are counted by hour, sender, conversation, program and channel, and remain counted when they are deleted.
// The scene compares the counters of its replicas, of a replay of all facts and of a loaded snapshot.
func TestUsageCountsMessages(t *testing.T) {
	s := newUsageStory(t)
	first := s.post(s.ann, s.general)
	s.post(s.bot, s.general)
	s.Advance(2 * 3600)
	s.post(s.ann, s.secret)
	s.direct(s.ann, s.olive)
	s.direct(s.olive, s.ann, s.gone)
	Do(s.Scene, s.olive, realm.Flag{Messages: []realm.MessageID{first}, Op: "add", Flag: "read"})
	Do(s.Scene, s.olive, realm.DeleteMessage{Message: first})
	s.Advance(3600)
	Do(s.Scene, s.olive, realm.ReadAll{})
	s.Advance(3600)

	v := s.ViewAs(s.ann)
	all, own := v.SentOverTime(s.hours())
	expectNumbers(t, "people by hour", all.People, []int{1, 0, 3, 0})
	expectNumbers(t, "bots by hour", all.Bots, []int{1, 0, 0, 0})
	expectNumbers(t, "Ann's by hour", own.People, []int{0, 0, 2, 0})
	read, _ := v.ReadOverTime(s.hours())
	_, olive := s.ViewAs(s.olive).ReadOverTime(s.hours())
	// The message of the bot, that in the secret channel, and the one from Ann.
	expectNumbers(t, "read by hour", read, []int{0, 0, 1, 3})
	expectNumbers(t, "read by Olive", olive, read)

	if ends := s.days().Ends(); len(ends) != 0 {
		t.Errorf("the present day is in a chart of days: %v", ends)
	}
	s.Advance(usageDay)
	s.post(s.olive, s.general)
	v = s.ViewAs(s.ann)
	kinds, mine := v.SentByKind(s.days())
	expectNumbers(t, "kinds", kinds, [4][]int{{2}, {1}, {1}, {1}})
	expectNumbers(t, "Ann's kinds", mine, [4][]int{{0}, {1}, {1}, {0}})
	clients, _ := v.SentByClient(s.days())
	expectNumbers(t, "programs", clients, map[string][]int{"scene": {5}})
	expectNumbers(t, "channel", v.SentToChannel(s.days(), s.general), realm.UsagePair{People: []int{1}, Bots: []int{1}})
}

// People are active on the day of an action, and for 14 days after it. Days without facts have the numbers of the day
// before, also if they are the newest ones.
func TestUsageCountsPeople(t *testing.T) {
	s := newUsageStory(t)
	s.post(s.ann, s.general)
	s.Advance(usageDay)
	s.post(s.gone, s.general)
	s.post(s.bot, s.general)
	Do(s.Scene, s.olive, realm.DeactivateUser{User: s.gone})
	s.Advance(13 * usageDay)
	s.post(s.olive, s.general)
	s.Advance(4 * usageDay)

	n := s.ViewAs(s.olive).PeopleOverTime(s.days())
	// On the first day all four registered queues.
	expectNumbers(t, "active by day", n.Day, []int{4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0})
	expectNumbers(t, "active in 15 days", n.Fortnight, []int{4, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1, 1, 1})
	expectNumbers(t, "accounts", n.All, []int{4, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3})

	totals, err := s.ViewAs(s.olive).UsageTotals(30)
	if err != nil {
		t.Fatal(err)
	}
	totals.Channels = totals.Channels[:1] // the largest; another one has a notice about a new channel
	expectNumbers(t, "totals", totals, realm.UsageTotals{People: 3, Guests: 1, Bots: 1, Active: 0, Fortnight: 1,
		Messages: 4, Since: totals.Since, Channels: []realm.ChannelTotal{{Channel: s.general, People: 3, Bots: 1}}})
	for who, u := range map[string]realm.UserID{"member": s.ann, "guest": s.gus} {
		if _, err := s.ViewAs(u).UsageTotals(30); err == nil {
			t.Errorf("a %s reads the totals", who)
		}
	}
	if err := s.ViewAs(s.gus).UsageReader(); err == nil || err.Error() != "Not allowed for guest users" {
		t.Errorf("a guest reads charts: %v", err)
	}
	if err := s.ViewAs(s.ann).UsageReader(); err != nil {
		t.Errorf("a member cannot read charts: %v", err)
	}
}

// The messages that a user has read are counted for 30 days, and the counts go with the account.
func TestUsageForgetsReading(t *testing.T) {
	s := newUsageStory(t)
	read := func() int {
		_, own := s.ViewAs(s.olive).ReadOverTime(s.hours())
		sum := 0
		for _, n := range own {
			sum += n
		}
		return sum
	}
	for range 40 {
		id := s.post(s.ann, s.general)
		Do(s.Scene, s.olive, realm.Flag{Messages: []realm.MessageID{id}, Op: "add", Flag: "read"})
		s.Advance(usageDay)
	}
	if n := read(); n != 30 {
		t.Errorf("after 40 days with one message each, %d are counted", n)
	}
	s.Join("Second", realm.Owner)
	Do(s.Scene, System, realm.EraseUser{User: s.olive})
	if n := read(); n != 0 {
		t.Errorf("%d messages of an erased account are counted", n)
	}
}

// The hours and days of a chart are those that have ended, and their number is limited.
func TestUsageSpan(t *testing.T) {
	const day = usageDay
	for _, x := range []struct {
		name       string
		start, end int64
		atLeast, n int
		first      int64
	}{
		{"two days", 10 * day, 11*day + 5, 0, 2, 10 * day},
		{"start within a day", 10*day + 1, 12 * day, 0, 2, 11 * day},
		{"nothing has ended", 10*day + 5, 10*day + 50, 0, 0, 0},
		{"more than there are", 10 * day, 11 * day, 5, 5, 7 * day},
		{"before 1970", 0, 2 * day, 9, 2, day},
		{"endless", 0, 1e6 * day, 0, realm.MaxUsageSpan, (1e6 - realm.MaxUsageSpan + 1) * day},
	} {
		ends := realm.NewUsageSpan(x.start, x.end, day, x.atLeast).Ends()
		if len(ends) != x.n || x.n > 0 && ends[0] != x.first {
			t.Errorf("%s: %d ends from %v, want %d from %d", x.name, len(ends), ends[:min(1, len(ends))], x.n, x.first)
		}
	}
}

// Below the rule level, older programs apply the same facts, and nothing is counted.
func TestUsageNeedsItsLevel(t *testing.T) {
	for level, want := range map[uint16]int{4: 0, 5: 1} {
		r := realm.New(1)
		rows := 0
		r.ReplayAt(&realm.Founded{Name: "Org", At: 1_800_000_000}, 1_800_000_000, level)
		r.ReplayAt(&realm.Ticked{}, 1_800_000_000, level)
		r.EachRow(func(_ uint16, _, row any) {
			if _, ok := row.(*realm.UsageDay); ok {
				rows++
			}
		})
		if rows != want {
			t.Errorf("level %d: %d days are stored, want %d", level, rows, want)
		}
	}
}
