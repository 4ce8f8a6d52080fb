package actors

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/realm"
)

// copied returns a copy, as a successor process gets it.
func (p *diskContents) copied() *diskContents {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &diskContents{
		epoch: p.epoch,
		facts: slices.Clone(p.facts),
		rows:  p.rows,
		table: maps.Clone(p.table),
		texts: maps.Clone(p.texts),
	}
}

// openSuccessor lets a server hand over to another one. The successor reads a copy of the disk before late is called,
// and the rest after it.
func openSuccessor(t *testing.T, srv *Server, p *diskContents, frozen bool, late func()) *Server {
	t.Helper()
	ctx := context.Background()
	if err := srv.Save(ctx); err != nil {
		t.Fatal(err)
	}
	if frozen {
		if err := srv.Freeze(ctx); err != nil {
			t.Fatal(err)
		}
	}
	lent := p.copied()
	before, err := Preload(&slowDisk{diskContents: lent}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	late()
	closeServer(t, srv)
	p.mu.Lock()
	moved := p.rows != lent.rows
	p.mu.Unlock()
	if moved == frozen {
		t.Errorf("frozen: %v, rows changed: %v", frozen, moved)
	}
	return openServerWith(t, &slowDisk{diskContents: p}, Options{Preloaded: before})
}

// Everything that happens while a successor reads is there when it serves: messages, accounts, presence, and the events
// of a client that was away, in order and once. The same holds if rows were written in between, so that the successor
// must read again.
func TestSuccessorMissesNothing(t *testing.T) {
	for _, frozen := range []bool{true, false} {
		t.Run(fmt.Sprintf("frozen %v", frozen), func(t *testing.T) {
			runSynctest(t, func(t *testing.T) {
				p := newDiskContents()
				srv := openServer(t, &slowDisk{diskContents: p})
				people := createOrganization(t, srv, "ann", "bo", "cy")
				away, here := follow(t, srv, people[1]), follow(t, srv, people[2])
				n := 0
				say := func(srv *Server, times int) {
					for range times {
						mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one",
							"topic": "t", "content": fmt.Sprint("number ", n)})
						n++
					}
				}
				say(srv, 20)
				here.poll(t)
				srv.ReportPresence(1, people[1], true)
				var dora realm.UserID
				for round := range 3 { // several successors in a row
					old := srv
					srv = openSuccessor(t, srv, p, frozen, func() {
						say(old, 10)
						here.poll(t)
						time.Sleep(2 * time.Minute)
						old.ReportPresence(1, people[2], true)
						id, err := old.Turn(1, realm.Caller{System: true, Client: "Internal"},
							func(tn *realm.Turn) (any, error) {
								return realm.CreateUser{
									Email:      fmt.Sprintf("dora%d@example.org", round),
									Name:       "Dora",
									Role:       realm.Member,
									Key:        Token(32),
									First:      true,
									NoDefaults: true,
								}.Decide(tn)
							})
						if err != nil {
							t.Fatal(err)
						}
						dora = id.(realm.UserID)
						mustCall(t, old, people[0], "PATCH /settings", params{"full_name": fmt.Sprint("Ann ", round)})
						say(old, 10)
					})
					away.srv, here.srv = srv, srv
					synctest.Wait()
					if a, ok := srv.AccountByEmail(1, fmt.Sprintf("dora%d@example.org", round)); !ok || a.User != dora {
						t.Errorf("user who joined while the successor read: %v %v", a, ok)
					}
					if a, ok := srv.AccountByEmail(1, "ann@example.org"); !ok || a.User != people[0] {
						t.Errorf("user from before: %v %v", a, ok)
					}
					if r := srv.PresenceOf(1, people[2]); r == nil || r.Active != time.Now().Unix() {
						t.Errorf("presence reported while the successor read: %+v, now %d", r, time.Now().Unix())
					}
					if r := srv.PresenceOf(1, people[1]); r == nil {
						t.Error("presence from before is lost")
					}
					say(srv, 5)
				}
				here.poll(t)
				away.poll(t)
				synctest.Wait()
				if a := here.poll(t); a.status != 200 || here.messages != n {
					t.Errorf("client that polled: status %d, got %d of %d messages", a.status, here.messages, n)
				}
				if a := away.poll(t); a.status != 200 || away.messages != n {
					t.Errorf("client that was away: status %d, got %d of %d messages", a.status, away.messages, n)
				}
				closeServer(t, srv)
			})
		})
	}
}

// A frozen realm whose journal gets too long writes its rows all the same.
func TestFrozenRealmJournalIsBounded(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		p := newDiskContents()
		srv := openServer(t, &slowDisk{diskContents: p})
		const limit = 50_000
		srv.owner.MaxFrozenBytes.Store(limit)
		people := createOrganization(t, srv, "ann", "bo")
		if err := srv.Freeze(context.Background()); err != nil {
			t.Fatal(err)
		}
		stood := p.copied().rows
		sent := 0
		for ; p.copied().rows == stood; sent++ {
			if sent > limit/10 {
				t.Fatalf("no rows were written after %d messages", sent)
			}
			mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
				"content": "hello"})
			synctest.Wait()
		}
		if sent < limit/1000 {
			t.Errorf("rows were written after only %d messages", sent)
		}
		closeServer(t, srv)
	})
}
