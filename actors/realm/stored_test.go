package realm_test

import (
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// runClock runs the turn that is due, as the server's clock does.
func (s *testScene) runClock() {
	s.T.Helper()
	s.Realm.SetClock(s.Now)
	due := s.Realm.Due(s.Now)
	if due == nil {
		due = func(*Turn) (any, error) { return nil, nil }
	}
	if _, err := realmtest.RunTurn(s.Scene, realmtest.System, due); err != nil {
		s.T.Fatal(err)
	}
}

func TestDrafts(t *testing.T) {
	s := newTestScene(t)
	d := Draft{Type: "stream", To: []int64{int64(s.public)}, Topic: "a", Content: " hi ", Edited: JustNow}
	ids := do(s, s.ann, AddDrafts{[]Draft{
		d, {Type: "private", To: []int64{int64(s.bo), int64(s.ann)}, Content: "x", Edited: 5},
	}})
	s.ExpectEvents(s.ann, "drafts")
	s.ExpectNoEvents(s.bo)
	list := s.Realm.DraftsOf(s.ann)
	if len(list) != 2 || list[0].ID != ids[1] || len(list[0].To) != 1 || list[1].Content != " hi" {
		t.Errorf("drafts %+v", list)
	}
	refused(s, s.bo, RemoveDraft{ids[0]}, "Draft does not exist")
	refused(s, s.bo, ChangeDraft{ids[0], d}, "Draft does not exist")
	d.Content, d.Topic = "ho", EmptyTopicName
	do(s, s.ann, ChangeDraft{ids[0], d})
	s.ExpectEvents(s.ann, "drafts")
	if d := s.Realm.DraftsOf(s.ann)[1]; d.Topic != "" || d.Content != "ho" {
		t.Errorf("a draft with the displayed name of the empty topic became %+v", d)
	}
	for want, bad := range map[string]Draft{
		"Message must not be empty":                              {Content: " \n"},
		"Must specify exactly 1 channel ID for channel messages": {Type: "stream", Content: "x"},
		"Timestamp must not be negative.":                        {Content: "x", Edited: -1},
		"Topic must not contain null bytes":                      {Type: "stream", Content: "x", Topic: "a\x00"},
		"Invalid user ID 999":                                    {Type: "private", Content: "x", To: []int64{999}},
	} {
		refused(s, s.ann, AddDrafts{[]Draft{bad}}, want)
	}
	hidden := Draft{Type: "stream", Content: "x", To: []int64{int64(s.private)}}
	refused(s, s.cy, AddDrafts{[]Draft{hidden}}, "Invalid channel ID")
	do(s, s.ann, RemoveDraft{ids[1]})
	do(s, s.ann, ChangeSettings{Values: []SettingValue{{"enable_drafts_synchronization", false}}})
	s.ExpectEvents(s.ann, "user_settings")
	if len(s.Realm.DraftsOf(s.ann)) != 0 {
		t.Error("drafts are kept although synchronization is disabled")
	}
	refused(s, s.ann, AddDrafts{[]Draft{d}}, "User has disabled synchronizing drafts.")
}

func TestScheduledMessages(t *testing.T) {
	s := newTestScene(t)
	at := s.Now + 100
	id := do(s, s.ann, ScheduleMessage{Message: channelMessage(s.private, "a", "later"), At: at})
	s.ExpectEvents(s.ann, "scheduled_messages")
	s.ExpectNoEvents(s.bo)
	refused(s, s.ann, ScheduleMessage{
		Message: channelMessage(s.private, "a", "x"), At: s.Now,
	}, "Scheduled delivery time must be in the future.")
	refused(s, s.cy, ScheduleMessage{
		Message: channelMessage(s.private, "a", "x"), At: at,
	}, "STREAM_DOES_NOT_EXIST")
	refused(s, s.bo, Unschedule{id}, "Scheduled message does not exist")
	refused(s, s.ann, ChangeScheduled{ID: id}, "Nothing to change")
	direct := false
	refused(s, s.ann, ChangeScheduled{ID: id, ToChannel: &direct},
		"Recipient required when updating type of scheduled message.")
	topic := "b"
	do(s, s.ann, ChangeScheduled{ID: id, Topic: &topic})
	s.ExpectEvents(s.ann, "scheduled_messages")
	s.runClock()
	s.ExpectNoEvents(s.bo)
	s.Advance(100)
	s.runClock()
	s.ExpectEvents(s.bo, "message")
	s.ExpectEvents(s.ann, "message", "scheduled_messages")
	if m := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.bo)[0].Message; m.Topic != "b" || m.Sender.ID != s.ann {
		t.Errorf("delivered %+v", m)
	}
	refused(s, s.ann, Unschedule{id}, "Scheduled message does not exist")
	refused(s, s.ann, ChangeScheduled{ID: id, Topic: &topic}, "Scheduled message was already sent")
	refused(s, s.bo, ChangeScheduled{ID: id, Topic: &topic}, "Scheduled message does not exist")
	forgotten := do(s, s.ann, ScheduleMessage{Message: channelMessage(s.private, "a", "never mind"), At: s.Now + 10})
	do(s, s.ann, Unschedule{forgotten})
	refused(s, s.ann, ChangeScheduled{ID: forgotten, Topic: &topic}, "Scheduled message does not exist")

	// A message that the author may no longer send fails, and the author is notified.
	lost := do(s, s.ann, ScheduleMessage{Message: channelMessage(s.private, "a", "x"), At: s.Now + 10})
	s.leave(s.ann, s.private)
	s.Advance(10)
	s.runClock()
	s.ExpectEvents(s.ann, "scheduled_messages", "message")
	s.ExpectNoEvents(s.bo)
	if l := s.Realm.ScheduledOf(s.ann); len(l) != 1 || l[0].ID != lost || !l[0].Failed {
		t.Errorf("scheduled messages: %+v", l)
	}
	s.runClock()
	s.ExpectNoEvents(s.ann) // the failure is not repeated
	// ann created the channel, administers it, and so may know its name.
	refused(s, s.ann, ChangeScheduled{ID: lost, Topic: &topic}, "Not authorized to send to channel 'private'")
	// A message fails if it is much too late.
	do(s, s.bo, ScheduleMessage{Message: directMessage("x", s.ann), At: s.Now + 10})
	s.Advance(611)
	s.runClock()
	s.ExpectEvents(s.bo, "scheduled_messages", "message")
	s.ExpectNoEvents(s.ann)
}

func TestReminders(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.private, "a", "do not forget")
	c := AddReminder{Message: id, At: s.Now + 60, Note: "really", Text: "do not forget"}
	refused(s, s.cy, c, "Invalid message(s)")
	past, long := c, c
	past.At, long.Note = s.Now, strings.Repeat("x", 501)
	refused(s, s.bo, past, "Scheduled delivery time must be in the future.")
	refused(s, s.bo, long, "Maximum reminder note length: 500 characters")
	gone := do(s, s.bo, c)
	s.ExpectEvents(s.bo, "reminders")
	refused(s, s.ann, RemoveReminder{gone}, "Reminder does not exist")
	do(s, s.bo, RemoveReminder{gone})
	do(s, s.bo, c)
	s.Advance(60)
	s.runClock()
	s.ExpectEvents(s.bo, "message", "reminders")
	s.ExpectNoEvents(s.ann)
	text := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.bo)[0].Message.Body.Text
	for _, part := range []string{
		"#**private>a@1**", "``` quote\nreally\n```", "@_**Ann|", "``` quote\ndo not forget\n```",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the reminder lacks %q:\n%s", part, text)
		}
	}
}

func TestSnippetsAndViews(t *testing.T) {
	s := newTestScene(t)
	id := do(s, s.ann, AddSnippet{"t", "c"})
	s.ExpectEvents(s.ann, "saved_snippets")
	title := "u"
	refused(s, s.bo, ChangeSnippet{ID: id, Title: &title}, "Saved snippet does not exist.")
	do(s, s.ann, ChangeSnippet{ID: id})
	s.ExpectNoEvents(s.ann)
	refused(s, s.bo, ChangeSnippet{ID: id}, "Saved snippet does not exist.")
	do(s, s.ann, ChangeSnippet{ID: id, Title: &title})
	s.ExpectEvents(s.ann, "saved_snippets")
	do(s, s.ann, RemoveSnippet{id})
	s.ExpectNoEvents(s.bo)

	do(s, s.ann, AddNavigationView{View: NavigationView{Fragment: "inbox", Pinned: true}})
	refused(s, s.ann, AddNavigationView{View: NavigationView{Fragment: "inbox"}}, "Navigation view already exists.")
	refused(s, s.ann, AddNavigationView{
		View: NavigationView{Fragment: "recent", Name: "x"}, Named: true,
	}, "Built-in views cannot have a custom name.")
	refused(s, s.ann, AddNavigationView{
		View: NavigationView{Fragment: "narrow/x"},
	}, "Custom views must have a valid name.")
	do(s, s.ann, AddNavigationView{View: NavigationView{Fragment: "narrow/x", Name: "x"}, Named: true})
	refused(s, s.ann, AddNavigationView{
		View: NavigationView{Fragment: "narrow/y", Name: "x"}, Named: true,
	}, "Navigation view already exists.")
	pinned := false
	do(s, s.ann, ChangeNavigationView{Fragment: "inbox", Pinned: &pinned})
	s.ExpectEvents(s.ann, "navigation_view")
	refused(s, s.bo, RemoveNavigationView{"inbox"}, "Navigation view does not exist.")
	do(s, s.ann, RemoveNavigationView{"inbox"})
	s.ExpectEvents(s.ann, "navigation_view")
}

func TestReports(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "spam")
	c := ReportMessage{Message: id, Type: "spam", Text: "spam"}
	refused(s, s.bo, c, "Moderation request channel must be specified to enable message reporting.")
	s.setOrgSetting("moderation_request_channel_id", int64(s.private))
	do(s, s.guest, c)
	s.ExpectEvents(s.bo, "message")
	s.ExpectNoEvents(s.guest)
	c.Type = "other"
	refused(s, s.bo, c, "An explanation is required.")
	c.Type = "boring"
	refused(s, s.bo, c, "Invalid report_type")
}

// TestFailureNoticeDoesNotNameHiddenChannel holds that the notice about a scheduled message that could not be sent does
// not tell its author the new name of a private channel that the author has left.
func TestFailureNoticeDoesNotNameHiddenChannel(t *testing.T) {
	s := newTestScene(t)
	do(s, s.bo, ScheduleMessage{Message: channelMessage(s.private, "a", "x"), At: s.Now + 10})
	s.leave(s.bo, s.private)
	name := "layoffs"
	do(s, s.ann, EditChannel{Channel: s.private, Name: &name})
	s.Advance(10)
	s.runClock()
	got := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.bo)
	if len(got) != 1 {
		t.Fatalf("the author got %d messages, want 1", len(got))
	}
	text := got[0].Message.Body.Text
	if !strings.Contains(text, "Channel with ID '"+s.private.String()+"' does not exist") ||
		strings.Contains(text, name) {
		t.Errorf("the author reads %q", text)
	}
}
