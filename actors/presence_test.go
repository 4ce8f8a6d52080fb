package actors

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A crash loses at most the presence of the last half minute, although presence is in no fact.
func TestPresenceSurvivesACrash(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann", "bo")
		srv.ReportPresence(1, people[0], true)
		time.Sleep(60 * time.Second) // presence was stored once, and is stored again
		want, _ := srv.ReportPresence(1, people[1], true)
		time.Sleep(30 * time.Second)
		d.crash()
		after := openServer(t, &slowDisk{diskContents: d.diskContents})
		if got := after.PresenceOf(1, people[1]); got == nil || *got != want {
			t.Errorf("presence after a crash: %v instead of %v", got, want)
		}
		if next, _ := after.ReportPresence(1, people[0], true); next.Update <= want.Update+1 {
			t.Errorf("update id %d after a crash may have been used before", next.Update)
		}
		closeServer(t, after)
		closeServer(t, srv)
	})
}

// A snapshot has newer presence than the rows that are being stored when it begins, so it is written after them.
func TestPresenceIsStoredBeforeANewerSnapshot(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann")
		time.Sleep(40 * time.Second)
		d.mu.Lock()
		d.writes = make(chan *pendingWrite, 100)
		d.mu.Unlock()
		srv.ReportPresence(1, people[0], true)
		time.Sleep(30 * time.Second)
		early := <-d.writes
		if early.what != "presence" {
			t.Fatalf("a write of %s is in progress", early.what)
		}
		time.Sleep(60 * time.Second)
		want, _ := srv.ReportPresence(1, people[0], true)
		saved := make(chan error, 1)
		go func() { saved <- srv.Save(context.Background()) }()
		synctest.Wait()
		if len(d.writes) > 0 {
			t.Error("the snapshot is written before older presence")
		}
		early.done <- early.do()
		next := <-d.writes
		next.done <- next.do()
		if err := <-saved; err != nil || next.what != "snapshot" {
			t.Errorf("write of %s: %v", next.what, err)
		}
		d.crash()
		after := openServer(t, &slowDisk{diskContents: d.diskContents})
		if got := after.PresenceOf(1, people[0]); got == nil || *got != want {
			t.Errorf("presence after a crash: %v instead of %v", got, want)
		}
		closeServer(t, after)
		closeServer(t, srv)
	})
}
