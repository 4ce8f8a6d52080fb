package realm_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	. "parley/actors/realm"
)

// unixIn returns the Unix time of a local time in a zone.
func unixIn(t *testing.T, zone, at string) int64 {
	t.Helper()
	l, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	x, err := time.ParseInLocation("2006-01-02 15:04", at, l)
	if err != nil {
		t.Fatal(err)
	}
	return x.Unix()
}

// repeatedTimes are the local times of repeated messages, across clock changes, ends of months and weekends.
var repeatedTimes = map[string]struct {
	every, zone string
	times       []string
}{
	"clocks go forward": {"daily", "Europe/Berlin", []string{
		"2027-03-26 09:00", "2027-03-27 09:00", "2027-03-28 09:00", "2027-03-29 09:00"}},
	"a time that the clocks skip": {"daily", "Europe/Berlin", []string{
		"2027-03-27 02:30", "2027-03-28 03:30", "2027-03-29 02:30"}},
	"a skipped time in New York": {"weekly", "America/New_York", []string{
		"2027-03-07 02:00", "2027-03-14 03:00", "2027-03-21 02:00"}},
	"clocks go back": {"daily", "Europe/Berlin", []string{
		"2027-10-29 09:00", "2027-10-30 09:00", "2027-10-31 09:00", "2027-11-01 09:00"}},
	"midnight that the clocks skip": {"daily", "America/Asuncion", []string{
		"2023-09-30 00:00", "2023-10-01 01:00", "2023-10-02 00:00"}},
	"a change by half an hour": {"daily", "Australia/Lord_Howe", []string{
		"2027-10-02 02:15", "2027-10-03 02:45", "2027-10-04 02:15"}},
	"a day that the zone skips": {"daily", "Pacific/Apia", []string{
		"2011-12-28 10:00", "2011-12-29 10:00", "2011-12-31 10:00", "2012-01-01 10:00"}},
	"the last hour of a weekday": {"weekdays", "America/New_York", []string{
		"2027-03-11 23:30", "2027-03-12 23:30", "2027-03-15 23:30", "2027-03-16 23:30"}},
	"weekdays that begin on a Saturday": {"weekdays", "UTC", []string{
		"2027-03-13 08:00", "2027-03-15 08:00", "2027-03-16 08:00"}},
	"weekly, another day than in UTC": {"weekly", "Asia/Kolkata", []string{
		"2027-02-26 00:15", "2027-03-05 00:15", "2027-03-12 00:15"}},
	"months of different lengths": {"monthly", "Pacific/Auckland", []string{
		"2027-12-31 18:00", "2028-01-31 18:00", "2028-02-29 18:00", "2028-03-31 18:00", "2028-04-30 18:00",
		"2028-05-31 18:00"}},
	"monthly on a short day": {"monthly", "Europe/London", []string{
		"2027-09-28 07:00", "2027-10-28 07:00", "2027-11-28 07:00"}},
}

// A repeated message is sent once at each of its times, and stays in the list.
func TestRepeatedTimes(t *testing.T) {
	for name, x := range repeatedTimes {
		t.Run(name, func(t *testing.T) {
			s := newTestScene(t)
			first := unixIn(t, x.zone, x.times[0])
			s.Now = first - 3600
			runDueTurns(s)
			id := do(s, s.ann, ScheduleMessage{Message: directMessage("again", s.bo), At: first,
				Repeat: Repeat{Every: x.every, Zone: x.zone}})
			for _, local := range x.times {
				want := unixIn(t, x.zone, local)
				l := s.Realm.ScheduledOf(s.ann)
				if len(l) != 1 || l[0].ID != id || l[0].At != want || l[0].Failed {
					t.Fatalf("not scheduled for %s: %+v", local, l)
				}
				s.Now = want - 1
				s.runClock()
				s.ExpectNoEvents(s.bo)
				if next := s.Realm.NextDue(s.Now); next > want {
					t.Fatalf("an organization that is asleep wakes %d seconds after %s", next-want, local)
				}
				s.Now = want
				s.runClock()
				s.ExpectEvents(s.bo, "message")
				s.runClock()
				s.ExpectNoEvents(s.bo)
			}
		})
	}
}

// A time of day that the clocks show twice is the first of the two.
func TestRepeatedTimeShownTwice(t *testing.T) {
	s := newTestScene(t)
	first := unixIn(t, "Europe/Berlin", "2027-10-30 02:30")
	s.Now = first - 60
	do(s, s.ann, ScheduleMessage{Message: directMessage("again", s.bo), At: first,
		Repeat: Repeat{Every: "daily", Zone: "Europe/Berlin"}})
	for i, want := range []int64{first, first + 24*3600, unixIn(t, "Europe/Berlin", "2027-11-01 02:30")} {
		if at := s.Realm.ScheduledOf(s.ann)[0].At; at != want {
			t.Fatalf("time %d: %d instead of %d", i, at, want)
		}
		s.Now = want
		s.runClock()
		s.ExpectEvents(s.bo, "message")
	}
}

// Of the times that pass while the server does not run, one message is sent. The next time is in the future.
func TestRepeatedTimesMissed(t *testing.T) {
	s := newTestScene(t)
	at := s.Now + 100
	do(s, s.ann, ScheduleMessage{Message: directMessage("again", s.bo), At: at,
		Repeat: Repeat{Every: "daily", Zone: "UTC"}})
	s.Restart()
	s.Now = at + 3*86400 + 5000
	s.runClock()
	s.ExpectEvents(s.bo, "message")
	s.runClock()
	s.ExpectNoEvents(s.bo)
	if x := s.Realm.ScheduledOf(s.ann)[0]; x.At != at+4*86400 || x.Failed {
		t.Errorf("after a stop: %+v", x)
	}
}

func TestRepeatChanges(t *testing.T) {
	s := newTestScene(t)
	c := ScheduleMessage{Message: directMessage("again", s.bo), At: unixIn(t, "Europe/Berlin", "2027-01-31 09:00")}
	for _, x := range []struct{ every, zone, want string }{
		{"hourly", "UTC", "Invalid repetition"}, {"daily", "Mars/Phobos", "Invalid timezone"},
	} {
		c.Repeat = Repeat{Every: x.every, Zone: x.zone}
		refused(s, s.ann, c, x.want)
	}
	zone := "Europe/Berlin"
	do(s, s.ann, ChangeSettings{Timezone: &zone})
	c.Repeat = Repeat{Every: "monthly"}
	id := do(s, s.ann, c)
	s.Now = c.At
	s.runClock()
	february := unixIn(t, zone, "2027-02-28 09:00")
	text := Body{Text: "another text", HTML: "<p>another text</p>"}
	do(s, s.ann, ChangeScheduled{ID: id, Body: &text})
	x := s.Realm.ScheduledOf(s.ann)[0]
	if x.At != february || x.Body.Text != text.Text || x.Repeat != (Repeat{"monthly", zone, c.At}) {
		t.Errorf("after another text: %+v", x)
	}
	s.Now = february
	s.runClock()
	if x := s.Realm.ScheduledOf(s.ann)[0]; x.At != unixIn(t, zone, "2027-03-31 09:00") {
		t.Errorf("the day of the month was lost: %+v", x)
	}
	other := unixIn(t, zone, "2027-03-15 10:00")
	do(s, s.ann, ChangeScheduled{ID: id, At: &other})
	if x := s.Realm.ScheduledOf(s.ann)[0]; x.Repeat != (Repeat{"monthly", zone, other}) {
		t.Errorf("after another time: %+v", x)
	}
	do(s, s.ann, ChangeScheduled{ID: id, Repeat: &Repeat{}})
	s.Now = other
	s.runClock()
	s.ExpectEvents(s.bo, "message")
	if l := s.Realm.ScheduledOf(s.ann); len(l) != 0 {
		t.Errorf("after the last time: %+v", l)
	}
	refused(s, s.ann, ChangeScheduled{ID: id, At: &other}, "Scheduled message was already sent")
}

// A repeated message whose author may not send it any more fails and waits for the author. Programs of an older level
// are not given repeated messages.
func TestRepeatFails(t *testing.T) {
	s := newTestScene(t)
	c := ScheduleMessage{Message: channelMessage(s.private, "a", "again"), At: s.Now + 10,
		Repeat: Repeat{Every: "daily"}}
	do(s, s.ann, c)
	s.leave(s.ann, s.private)
	for range 3 {
		s.Advance(86400)
		s.runClock()
	}
	if l := s.Realm.ScheduledOf(s.ann); len(l) != 1 || !l[0].Failed || l[0].At != c.At {
		t.Errorf("scheduled messages: %+v", l)
	}
	_, _, _, err := RunTurn(s.Realm, Caller{User: s.bo}, TurnEnv{Level: 4, Now: s.Now}, ScheduleMessage{
		Message: directMessage("again", s.ann), At: s.Now + 10, Repeat: Repeat{Every: "daily"}}.Decide)
	if refusal, ok := err.(*Refusal); !ok || refusal.Code != "SERVER_OVERLOADED" {
		t.Errorf("a cluster of level 4: %v", err)
	}
}
