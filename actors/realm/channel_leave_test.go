package realm_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/actors/realm/realmtest"
)

// crowdScene is many people in a channel with many messages, of which each has read something else.
type crowdScene struct {
	*testScene
	random   *rand.Rand
	users    []UserID
	messages []MessageID // everywhere
	channel1 ChannelID   // where they are, some messages have been moved to and others away from
	channel2 ChannelID   // where half of them are
}

func newCrowdScene(t *testing.T, seed int64) *crowdScene {
	s := &crowdScene{testScene: newTestScene(t), random: rand.New(rand.NewSource(seed))}
	s.channel1, s.channel2 = s.channel("there", NewChannel{}, s.ann), s.channel("other", NewChannel{}, s.ann)
	late := []UserID{}
	for i := range 110 {
		u := s.Join(fmt.Sprint("User ", i))
		s.users = append(s.users, u)
		if i%2 == 0 {
			s.join(u, s.channel2)
		}
		if i%10 == 7 {
			late = append(late, u)
		} else {
			s.join(u, s.channel1)
		}
	}
	in := map[ChannelID][]MessageID{}
	for i := range 1100 {
		if i == 50 {
			do(s.testScene, s.ann, Subscribe{Channels: channelsToJoin("there"), Principals: principals(late...), AllOrNothing: true})
		}
		c := s.channel1
		if s.random.Intn(10) == 0 {
			c = s.channel2
		}
		id := s.post(s.ann, c, fmt.Sprint("topic ", s.random.Intn(5)), "hi")
		s.messages, in[c] = append(s.messages, id), append(in[c], id)
	}
	move := func(from, to ChannelID) {
		for range 5 {
			id := in[from][s.random.Intn(len(in[from]))]
			if s.info(id).Channel == from {
				do(s.testScene, s.owner, moveToChannel(id, MoveOne, to))
			}
		}
	}
	move(s.channel1, s.channel2)
	move(s.channel2, s.channel1)
	for i := range 35 { // more channels than are told apart
		c := s.channel(fmt.Sprint("side ", i), NewChannel{}, s.ann)
		for range 10 {
			if u := s.users[s.random.Intn(len(s.users))]; s.Realm.SubscriptionOf(u, c) == nil {
				s.join(u, c)
			}
		}
		s.messages = append(s.messages, s.post(s.ann, c, "aside", "hi"), s.post(s.ann, c, "aside", "hi"))
		do(s.testScene, s.owner, moveToChannel(s.messages[len(s.messages)-1], MoveOne, s.channel1))
	}
	for i, u := range s.users {
		switch i % 4 {
		case 0:
			do(s.testScene, u, Flag{Messages: s.messages[:s.random.Intn(len(s.messages))], Op: "add", Flag: "read"})
		case 1:
			do(s.testScene, u, Flag{Messages: s.randomMessages(20), Op: "add", Flag: "read"})
		case 2:
			do(s.testScene, u, Flag{Messages: s.randomMessages(3), Op: "add", Flag: "starred"}) // it gives him rows of what he never received
		}
	}
	do(s.testScene, s.users[0], ReadAll{})
	s.runLeavingJobs() // what was moved to where they are not is read
	return s
}

func (s *crowdScene) randomMessages(n int) (ids []MessageID) {
	for range n {
		ids = append(ids, s.messages[s.random.Intn(len(s.messages))])
	}
	return sortUniqueIDs(ids)
}

func sortUniqueIDs(ids []MessageID) []MessageID {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// unread is what each of them has not read, by the flags of each message; is:unread must find the same of those.
func (s *crowdScene) unread() map[UserID][]MessageID {
	s.T.Helper()
	out := map[UserID][]MessageID{}
	for _, u := range s.users {
		v := s.ViewAs(u)
		var ids []MessageID
		for _, id := range s.messages {
			if v.FlagsOf(id)&FlagRead == 0 {
				ids = append(ids, id)
			}
		}
		n, err := v.Narrow([]Term{{Operator: "is", SentOperator: "is", Operand: Operand{Text: "unread"}}}, nil)
		if err != nil {
			s.T.Fatal(err)
		}
		if got := n.AllIDs(nil); !slices.Equal(got, ids) {
			s.T.Fatalf("user %d: is:unread finds %d messages, flags say %d", u, len(got), len(ids))
		}
		out[u] = ids
	}
	return out
}

// runLeavingJobs has the server read what was left, ended and begun again after each step, and returns what everybody is told.
func (s *crowdScene) runLeavingJobs() (told map[UserID][]MessageID, steps int) {
	told = map[UserID][]MessageID{}
	for due := s.Realm.Due(s.Now); due != nil; due = s.Realm.Due(s.Now) {
		if _, err := realmtest.RunTurn(s.Scene, realmtest.System, due); err != nil {
			s.T.Fatal(err)
		}
		for _, u := range s.users {
			for _, e := range realmtest.ListEventsOf[*MessagesReadAfterLeaving](s.Scene, u) {
				told[u] = append(told[u], ids.IDs[MessageID](e.Messages)...)
			}
		}
		s.Restart()
		steps++
	}
	return told, steps
}

// checkRead requires that everybody has read, and was told so, what he had not read of some messages, and nothing else.
func (s *crowdScene) checkRead(before map[UserID][]MessageID, among func(u UserID, id MessageID) bool, told map[UserID][]MessageID) {
	s.T.Helper()
	after := s.unread()
	for _, u := range s.users {
		var gone, rest []MessageID
		for _, id := range before[u] {
			if among(u, id) {
				gone = append(gone, id)
			} else {
				rest = append(rest, id)
			}
		}
		if !slices.Equal(after[u], rest) {
			s.T.Errorf("user %d has %d unread, want %d", u, len(after[u]), len(rest))
		}
		if !slices.Equal(told[u], gone) {
			s.T.Errorf("user %d is told that %d are read, want %d", u, len(told[u]), len(gone))
		}
	}
}

// What everybody had not read of an archived channel is read, however they came by it, and nothing else is; later they may
// mark it unread again, message by message.
func TestArchiveMarksMessagesRead(t *testing.T) {
	s := newCrowdScene(t, 1)
	before := s.unread()
	do(s.testScene, s.owner, ArchiveChannel{s.channel1})
	told, steps := s.runLeavingJobs()
	if steps < 2 {
		t.Errorf("it took %d steps: nothing was ended in between", steps)
	}
	here := func(_ UserID, id MessageID) bool { return s.info(id).Channel == s.channel1 }
	s.checkRead(before, here, told)

	do(s.testScene, s.owner, EditChannel{Channel: s.channel1, Unarchive: true})
	before = s.unread()
	u, again := s.users[3], s.messages[600:610] // he had read nothing of it
	a := do(s.testScene, u, Flag{Messages: again, Op: "remove", Flag: "read"})
	after := s.unread()
	if want := sortUniqueIDs(slices.Concat(before[u], again)); a.Changed == 0 || !slices.Equal(after[u], want) {
		t.Errorf("%d of 10 are marked unread again; %d are unread, want %d", a.Changed, len(after[u]), len(want))
	}
	for _, other := range s.users {
		if other != u && !slices.Equal(after[other], before[other]) {
			t.Errorf("user %d marks messages unread, user %d has %d unread instead of %d", u, other, len(after[other]), len(before[other]))
		}
	}
	for range 3 {
		s.messages = append(s.messages, s.post(s.ann, s.channel1, "topic 1", "news"))
	}
	before = s.unread()
	do(s.testScene, s.owner, ArchiveChannel{s.channel1})
	told, _ = s.runLeavingJobs()
	s.checkRead(before, here, told)
}

// Who leaves a channel together with many has read what was there then, also if he comes back before the server is done;
// where it is moved to meanwhile does not matter for who has it read already.
func TestLeaveAndRejoinBeforeJobEnds(t *testing.T) {
	s := newCrowdScene(t, 2)
	gone, back := s.users[:100], s.users[10:20]
	before := s.unread()
	do(s.testScene, s.owner, Unsubscribe{Names: []string{"there"}, Principals: principals(gone...)})
	do(s.testScene, s.ann, Subscribe{Channels: channelsToJoin("there"), Principals: principals(back...), AllOrNothing: true})
	fresh := s.post(s.ann, s.channel1, "topic 1", "news")
	s.messages = append(s.messages, fresh)
	for _, u := range slices.Concat(back, s.users[100:]) {
		before[u] = append(before[u], fresh)
	}
	told, _ := s.runLeavingJobs()
	s.checkRead(before, func(u UserID, id MessageID) bool {
		return id != fresh && slices.Contains(gone, u) && s.info(id).Channel == s.channel1
	}, told)

	before = s.unread()
	id := s.messages[700]
	do(s.testScene, s.owner, moveToChannel(id, MoveOne, s.channel2))
	s.runLeavingJobs()
	for u, ids := range s.unread() {
		if slices.Contains(gone, u) && !slices.Equal(ids, before[u]) {
			t.Errorf("user %d has %d unread after a message was moved, %d before", u, len(ids), len(before[u]))
		}
	}
}

// What many have not read of a channel is kept once, and no longer than somebody needs it.
func TestBacklogStoredOnce(t *testing.T) {
	s := newCrowdScene(t, 3)
	backlogs := func() (n int) {
		s.Realm.EachRow(func(_ uint16, _, row any) {
			if _, is := row.(*Backlog); is {
				n++
			}
		})
		return n
	}
	do(s.testScene, s.owner, ArchiveChannel{s.channel1})
	s.runLeavingJobs()
	if n := backlogs(); n != 1 {
		t.Errorf("%d sets of messages are kept for all who left them behind", n)
	}
	do(s.testScene, s.owner, EditChannel{Channel: s.channel1, Unarchive: true})
	s.post(s.ann, s.channel1, "topic 1", "news")
	for _, u := range append(s.users, s.ann) {
		do(s.testScene, u, ReadAll{})
	}
	if n := backlogs(); n != 0 {
		t.Errorf("everybody has read everything, %d sets are kept", n)
	}
}

// Who leaves first is done with first, however many leave and in whatever order the jobs come back from the disk.
func TestLeavingJobsRunInOrder(t *testing.T) {
	s := newTestScene(t)
	first := s.post(s.ann, s.public, "t", "hi")
	s.leave(s.bo, s.public)
	s.leave(s.guest, s.public)
	s.leave(s.ann, s.public)
	for _, u := range []UserID{s.bo, s.guest, s.ann} {
		s.Restart()
		s.runDue()
		if e := realmtest.ListEventsOf[*MessagesReadAfterLeaving](s.Scene, u); len(e) != 1 || !e[0].Messages.Has(int64(first)) {
			t.Fatalf("user %d heard %v", u, s.ListEvents(u))
		}
	}
	if s.Realm.Due(s.Now) != nil {
		t.Error("something is left to do")
	}
}
