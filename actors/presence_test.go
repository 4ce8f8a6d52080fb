package actors

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/owner"
	"parley/actors/presence"
	"parley/actors/realm"
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

// An update id is never given twice, however often the server is killed before it stores presence. Otherwise a client
// that continues with its cursor would not get the presence of the users that are active after the kill.
func TestPresenceUpdateIDsAreUniqueOverCrashes(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann", "bo")
		if err := srv.Save(context.Background()); err != nil {
			t.Fatal(err)
		}
		cursor := int64(0)
		for run := range 4 {
			for _, u := range people {
				cursor = expectNewUpdateID(t, srv, u, cursor, fmt.Sprintf("run %d", run))
			}
			d.crash()
			closeServer(t, srv)
			d = &slowDisk{diskContents: d.diskContents}
			srv = openServer(t, d)
		}
		closeServer(t, srv)
	})
}

// expectNewUpdateID reports a user as active and requires that a client with a cursor gets the user's row. It returns
// the client's next cursor.
func expectNewUpdateID(t *testing.T, srv *Server, u realm.UserID, cursor int64, what string) int64 {
	t.Helper()
	row, _ := srv.ReportPresence(1, u, true)
	if row.Update <= cursor {
		t.Errorf("%s: update id %d after %d", what, row.Update, cursor)
	}
	changed := srv.PresenceSince(1, cursor, 0)
	if !slices.Contains(changed, row) {
		t.Errorf("%s: a client with cursor %d gets %v, without %v", what, cursor, changed, row)
	}
	return row.Update
}

// In a cluster it is the same over changes of the leader, also if no leader has sent its presence to the next one.
func TestPresenceUpdateIDsAreUniqueOverLeaders(t *testing.T) {
	all := newCores(t, "a", "b", "c")
	people := all.found("ann", "bo")
	cursor := int64(0)
	for run := range 4 {
		leader := all.leader()
		all.wait("own the organization", func() bool { return leader.srv.Owns(1) })
		row, _ := leader.srv.ReportPresence(1, people[0], run%2 == 0) // it may be too soon to change anything
		cursor = max(cursor, row.Update)
		hidden := leader.srv.HidePresence(1, people[1])
		if hidden.Update <= cursor {
			t.Errorf("leader %d: update id %d after %d", run, hidden.Update, cursor)
		}
		cursor = hidden.Update
		to := all.standby()
		all.wait("open the organization", func() bool { return to.srv.find(1) != nil })
		if err := leader.node.MoveLeader(to.name); err != nil {
			t.Fatal(err)
		}
		all.wait("lead", func() bool { return to.srv.Owns(1) })
	}
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

// A core stores the presence that the owner sends, so it has it after all cores were killed. When it becomes the owner,
// its update ids are above those that clients have from the owner before, and it takes no rows any more.
func TestStandbyStoresPresence(t *testing.T) {
	all := newCores(t, "a", "b", "c")
	people := all.found("ann", "bo")
	c := all.standby()
	all.wait("open the organization", func() bool { return c.srv.find(1) != nil })
	now := time.Now().Unix()
	row := presence.Row{User: people[0], Active: now - 20, Connected: now - 10, Update: 700}
	c.srv.RestorePresence(1, []presence.Row{row})
	c.elapsed.Add(int64(owner.PresenceInterval * time.Second))
	stored := func() presence.Row {
		table := presence.New()
		if err := c.node.Journal().LoadPresence(1, table); err != nil {
			t.Fatal(err)
		}
		r, _ := table.Get(people[0])
		return r
	}
	all.wait("store the presence", func() bool {
		c.srv.runtime.Send(c.srv.find(1).pid, clockTick{now})
		return stored() == row
	})
	if err := all.leader().node.MoveLeader(c.name); err != nil {
		t.Fatal(err)
	}
	all.wait("lead", func() bool { return c.srv.Owns(1) })
	if got := c.srv.PresenceOf(1, people[0]); got == nil || *got != row {
		t.Errorf("presence at the new owner: %v instead of %v", got, row)
	}
	next, _ := c.srv.ReportPresence(1, people[1], true)
	if next.Update <= row.Update+1000 { // in 3 seconds, clients may have got so many from the owner before
		t.Errorf("update id %d of the new owner may have been used before", next.Update)
	}
	c.srv.RestorePresence(1, []presence.Row{{User: people[0], Active: 1, Connected: 1, Update: 1}})
	if got := c.srv.PresenceOf(1, people[0]); got == nil || *got != row {
		t.Errorf("the owner has taken over a row of another core: %v", got)
	}
}
