package realm_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/actors/realm/realmtest"
)

// TestJoinJob subscribes many users to a private channel, some in each turn. The first turn accepts or refuses
// everything. Subscribed users get events about later ones. Users deactivated in the meantime are skipped.
func TestJoinJob(t *testing.T) {
	s := newTestScene(t)
	var crowd []UserID
	for i := range 130 {
		crowd = append(crowd, s.Join("Member "+string(rune('A'+i/26))+string(rune('a'+i%26))))
	}
	c := Subscribe{
		Channels: channelsToJoin("crowd"), New: NewChannel{Private: true}, AllOrNothing: true, MaxPerTurn: 50,
	}
	c.Principals = principals(append(slices.Clone(crowd), 9999)...)
	refused(s, s.ann, c, "No such user")
	if s.Realm.FindChannelByName("crowd") != nil {
		t.Fatal("a refused request created the channel")
	}
	c.Principals = principals(crowd...)
	s.ExpectNoEvents(crowd...)
	a := do(s, s.ann, c)
	id := a.Created[0]
	if n := s.Realm.SubscriberCount(id); n != 0 || a.Job == 0 {
		t.Fatalf("the first turn subscribed %d users and started job %d", n, a.Job)
	}
	s.ExpectNoEvents(crowd...)
	s.runDueTurns(1)
	if a.AddJoiners(); len(a.Subscribed) != 130 || len(a.Already) != 0 {
		t.Errorf("the answer has %d new and %d existing subscribers", len(a.Subscribed), len(a.Already))
	}
	if e := realmtest.ListEventsOf[*SubscriptionAdded](s.Scene, crowd[49]); len(e) != 1 ||
		!slices.Equal(ids.IDs[UserID](e[0].For(crowd[49]).Members), crowd[:50]) {
		t.Errorf("the last user of the first step got %+v", e)
	}
	s.ListEvents(crowd[0])
	s.ExpectNoEvents(crowd[50:]...)
	realmtest.RunTurn(s.Scene, realmtest.System, asCommand(func(t *Turn) {
		t.Record(&UserChanged{ID: crowd[129], Active: ptr(false)})
	}))
	s.ListEvents(crowd[0])
	if s.runDueTurns(1); !s.Realm.JobRemains(a.Job) {
		t.Error("the job ended after two of three turns")
	}
	if e := realmtest.ListEventsOf[*PeersChanged](s.Scene, crowd[0]); len(e) != 1 || !e[0].Joined ||
		!slices.Equal(e[0].Users, crowd[50:100]) {
		t.Errorf("the first user got %+v about the second step", e)
	}
	if e := realmtest.ListEventsOf[*SubscriptionAdded](s.Scene, crowd[50]); len(e) != 1 ||
		!slices.Equal(ids.IDs[UserID](e[0].For(crowd[50]).Members), crowd[:100]) {
		t.Errorf("the first user of the second step got %+v", e)
	}
	if s.runDueTurns(1); s.Realm.JobRemains(a.Job) {
		t.Error("the job did not end after three turns")
	}
	if n := s.Realm.SubscriberCount(id); n != 129 {
		t.Errorf("%d users joined", n)
	}
	do(s, s.ann, Subscribe{Channels: channelsToJoin("some"), Principals: principals(crowd[:7]...), AllOrNothing: true})
	a = do(s, s.ann, Subscribe{
		Channels: channelsToJoin("some", "other"), Principals: principals(crowd[:129]...), AllOrNothing: true,
		MaxPerTurn: 50,
	})
	if a.AddJoiners(); !slices.Equal(a.Subscribed[crowd[6]], []string{"other"}) ||
		!slices.Equal(a.Already[crowd[6]], []string{"some"}) || len(a.Subscribed) != 129 || len(a.Already) != 7 {
		t.Errorf("the answer for one user: joined %v, already in %v", a.Subscribed[crowd[6]], a.Already[crowd[6]])
	}
}

// TestLeaveJob unsubscribes many users from two channels, some in each turn. The answer says for each channel whether
// anyone left it.
func TestLeaveJob(t *testing.T) {
	s := newTestScene(t)
	var crowd []UserID
	for i := range 90 {
		crowd = append(crowd, s.Join("Member "+string(rune('A'+i/26))+string(rune('a'+i%26))))
	}
	do(s, s.ann, Subscribe{Channels: channelsToJoin("crowd"), Principals: principals(crowd...), AllOrNothing: true})
	do(s, s.ann, Subscribe{Channels: channelsToJoin("few"), Principals: principals(crowd[80:]...), AllOrNothing: true})
	do(s, s.ann, Subscribe{Channels: channelsToJoin("none"), Principals: principals(s.ann), AllOrNothing: true})
	c := Unsubscribe{
		Names: []string{"crowd", "few", "none"}, Principals: principals(append(slices.Clone(crowd), 9999)...),
		MaxPerTurn: 60,
	}
	refused(s, s.ann, c, "No such user")
	c.Principals = principals(crowd...)
	refused(s, s.bo, c, "Insufficient permission")
	id := s.Realm.FindChannelByName("crowd").ID
	a := do(s, s.ann, c)
	turns := 0
	for ; s.Realm.JobRemains(a.Job); turns++ {
		if n := s.Realm.SubscriberCount(id); n != 90-20*turns {
			t.Fatalf("after %d turns %d subscribers remain", turns, n)
		}
		s.runDueTurns(1)
	}
	if n := s.Realm.SubscriberCount(id); n != 0 || turns != 5 || !slices.Equal(a.Removed, []string{"crowd", "few"}) ||
		!slices.Equal(a.NotRemoved, []string{"few", "none"}) {
		t.Errorf("after %d turns %d subscribers remain, removed %v, not removed %v", turns, n, a.Removed, a.NotRemoved)
	}
}

// TestJobsEqualSingleTurn lets two users join more channels than one turn handles, and leave them again. Answers,
// colors, order and the sum of events must be the same as with a single turn.
func TestJobsEqualSingleTurn(t *testing.T) {
	const n = 650
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("channel ", i))
	}
	slices.Reverse(names) // not the order in which they are joined
	type outcome struct {
		joined   SubscribeResult
		added    map[UserID][]SubscriptionInfo
		messages map[UserID][]string
		left     UnsubscribeResult
		removed  map[UserID][]ChannelID
	}
	run := func(atOnce int) (out outcome, turns [2]int) {
		s := newTestScene(t)
		s.Realm.SetLimits(Limits{ChannelsPerDay: 1000, ChannelsPerCall: 1000})
		existing := slices.Sorted(slices.Values(names[1:])) // one is new
		do(s, s.ann, Subscribe{
			Channels: channelsToJoin(existing...), Principals: principals(s.ann), AllOrNothing: true,
		})
		do(s, s.ann, Subscribe{
			Channels: channelsToJoin(names[3:5]...), Principals: principals(s.bo), AllOrNothing: true,
		})
		users := []UserID{s.bo, s.cy}
		for _, u := range users {
			s.ListEvents(u)
		}
		out.added, out.messages = map[UserID][]SubscriptionInfo{}, map[UserID][]string{}
		out.removed = map[UserID][]ChannelID{}
		collect := func() {
			for _, u := range users {
				for _, e := range s.ListEvents(u) {
					switch e := e.(type) {
					case *SubscriptionsAdded:
						for _, i := range e.For(u) {
							// The users may join in different turns.
							i.Members, i.Here, i.ChannelInfo.Subscribers = ids.Set{}, ids.Set{}, 0
							out.added[u] = append(out.added[u], i)
						}
					case *MessageArrived:
						out.messages[u] = append(out.messages[u], s.Text(e.Message.Ref).Text)
					case *SubscriptionsRemoved:
						for _, x := range e.Each {
							out.removed[u] = append(out.removed[u], x.Channel)
						}
					}
				}
			}
		}
		finish := func(id int64) (n int) {
			for collect(); id != 0 && s.Realm.JobRemains(id); n++ {
				s.runDueTurns(1)
				collect()
				s.Restart()
			}
			return n
		}
		out.joined = do(s, s.ann, Subscribe{
			Channels: channelsToJoin(names...), Principals: principals(users...), AllOrNothing: true, Notify: true,
			MaxPerTurn: atOnce,
		})
		turns[0] = finish(out.joined.Job)
		out.joined.AddJoiners()
		out.joined.Joiners, out.joined.Job = nil, 0
		out.left = do(s, s.owner, Unsubscribe{Names: names, Principals: principals(users...), MaxPerTurn: atOnce})
		turns[1] = finish(out.left.Job)
		out.left.Job = 0
		return out, turns
	}
	whole, no := run(0)
	parts, turns := run(1000)
	for u, list := range whole.added {
		already := len(whole.joined.Already[u])
		if len(list)+already != n || len(whole.messages[u]) != 1 || len(whole.removed[u]) != n ||
			len(whole.left.Removed) != n {
			t.Errorf("user %d joined %d channels, got %d messages and left %d channels",
				u, len(list), len(whole.messages[u]), len(whole.removed[u]))
		}
	}
	if len(whole.added) != 2 || no != [2]int{} || turns != [2]int{12, 10} {
		t.Errorf("%d users joined; turns: %v and %v", len(whole.added), no, turns)
	}
	for _, x := range []struct {
		what string
		a, b any
	}{
		{"answer", whole.joined, parts.joined},
		{"events", whole.added, parts.added},
		{"messages", whole.messages, parts.messages},
		{"answer of leaving", whole.left, parts.left},
		{"events of leaving", whole.removed, parts.removed},
	} {
		if !reflect.DeepEqual(x.a, x.b) {
			t.Errorf("%s: with one turn %.500s, with several %.500s", x.what, fmt.Sprint(x.a), fmt.Sprint(x.b))
		}
	}
}

// Many changes of settings are made in several turns, in order. Channels left in the meantime are skipped.
func TestPropertyJob(t *testing.T) {
	s := newTestScene(t)
	c := SetSubscriptionProperties{MaxPerTurn: 100}
	for i := range 250 {
		c.Changes = append(c.Changes, PropertyChange{
			Channel: []ChannelID{s.public, s.private}[i%2], Property: "color", Text: ptr(fmt.Sprintf("#%06d", i)),
		})
	}
	color := func(c ChannelID) string { return s.Realm.SubscriptionOf(s.bo, c).Color }
	before := color(s.public)
	bad := append(slices.Clone(c.Changes), PropertyChange{Channel: s.public, Property: "x"})
	refused(s, s.bo, SetSubscriptionProperties{Changes: bad, MaxPerTurn: 100}, "Unknown subscription property: x")
	many := make([]PropertyChange, MaxPropertiesPerRequest+1)
	refused(s, s.bo, SetSubscriptionProperties{Changes: many},
		"Too many subscription properties in one request (limit: 4000)")
	work := do(s, s.bo, c)
	if s.ExpectNoEvents(s.bo); color(s.public) != before {
		t.Errorf("the first turn set the color %s", color(s.public))
	}
	if s.runDueTurns(1); color(s.private) != "#000099" {
		t.Errorf("after the first turn the color is %s", color(s.private))
	}
	s.Restart()
	if e := realmtest.ListEventsOf[*SubscriptionsSet](s.Scene, s.bo); len(e) != 2 || len(e[0].Each) != 60 ||
		len(e[1].Each) != 40 {
		t.Errorf("after the first turn Bo got %v", e)
	}
	do(s, s.bo, Unsubscribe{Names: []string{s.Realm.FindChannel(s.private).Name}})
	var got []string
	for range 2 {
		s.runDueTurns(1)
		for _, e := range realmtest.ListEventsOf[*SubscriptionsSet](s.Scene, s.bo) {
			for _, x := range e.Each {
				got = append(got, x.Color)
			}
		}
	}
	if s.Realm.JobRemains(work) || color(s.private) != "#000099" || color(s.public) != "#000248" {
		t.Errorf("after three turns the colors are %s and %s", color(s.private), color(s.public))
	}
	if len(got) != 75 || got[0] != "#000100" || got[74] != "#000248" || !slices.IsSorted(got) {
		t.Errorf("Bo got %d colors: %v", len(got), got)
	}
}

// TestCreateChannelJob subscribes many users to a new channel, some in each turn. The first message of the channel
// comes with the last turn and names the caller.
func TestCreateChannelJob(t *testing.T) {
	s := newTestScene(t)
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "send_channel_events_messages", Value: true}}})
	var crowd []UserID
	for i := range 130 {
		crowd = append(crowd, s.Join("Member "+string(rune('A'+i/26))+string(rune('a'+i%26))))
	}
	made := do(s, s.ann, CreateChannel{
		New: NewChannel{Name: "crowd"}, Subscribers: principals(crowd...), MaxPerTurn: 50,
	})
	if n := s.Realm.SubscriberCount(made.ID); n != 0 || made.Job == 0 {
		t.Fatalf("the first turn subscribed %d users and started job %d", n, made.Job)
	}
	s.runDueTurns(3)
	if n := s.Realm.SubscriberCount(made.ID); n != len(crowd) {
		t.Errorf("%d of %d joined", n, len(crowd))
	}
	if m := realmtest.ListEventsOf[*MessageArrived](s.Scene, crowd[0]); len(m) != 1 ||
		!strings.Contains(m[0].Message.Body.Text, "channel created by @_**Ann|") {
		t.Errorf("first message of the channel: %+v", m)
	}
}

// runDueTurns runs the turns that are due, one after the other.
func (s *testScene) runDueTurns(times int) {
	for range times {
		if due := s.Realm.Due(s.Now); due != nil {
			realmtest.RunTurn(s.Scene, realmtest.System, due)
		}
	}
}

// TestDeleteTopicJob deletes a long topic, newest messages first. Messages moved away or sent in the meantime are kept.
func TestDeleteTopicJob(t *testing.T) {
	s := newTestScene(t)
	var ids []MessageID
	for range 250 {
		ids = append(ids, s.post(s.ann, s.public, "a", "hi"))
	}
	work := do(s, s.admin, DeleteTopic{s.public, "A"})
	there := func(id MessageID) bool { _, err := s.ViewAs(s.ann).ReadableMessage(id); return err == nil }
	if work == 0 || there(ids[150]) || !there(ids[149]) {
		t.Fatal("the first turn must delete exactly the newest hundred messages")
	}
	do(s, s.admin, EditMessage{Message: ids[3], Topic: ptr("b"), Mode: MoveOne})
	later := s.post(s.ann, s.public, "a", "meanwhile")
	s.runDueTurns(2)
	if s.Realm.JobRemains(work) {
		t.Error("deleting 250 messages takes more than three turns")
	}
	for i, id := range append(ids, later) {
		if there(id) != (i == 3 || id == later) {
			t.Errorf("message %d exists: %v", i, there(id))
		}
	}
}

// TestJobLimit checks that large requests are refused while too many jobs are waiting.
func TestJobLimit(t *testing.T) {
	s := newTestScene(t)
	s.Realm.SetLimits(Limits{ChannelsPerDay: 1000})
	var crowd []UserID
	for i := range 101 {
		crowd = append(crowd, s.Join("Member "+string(rune('A'+i/26))+string(rune('a'+i%26))))
	}
	join := func(i int) Subscribe {
		return Subscribe{
			Channels: channelsToJoin(fmt.Sprint("crowd ", i)), Principals: principals(crowd...), AllOrNothing: true,
			MaxPerTurn: 50,
		}
	}
	for i := range MaxJobs {
		do(s, s.ann, join(i))
	}
	const busy = "Too many large requests are being carried out; try again."
	refused(s, s.ann, join(MaxJobs), busy)
	refused(s, s.ann, Unsubscribe{Names: []string{"crowd 0"}, Principals: principals(crowd...), MaxPerTurn: 50}, busy)
	s.runDueTurns(3)
	do(s, s.ann, join(MaxJobs))
}

// TestSubscriptionLimit checks the limit of users times channels for one request.
func TestSubscriptionLimit(t *testing.T) {
	s := newTestScene(t)
	var names []string
	for i := range 1000 {
		names = append(names, "channel "+string(rune('a'+i)))
	}
	many := principals(slices.Repeat([]UserID{s.bo}, MaxSubscriptionsPerRequest/1000+1)...)
	refused(s, s.ann, Subscribe{
		Channels: channelsToJoin(names...), Principals: many,
	}, "Too many subscriptions in one request (limit: 200000)")
	refused(s, s.ann, Unsubscribe{
		Names: names, Principals: many,
	}, "Too many subscriptions in one request (limit: 200000)")
}

// TestJobsStopWithTheRightsOfTheirCaller withdraws in the middle of each kind of job one of the things that it needs:
// the API key of its request, the account, the organization, or the permission. Nothing more is done. A restart in
// between changes nothing.
func TestJobsStopWithTheRightsOfTheirCaller(t *testing.T) {
	hash := [32]byte{7}
	demote := func(s *testScene) {
		do(s, s.owner, EditUser{User: s.admin, Role: ptr(Member)})
	}
	// Each start begins a job of the administrator and returns a function that counts how much is left to do.
	type runner = func(func(*Turn) (int64, error)) int64
	jobs := map[string]func(s *testScene, crowd []UserID, run runner) (int64, func() int){
		"join": func(s *testScene, crowd []UserID, run func(func(*Turn) (int64, error)) int64) (int64, func() int) {
			do(s, s.owner, ChangeOrganization{Groups: []GroupChange{{Name: "can_add_subscribers_group",
				New: GroupValue{Group: s.Realm.SystemGroup("role:administrators")}}}})
			n := s.Realm.SubscriberCount(s.public)
			name := s.Realm.FindChannel(s.public).Name
			id := run(func(t *Turn) (int64, error) {
				a, err := Subscribe{
					Channels:     channelsToJoin(name),
					Principals:   principals(crowd...),
					AllOrNothing: true,
					MaxPerTurn:   50,
				}.Decide(
					t,
				)
				return a.Job, err
			})
			return id, func() int { return n + len(crowd) - s.Realm.SubscriberCount(s.public) }
		},
		"leave": func(s *testScene, crowd []UserID, run func(func(*Turn) (int64, error)) int64) (int64, func() int) {
			do(
				s,
				s.owner,
				Subscribe{Channels: channelsToJoin("crowd"), Principals: principals(crowd...), AllOrNothing: true},
			)
			id := run(func(t *Turn) (int64, error) {
				a, err := Unsubscribe{
					Names:      []string{"crowd"},
					Principals: principals(crowd...),
					MaxPerTurn: 50,
				}.Decide(
					t,
				)
				return a.Job, err
			})
			return id, func() int { return s.Realm.SubscriberCount(s.Realm.FindChannelByName("crowd").ID) }
		},
		"delete": func(s *testScene, crowd []UserID, run func(func(*Turn) (int64, error)) int64) (int64, func() int) {
			var list []MessageID
			for range 250 {
				list = append(list, s.post(s.ann, s.public, "a", "hi"))
			}
			id := run(DeleteTopic{s.public, "a"}.Decide)
			return id, func() (n int) {
				for _, ref := range s.Realm.BodyRefs(list) {
					if ref.Message != 0 {
						n++
					}
				}
				return n
			}
		},
	}
	withdrawals := map[string]func(s *testScene){
		"key":          func(s *testScene) { do(s, realmtest.System, IssueAPIKey{User: s.admin, Only: true}) },
		"account":      func(s *testScene) { do(s, s.owner, DeactivateUser{User: s.admin}) },
		"permission":   demote,
		"organization": func(s *testScene) { do(s, s.owner, CloseRealm{}) },
		"":             func(s *testScene) {},
	}
	for kind, start := range jobs {
		for what, withdraw := range withdrawals {
			s := newTestScene(t)
			var crowd []UserID
			for i := range 130 {
				crowd = append(crowd, s.Join("Member "+string(rune('A'+i/26))+string(rune('a'+i%26))))
			}
			realmtest.RunTurn(s.Scene, realmtest.System, asCommand(func(t *Turn) {
				t.Record(&KeyIssued{ID: s.admin, Hash: hash})
			}))
			id, left := start(s, crowd, func(decide func(*Turn) (int64, error)) int64 {
				job, err := realmtest.RunTurn(s.Scene, s.admin, func(t *Turn) (int64, error) {
					t.Key = hash
					return decide(t)
				})
				if err != nil || job == 0 {
					t.Fatalf("%s: job %d, %v", kind, job, err)
				}
				return job
			})
			s.runDueTurns(1)
			before := left()
			withdraw(s)
			s.Restart()
			s.runDueTurns(5)
			switch after := left(); {
			case what == "" && (after != 0 || s.Realm.JobStopped(id)):
				t.Errorf("%s: %d left although nothing was withdrawn", kind, after)
			case what != "" && (before == 0 || after != before || !s.Realm.JobStopped(id)):
				t.Errorf("%s without the %s: %d left before, %d after; stopped: %v", kind, what, before, after,
					s.Realm.JobStopped(id))
			}
			if s.Realm.JobRemains(id) {
				t.Errorf("%s without the %s: the job remains", kind, what)
			}
		}
	}
}
