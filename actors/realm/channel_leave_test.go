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

// crowdScene has many users in a channel with many messages. Each user has read other messages.
type crowdScene struct {
	*testScene
	random   *rand.Rand
	users    []UserID
	messages []MessageID // in all channels
	channel1 ChannelID   // channel of the users; some messages have been moved into it and others out of it
	channel2 ChannelID   // channel of half of the users
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
			do(s.testScene, s.ann, Subscribe{Channels: channelsToJoin("there"),
				Principals: principals(late...), AllOrNothing: true})
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
	for i := range 35 { // more channels than maxLeavingOrigins
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
			// A star gives a row of a message that the user never received.
			do(s.testScene, u, Flag{Messages: s.randomMessages(3), Op: "add", Flag: "starred"})
		}
	}
	do(s.testScene, s.users[0], ReadAll{})
	s.runLeavingJobs() // marks messages read that were moved to channels without the user
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

// unread returns the unread messages of each user by the flags of each message. The narrow is:unread must give the
// same.
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

// noteMarked adds the messages that events of the last turn mark read.
func (s *crowdScene) noteMarked(marked map[UserID][]MessageID) {
	for _, u := range s.users {
		for _, e := range realmtest.ListEventsOf[*MessagesReadAfterLeaving](s.Scene, u) {
			marked[u] = append(marked[u], ids.IDs[MessageID](e.Messages)...)
		}
	}
}

// runLeavingJobs runs the steps of leaving jobs that the turn of the command left, with a restart after each. It
// returns the messages that events of the command and of the steps mark read.
func (s *crowdScene) runLeavingJobs() (marked map[UserID][]MessageID, steps int) {
	marked = map[UserID][]MessageID{}
	s.noteMarked(marked)
	s.Restart()
	for due := s.Realm.Due(s.Now); due != nil; due = s.Realm.Due(s.Now) {
		if _, err := realmtest.RunTurn(s.Scene, realmtest.System, due); err != nil {
			s.T.Fatal(err)
		}
		s.noteMarked(marked)
		s.Restart()
		steps++
	}
	return marked, steps
}

// checkRead requires that for each user exactly those unread messages became read for which among returns true, and
// that events said so.
func (s *crowdScene) checkRead(
	before map[UserID][]MessageID, among func(u UserID, id MessageID) bool, marked map[UserID][]MessageID,
) {
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
		if !slices.Equal(marked[u], gone) {
			s.T.Errorf("events mark %d messages read for user %d, want %d", len(marked[u]), u, len(gone))
		}
	}
}

// Archiving a channel marks exactly its messages read for everyone. Later, users may mark single messages unread.
func TestArchiveMarksMessagesRead(t *testing.T) {
	s := newCrowdScene(t, 1)
	before := s.unread()
	do(s.testScene, s.owner, ArchiveChannel{s.channel1})
	marked, steps := s.runLeavingJobs()
	if steps < 1 {
		t.Errorf("%d steps: the test needs a restart between steps", steps)
	}
	here := func(_ UserID, id MessageID) bool { return s.info(id).Channel == s.channel1 }
	s.checkRead(before, here, marked)

	do(s.testScene, s.owner, EditChannel{Channel: s.channel1, Unarchive: true})
	before = s.unread()
	u, again := s.users[3], s.messages[600:610] // this user has read none of them
	a := do(s.testScene, u, Flag{Messages: again, Op: "remove", Flag: "read"})
	after := s.unread()
	if want := sortUniqueIDs(slices.Concat(before[u], again)); a.Changed == 0 || !slices.Equal(after[u], want) {
		t.Errorf("%d of 10 messages became unread; %d are unread, want %d", a.Changed, len(after[u]), len(want))
	}
	for _, other := range s.users {
		if other != u && !slices.Equal(after[other], before[other]) {
			t.Errorf("user %d marked messages unread; user %d has now %d unread instead of %d",
				u, other, len(after[other]), len(before[other]))
		}
	}
	for range 3 {
		s.messages = append(s.messages, s.post(s.ann, s.channel1, "topic 1", "news"))
	}
	before = s.unread()
	do(s.testScene, s.owner, ArchiveChannel{s.channel1})
	marked, _ = s.runLeavingJobs()
	s.checkRead(before, here, marked)
}

// Messages from before leaving are read at once for users that rejoin before the job ends. Messages that are moved
// meanwhile do not become unread for users that have read them.
func TestLeaveAndRejoinBeforeJobEnds(t *testing.T) {
	s := newCrowdScene(t, 2)
	gone, back := s.users[:100], s.users[80:90]
	before := s.unread()
	do(s.testScene, s.owner, Unsubscribe{Names: []string{"there"}, Principals: principals(gone...)})
	marked := map[UserID][]MessageID{}
	s.noteMarked(marked)
	if marked[gone[1]] == nil {
		t.Error("the turn of the command marked no message read")
	}
	if marked[back[1]] != nil || marked[back[2]] != nil {
		t.Fatal("the first step was enough: the test needs users that the job has not reached")
	}
	do(s.testScene, s.ann, Subscribe{Channels: channelsToJoin("there"),
		Principals: principals(back...), AllOrNothing: true})
	s.noteMarked(marked)
	now := s.unread()
	for _, u := range back {
		for _, id := range now[u] {
			if s.info(id).Channel == s.channel1 {
				t.Errorf("message %d is unread for user %d, who rejoined", id, u)
			}
		}
	}
	fresh := s.post(s.ann, s.channel1, "topic 1", "news")
	s.messages = append(s.messages, fresh)
	for _, u := range slices.Concat(back, s.users[100:]) {
		before[u] = append(before[u], fresh)
	}
	later, _ := s.runLeavingJobs()
	for u, list := range later {
		marked[u] = append(marked[u], list...)
	}
	s.checkRead(before, func(u UserID, id MessageID) bool {
		return id != fresh && slices.Contains(gone, u) && s.info(id).Channel == s.channel1
	}, marked)

	before = s.unread()
	id := s.messages[700]
	do(s.testScene, s.owner, moveToChannel(id, MoveOne, s.channel2))
	s.runLeavingJobs()
	for u, ids := range s.unread() {
		if slices.Contains(gone, u) && !slices.Equal(ids, before[u]) {
			t.Errorf("user %d has %d unread messages after one was moved, %d before", u, len(ids), len(before[u]))
		}
	}
}

// Messages that move are read at once for the subscribers of the old channel that are not subscribed to the new one.
// The event of the move says so too, even if a job has still to mark the messages.
func TestMoveMarksMessagesRead(t *testing.T) {
	s := newCrowdScene(t, 4)
	id := s.messages[400]
	for i := 400; s.info(id).Channel != s.channel1; i++ {
		id = s.messages[i+1]
	}
	before := s.unread()
	moving := ids.Set{}
	for _, other := range s.messages {
		if o := s.info(other); o.Channel == s.channel1 && o.Topic == s.info(id).Topic {
			moving.Add(int64(other))
		}
	}
	do(s.testScene, s.owner, moveToChannel(id, MoveAll, s.channel2))
	inTurn := 0
	for _, u := range s.users {
		_, subscribed := slices.BinarySearch(s.Realm.Subscribers(s.channel2), u)
		_, moved := slices.BinarySearch(s.Realm.Subscribers(s.channel1), u)
		if len(realmtest.ListEventsOf[*MessagesReadAfterLeaving](s.Scene, u)) > 0 {
			inTurn++
		}
		for _, e := range realmtest.ListEventsOf[*MessageUpdate](s.Scene, u) {
			if read := e.FlagsFor(u)&FlagRead != 0; moved && !subscribed && !read {
				t.Errorf("user %d gets the moved message as unread", u)
			}
		}
	}
	marked, steps := s.runLeavingJobs()
	if inTurn == 0 || steps == 0 {
		t.Errorf("%d users have the messages marked in the turn, %d steps: the test needs both", inTurn, steps)
	}
	s.checkRead(before, func(u UserID, id MessageID) bool {
		return moving.Has(int64(id)) && !slices.Contains(s.Realm.Subscribers(s.channel2), u)
	}, marked)
}

// Messages that many users left unread are stored once, and only as long as a user refers to them.
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
		t.Errorf("%d backlogs for all leaving users, want 1", n)
	}
	do(s.testScene, s.owner, EditChannel{Channel: s.channel1, Unarchive: true})
	s.post(s.ann, s.channel1, "topic 1", "news")
	for _, u := range append(s.users, s.ann) {
		do(s.testScene, u, ReadAll{})
	}
	if n := backlogs(); n != 0 {
		t.Errorf("%d backlogs after everyone has read everything", n)
	}
}

// The turn that lets a user leave marks the messages read: nothing waits for the clock.
func TestLeavingMarksMessagesReadAtOnce(t *testing.T) {
	s := newTestScene(t)
	first := s.post(s.ann, s.public, "t", "hi")
	for _, u := range []UserID{s.bo, s.guest, s.ann} {
		s.leave(u, s.public)
		e := realmtest.ListEventsOf[*MessagesReadAfterLeaving](s.Scene, u)
		if len(e) != 1 || !e[0].Messages.Has(int64(first)) {
			t.Fatalf("user %d got the events %v", u, s.ListEvents(u))
		}
		if s.Realm.HasJobs() {
			t.Error("a job is left")
		}
	}
}
