package realm_test

import (
	"slices"
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

const purgedKind = "messages and texts of edits, for good"

// erase runs an erasure to its end and returns it.
func (s *testScene) erase(u UserID) Erasure {
	s.T.Helper()
	do(s, realmtest.System, EraseUser{User: u})
	for range 10_000 {
		if e := do(s, realmtest.System, StepErasure{User: u}); e.Done != 0 {
			return e
		}
	}
	s.T.Fatal("the erasure does not end")
	return Erasure{}
}

// counted returns how many things of a kind an erasure removed.
func counted(e Erasure, kind string) int {
	for _, c := range e.Count {
		if c.Kind == kind {
			return c.N
		}
	}
	return 0
}

// An erasure removes everything of a person, tells other users about it, and leaves the data of others as it is.
func TestEraseUser(t *testing.T) {
	s := newTestScene(t)
	var gone []MessageID
	for range 150 {
		gone = append(gone, s.post(s.ann, s.public, "topic", "private thoughts"))
	}
	rich, file := s.richMessage(s.public, "plan")
	secret := s.post(s.ann, s.private, "topic", "edited")
	do(s, s.ann, s.editText(secret, "edited again"))
	do(s, s.ann, DeleteMessage{Message: gone[0]})
	gone = append(gone, rich, secret)
	others := s.post(s.bo, s.public, "topic", "of bo")
	do(s, s.ann, AddReaction{Message: others, Name: "zulip"})
	do(s, s.bo, AddReaction{Message: others, Name: "zulip"})
	do(s, s.ann, MuteUser{User: s.cy})
	do(s, s.ann, Flag{Messages: []MessageID{others}, Op: "add", Flag: "starred"})
	do(s, s.ann, ChangeSettings{Values: []SettingValue{{Name: "color_scheme", Value: int64(2)}}})
	do(s, s.ann, SaveUpload{Name: "alone.txt", Hash: "cd34", Size: 10})
	for _, u := range []UserID{s.ann, s.owner, s.admin} {
		realmtest.ExpectRefusal(s.Scene, u, EraseUser{User: s.ann}, "Insufficient permission")
		realmtest.ExpectRefusal(s.Scene, u, StepErasure{User: s.ann}, "Insufficient permission")
	}
	for _, u := range []UserID{NotificationBot, 999} {
		realmtest.ExpectRefusal(s.Scene, realmtest.System, EraseUser{User: u}, "No such user")
		realmtest.ExpectRefusal(s.Scene, realmtest.System, StepErasure{User: u}, "No such user")
	}
	realmtest.ExpectRefusal(s.Scene, realmtest.System, EraseUser{User: s.owner},
		"Cannot deactivate the only organization owner")
	realmtest.ExpectRefusal(s.Scene, realmtest.System, EraseUser{User: s.bot},
		"a bot has no data of its own: deactivate it")

	e := s.erase(s.ann)
	want := map[string]int{"accounts": 1, "messages": 151, purgedKind: 152, "reactions": 1, "muted users": 1,
		"settings": 4, "stars": 1, "files": 1}
	for kind, n := range want {
		if got := counted(e, kind); got != n {
			t.Errorf("removed %d %s, want %d", got, kind, n)
		}
	}
	u := s.Realm.Find(s.ann)
	if u.Name != DeletedName || u.Active || !u.Deleted || strings.Contains(u.Email, "ann") ||
		len(u.Settings)+len(u.Keys) > 0 || u.Password != "" || s.Realm.Find(s.bot).Active {
		t.Errorf("the account is %+v", u)
	}
	v := s.ViewAs(s.bo)
	for _, id := range gone {
		if _, err := v.ReadableMessage(id); err == nil {
			t.Fatalf("message %d is still there", id)
		}
	}
	if m, err := v.ReadableMessage(others); err != nil || len(m.Reactions) != 1 || m.Reactions[0].User != s.bo {
		t.Errorf("the other user's message: %+v, %v", m, err)
	}
	s.Realm.EachRow(func(_ uint16, _, row any) {
		if x, ok := row.(*Upload); ok && (x.Owner == s.ann || x.ID == file.ID) {
			t.Errorf("a file is still there: %+v", x)
		}
	})
	left := s.ViewAs(realmtest.System).RemainingDataOf(s.ann)
	if left != (RemainingData{}) || s.Realm.ArchivedCount() != 0 {
		t.Errorf("left %+v, %d messages in the archive", left, s.Realm.ArchivedCount())
	}
	do(s, realmtest.System, EraseUser{User: s.ann}) // again: nothing happens
	if again := s.Realm.ErasureOf(s.ann); !slices.Equal(again.Count, e.Count) || again.Done != e.Done {
		t.Errorf("after a second command: %+v", again)
	}
	realmtest.ExpectRefusal(s.Scene, s.owner, ReactivateUser{User: s.ann}, "No such user")
}

// The clock continues an erasure that was interrupted, also after a restart. Other users see each step.
func TestErasureContinues(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "topic", "text")
	do(s, realmtest.System, EraseUser{User: s.ann})
	s.Restart()
	s.OpenQueue(s.bo)
	var types []string
	for s.Realm.ErasureOf(s.ann).Done == 0 {
		s.Advance(1)
		due := s.Realm.Due(s.Now)
		if due == nil {
			t.Fatal("nothing is due, and the erasure has not ended")
		}
		if _, err := realmtest.RunTurn(s.Scene, realmtest.System, due); err != nil {
			t.Fatal(err)
		}
		for _, e := range s.ListEvents(s.bo) {
			types = append(types, e.EventType())
		}
	}
	if s.exists(id)[0] || !slices.Contains(types, "delete_message") {
		t.Errorf("the message exists: %v, events of another user: %v", s.exists(id), types)
	}
}

// A legal hold on the person refuses an erasure. Messages under a hold of a channel are kept and counted.
func TestEraseUserUnderHold(t *testing.T) {
	s := newTestScene(t)
	s.post(s.ann, s.private, "topic", "evidence")
	s.post(s.ann, s.public, "topic", "smalltalk")
	hold := do(s, realmtest.System, AddHold{User: s.ann, Reason: "case 1"})
	realmtest.ExpectRefusal(s.Scene, realmtest.System, EraseUser{User: s.ann},
		"the user is under a legal hold; parley retention hold list shows it")
	if !s.Realm.Find(s.ann).Active {
		t.Error("a refused erasure deactivated the account")
	}
	do(s, realmtest.System, RemoveHold{ID: hold})
	do(s, realmtest.System, AddHold{Channel: s.private, Reason: "case 2"})
	e := s.erase(s.ann)
	left := s.ViewAs(realmtest.System).RemainingDataOf(s.ann)
	if left.HeldMessages != 1 || counted(e, "messages") != 2 ||
		counted(e, purgedKind) != 1 {
		t.Errorf("left %+v, removed %v", left, e.Count)
	}
}
