package actors

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/owner"
	"parley/actors/realm"
)

// follower polls one queue without waiting and counts its messages.
type follower struct {
	srv      *Server
	user     realm.UserID
	id       any
	last     float64
	messages int
}

func (f *follower) poll(t *testing.T) response {
	t.Helper()
	a := <-call(f.srv, f.user, "GET /events", params{"queue_id": f.id, "last_event_id": f.last, "dont_block": true})
	events, _ := a.body["events"].([]any)
	for _, x := range events {
		e := x.(map[string]any)
		f.last = e["id"].(float64)
		if e["type"] == "message" {
			f.messages++
		}
	}
	return a
}

// follow registers a queue for a user.
func follow(t *testing.T, srv *Server, who realm.UserID) *follower {
	a := mustCall(t, srv, who, "POST /register", params{"event_types": []string{"message", "restart"},
		"idle_queue_timeout": 604800})
	return &follower{srv: srv, user: who, id: a["queue_id"], last: -1}
}

// Events for clients that do not poll stay within their limit: the slowest queue is evicted, the others get every
// event, and the events that were stored for the slowest one are dropped.
func TestUnackedEventsAreBounded(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		const limit = 1 << 20
		srv.delivery.Limits.Realm.Store(limit)
		people := createOrganization(t, srv, "ann", "bo", "cy")
		early, late, alive := follow(t, srv, people[1]), follow(t, srv, people[1]), follow(t, srv, people[2])
		text := strings.Repeat("many words ", 50)
		sent, most := 0, int64(0)
		for ; srv.Metrics.QueuesEvicted.Load() == 0; sent++ {
			mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
				"content": fmt.Sprint(sent, text)})
			synctest.Wait()
			if most = max(most, srv.Metrics.UnackedBytes.Load()); most > limit+limit/10 {
				t.Fatalf("%d bytes are stored, and no queue was evicted", most)
			}
			if sent == 50 {
				late.poll(t)
				late.poll(t)
			}
			alive.poll(t)
			time.Sleep(100 * time.Millisecond)
		}
		alive.poll(t)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := srv.Metrics.QueuesEvicted.Load(); n != 1 || srv.Metrics.OpenQueues.Load() != 2 {
			t.Errorf("%d queues are counted as evicted, %d as open", n, srv.Metrics.OpenQueues.Load())
		}
		if a := early.poll(t); a.status != 400 || a.body["code"] != "BAD_EVENT_QUEUE_ID" ||
			a.body["queue_id"] != early.id {
			t.Errorf("the slowest queue: %d %v", a.status, a.body)
		}
		for name, f := range map[string]*follower{"faster": late, "polled": alive} {
			if a := f.poll(t); a.status != 200 || f.messages != sent {
				t.Errorf("the %s queue: status %d, got %d of %d messages", name, a.status, f.messages, sent)
			}
			f.poll(t)
		}
		if n := srv.Metrics.UnackedBytes.Load(); n > limit*3/4 {
			t.Errorf("%d bytes are still stored", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n, b := srv.Metrics.UnackedFacts.Load(), srv.Metrics.UnackedBytes.Load(); n > 2 || b > 4096 {
			t.Errorf("%d facts with %d bytes are stored although every queue has acknowledged them", n, b)
		}
		t.Logf("%d messages of %d bytes, at most %d bytes stored, limit %d", sent, len(text), most, limit)
		closeServer(t, srv)
	})
}

// After a start no queue is evicted for a time: a client that polls in that time goes on, although the server did not
// know how far its queue had come.
func TestUnackedEventsAfterStart(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		p := newDiskContents()
		srv := openServer(t, &slowDisk{diskContents: p})
		people := createOrganization(t, srv, "ann", "bo", "cy")
		gone, back := follow(t, srv, people[1]), follow(t, srv, people[2])
		say := func(srv *Server, i int) {
			mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
				"content": fmt.Sprint(i)})
		}
		for i := range 100 {
			say(srv, i)
		}
		back.poll(t)
		closeServer(t, srv)
		srv = openServer(t, &slowDisk{diskContents: p})
		srv.delivery.Limits.Realm.Store(srv.Metrics.UnackedBytes.Load() * 2 / 3)
		gone.srv, back.srv = srv, srv
		time.Sleep(30 * time.Second)
		say(srv, 100)
		synctest.Wait()
		if n := srv.Metrics.QueuesEvicted.Load(); n != 0 {
			t.Errorf("%d queues were evicted before their clients could poll", n)
		}
		for range 2 {
			if a := back.poll(t); a.status != 200 {
				t.Errorf("client that polled: %d %v", a.status, a.body)
			}
		}
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if a := back.poll(t); a.status != 200 || back.messages != 101 {
			t.Errorf("client that polled: %d %v, got %d messages", a.status, a.body, back.messages)
		}
		if a := gone.poll(t); a.status != 400 || a.body["code"] != "BAD_EVENT_QUEUE_ID" {
			t.Errorf("client that did not poll: %d %v", a.status, a.body)
		}
		closeServer(t, srv)
	})
}

// A server that is killed again and again, each time before all clients have polled, stores the events that some client
// has not acknowledged, not all events since the first start. Every client gets every event once.
func TestUnackedEventsAfterManyCrashes(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann", "bo", "cy")
		clients := []*follower{follow(t, srv, people[1]), follow(t, srv, people[2])}
		const lives, each = 10, 20
		for life := range lives {
			for i := range each {
				mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
					"content": fmt.Sprint(life, i)})
			}
			comes := clients[life%len(clients)]
			for range 2 { // the second acknowledges
				if a := comes.poll(t); a.status != 200 {
					t.Fatalf("start %d: %d %v", life, a.status, a.body)
				}
			}
			synctest.Wait()
			d.crash()
			closeServer(t, srv)
			d = &slowDisk{diskContents: d.diskContents}
			srv = openServer(t, d)
			for _, f := range clients {
				f.srv = srv
			}
		}
		synctest.Wait()
		if n := srv.Metrics.UnackedFacts.Load(); n > 3*each {
			t.Errorf("%d facts are stored, of %d messages", n, lives*each)
		}
		for i, f := range clients {
			for range 2 {
				if a := f.poll(t); a.status != 200 || f.messages != lives*each {
					t.Errorf("client %d: %d %v, got %d of %d messages", i, a.status, a.body, f.messages, lives*each)
				}
			}
		}
		closeServer(t, srv)
	})
}

// A client that polls only after two crashes gets every event, even if an older queue of the same session actor ended
// before the first crash. When that queue ends in the replay, its session actor must not report for the queue that
// opens after it.
func TestUnackedEventsAfterAnotherQueueEnded(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann", "bo", "cy")
		say := func() {
			mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
				"content": "text"})
		}
		often := follow(t, srv, people[1])
		ended := follow(t, srv, people[2])
		say()
		mustCall(t, srv, people[2], "DELETE /events", params{"queue_id": ended.id})
		late := follow(t, srv, people[2])
		const each = 5
		for life := range 2 {
			for range each {
				say()
			}
			for range 2 { // the second acknowledges
				often.poll(t)
			}
			if life == 1 { // the unacked events are written with a snapshot
				time.Sleep(owner.SnapshotAge + time.Minute)
				say()
				synctest.Wait()
			}
			d.crash()
			closeServer(t, srv)
			d = &slowDisk{diskContents: d.diskContents}
			srv = openServer(t, d)
			often.srv, late.srv = srv, srv
		}
		for range 2 {
			if a := late.poll(t); a.status != 200 || late.messages != 2*each+1 {
				t.Errorf("%d %v, got %d of %d messages", a.status, a.body, late.messages, 2*each+1)
			}
		}
		closeServer(t, srv)
	})
}

// When all organizations together have too many unacked events, those with more than their share evict queues. Others
// do not.
func TestUnackedEventsOfAllRealms(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
		people := createOrganization(t, srv, "ann", "bo")
		idle := follow(t, srv, people[1])
		for i := range 20 {
			mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
				"content": fmt.Sprint(i)})
		}
		srv.delivery.Limits.Total.Store(300_000)
		srv.Metrics.UnackedBytes.Add(290_000) // of other organizations

		time.Sleep(10 * time.Second)
		synctest.Wait()
		if a := idle.poll(t); a.status != 200 || idle.messages != 20 {
			t.Errorf("an organization within its share lost its queue: %d %v", a.status, a.body)
		}
		srv.delivery.Limits.Total.Store(10_000)
		for i := range 2 {
			mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
				"content": fmt.Sprint(i)})
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if a := idle.poll(t); a.status != 400 || srv.Metrics.QueuesEvicted.Load() != 1 {
			t.Errorf("a queue uses more than its organization's share: %d %v", a.status, a.body)
		}
		closeServer(t, srv)
	})
}

// Commands are rejected while too many recipients wait for the session actors. Views go on, and the count returns to
// zero.
func TestCommandsRefusedWhileDeliveryIsBehind(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
		people := createOrganization(t, srv, "ann", "bo")
		follow(t, srv, people[1])
		mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
			"content": "x"})
		synctest.Wait()
		if n := srv.Metrics.Undelivered.Load(); n != 0 {
			t.Errorf("%d recipients wait although all is delivered", n)
		}
		srv.Metrics.Undelivered.Add(MaxUndelivered + 1)
		a := <-call(srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
			"content": "x"})
		if a.status != 503 || srv.Metrics.Busy.Load() != 1 {
			t.Errorf("answered %d %v, %d counted as rejected", a.status, a.body, srv.Metrics.Busy.Load())
		}
		mustCall(t, srv, people[0], "GET /messages", params{"anchor": "newest", "num_before": 10, "num_after": 0})
		srv.Metrics.Undelivered.Add(-MaxUndelivered - 1)
		mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
			"content": "x"})
		closeServer(t, srv)
	})
}

// After Save there is nothing left to write, and the facts before it need no replay.
func TestSave(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		ann := createOrganization(t, srv, "ann")[0]
		mustCall(t, srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t", "content": "hi"})
		for range 2 { // the second finds nothing to do
			if err := srv.Save(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := srv.Metrics.Snapshots.Load(); n != 1 {
			t.Errorf("%d snapshots", n)
		}
		c, err := d.Claim(1, realm.AnyEpoch)
		if err != nil || c.Rows != c.Last || c.Last == 0 {
			t.Errorf("rows at %d of %d: %v", c.Rows, c.Last, err)
		}
		closeServer(t, srv)
	})
}

// Save removes the rows of events that all clients have fetched, although no fact follows: an erased person's name can
// be in them.
func TestSaveRemovesFetchedEvents(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann", "bo")
		reader := follow(t, srv, people[1])
		mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
			"content": "hi"})
		stored := func() (n int) {
			if err := srv.Save(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, row := range d.table {
				if row.Table == realm.UnackedEventsTable {
					n++
				}
			}
			return n
		}
		if stored() == 0 {
			t.Fatal("the event is not in the rows: this test would prove nothing")
		}
		last := d.last()
		for range 2 { // the second acknowledges
			reader.poll(t)
		}
		srv.CollectAcks(1)
		if n := stored(); n != 0 || d.last() != last {
			t.Errorf("%d facts have events in the rows; the last fact is %d, was %d", n, d.last(), last)
		}
		closeServer(t, srv)
	})
}

// The text of an event that no queue can get is not stored while a queue of another user has older events. It would
// outlive an erasure of its author, and be in exports. The rows that an earlier program stored go at the first Save.
func TestEventsOfNoUserAreNotStored(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann", "bo", "cy")
		slow := follow(t, srv, people[2])
		add := func(title string) {
			mustCall(t, srv, people[0], "POST /saved_snippets", params{"title": title, "content": "private"})
		}
		stored := func() (rows int) {
			if err := srv.Save(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, row := range d.table {
				if row.Table == realm.UnackedEventsTable {
					rows++
				}
			}
			return rows
		}
		mustCall(t, srv, people[0], "POST /messages", params{"type": "private", "to": []any{people[2]},
			"content": "hi"})
		before := stored()
		add("one")
		if n := stored(); before == 0 || n != before {
			t.Errorf("%d facts have events in the rows, %d before a change that no queue gets", n, before)
		}
		old := d.EncodeUnacked(realm.Publication{Seq: d.last(), Notices: []realm.Notice{
			{Event: &realm.StatusChanged{User: people[0]}}}})
		closeServer(t, srv)
		d.putRows([]realm.EncodedRow{old})
		srv = openServer(t, d)
		add("a new fact, so that Save has something to write")
		if n := stored(); n != before {
			t.Errorf("%d facts have events in the rows after a start with a row for no user, want %d", n, before)
		}
		slow.srv = srv
		if slow.poll(t); slow.messages != 1 {
			t.Errorf("the queue of another user has %d messages", slow.messages)
		}
		closeServer(t, srv)
	})
}

// After a crash a long journal is not written as rows while all clients reconnect, but soon after. A journal that is
// longer still, as of a server that is killed again and again, is written at once.
func TestNoSnapshotWhileClientsReconnect(t *testing.T) {
	for _, long := range []bool{false, true} {
		runSynctest(t, func(t *testing.T) {
			d := &slowDisk{diskContents: newDiskContents()}
			srv := openServer(t, d)
			ann := createOrganization(t, srv, "ann")[0]
			facts := owner.SnapshotBytes / owner.ReplayedBytes
			if long {
				facts = owner.SnapshotDelayBytes / owner.ReplayedBytes
			}
			_, err := srv.Turn(1, realm.Caller{System: true}, func(t *realm.Turn) (any, error) {
				for range facts {
					t.Tick()
				}
				return nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			d.crash()
			closeServer(t, srv)

			srv = openServer(t, &slowDisk{diskContents: d.diskContents})
			send := func() int64 {
				mustCall(t, srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
					"content": "back"})
				synctest.Wait()
				return srv.Metrics.Snapshots.Load()
			}
			if n := send(); n > 0 != long {
				t.Errorf("%d snapshots while clients reconnect (long: %t)", n, long)
			}
			time.Sleep(owner.SnapshotDelay * time.Second)
			if n := send(); n != 1 {
				t.Errorf("%d snapshots after they reconnected (long: %t)", n, long)
			}
			closeServer(t, srv)
		})
	}
}
