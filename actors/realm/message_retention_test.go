package realm_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// keepDays sets how long the organization keeps messages; -1 is for ever.
func (s *testScene) keepDays(days int64) {
	s.T.Helper()
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "message_retention_days", Value: days}}})
}

// keepDaysIn sets how long a channel keeps messages; nil is as the organization.
func (s *testScene) keepDaysIn(c ChannelID, days *int64) {
	s.T.Helper()
	do(s, s.owner, EditChannel{Channel: c, SetRetention: true, Retention: days})
}

// exists reports which of the messages exist.
func (s *testScene) exists(messages ...MessageID) (out []bool) {
	for _, id := range messages {
		out = append(out, s.info(id).ID == id)
	}
	return out
}

// expectExisting checks which of the messages exist.
func (s *testScene) expectExisting(messages []MessageID, want ...bool) {
	s.T.Helper()
	if got := s.exists(messages...); !slices.Equal(got, want) {
		s.T.Errorf("of the messages %v exist %v, want %v", messages, got, want)
	}
}

// TestRetentionPolicies checks the organization's policy, the channels' own ones, direct messages, and changes of the
// policies, over restarts.
func TestRetentionPolicies(t *testing.T) {
	s := newTestScene(t)
	public := s.post(s.ann, s.public, "a", "public")
	private := s.post(s.ann, s.private, "a", "private")
	protected := s.post(s.ann, s.protected, "a", "protected")
	direct := do(s, s.ann, directMessage("direct", s.bo)).ID
	all := []MessageID{public, private, protected, direct}
	s.Advance(400 * day)
	s.tick()
	s.expectExisting(all, true, true, true, true) // the default is for ever
	s.keepDaysIn(s.private, ptr(int64(-1)))
	s.keepDaysIn(s.public, ptr(int64(500)))
	s.keepDays(399)
	s.Restart()
	s.tick()
	s.expectExisting(all, true, true, false, false)
	s.keepDays(-1)
	s.keepDaysIn(s.public, ptr(int64(402)))
	s.Advance(2*day - 10)
	s.tick()
	s.expectExisting(all, true, true, false, false)
	s.Restart()
	s.Advance(10)
	s.tick()
	s.expectExisting(all, false, true, false, false)
	s.keepDaysIn(s.private, nil)
	s.tick()
	s.expectExisting(all, false, true, false, false)
	s.keepDays(1)
	s.tick()
	s.expectExisting(all, false, false, false, false)
	refused(s, realmtest.System, RestoreArchive{Message: private}, "the retention policy would delete these messages "+
		"again: set message_retention_days of the organization to more than 402 days or to unlimited first")
	s.keepDays(-1)
	do(s, realmtest.System, RestoreArchive{Message: private})
	s.expectExisting(all, false, true, false, false)
}

// TestRetentionEvents checks that every user that could see a message that is due gets its deletion, by conversation,
// and other users get nothing.
func TestRetentionEvents(t *testing.T) {
	s := newTestScene(t)
	old := []MessageID{s.post(s.ann, s.public, "a", "1"), s.post(s.ann, s.public, "a", "2"),
		s.post(s.ann, s.public, "b", "3"), s.post(s.ann, s.public, "a", "4")}
	s.Advance(day)
	kept := s.post(s.ann, s.public, "a", "5")
	s.keepDays(1)
	s.Realm.SetClock(s.Now)
	s.runDue()
	for _, u := range []UserID{s.ann, s.bo, s.guest} {
		s.ExpectEvents(u, "delete_message", "stream")
	}
	e := realmtest.ListEventsOf[*MessagesVanished](s.Scene, s.bo)[0]
	if want := []MessageID{old[0], old[1], old[3]}; !slices.Equal(e.IDs, want) || e.Topic != "a" ||
		e.Channel != s.public {
		t.Errorf("the event is %+v", e)
	}
	s.runDue()
	if e := realmtest.ListEventsOf[*MessagesVanished](s.Scene, s.bo)[0]; !slices.Equal(e.IDs, old[2:3]) ||
		e.Topic != "b" {
		t.Errorf("the second event is %+v", e)
	}
	if first := s.ViewAs(s.bo).ChannelInfo(s.Realm.FindChannel(s.public)).FirstMessage; first != kept {
		t.Errorf("the first message is %d, want %d", first, kept)
	}
	hidden := s.post(s.ann, s.protected, "a", "before cy")
	s.join(s.cy, s.protected)
	seen := s.post(s.ann, s.protected, "a", "after")
	s.Advance(day)
	s.keepDays(1)
	s.keepDaysIn(s.public, ptr(int64(-1)))
	s.Realm.SetClock(s.Now)
	s.runDue()
	if e := realmtest.ListEventsOf[*MessagesVanished](s.Scene, s.cy); len(e) != 1 ||
		!slices.Equal(e[0].IDs, []MessageID{seen}) {
		t.Errorf("a user got the deletion of messages that they could not see: %+v", e)
	}
	if e := realmtest.ListEventsOf[*MessagesVanished](s.Scene, s.bo); len(e) != 2 || e[1].IDs[0] != hidden {
		t.Errorf("the deletions are %+v", e)
	}
}

// TestRetentionPace checks that many due messages are deleted in small steps, a limited number in each tick, none
// twice.
func TestRetentionPace(t *testing.T) {
	s := newTestScene(t)
	for i := range 450 {
		s.post(s.ann, s.public, fmt.Sprint("topic ", i), "x")
	}
	for _, u := range []UserID{s.bo, s.cy, s.guest, s.mod, s.admin} {
		do(s, s.ann, directMessage("x", u))
	}
	s.Advance(day)
	s.keepDays(1)
	var left []int
	for range 4 {
		s.tick()
		left = append(left, 455-s.Realm.ArchivedCount())
		s.Restart()
	}
	if want := []int{255, 55, 0, 0}; !slices.Equal(left, want) {
		t.Errorf("%v messages are left after each tick, want %v", left, want)
	}
	if lag := s.Realm.RetentionLag(); lag != 0 {
		t.Errorf("the lag is %d s when nothing is due", lag)
	}
}

// TestRetentionOfLastConversation checks that a guest stops seeing a user when their last direct message is due, and
// sees them again after a restore.
func TestRetentionOfLastConversation(t *testing.T) {
	s := newTestScene(t)
	do(s, s.owner, ChangeOrganization{Groups: []GroupChange{
		{Name: "can_access_all_users_group", New: s.group("role:members")}}})
	direct := do(s, s.mod, directMessage("hi", s.guest)).ID
	s.Advance(day)
	s.keepDays(1)
	s.tick()
	if s.ViewAs(s.guest).MaySeeUser(s.Realm.Find(s.mod)) {
		t.Error("the guest still sees the user")
	}
	s.keepDays(-1)
	do(s, realmtest.System, RestoreArchive{Message: direct})
	if !s.ViewAs(s.guest).MaySeeUser(s.Realm.Find(s.mod)) {
		t.Error("the guest does not see the user after the restore")
	}
}

// TestLegalHold checks that a hold on a user keeps their messages and direct messages to them, and a hold on a channel
// its messages, whether the policy or a user deleted them, until the hold ends.
func TestLegalHold(t *testing.T) {
	s := newTestScene(t)
	for _, u := range []UserID{s.owner, s.admin, s.ann} {
		refused(s, u, AddHold{User: s.bo}, "Insufficient permission")
		refused(s, u, RemoveHold{1}, "Insufficient permission")
	}
	refused(s, realmtest.System, AddHold{}, "a legal hold is on a user or on a channel")
	refused(s, realmtest.System, AddHold{User: s.bo, Channel: s.public}, "a legal hold is on a user or on a channel")
	refused(s, realmtest.System, AddHold{User: 9999}, "no user 9999")
	refused(s, realmtest.System, AddHold{Channel: 9999}, "no channel 9999")
	onBo := do(s, realmtest.System, AddHold{User: s.bo, Reason: "case 7"})
	onPrivate := do(s, realmtest.System, AddHold{Channel: s.private})
	free := s.post(s.ann, s.public, "a", "free")
	wrote := s.post(s.bo, s.public, "a", "written by bo")
	toBo := do(s, s.ann, directMessage("to bo", s.bo)).ID
	other := do(s, s.ann, directMessage("to cy", s.cy)).ID
	inPrivate := s.post(s.ann, s.private, "a", "in the channel")
	moved := s.post(s.ann, s.private, "b", "moved away")
	do(s, s.ann, moveToChannel(moved, MoveAll, s.public))
	do(s, s.ann, DeleteMessage{inPrivate})
	s.Advance(day)
	s.keepDays(1)
	s.tick()
	all := []MessageID{free, wrote, toBo, other, inPrivate, moved}
	s.expectExisting(all, false, false, false, false, false, false)
	s.Advance(31 * day)
	s.tick()
	s.keepDays(-1)
	if n := s.Realm.ArchivedCount(); n != 4 {
		t.Errorf("%d messages are in the archive, want the 4 held ones", n)
	}
	refused(s, realmtest.System, RestoreArchive{Message: free},
		"no message "+free.String()+" is in the archive; parley retention list shows the archives")
	do(s, realmtest.System, RestoreArchive{Message: wrote})
	s.Restart()
	if h := s.ViewAs(realmtest.System).Holds(); len(h) != 2 || h[0].ID != onBo || h[0].Reason != "case 7" ||
		h[1].Channel != s.private {
		t.Errorf("the holds are %+v", h)
	}
	do(s, realmtest.System, RemoveHold{onPrivate})
	refused(s, realmtest.System, RemoveHold{onPrivate}, "no legal hold 2; parley retention hold list shows them")
	s.tick()
	if n := s.Realm.ArchivedCount(); n != 1 {
		t.Errorf("%d messages are in the archive after a hold ended, want 1", n)
	}
	do(s, realmtest.System, RestoreArchive{Message: toBo})
}

// TestRetentionOverRestarts restarts the server after every single step of deleting, restoring and purging. No message
// is forgotten, and none is deleted twice.
func TestRetentionOverRestarts(t *testing.T) {
	s := newTestScene(t)
	const messages = 250
	for i := range messages {
		s.post(s.ann, s.public, fmt.Sprint("topic ", i%3), "x")
	}
	s.Advance(day)
	s.keepDays(1)
	seen := map[MessageID]bool{}
	steps := func(until int) {
		t.Helper()
		for n := 0; s.Realm.ArchivedCount() != until; n++ {
			s.Restart()
			s.Advance(1)
			s.Realm.SetClock(s.Now)
			if n == 100 {
				t.Fatalf("%d messages are in the archive, want %d", s.Realm.ArchivedCount(), until)
			}
			if due := s.Realm.Due(s.Now); due != nil {
				if _, err := realmtest.RunTurn(s.Scene, realmtest.System, due); err != nil {
					t.Fatal(err)
				}
			}
			for _, e := range realmtest.ListEventsOf[*MessagesVanished](s.Scene, s.bo) {
				for _, id := range e.IDs {
					if seen[id] {
						t.Errorf("message %d was deleted twice", id)
					}
					seen[id] = true
				}
			}
		}
	}
	steps(messages)
	if len(seen) != messages {
		t.Errorf("clients got the deletion of %d messages, want %d", len(seen), messages)
	}
	s.keepDays(-1)
	name := s.ViewAs(realmtest.System).Archives()[0].Name
	do(s, realmtest.System, RestoreArchive{Archive: name})
	steps(0)
	clear(seen)
	s.keepDays(1)
	steps(messages)
	s.keepDays(-1)
	s.Advance(31 * day)
	steps(0)
	if p := s.ViewAs(realmtest.System).ErasedTexts(); len(p) != 1 || p[0].Messages != messages {
		t.Errorf("the messages %+v were purged, want %d", p, messages)
	}
}

// TestRetentionOfAbsurdLength stores periods whose seconds have no number, which earlier builds accepted: no message is
// due. New ones are refused, as all periods above the largest.
func TestRetentionOfAbsurdLength(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "public")
	for _, days := range []int64{MaxPeriod, MaxPeriod + 1, 106_751_991_167_301, math.MaxInt64} {
		s.keepDaysIn(s.public, &days)
		s.Advance(400 * day)
		s.tick()
		s.expectExisting([]MessageID{id}, true)
	}
	for _, name := range []string{"message_retention_days", "message_content_edit_limit_seconds",
		"message_content_delete_limit_seconds", "move_messages_within_stream_limit_seconds",
		"move_messages_between_streams_limit_seconds"} {
		for _, n := range []int64{MaxPeriod + 1, math.MaxInt64} {
			refused(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: name, Value: n}}},
				fmt.Sprintf("Bad value for '%s': %d", name, n))
		}
		do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: name, Value: int64(MaxPeriod)}}})
	}
	refused(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "waiting_period_threshold",
		Value: int64(MaxPeriod + 1)}}}, "waiting_period_threshold is too large")
}
