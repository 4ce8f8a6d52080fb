package actors

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// copied is what a successor is lent.
func (p *diskContents) copied() *diskContents {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &diskContents{epoch: p.epoch, facts: slices.Clone(p.facts), rows: p.rows, table: maps.Clone(p.table), texts: maps.Clone(p.texts)}
}

// openSuccessor is one house that gives way to another: lent is what the successor reads before, late what happens after.
func openSuccessor(t *testing.T, h *Server, p *diskContents, frozen bool, late func()) *Server {
	t.Helper()
	ctx := context.Background()
	if err := h.Save(ctx); err != nil {
		t.Fatal(err)
	}
	if frozen {
		if err := h.Freeze(ctx); err != nil {
			t.Fatal(err)
		}
	}
	lent := p.copied()
	before, err := Preload(&slowDisk{diskContents: lent}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	late()
	closeServer(t, h)
	p.mu.Lock()
	moved := p.rows != lent.rows
	p.mu.Unlock()
	if moved == frozen {
		t.Errorf("frozen %v, and rows that have moved: %v", frozen, moved)
	}
	next, err := Open(&slowDisk{diskContents: p}, Options{Protocol: wire.SessionProtocol{}, Renderer: &wire.Renderer{}, Log: slog.New(slog.DiscardHandler), Site: testSite, Preloaded: before, Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// What happens while a successor reads is there when it serves: messages, accounts, presence, and events for who was away,
// in order and once. Also when rows were written meanwhile, so that it had read in vain.
func TestSuccessorMissesNothing(t *testing.T) {
	for _, frozen := range []bool{true, false} {
		t.Run(fmt.Sprintf("frozen %v", frozen), func(t *testing.T) {
			runSynctest(t, func(t *testing.T) {
				p := newDiskContents()
				h := openServer(t, &slowDisk{diskContents: p})
				people := createOrganization(t, h, "ann", "bo", "cy")
				away, here := follow(t, h, people[1]), follow(t, h, people[2])
				n := 0
				say := func(h *Server, times int) {
					for range times {
						mustCall(t, h, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t", "content": fmt.Sprint("number ", n)})
						n++
					}
				}
				say(h, 20)
				here.poll(t)
				h.ReportPresence(1, people[1], true)
				var dora realm.UserID
				for round := range 3 { // one successor after another
					old := h
					h = openSuccessor(t, h, p, frozen, func() {
						say(old, 10)
						here.poll(t)
						time.Sleep(2 * time.Minute)
						old.ReportPresence(1, people[2], true)
						id, err := old.Turn(1, realm.Caller{System: true, Client: "Internal"}, func(tn *realm.Turn) (any, error) {
							return realm.CreateUser{Email: fmt.Sprintf("dora%d@example.org", round), Name: "Dora", Role: realm.Member, Key: Token(32), First: true, NoDefaults: true}.Decide(tn)
						})
						if err != nil {
							t.Fatal(err)
						}
						dora = id.(realm.UserID)
						mustCall(t, old, people[0], "PATCH /settings", params{"full_name": fmt.Sprint("Ann ", round)})
						say(old, 10)
					})
					away.h, here.h = h, h
					synctest.Wait()
					if a, ok := h.AccountByEmail(1, fmt.Sprintf("dora%d@example.org", round)); !ok || a.User != dora {
						t.Errorf("who joined while the successor read: %v %v", a, ok)
					}
					if a, ok := h.AccountByEmail(1, "ann@example.org"); !ok || a.User != people[0] {
						t.Errorf("who was there before: %v %v", a, ok)
					}
					if r := h.PresenceOf(1, people[2]); r == nil || r.Active != time.Now().Unix() {
						t.Errorf("presence of who came while the successor read: %+v, now %d", r, time.Now().Unix())
					}
					if r := h.PresenceOf(1, people[1]); r == nil {
						t.Error("presence from before is gone")
					}
					say(h, 5)
				}
				here.poll(t)
				away.poll(t)
				synctest.Wait()
				if a := here.poll(t); a.status != 200 || here.got != n {
					t.Errorf("who polled: %d, heard %d of %d messages", a.status, here.got, n)
				}
				if a := away.poll(t); a.status != 200 || away.got != n {
					t.Errorf("who was away: %d, heard %d of %d messages", a.status, away.got, n)
				}
				closeServer(t, h)
			})
		})
	}
}

// A realm that happens too much while it is frozen writes its rows again, and goes on.
func TestFrozenRealmJournalIsBounded(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		p := newDiskContents()
		h := openServer(t, &slowDisk{diskContents: p})
		const limit = 50_000
		h.maxFrozenBytes.Store(limit)
		people := createOrganization(t, h, "ann", "bo")
		if err := h.Freeze(context.Background()); err != nil {
			t.Fatal(err)
		}
		stood := p.copied().rows
		sent := 0
		for ; p.copied().rows == stood; sent++ {
			if sent > limit/10 {
				t.Fatalf("no rows after %d messages", sent)
			}
			mustCall(t, h, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t", "content": "hello"})
			synctest.Wait()
		}
		if sent < limit/1000 {
			t.Errorf("rows after %d messages already", sent)
		}
		closeServer(t, h)
	})
}
