package actors

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"parley/actors/realm"
	"parley/actors/stream"
	"parley/wire"
)

// runSynctest runs a test with goroutines and a clock of its own. Reply channels are pooled, and must not leave the
// synctest bubble in which they were made.
func runSynctest(t *testing.T, test func(t *testing.T)) {
	fresh := func() { replies = sync.Pool{New: func() any { return make(chan stream.Result, 1) }} }
	fresh()
	defer fresh()
	synctest.Test(t, test)
}

func openServer(t testing.TB, d Disk) *Server {
	t.Helper()
	return openServerWith(t, d, Options{})
}

// openServerWith opens a server with some options of its own.
func openServerWith(t testing.TB, d Disk, o Options) *Server {
	t.Helper()
	o.Protocol, o.Renderer = wire.SessionProtocol{Encodings: wire.NewEventEncodings()}, &wire.Renderer{}
	o.Log, o.Site = slog.New(slog.DiscardHandler), testSite
	if o.Fatal == nil {
		o.Fatal = func(err error) { t.Errorf("fatal: %v", err) }
	}
	srv, err := Open(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

// While a write is in progress, nothing may leave that depends on it: no answer to the sender, no event, no read.
// Refusals of other commands that depend on it wait as well.
func TestNothingIsSentBeforeItIsDurable(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann", "bo")
		ann, bo := people[0], people[1]
		q := mustCall(t, srv, bo, "POST /register", params{"event_types": []string{"message", "reaction"}})
		sent := mustCall(t, srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
			"content": "before"})
		events := params{"queue_id": q["queue_id"], "last_event_id": q["last_event_id"]}
		events["last_event_id"] = mustCall(t, srv, bo, "GET /events",
			events)["events"].([]any)[0].(map[string]any)["id"]

		d.mu.Lock()
		d.writes = make(chan *pendingWrite, 100)
		d.mu.Unlock()
		waiting := map[string]responseChan{"poll": call(srv, bo, "GET /events", events)}
		synctest.Wait()
		for name, p := range map[string]params{
			"POST /messages": {"type": "stream", "to": "one", "topic": "t",
				"content": "under way"},
			"POST /messages/{message_id}/reactions": {"message_id": sent["id"], "emoji_name": "wave"},
		} {
			waiting[name] = call(srv, ann, name, p)
			synctest.Wait()
		}
		waiting["GET /messages"] = call(srv, bo, "GET /messages", params{"anchor": "newest", "num_before": 10,
			"num_after": 0})
		// The reason of this refusal is a fact that is not on disk: the refusal would tell about it.
		waiting["again"] = call(srv, ann, "POST /messages/{message_id}/reactions",
			params{"message_id": sent["id"], "emoji_name": "wave"})
		synctest.Wait()
		for name, m := range waiting {
			select {
			case a := <-m:
				t.Errorf("%s was answered before the write finished: %d %v", name, a.status, a.body)
			default:
			}
		}
		if t.Failed() {
			d.crash()
			for len(d.writes) > 0 {
				(<-d.writes).done <- nil
			}
			closeServer(t, srv)
			return
		}
		for range 2 { // the second append has the facts that arrived during the first
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
			t.Error("the poll was answered without events")
		}
		for _, name := range []string{"POST /messages", "POST /messages/{message_id}/reactions"} {
			if a := <-waiting[name]; a.status != 200 {
				t.Errorf("%s: %d %v", name, a.status, a.body)
			}
		}
		d.crash()
		closeServer(t, srv)
	})
}

// closeServer stops a server. It must not hang, even after its disk has crashed.
func closeServer(t testing.TB, srv *Server) {
	t.Helper()
	if err := srv.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// fakeOutbox records the jobs that it gets.
type fakeOutbox struct{ jobs []realm.OutboxJob }

func (o *fakeOutbox) AddJobs(_ realm.ID, _ realm.Site, f *realm.OutboxJobsAdded) {
	o.jobs = append(o.jobs, f.List...)
}

// The outbox gets a job when its fact is on disk, once. After a restart it does not get the job again: it reads the
// waiting jobs from the realm.
func TestOutboxGetsDurableJobs(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		createOrganization(t, srv, "ann")
		o := &fakeOutbox{}
		srv.SetOutbox(o, false, false)
		d.mu.Lock()
		d.writes = make(chan *pendingWrite, 10)
		d.mu.Unlock()
		go srv.Turn(1, realm.Caller{System: true}, func(t *realm.Turn) (any, error) {
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
		closeServer(t, srv)

		srv = openServer(t, &slowDisk{diskContents: d.diskContents})
		srv.SetOutbox(o, false, false)
		synctest.Wait()
		if len(o.jobs) != 1 {
			t.Errorf("%d jobs after a restart, want the one from before", len(o.jobs))
		}
		closeServer(t, srv)
	})
}
