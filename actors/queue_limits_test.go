package actors

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/queue"
	"parley/actors/realm"
)

// runWithManySends runs a test with more messages than a queue may have events.
func runWithManySends(t *testing.T, play func(t *testing.T, d *slowDisk, srv *Server, ann, bo realm.UserID)) {
	if testing.Short() {
		t.Skip("20,000 sends in a row take minutes under the race detector, which finds nothing in them")
	}
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann", "bo")
		play(t, d, srv, people[0], people[1])
	})
}

// A queue that no client polls is evicted when it has too many events. Its user must register again, all other queues
// go on, and the eviction is counted.
func TestQueueTooFarBehindIsEvicted(t *testing.T) {
	runWithManySends(t, func(t *testing.T, d *slowDisk, srv *Server, ann, bo realm.UserID) {
		register := params{"event_types": []string{"message"}, "idle_queue_timeout": 604800}
		idle, alive := mustCall(t, srv, bo, "POST /register", register), mustCall(t, srv, bo, "POST /register",
			register)
		polled, last := 0, float64(-1)
		poll := func() { // until nothing is left: a long answer is split
			for {
				a := mustCall(t, srv, bo, "GET /events", params{"queue_id": alive["queue_id"], "last_event_id": last,
					"dont_block": true})
				events := a["events"].([]any)
				if len(events) == 0 {
					return
				}
				for _, e := range events {
					last = e.(map[string]any)["id"].(float64)
					polled++
				}
			}
		}
		for i := range queue.MaxUnacked + 1 {
			mustCall(t, srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
				"content": fmt.Sprint(i)})
			if i%5000 == 0 {
				poll()
			}
		}
		synctest.Wait()
		if n := srv.Metrics.QueuesEvicted.Load(); n != 1 {
			t.Errorf("%d queues are counted as evicted", n)
		}
		if n := srv.Metrics.OpenQueues.Load(); n != 1 {
			t.Errorf("%d queues are counted as open", n)
		}
		a := <-call(srv, bo, "GET /events", params{"queue_id": idle["queue_id"], "last_event_id": -1})
		if a.status != 400 || a.body["code"] != "BAD_EVENT_QUEUE_ID" || a.body["queue_id"] != idle["queue_id"] {
			t.Errorf("the idle queue: %d %v", a.status, a.body)
		}
		poll()
		if polled != queue.MaxUnacked+1 {
			t.Errorf("the other queue got %d of %d messages", polled, queue.MaxUnacked+1)
		}
		// The events that were stored for it are dropped.
		poll()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := srv.Metrics.UnackedFacts.Load(); n > 2 {
			t.Errorf("events of %d facts are stored although every queue has acknowledged them", n)
		}
		closeServer(t, srv)
	})
}

// After a crash every client goes on with its queue, however many events were stored for the slowest one.
func TestQueuesSurviveCrashWithManyUnackedEvents(t *testing.T) {
	runWithManySends(t, func(t *testing.T, d *slowDisk, srv *Server, ann, bo realm.UserID) {
		sent := mustCall(t, srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
			"content": "first"})
		slow := mustCall(t, srv, bo, "POST /register", params{"event_types": []string{"reaction"},
			"idle_queue_timeout": 604800})
		alive := follow(t, srv, bo)
		mustCall(t, srv, ann, "POST /messages/{message_id}/reactions",
			params{"message_id": sent["id"], "emoji_name": "wave"})
		for i := range queue.MaxUnacked + 1 {
			mustCall(t, srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
				"content": fmt.Sprint(i)})
			if i%100 == 0 {
				alive.poll(t)
			}
		}
		alive.poll(t)
		d.crash()
		closeServer(t, srv)

		srv = openServer(t, &slowDisk{diskContents: d.diskContents})
		alive.srv = srv
		synctest.Wait()
		if n := srv.Metrics.OpenQueues.Load(); n != 2 {
			t.Errorf("%d queues are open after the crash", n)
		}
		if a := alive.poll(t); a.status != 200 || alive.messages != queue.MaxUnacked+1 {
			t.Errorf("after the crash: %d %v, got %d messages", a.status, a.body, alive.messages)
		}
		a := mustCall(t, srv, bo, "GET /events", params{"queue_id": slow["queue_id"], "last_event_id": -1,
			"dont_block": true})
		if events := a["events"].([]any); len(events) != 1 {
			t.Errorf("the slow client got %d events", len(events))
		}
		// The stored events are dropped as soon as every client has polled, without waiting for a sweep.
		alive.poll(t)
		mustCall(t, srv, bo, "GET /events", params{"queue_id": slow["queue_id"],
			"last_event_id": a["events"].([]any)[0].(map[string]any)["id"], "dont_block": true})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := srv.Metrics.UnackedFacts.Load(); n > 2 {
			t.Errorf("events of %d facts are stored although every queue has acknowledged them", n)
		}
		closeServer(t, srv)
	})
}

// Requests beyond MaxInFlight are rejected at once, as busy, and have no other effect.
func TestBusyRealmRefuses(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		ann := createOrganization(t, srv, "ann")[0]
		d.mu.Lock()
		d.writes = make(chan *pendingWrite, 10)
		d.mu.Unlock()
		waiting := []responseChan{call(srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
			"content": "held"})}
		synctest.Wait()
		for range MaxInFlight - 1 { // all wait for the first write
			waiting = append(waiting, call(srv, ann, "POST /messages/flags", params{"messages": []int64{1}, "op": "add",
				"flag": "starred"}))
		}
		synctest.Wait()
		a := <-call(srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
			"content": "too much"})
		if a.status < 400 || srv.Metrics.Busy.Load() == 0 {
			t.Errorf("answered %d %v, %d counted as rejected", a.status, a.body, srv.Metrics.Busy.Load())
		}
		for range 2 {
			if len(d.writes) > 0 {
				w := <-d.writes
				w.done <- w.do()
				synctest.Wait()
			}
		}
		for i, m := range waiting {
			select {
			case a := <-m:
				if a.status != 200 {
					t.Fatalf("request %d: %d %v", i, a.status, a.body)
				}
			default:
				t.Fatalf("request %d has no answer", i)
			}
		}
		d.crash()
		closeServer(t, srv)
	})
}
