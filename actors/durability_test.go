package actors

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"parley/actors/realm"
	"parley/wire"
)

// runSynctest runs a test whose goroutines and clock are its own. Reply channels are reused through a pool, and must not
// leave the bubble they were made in.
func runSynctest(t *testing.T, test func(t *testing.T)) {
	fresh := func() { replies = sync.Pool{New: func() any { return make(chan answer, 1) }} }
	fresh()
	defer fresh()
	synctest.Test(t, test)
}

func openServer(t testing.TB, d Disk) *Server {
	t.Helper()
	h, err := Open(d, Options{Protocol: wire.SessionProtocol{}, Renderer: &wire.Renderer{}, Log: slog.New(slog.DiscardHandler), Site: testSite, Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// While a write is under way nothing it holds may be known to anybody: not to the sender, not to who listens, not to who
// reads. And others' refusals that rest on it wait as well.
func TestNothingIsSentBeforeItIsDurable(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		h := openServer(t, d)
		people := createOrganization(t, h, "ann", "bo")
		ann, bo := people[0], people[1]
		q := mustCall(t, h, bo, "POST /register", params{"event_types": []string{"message", "reaction"}})
		sent := mustCall(t, h, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t", "content": "before"})
		events := params{"queue_id": q["queue_id"], "last_event_id": q["last_event_id"]}
		events["last_event_id"] = mustCall(t, h, bo, "GET /events", events)["events"].([]any)[0].(map[string]any)["id"]

		d.mu.Lock()
		d.writes = make(chan *pendingWrite, 100)
		d.mu.Unlock()
		waiting := map[string]responseChan{"poll": call(h, bo, "GET /events", events)}
		synctest.Wait()
		for name, p := range map[string]params{
			"POST /messages":                        {"type": "stream", "to": "one", "topic": "t", "content": "under way"},
			"POST /messages/{message_id}/reactions": {"message_id": sent["id"], "emoji_name": "wave"},
		} {
			waiting[name] = call(h, ann, name, p)
			synctest.Wait()
		}
		waiting["GET /messages"] = call(h, bo, "GET /messages", params{"anchor": "newest", "num_before": 10, "num_after": 0})
		// This one is refused because of a fact that is under way: who hears of it could infer the fact.
		waiting["again"] = call(h, ann, "POST /messages/{message_id}/reactions", params{"message_id": sent["id"], "emoji_name": "wave"})
		synctest.Wait()
		for name, m := range waiting {
			select {
			case a := <-m:
				t.Errorf("%s was answered before the disk had written: %d %v", name, a.status, a.body)
			default:
			}
		}
		if t.Failed() {
			d.crash()
			for len(d.writes) > 0 {
				(<-d.writes).done <- nil
			}
			closeServer(t, h)
			return
		}
		for range 2 { // the second append carries what came while the first was under way
			w := <-d.writes
			w.done <- w.do()
			synctest.Wait()
		}
		if a := <-waiting["again"]; a.status != 400 || a.body["code"] != "REACTION_ALREADY_EXISTS" {
			t.Errorf("the second reaction: %d %v", a.status, a.body)
		}
		if a := <-waiting["GET /messages"]; len(a.body["messages"].([]any)) < 2 {
			t.Errorf("read %v", a.body["messages"])
		}
		if a := <-waiting["poll"]; len(a.body["events"].([]any)) == 0 {
			t.Error("the poll was answered with nothing")
		}
		for _, name := range []string{"POST /messages", "POST /messages/{message_id}/reactions"} {
			if a := <-waiting[name]; a.status != 200 {
				t.Errorf("%s: %d %v", name, a.status, a.body)
			}
		}
		d.crash()
		closeServer(t, h)
	})
}

// closeServer stops a house whose disk has crashed: it must not hang.
func closeServer(t testing.TB, h *Server) {
	t.Helper()
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// fakeOutbox records the jobs that it gets.
type fakeOutbox struct{ jobs []realm.OutboxJob }

func (o *fakeOutbox) AddJobs(_ realm.ID, _ realm.Site, f *realm.OutboxJobsAdded) {
	o.jobs = append(o.jobs, f.List...)
}

// The outbox gets a job when its fact is on disk, once. After a restart it does not get it again: it reads the jobs that
// wait from the realm.
func TestOutboxGetsDurableJobs(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		h := openServer(t, d)
		createOrganization(t, h, "ann")
		o := &fakeOutbox{}
		h.SetOutbox(o, false, false)
		d.mu.Lock()
		d.writes = make(chan *pendingWrite, 10)
		d.mu.Unlock()
		go h.Turn(1, realm.Caller{System: true}, func(t *realm.Turn) (any, error) {
			t.SendEmails(realm.Email{To: "someone@example.org"})
			return nil, nil
		})
		synctest.Wait()
		if len(o.jobs) > 0 {
			t.Error("the outbox got a job before it was on disk")
		}
		w := <-d.writes
		w.done <- w.do()
		synctest.Wait()
		if len(o.jobs) != 1 || o.jobs[0].Letter.To != "someone@example.org" {
			t.Errorf("jobs in the outbox: %+v", o.jobs)
		}
		d.crash()
		closeServer(t, h)

		h = openServer(t, &slowDisk{diskContents: d.diskContents})
		h.SetOutbox(o, false, false)
		synctest.Wait()
		if len(o.jobs) != 1 {
			t.Errorf("%d jobs after a restart, want the one from before", len(o.jobs))
		}
		closeServer(t, h)
	})
}
