package actors

import (
	"testing"
	"testing/synctest"
	"time"
)

// While nothing can be stored, a change is refused before it is applied, and what needs no fact goes on. Facts that
// were recorded before are still written.
func TestReadOnly(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann", "bo")
		ann, bo := people[0], people[1]
		message := func(text string) params {
			return params{"type": "stream", "to": "one", "topic": "t", "content": text}
		}
		q := mustCall(t, srv, bo, "POST /register", params{"event_types": []string{"message", "typing"}})
		d.mu.Lock()
		d.writes = make(chan *pendingWrite, 100)
		d.mu.Unlock()
		before := call(srv, ann, "POST /messages", message("before"))
		synctest.Wait()

		srv.SetReadOnly(true)
		during := call(srv, ann, "POST /messages", message("during"))
		register := call(srv, ann, "POST /register", params{})
		synctest.Wait()
		w := <-d.writes // of the fact that was recorded before
		w.done <- w.do()
		if a := <-before; a.status != 200 {
			t.Errorf("a message that was recorded before: %d %v", a.status, a.body)
		}
		last := srv.find(1).durable.Load()
		for what, c := range map[string]responseChan{"message": during, "registration": register} {
			if a := <-c; a.status != 507 || a.body["code"] != "INSUFFICIENT_STORAGE" || a.body["result"] != "error" {
				t.Errorf("%s while nothing can be stored: %d %v", what, a.status, a.body)
			}
		}
		history := mustCall(t, srv, bo, "GET /messages", params{"anchor": "newest", "num_before": 10, "num_after": 0})
		if list := history["messages"].([]any); list[len(list)-1].(map[string]any)["content"] != "<p>before</p>" {
			t.Errorf("the last message is %v", list[len(list)-1])
		}
		mustCall(t, srv, ann, "POST /typing", params{"op": "start", "type": "direct", "to": []any{int64(bo)}})
		events := mustCall(t, srv, bo, "GET /events", params{"queue_id": q["queue_id"],
			"last_event_id": q["last_event_id"]})["events"].([]any)
		if len(events) != 2 {
			t.Errorf("events while nothing can be stored: %v", events)
		}
		// No timer of the server writes: no due command, snapshot, presence, or end of an idle queue.
		srv.ReportPresence(1, ann, true)
		time.Sleep(30 * time.Minute)
		if now := srv.find(1).durable.Load(); now != last || len(d.writes) > 0 {
			t.Errorf("%d writes, fact %d after %d while nothing can be stored", len(d.writes), now, last)
		}
		srv.SetReadOnly(false)
		after := call(srv, ann, "POST /messages", message("after"))
		for done := false; !done; {
			select {
			case a := <-after:
				if done = true; a.status != 200 {
					t.Errorf("with space again: %d %v", a.status, a.body)
				}
			case w := <-d.writes:
				w.done <- w.do()
			}
		}
		d.mu.Lock()
		d.writes = nil
		d.mu.Unlock()
		srv.SetReadOnly(true)
		closeServer(t, srv)
	})
}
