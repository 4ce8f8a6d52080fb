package actors

import (
	"testing"
	"time"

	"parley/actors/mailbox"
	"parley/actors/presence"
	"parley/actors/realm"
)

// presenceOwner notes the batches that an edge sends to the owner.
type presenceOwner struct {
	OwnerLink
	batches [][]presence.Report
}

func (o *presenceOwner) ReportPresence(_ realm.ID, list []presence.Report) {
	o.batches = append(o.batches, list)
}

// An edge shows a report of its client at once. The first report after a quiet time is sent to the owner at once, the
// next ones together 3 seconds later. A report that the owner does not confirm is forgotten, and so is that of a user
// who appears offline.
func TestEdgePresence(t *testing.T) {
	clock, owner := 10_000*time.Second, &presenceOwner{}
	random := &simRuntime{mailboxes: map[mailbox.Address]*simMailbox{}}
	srv := &Server{runtime: random, now: func() time.Time { return time.Unix(0, 0).Add(clock) },
		sinceOpen: func() time.Duration { return clock }}
	p := &presenceActor{srv: srv, realm: &realmHandle{id: 1, owner: &remoteOwner{OwnerLink: owner}},
		table: presence.New(), seen: &lastSeenTable{}}
	p.realm.presence = random.Spawn(p)
	tell := func(m any) { p.Receive(m) }
	report := func(u realm.UserID) { tell(&presenceReport{user: u, active: true, done: func(presence.Row, bool) {}}) }
	connected := func(u realm.UserID) int64 {
		m := &presenceOf{u, make(chan *presence.Row, 1)}
		tell(m)
		if r := <-m.reply; r != nil {
			return r.Connected
		}
		return 0
	}
	listed := func(update int64) int {
		m := &presenceSince{update, 0, make(chan []presence.Row, 1)}
		tell(m)
		return len(<-m.reply)
	}
	expect := func(what string, got, want int64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d instead of %d", what, got, want)
		}
	}
	report(1)
	expect("batches at once", int64(len(owner.batches)), 1)
	expect("connected at the edge", connected(1), 10_000)
	clock += time.Second
	report(2)
	report(3)
	report(2)
	expect("batches a second later", int64(len(owner.batches)), 1)
	expect("connected and not sent yet", connected(3), 10_001)
	expect("rows of a client that has seen newer ones", int64(listed(500)), 3)
	clock += 2 * time.Second
	for _, do := range random.background { // the timer
		do()
	}
	random.order[0].receiveNext()
	expect("batches after 3 seconds", int64(len(owner.batches)), 2)
	expect("reports in the second batch", int64(len(owner.batches[1])), 2)
	tell(restorePresence{[]presence.Row{{User: 2, Active: 10_001, Connected: 10_001, Update: 7}}})
	tell(restorePresence{[]presence.Row{{User: 2, Active: 9_800, Connected: 9_800, Update: 8}}})
	expect("a user that appears offline", connected(2), 9_800)
	clock += unconfirmedSeconds * time.Second
	expect("a report that the owner has not confirmed", connected(3), 0)
	expect("rows after that", int64(listed(0)), 1)
	report(4)
	expect("reports that are remembered", int64(len(p.edge.unconfirmed)), 1)
}
