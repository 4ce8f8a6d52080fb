package actors

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/snapshot/codec"
)

// WriteAsleep and Asleep make slowDisk a SleepingDisk.
func (d *slowDisk) WriteAsleep(_ realm.ID, epoch uint64, a *realm.Asleep) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.diskContents.mu.Lock()
	defer d.diskContents.mu.Unlock()
	switch {
	case d.dead || epoch != d.epoch:
	case a == nil:
		d.asleep = nil
	default:
		d.asleep = codec.EncodeRow(a)
	}
	return nil
}

func (d *slowDisk) Asleep(realm.ID) (a realm.Asleep, ok bool) {
	last := d.last()
	d.diskContents.mu.Lock()
	defer d.diskContents.mu.Unlock()
	if d.asleep == nil {
		return a, false
	}
	err := codec.Decoder(d.asleep)(&a)
	return a, err == nil && a.Epoch == d.epoch && a.Seq == last
}

// sleepyServer opens a server whose organizations leave memory after a minute without requests.
func sleepyServer(t *testing.T, contents *diskContents) *Server {
	t.Helper()
	return openServerWith(t, &slowDisk{diskContents: contents}, Options{SleepAfter: time.Minute})
}

// expectAsleep waits until the organization has left memory.
func expectAsleep(t *testing.T, srv *Server) {
	t.Helper()
	for range 20 {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if srv.IsAsleep(1) {
			return
		}
	}
	t.Fatalf("the organization stays in memory: %+v", srv.SleepStats())
}

// An organization without requests leaves memory. Its event queues go on under their ids, without a gap and without the
// event of a restart, and it is found as before.
func TestSleepKeepsQueues(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		contents := newDiskContents()
		srv := sleepyServer(t, contents)
		people := createOrganization(t, srv, "ann", "bo")
		ann, bo := people[0], people[1]
		q := mustCall(t, srv, bo, "POST /register", params{"event_types": []string{"message", "restart"},
			"idle_queue_timeout": 604800})
		send := func(text string) {
			t.Helper()
			mustCall(t, srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
				"content": text})
		}
		last := any(-1.0)
		expect := func(want ...string) {
			t.Helper()
			a := mustCall(t, srv, bo, "GET /events", params{"queue_id": q["queue_id"], "last_event_id": last,
				"dont_block": true})
			var got []string
			for _, x := range a["events"].([]any) {
				e := x.(map[string]any)
				last = e["id"]
				if m, is := e["message"].(map[string]any); is {
					got = append(got, m["content"].(string))
				} else {
					got = append(got, e["type"].(string))
				}
			}
			if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
				t.Fatalf("got the events %q, want %q", got, want)
			}
		}
		send("before")
		expect("before")
		send("unread")
		expectAsleep(t, srv)
		account := func() *realm.Account {
			a, _ := srv.loadedAccount(1, "ann@example.org")
			return a
		}
		if id, _, ok := srv.RealmByName(""); !ok || id != 1 || !srv.Owns(1) || srv.Realms()[""] != 1 {
			t.Error("the organization is not found while it is asleep")
		}
		if account() != nil || srv.Metrics.OpenQueues.Load() != 0 || srv.Metrics.UnackedFacts.Load() != 0 {
			t.Errorf("asleep, the organization has the account %v, %d queues and %d facts in memory", account(),
				srv.Metrics.OpenQueues.Load(), srv.Metrics.UnackedFacts.Load())
		}
		others := srv.RealmsWithPerson("x@example.org")
		if got := srv.RealmsWithPerson("ANN@example.org"); len(got) != 1 || len(others) != 0 {
			t.Errorf("a person is found in the organizations %v", got)
		}
		version := srv.AuthVersion()
		expect("unread") // the poll wakes it
		if x := srv.SleepStats(); x.Awake != 1 || x.Asleep != 0 || x.Wakes != 1 || account() == nil {
			t.Errorf("after the poll: %+v", x)
		}
		if srv.AuthVersion() != version {
			t.Error("checked logins became invalid, although no account has changed")
		}
		expectAsleep(t, srv)
		send("woken by a command")
		expect("woken by a command")
		expectAsleep(t, srv)
		closeServer(t, srv)

		srv = sleepyServer(t, contents) // nothing is loaded at the start
		if x := srv.SleepStats(); x.Asleep != 1 || x.Awake != 0 {
			t.Errorf("after a start: %+v", x)
		}
		send("after a start")
		expect("restart", "after a start")
		closeServer(t, srv)
	})
}

// While a poll waits, or work is left, an organization stays in memory.
func TestParkedPollKeepsAwake(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := sleepyServer(t, newDiskContents())
		ann := createOrganization(t, srv, "ann")[0]
		q := mustCall(t, srv, ann, "POST /register", params{"event_types": []string{"message"}})
		for last, n := -1.0, 0; n < 5; n++ {
			a := <-call(srv, ann, "GET /events", params{"queue_id": q["queue_id"], "last_event_id": last})
			if a.status != 200 || srv.SleepStats().Sleeps != 0 {
				t.Fatalf("poll %d: %d %v, %+v", n, a.status, a.body, srv.SleepStats())
			}
			last = a.body["events"].([]any)[0].(map[string]any)["id"].(float64)
		}
		expectAsleep(t, srv)
		closeServer(t, srv)
	})
}

// The operator's lists look at each organization, and keep none in memory however often they are made.
func TestLooksDoNotKeepAwake(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := sleepyServer(t, newDiskContents())
		createOrganization(t, srv, "ann")
		for n := 0; !srv.IsAsleep(1); n++ {
			if n == 30 {
				t.Fatalf("lists keep an organization in memory: %+v", srv.SleepStats())
			}
			_, err := srv.View(1, realm.System, func(v realm.View) (any, error) { return v.Org().Name, nil })
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(7 * time.Second)
			synctest.Wait()
		}
		closeServer(t, srv)
	})
}

// The metrics of usage have the messages, the active people and the programs of an organization, also while it is
// asleep and after a start. On the next day no person was active.
func TestUsageMetrics(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		contents := newDiskContents()
		srv := sleepyServer(t, contents)
		people := createOrganization(t, srv, "ann", "bo")
		for _, who := range append(people, people...) {
			mustCall(t, srv, who, "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
				"content": "hello"})
		}
		time.Sleep(2 * time.Second) // an organization reports its numbers once a second
		synctest.Wait()
		expect := func(when string, messages uint64, active int) {
			t.Helper()
			if n := srv.RealmMetrics().Usage; n.Messages != messages || n.Active != active {
				t.Errorf("%s: %+v, want %d messages and %d people", when, n, messages, active)
			}
		}
		expect("awake", 4, 2)
		sent := 0.0
		srv.Metrics.eachSent(func(_ string, n float64) { sent += n })
		if sent != 4 {
			t.Errorf("%v messages are counted by program", sent)
		}
		expectAsleep(t, srv)
		expect("asleep", 4, 2)
		closeServer(t, srv)
		srv = sleepyServer(t, contents)
		expect("after a start", 4, 2)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		expect("the next day", 4, 0)
		closeServer(t, srv)
	})
}

// A scheduled message is sent once and in time, although its organization is asleep, also if the server was killed or
// started again before.
func TestDueTimeWakes(t *testing.T) {
	for _, restart := range []bool{false, true} {
		runSynctest(t, func(t *testing.T) {
			contents := newDiskContents()
			srv := sleepyServer(t, contents)
			ann := createOrganization(t, srv, "ann")[0]
			at := time.Now().Add(2 * time.Hour)
			mustCall(t, srv, ann, "POST /scheduled_messages", params{"type": "channel", "to": 1, "topic": "t",
				"content": "due", "scheduled_delivery_timestamp": at.Unix()})
			expectAsleep(t, srv)
			if due := srv.SleepStats().NextDue; due != at.Unix() {
				t.Errorf("the organization is due at %d, want %d", due, at.Unix())
			}
			if restart { // as after kill -9: nothing is written at the end
				crashed := srv
				srv = sleepyServer(t, contents)
				closeServer(t, crashed)
				if x := srv.SleepStats(); x.Asleep != 1 {
					t.Fatalf("after a crash: %+v", x)
				}
			}
			before := contents.last()
			time.Sleep(time.Until(at) - time.Second)
			synctest.Wait()
			if contents.last() != before {
				t.Error("facts were recorded before the time")
			}
			time.Sleep(7 * time.Second)
			synctest.Wait()
			count := func() int {
				a := mustCall(t, srv, ann, "GET /messages", params{"anchor": "newest", "num_before": 10, "num_after": 0,
					"narrow": `[{"operator":"topic","operand":"t"}]`})
				return len(a["messages"].([]any))
			}
			if srv.SleepStats().Wakes != 1 || count() != 1 {
				t.Errorf("restart %v: %d messages were sent; %+v", restart, count(), srv.SleepStats())
			}
			expectAsleep(t, srv)
			if count() != 1 {
				t.Error("the message was sent again")
			}
			closeServer(t, srv)
		})
	}
}

// A sleeping organization wakes for each time of a repeated message. Of the times that pass while the server does not
// run, one message is sent.
func TestRepeatedMessageWakes(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		contents := newDiskContents()
		srv := sleepyServer(t, contents)
		ann := createOrganization(t, srv, "ann")[0]
		at := time.Now().Add(2 * time.Hour).Truncate(time.Second)
		mustCall(t, srv, ann, "POST /scheduled_messages", params{"type": "channel", "to": 1, "topic": "t",
			"content": "due", "scheduled_delivery_timestamp": at.Unix(),
			"repeat": `{"every":"daily","timezone":"UTC"}`})
		expect := func(messages int) {
			t.Helper()
			synctest.Wait()
			a := mustCall(t, srv, ann, "GET /messages", params{"anchor": "newest", "num_before": 10, "num_after": 0,
				"narrow": `[{"operator":"topic","operand":"t"}]`})
			if n := len(a["messages"].([]any)); n != messages {
				t.Errorf("%d messages were sent, want %d", n, messages)
			}
		}
		for day := range 3 {
			expectAsleep(t, srv)
			time.Sleep(time.Until(at.AddDate(0, 0, day)) + 10*time.Second)
			expect(day + 1)
		}
		if w := srv.SleepStats().Wakes; w < 3 {
			t.Errorf("the organization woke %d times", w)
		}
		expectAsleep(t, srv)
		closeServer(t, srv)
		time.Sleep(5 * 24 * time.Hour)
		srv = sleepyServer(t, contents)
		time.Sleep(10 * time.Second)
		expect(4)
		expectAsleep(t, srv)
		if due := srv.SleepStats().NextDue; due != at.AddDate(0, 0, 8).Unix() {
			t.Errorf("the next message is due %d s after the first", due-at.Unix())
		}
		closeServer(t, srv)
	})
}

// Work that is due is done although the organization cannot be loaded at once.
func TestDueTimeOfLockedDisk(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		contents := newDiskContents()
		disk := &slowDisk{diskContents: contents}
		srv := openServerWith(t, disk, Options{SleepAfter: time.Minute})
		ann := createOrganization(t, srv, "ann")[0]
		at := time.Now().Add(2 * time.Hour)
		mustCall(t, srv, ann, "POST /scheduled_messages", params{"type": "channel", "to": 1, "topic": "t",
			"content": "due", "scheduled_delivery_timestamp": at.Unix()})
		expectAsleep(t, srv)
		contents.mu.Lock()
		disk.locked = 2
		contents.mu.Unlock()
		before := contents.last()
		time.Sleep(time.Until(at) + sleepRetry*time.Second*3/2)
		synctest.Wait()
		if contents.last() != before {
			t.Error("a fact was recorded although the disk does not answer")
		}
		time.Sleep(sleepRetry * time.Second)
		synctest.Wait()
		if contents.last() == before {
			t.Errorf("the message was not sent after the disk answers again: %+v", srv.SleepStats())
		}
		closeServer(t, srv)
	})
}

// An event queue ends when its lifetime is over, also if the organization is asleep then.
func TestQueueEndsAsleep(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := sleepyServer(t, newDiskContents())
		ann := createOrganization(t, srv, "ann")[0]
		q := mustCall(t, srv, ann, "POST /register", params{"event_types": []string{"message"},
			"idle_queue_timeout": 3600})
		expectAsleep(t, srv)
		time.Sleep(50 * time.Minute)
		poll := params{"queue_id": q["queue_id"], "last_event_id": -1, "dont_block": true}
		if a := <-call(srv, ann, "GET /events", poll); a.status != 200 {
			t.Fatalf("before the end: %d %v", a.status, a.body)
		}
		expectAsleep(t, srv)
		time.Sleep(70 * time.Minute)
		synctest.Wait()
		if a := <-call(srv, ann, "GET /events", poll); a.body["code"] != "BAD_EVENT_QUEUE_ID" {
			t.Errorf("after the end: %d %v", a.status, a.body)
		}
		closeServer(t, srv)
	})
}

// Requests that wait for one of several organizations leave half of the places to the others.
func TestWaitingForOneOrganization(t *testing.T) {
	srv := &Server{realms: map[realm.ID]*realmHandle{}, byName: map[string]*realmHandle{}}
	srv.sleepers.prepare(&slowDisk{}, &Options{SleepAfter: time.Minute})
	z := &srv.sleepers
	for id, name := range []string{"a", "b"} {
		s := &sleeper{id: realm.ID(id + 1), state: waking, change: &sleepChange{done: make(chan struct{})}}
		z.byID[s.id], z.byName[name] = s, s
	}
	z.byID[1].waiting = admission.Half(MaxWaitingForWake)
	z.waiting.Store(z.byID[1].waiting)
	if err := srv.Wake(1); err == nil {
		t.Error("an organization gets more than half")
	}
	close(z.byID[2].change.done)
	if known, err := srv.wake(2); !known || err != nil {
		t.Errorf("the other organization gets none: %v", err)
	}
	delete(z.byName, "b")
	close(z.byID[1].change.done)
	if known, err := srv.wake(1); !known || err != nil {
		t.Errorf("the only organization does not get all: %v", err)
	}
}
