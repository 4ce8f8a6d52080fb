package actors

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/delivery"
	"parley/actors/owner"
	"parley/actors/realm"
)

// expectEnded reports queues that are open although they had to end, or the other way round.
func expectEnded(t *testing.T, what string, ended bool, list ...*follower) {
	t.Helper()
	for i, f := range list {
		a := f.poll(t)
		if got := a.body["code"] == "BAD_EVENT_QUEUE_ID"; got != ended || !ended && a.status != 200 {
			t.Errorf("%s, queue %d: %d %v", what, i, a.status, a.body["msg"])
		}
	}
}

// sendLarge sends a message of about 2 kB to a user, or to a channel if that is 0.
func sendLarge(t *testing.T, srv *Server, from, to realm.UserID) {
	t.Helper()
	p := params{"type": "stream", "to": "one", "topic": "t", "content": strings.Repeat("many words ", 180)}
	if to != 0 {
		p["type"], p["to"] = "direct", []int64{int64(to)}
	}
	mustCall(t, srv, from, "POST /messages", p)
}

// An account that writes only to itself, with queues that acknowledge nothing, loses its oldest queues when it uses its
// share. The queues of others that are away stay, although the organization has stored more than it may, and a crash
// changes nothing about that.
func TestAccountUsesOnlyItsShare(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		const limit, share = 1 << 20, 128 << 10
		srv.delivery.Limits.Realm.Store(limit)
		srv.delivery.Limits.Account.Store(share)
		people := createOrganization(t, srv, "eve", "bo", "cy")
		eve, bo := people[0], people[1]
		away := follow(t, srv, bo)
		sendLarge(t, srv, people[2], 0)
		oldest := []*follower{follow(t, srv, eve), follow(t, srv, eve)}
		time.Sleep(delivery.EvictionGrace * time.Second)
		var newest *follower
		most := int64(0)
		for i := range 300 { // 1.6 MB
			if i%59 == 0 {
				newest = follow(t, srv, eve)
			}
			sendLarge(t, srv, eve, eve)
			if i%20 == 0 { // some of the events are on disk when they are dropped
				if err := srv.Save(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second / 2)
			synctest.Wait()
			most = max(most, srv.Metrics.UnackedBytes.Load())
		}
		time.Sleep(2 * delivery.UsageInterval * time.Second)
		synctest.Wait()
		expectEnded(t, "the account beyond its share", true, oldest...)
		n, m := srv.Metrics.QueuesEvictedForMemory.Load(), srv.Metrics.QueuesEvictedForAccount.Load()
		if n != 0 || m < 2 {
			t.Errorf("%d queues ended because of the organization, %d because of the account", n, m)
		}
		if most > 2*share || srv.LargestAccountBytes() > share {
			t.Errorf("at most %d bytes were stored, the account uses %d of %d", most, srv.LargestAccountBytes(), share)
		}
		time.Sleep(owner.SnapshotAge)
		sendLarge(t, srv, people[2], 0)
		synctest.Wait()
		stored := srv.Metrics.UnackedFacts.Load()
		d.crash()
		closeServer(t, srv)
		srv = openServer(t, &slowDisk{diskContents: d.diskContents})
		away.srv, newest.srv = srv, srv
		synctest.Wait()
		if n := srv.Metrics.UnackedFacts.Load(); n > stored+5 {
			t.Errorf("%d facts are stored after the crash, %d before", n, stored)
		}
		expectEnded(t, "the user that was away", false, away)
		expectEnded(t, "the newest queue", false, newest)
		if away.messages != 2 {
			t.Errorf("the user that was away got %d messages of 2", away.messages)
		}
		t.Logf("at most %d bytes stored; %d facts after that", most, stored)
		closeServer(t, srv)
	})
}

// Events that several accounts have not acknowledged are divided between them: one account alone loses its queues
// sooner than the accounts of a room in which many are away. Accounts that are not behind lose nothing.
func TestShareOfAccountsThatAreBehindTogether(t *testing.T) {
	for _, room := range []struct{ users, behind int }{{6, 1}, {6, 4}, {20, 1}, {20, 18}} {
		runSynctest(t, func(t *testing.T) {
			srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
			srv.delivery.Limits.Realm.Store(8 << 20)
			const share = 256 << 10
			srv.delivery.Limits.Account.Store(share)
			var names []string
			for i := range room.users {
				names = append(names, fmt.Sprint("user", i))
			}
			people := createOrganization(t, srv, names...)
			var behind, alive []*follower
			for i, u := range people {
				if f := follow(t, srv, u); i < room.behind {
					behind = append(behind, f)
				} else {
					alive = append(alive, f)
				}
			}
			time.Sleep(delivery.EvictionGrace * time.Second)
			sent := 0
			poll := func() {
				for _, f := range alive {
					f.poll(t)
				}
				synctest.Wait()
			}
			for ; srv.Metrics.UnackedBytes.Load() < 2*share; sent++ {
				sendLarge(t, srv, people[room.users-1], 0)
				poll()
			}
			poll()
			time.Sleep(2 * delivery.UsageInterval * time.Second)
			synctest.Wait()
			what := fmt.Sprint(room.behind, " of ", room.users, " are behind")
			expectEnded(t, what, room.behind == 1, behind...)
			expectEnded(t, what+", and the others", false, alive...)
			if alive[0].messages != sent {
				t.Errorf("an account that polls got %d messages of %d", alive[0].messages, sent)
			}
			closeServer(t, srv)
		})
	}
}

// An account with many queues loses the oldest ones when all of them together have too many events. Other accounts with
// as many events in one queue lose none.
func TestEventsInAllQueuesOfAnAccount(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
		srv.delivery.MaxRefs.Store(100)
		people := createOrganization(t, srv, "eve", "bo")
		other := follow(t, srv, people[1])
		var queues []*follower
		for range 10 {
			queues = append(queues, follow(t, srv, people[0]))
			sendLarge(t, srv, people[1], 0)
		}
		time.Sleep(delivery.EvictionGrace * time.Second)
		for range 5 { // 55 + 10*5 events, and 11 of them in the oldest ones
			sendLarge(t, srv, people[1], 0)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		expectEnded(t, "the oldest queues", true, queues[:3]...)
		expectEnded(t, "the newest queues", false, queues[3:]...)
		expectEnded(t, "another account", false, other)
		if n := srv.Metrics.QueuesEvictedForAccount.Load(); n != 3 {
			t.Errorf("%d queues are counted, want 3", n)
		}
		closeServer(t, srv)
	})
}
