package actors

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/snapshot/codec"
)

// A batch that the journal refuses ends the ownership of its realm, not the process: the sender gets an error that asks
// for a retry, no queue gets an event, and the realm goes on with the state of the journal.
func TestRefusedBatchEndsOwnership(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann", "bo")
		ann, bo := people[0], people[1]
		q := mustCall(t, srv, bo, "POST /register", params{"event_types": []string{"message"}})
		send := func(text string) response {
			return <-call(
				srv,
				ann,
				"POST /messages",
				params{"type": "stream", "to": "one", "topic": "t", "content": text},
			)
		}
		duty := &recordedDuty{}
		srv.AddOwnerTask(duty)
		first := send("before")
		d.diskContents.mu.Lock()
		d.refuse = 1
		d.diskContents.mu.Unlock()
		before := d.last()
		if a := send("refused"); a.status != 503 || a.body["code"] != "SERVER_OVERLOADED" {
			t.Errorf("the refused message was answered %d %v", a.status, a.body)
		}
		if d.last() != before {
			t.Errorf("the journal went from fact %d to %d", before, d.last())
		}
		var second response
		for range 1000 { // the realm is loaded in the background
			if second = send("after"); second.status != 503 {
				break
			}
		}
		if second.status != 200 || second.body["id"].(float64) != first.body["id"].(float64)+1 {
			t.Fatalf("the next message was answered %d %v, the first one %v", second.status, second.body, first.body)
		}
		expectTexts(t, srv, bo, q["queue_id"], "before", "after")
		if got := duty.String(); got != "[begin 1 end 1 begin 1]" {
			t.Errorf("the duties of the realm: %s", got)
		}
		if n := srv.Metrics.OwnershipsLost.Load(); n != 1 {
			t.Errorf("%d ownerships were lost", n)
		}
		closeServer(t, srv)
	})
}

// Another process may have added facts when an owner is refused: its clients get their events.
func TestReloadPublishesFactsOfAnotherOwner(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann", "bo")
		ann, bo := people[0], people[1]
		q := mustCall(t, srv, bo, "POST /register", params{"event_types": []string{"message"}})

		other, err := loadFrom(d)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := d.Claim(1, realm.AnyEpoch)
		_, facts, _, err := realm.RunTurn(
			other,
			realm.Caller{User: ann, Client: "other"},
			realm.TurnEnv{Now: 1_800_000_000},
			func(t *realm.Turn) (any, error) {
				return realm.SendMessage{People: []realm.Principal{{ID: bo}},
					Body: realm.Body{Text: "elsewhere", HTML: "<p>elsewhere</p>"}}.Decide(t)
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		b := realm.NewBatch(other, c.Epoch, facts, func(f realm.Fact) []byte { return codec.EncodeFact(f) })
		if err := errors.Join(d.Append([]realm.Batch{b})...); err != nil {
			t.Fatal(err)
		}
		p := params{"type": "direct", "to": []realm.UserID{bo}, "content": "here"}
		for i := range 1000 {
			a := <-call(srv, ann, "POST /messages", p)
			if a.status == 200 {
				break
			}
			if a.status != 503 || i == 999 {
				t.Fatalf("answered %d %v", a.status, a.body)
			}
		}
		expectTexts(t, srv, bo, q["queue_id"], "elsewhere", "here")
		closeServer(t, srv)
	})
}

// expectTexts requires that the events of a queue are messages with these texts.
func expectTexts(t *testing.T, srv *Server, u realm.UserID, queue any, want ...string) {
	t.Helper()
	events := mustCall(t, srv, u, "GET /events", params{"queue_id": queue, "last_event_id": -1})
	var texts []string
	for _, e := range events["events"].([]any) {
		texts = append(texts, fmt.Sprint(e.(map[string]any)["message"].(map[string]any)["content"]))
	}
	if !slices.Equal(texts, want) {
		t.Errorf("user %d got the messages %q, want %q", u, texts, want)
	}
}

// recordedDuty records its calls.
type recordedDuty struct {
	mu    sync.Mutex
	calls []string
}

func (d *recordedDuty) Begin(id realm.ID) { d.record("begin", id) }
func (d *recordedDuty) End(id realm.ID)   { d.record("end", id) }

func (d *recordedDuty) record(call string, id realm.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, fmt.Sprint(call, " ", id))
}

func (d *recordedDuty) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprint(d.calls)
}

// loadFrom loads realm 1 as it is on disk.
func loadFrom(d *slowDisk) (*realm.Realm, error) {
	rows, _, _ := d.Bounds(1)
	l, err := load(d, 1, rows, time.Unix(1_800_000_000, 0))
	if err != nil {
		return nil, err
	}
	return l.realm, nil
}
