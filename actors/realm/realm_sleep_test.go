package realm_test

import (
	"testing"
	"time"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// dueCases are the kinds of work that wait for the clock. Each returns when its work is due.
var dueCases = map[string]func(s *testScene) int64{
	"scheduled message": func(s *testScene) int64 {
		do(s, s.ann, ScheduleMessage{Message: channelMessage(s.public, "a", "later"), At: s.Now + 1000})
		return s.Now + 1000
	},
	"repeated message": func(s *testScene) int64 {
		do(s, s.ann, ScheduleMessage{Message: channelMessage(s.public, "a", "again"), At: s.Now + 1000,
			Repeat: Repeat{Every: "weekly"}})
		s.Advance(5000)
		return s.Now - 4000 + 7*86400
	},
	"reminder": func(s *testScene) int64 {
		do(s, s.ann, AddReminder{Message: s.post(s.ann, s.public, "a", "text"), At: s.Now + 2000})
		return s.Now + 2000
	},
	"retention": func(s *testScene) int64 {
		s.post(s.ann, s.public, "a", "text")
		do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "message_retention_days", Value: int64(3)}}})
		return s.Now + 3*86400
	},
	"retention of a channel": func(s *testScene) int64 {
		s.post(s.ann, s.public, "a", "text")
		days := int64(2)
		do(s, s.owner, EditChannel{Channel: s.public, SetRetention: true, Retention: &days})
		return s.Now + 2*86400
	},
	"archive": func(s *testScene) int64 {
		do(s, s.ann, DeleteMessage{Message: s.post(s.ann, s.public, "a", "text")})
		return s.Now + DefaultArchiveDays*86400
	},
	"waiting period": func(s *testScene) int64 {
		do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "waiting_period_threshold", Value: int64(4)}}})
		return s.Now + 4*86400
	},
	"reminder of an invitation": func(s *testScene) int64 {
		minutes := int64(10 * 24 * 60)
		s.EmailEnabled = true
		do(s, s.owner, InviteByMail{InviteOptions: InviteOptions{Role: Member, Minutes: &minutes},
			Emails: "new@example.com"})
		finishOutbox(s.Scene)
		return s.Now + (10-2)*86400
	},
	"export of own data": func(s *testScene) int64 {
		e := do(s, s.ann, StartOwnExport{})
		do(s, realmtest.System, FinishOwnExport{User: s.ann, ID: e.ID})
		return s.Now + OwnExportSeconds
	},
	"digest": func(s *testScene) int64 {
		do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "digest_emails_enabled", Value: true},
			{Name: "digest_weekday", Value: int64(1)}}})
		return time.Date(2023, 11, 21, 8, 0, 0, 0, time.UTC).Unix() // a Tuesday, a week after that of the scene
	},
	"inactive channel": func(s *testScene) int64 { return s.Now + 180*86400 + 1 },
}

// runDueTurns runs all turns that are due.
func runDueTurns(s *testScene) {
	for d := s.Realm.Due(s.Now); d != nil; d = s.Realm.Due(s.Now) {
		realmtest.RunTurn(s.Scene, realmtest.System, d)
	}
}

// The time for which a server notes a sleeping organization is never later than its next turn, and exact where only one
// kind of work waits.
func TestNextDue(t *testing.T) {
	for name, prepare := range dueCases {
		s := newTestScene(t)
		want := prepare(s)
		runDueTurns(s)
		got := s.Realm.NextDue(s.Now)
		if got != want {
			t.Errorf("%s: the next turn is due in %d seconds, want %d", name, got-s.Now, want-s.Now)
		}
		s.Restart() // work begins as in an organization that was asleep
		for _, at := range []int64{s.Now, s.Now + (want-s.Now)/2, want - 1} {
			if s.Realm.Due(at) != nil && s.Realm.NextDue(at) > at {
				t.Errorf("%s: a turn is due %d seconds before the time", name, want-at)
			}
		}
		s.Restart()
		s.Advance(want - s.Now)
		if s.Realm.NextDue(s.Now) > s.Now || s.Realm.Due(s.Now) == nil {
			t.Errorf("%s: nothing is due at the time", name)
		}
	}
}

// An organization with work for its owner must stay in memory.
func TestSleepWaitsForOwner(t *testing.T) {
	s := newTestScene(t)
	runDueTurns(s)
	x, ok := s.Realm.Sleep(s.Now)
	if !ok || x.Seq != s.Realm.Seq() || x.People != 7 || !x.Emails.Has(DigestOf("ann@example.com")) {
		t.Errorf("without work: %v %+v", ok, x)
	}
	for name, work := range map[string]func(t *Turn) (any, error){
		"an email": func(t *Turn) (any, error) { t.SendEmails(Email{To: "x@example.org"}); return nil, nil },
		"an export": func(t *Turn) (any, error) {
			t.Caller.User = s.owner
			return StartExport{Kind: PublicExport}.Decide(t)
		},
		"an export of own data": func(t *Turn) (any, error) {
			t.Caller.User = s.ann
			return StartOwnExport{}.Decide(t)
		},
	} {
		s := newTestScene(t)
		realmtest.RunTurn(s.Scene, realmtest.System, work)
		if _, ok := s.Realm.Sleep(s.Now); ok {
			t.Errorf("an organization with %s leaves memory", name)
		}
	}
}
