package realm_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/actors/realm/realmtest"
	"parley/snapshot/codec"
)

const day = 24 * 3600

// rowsOfUsers returns the encoded rows that users see something of: all but the archive, and the counters of ids.
func (s *testScene) rowsOfUsers() map[string]string {
	out := map[string]string{}
	s.Realm.EachRow(func(table uint16, key, row any) {
		if _, isAudit := row.(*AuditEntry); isAudit {
			return // the audit log also records deletions and restorations
		}
		if table != 1 && (table < 100 || table > 109) {
			out[strings.Join([]string{reflect.TypeOf(row).String(), string(codec.EncodeKey(key))}, " ")] =
				string(codec.EncodeRow(row))
		}
	})
	return out
}

// expectRows checks that rows are as they were before.
func (s *testScene) expectRows(want map[string]string) {
	s.T.Helper()
	got := s.rowsOfUsers()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			s.T.Errorf("row %q changed: %q instead of %q", key, got[key], want[key])
		}
		delete(got, key)
	}
	for key := range got {
		s.T.Errorf("there is a new row %q", key)
	}
}

// tick moves the clock by a second and runs the turns that are due then. It returns how many there were.
func (s *testScene) tick() (turns int) {
	s.T.Helper()
	s.Advance(1)
	s.Realm.SetClock(s.Now)
	for due := s.Realm.Due(s.Now); due != nil; due = s.Realm.Due(s.Now) {
		if _, err := realmtest.RunTurn(s.Scene, realmtest.System, due); err != nil {
			s.T.Fatal(err)
		}
		if turns++; turns > 1000 {
			s.T.Fatal("the turns that are due do not end")
		}
	}
	return turns
}

// richMessage posts a message with everything that belongs to a message, and returns it with its file.
func (s *testScene) richMessage(c ChannelID, topic string) (MessageID, Upload) {
	s.T.Helper()
	u := do(s, s.ann, SaveUpload{Name: "plan.txt", Hash: "ab12", Size: 10})
	id := do(s, s.ann, SendMessage{
		ToChannel: true, Channel: c, Topic: topic, Body: Body{Text: "look"}, ReadBySender: true,
		Content: ContentInfo{Users: []UserID{s.bo}, Attachments: []string{u.Path}, Attachment: true, Link: true},
	}).ID
	do(s, s.bo, AddReaction{Message: id, Name: "zulip"})
	do(s, s.bo, Flag{Messages: []MessageID{id}, Op: "add", Flag: "starred"})
	do(
		s,
		s.cy,
		Flag{Messages: []MessageID{id}, Op: "add", Flag: "starred"},
	) // of a row of its own: cy is not subscribed
	do(s, s.bo, Flag{Messages: []MessageID{id}, Op: "add", Flag: "collapsed"})
	edit := s.editText(id, "look there")
	edit.Content.Content = ContentInfo{Users: []UserID{s.bo}, Attachments: []string{u.Path}, Attachment: true}
	do(s, s.ann, edit)
	return id, u
}

// TestRestoreAsItWas checks that a deleted message comes back with its reactions, flags, edit history and file, and
// that clients count it again.
func TestRestoreAsItWas(t *testing.T) {
	s := newTestScene(t)
	first := s.post(s.bo, s.public, "a", "first")
	id, file := s.richMessage(s.public, "a")
	before := s.rowsOfUsers()
	unread := s.ViewAs(s.guest).Unread().Sorted().Count
	do(s, s.admin, DeleteMessage{id})
	s.expectReaders(id)
	s.expectNarrow(s.bo, oneTerm("is", "starred"))
	s.expectNarrow(s.bo, oneTerm("channel", "public"), first)
	if n := s.ViewAs(s.guest).Unread().Sorted().Count; n != unread-1 {
		t.Errorf("%d unread messages after the deletion of one of %d", n, unread)
	}
	if _, visible := s.ViewAs(s.ann).VisibleUpload(file.Path); visible {
		t.Error("the file of a deleted message is visible")
	}
	if refs := refsOf(s, "ab12"); !refs {
		t.Error("the sweep would remove the content of a file in the archive")
	}
	s.Restart()
	archives := s.ViewAs(realmtest.System).Archives()
	if len(archives) != 1 || archives[0].Messages != 1 || archives[0].By != s.admin ||
		archives[0].Until != s.Now+30*day {
		t.Fatalf("archives %+v", archives)
	}
	for _, u := range []UserID{s.owner, s.admin, s.ann} {
		refused(s, u, RestoreArchive{Archive: archives[0].Name}, "Insufficient permission")
	}
	if n := do(s, realmtest.System, RestoreArchive{Archive: archives[0].Name}); n != 1 {
		t.Errorf("%d messages are to be restored", n)
	}
	s.Restart()
	s.runClock()
	s.ExpectEvents(s.guest, "update_message_flags")
	s.ExpectEvents(s.cy, "update_message_flags")
	if e := realmtest.ListEventsOf[*FlagsEvent](s.Scene, s.bo); len(e) != 2 || e[0].Flag != FlagRead || e[0].Add ||
		len(e[0].Details()) != 1 || !e[0].Details()[0].Mentioned || e[1].Flag != FlagStarred || !e[1].Add {
		t.Errorf("the events are %+v", e)
	}
	s.ExpectEvents(s.ann, "attachment")
	s.expectRows(before)
	if s.tick() != 0 || len(s.ViewAs(realmtest.System).Archives()) != 0 {
		t.Error("the archive is not empty after the restore")
	}
	refused(s, realmtest.System, RestoreArchive{Message: id}, "no message "+id.String()+
		" is in the archive; parley retention list shows the archives")
}

// refsOf reports whether the sweep of files keeps the content with a hash.
func refsOf(s *testScene, hash string) bool {
	named, _ := s.ViewAs(realmtest.System).ReferencedFiles(ContentFile, map[string]bool{hash: true}, 1)
	return len(named) > 0
}

// TestRestoreOneMessage restores single messages of an archive, also direct ones, and checks the first message of the
// channel.
func TestRestoreOneMessage(t *testing.T) {
	s := newTestScene(t)
	first := s.post(s.ann, s.public, "a", "1")
	second := s.post(s.ann, s.public, "a", "2")
	direct := do(s, s.ann, directMessage("3", s.bo)).ID
	before := s.rowsOfUsers()
	do(s, s.admin, DeleteTopic{s.public, "a"})
	do(s, s.ann, DeleteMessage{direct})
	do(s, realmtest.System, RestoreArchive{Message: first})
	if e := realmtest.ListEventsOf[*ChannelActivityChanged](s.Scene, s.bo); len(e) != 1 || e[0].First != first {
		t.Errorf("the event of the first message is %+v", e)
	}
	s.expectReaders(second)
	do(s, realmtest.System, RestoreArchive{Message: second})
	do(s, realmtest.System, RestoreArchive{Message: direct})
	s.expectReaders(direct, s.ann, s.bo)
	s.expectRows(before)
}

// TestPurge checks that messages are purged when their time in the archive is over, with every version of their texts
// and with files that nothing else uses, over restarts.
func TestPurge(t *testing.T) {
	s := newTestScene(t)
	id, file := s.richMessage(s.public, "a")
	do(s, s.admin, DeleteMessage{id})
	if u := do(s, s.bo, SaveUpload{Name: "x", Size: 1, Quota: 11}); u.Size != 1 {
		t.Error("a file was refused below the quota")
	}
	refused(s, s.bo, SaveUpload{Name: "x", Size: 1, Quota: 11}, "Upload would exceed your organization's upload quota.")
	refused(s, s.ann, DeleteUpload{file.ID}, "Invalid attachment")
	s.Advance(30*day - 2)
	s.tick()
	if s.Realm.ArchivedCount() != 1 {
		t.Fatal("the message was purged too early")
	}
	s.Restart()
	s.tick()
	if s.Realm.ArchivedCount() != 0 || refsOf(s, "ab12") {
		t.Error("the message or its file is left in the archive")
	}
	erased := func() []ErasedTexts { return s.ViewAs(realmtest.System).ErasedTexts() }
	due := erased()
	if len(due) != 1 || due[0].From != id || due[0].To != id || due[0].Messages != 1 {
		t.Fatalf("erased texts %+v", due)
	}
	p := due[0]
	refused(s, s.owner, RecordTextsCompacted{Row: p.Row, Upto: p.Seq}, "Insufficient permission")
	do(s, realmtest.System, RecordTextsCompacted{Row: p.Row, Upto: p.Seq - 1})
	do(s, realmtest.System, RecordTextsCompacted{Row: p.Row + 1, Upto: p.Seq})
	if len(erased()) != 1 {
		t.Error("a compaction from before the purge or of other texts counts")
	}
	do(s, realmtest.System, RecordTextsCompacted{Row: p.Row, Upto: p.Seq})
	if len(erased()) != 0 {
		t.Error("the compaction was forgotten")
	}
}

// TestPurgeErasesEveryVersion checks that a purge erases all versions of the texts, which the edit history shows.
func TestPurgeErasesEveryVersion(t *testing.T) {
	f := &MessagesPurged{IDs: []MessageID{3, 5}, Versions: []uint16{0, 1}}
	if want := []BodyRef{{Message: 3}, {Message: 5}, {Message: 5, Version: 1}}; !slices.Equal(f.Erased(), want) {
		t.Errorf("it erases %v, want %v", f.Erased(), want)
	}
}

// TestSharedFileInArchive checks that a file stays in the archive as long as an archived message uses it, and that
// no user gets it by naming its path meanwhile.
func TestSharedFileInArchive(t *testing.T) {
	s := newTestScene(t)
	u := do(s, s.ann, SaveUpload{Name: "plan.txt", Hash: "ab12", Size: 10})
	send := func(by UserID, c ChannelID) MessageID {
		return do(s, by, SendMessage{ToChannel: true, Channel: c, Topic: "a", Body: Body{Text: "look"},
			Content: ContentInfo{Attachments: []string{u.Path}, Attachment: true}}).ID
	}
	one, two := send(s.ann, s.private), send(s.ann, s.private)
	do(s, s.ann, DeleteMessage{one})
	if _, visible := s.ViewAs(s.bo).VisibleUpload(u.Path); !visible {
		t.Error("a file that another message uses went to the archive")
	}
	s.Advance(day)
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{
		{Name: "message_content_delete_limit_seconds", Value: int64(30 * day)}}})
	do(s, s.ann, DeleteMessage{two})
	other := s.post(s.cy, s.public, "b", "mine")
	stolen := send(s.cy, s.public) // cy is not in the private channel, but knows the path
	s.Advance(29*day - 1)
	s.tick() // purges the first message only
	if s.Realm.ArchivedCount() != 1 || !refsOf(s, "ab12") {
		t.Fatal("the file was purged while an archived message uses it")
	}
	do(s, realmtest.System, RestoreArchive{Message: two})
	if _, visible := s.ViewAs(s.cy).VisibleUpload(u.Path); visible {
		t.Error("a user got a file by naming its path while it was in the archive")
	}
	if stolen == other {
		t.Fatal("one message")
	}
	if hash := do(s, s.ann, DeleteUpload{u.ID}); hash != "ab12" {
		t.Errorf("deleting the restored file freed the content %q", hash)
	}
}

// TestArchivedMarks checks the marks of a message that was deleted and restored: a user that lost it gets it back only
// with the marks of then.
func TestArchivedMarks(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "hi")
	do(s, s.bo, Flag{Messages: []MessageID{id}, Op: "add", Flag: "starred"})
	do(s, s.ann, DeleteMessage{id})
	refused(s, s.cy, Flag{Messages: []MessageID{id}, Op: "add", Flag: "starred"}, "Invalid message(s)")
	s.leave(s.bo, s.public)
	do(s, realmtest.System, RestoreArchive{Message: id})
	if f := s.ViewAs(s.bo).FlagsOf(id); f&FlagStarred == 0 {
		t.Errorf("the flags after the restore are %b", f)
	}
	if !ids.SetOf(s.ViewAs(s.guest).Unread().Sorted().Channels[0].IDs...).Has(int64(id)) {
		t.Error("the restored message does not count as unread")
	}
}
