package actors

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/delivery"
	"parley/actors/realm"
	"parley/actors/stream"
)

// A closed replica is forgotten with its accounts and queues, refuses callers that have found it before, and does not
// follow any more. It can be opened again, and the queues that it had are adopted with all their events.
func TestCloseReplica(t *testing.T) {
	d := openStore(t, vfs.NewMem())
	core := openServer(t, d)
	people := createOrganization(t, core, "ann", "bo")
	ann, bo := people[0], people[1]
	link := openEdge(t, core, d, "e0")
	edge := link.edge
	q, _ := registerAt(t, core, link, bo, "e0-1")
	mustCall(t, core, ann, "POST /messages", params{"type": "direct", "to": []realm.UserID{bo}, "content": "before"})
	waitFor(t, core, edge)
	if !edge.HasQueues(1) {
		t.Error("the edge has no queue")
	}
	polled := call(edge, bo, "GET /events", params{"queue_id": string(q.ID), "last_event_id": int64(1) << 30})
	found, closed := edge.find(1), seqOf(t, edge)
	if err := edge.CloseReplica(1); err != nil {
		t.Fatal(err)
	}
	<-polled // whatever the answer: the poll does not wait for ever
	reply := make(chan stream.Result, 1)
	edge.runtime.Send(found.pid, &ask{caller: realm.Caller{System: true}, reply: reply,
		view: func(realm.View) (any, error) { return nil, nil }})
	if a := <-reply; a.Err != delivery.ErrCannotFollow {
		t.Errorf("a closed replica answers: %v", a.Err)
	}
	if _, err := edge.View(1, realm.Caller{User: bo}, nil); err == nil || edge.HasQueues(1) || len(edge.Realms()) > 0 {
		t.Errorf("the replica is there: %v", err)
	}
	if err := edge.CloseReplica(1); err == nil || !strings.Contains(err.Error(), "not a replica") {
		t.Errorf("a replica is closed twice: %v", err)
	}
	if err := core.CloseReplica(1); err == nil {
		t.Error("the owner closes its realm")
	}
	mustCall(t, core, ann, "POST /messages", params{"type": "direct", "to": []realm.UserID{bo}, "content": "meanwhile"})
	if got := realm.Seq(found.durable.Load()); got != closed {
		t.Errorf("a closed replica has gone on from fact %d to %d", closed, got)
	}
	err := edge.OpenReplica(1, ReplicaOptions{Source: d, Owner: link,
		Home: func(request string) bool { return strings.HasPrefix(request, "e0-") }})
	if err != nil {
		t.Fatal(err)
	}
	edge.OwnerConnected(1)
	waitFor(t, core, edge)
	expectTexts(t, edge, bo, string(q.ID), "before", "meanwhile")
	closeServer(t, edge)
	closeServer(t, core)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
