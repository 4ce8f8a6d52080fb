package actors

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/delivery"
	"parley/actors/realm"
)

// createBots creates generic bots of a user in the organization of createOrganization.
func createBots(t *testing.T, srv *Server, owner realm.UserID, n int) (bots []realm.UserID) {
	t.Helper()
	for i := range n {
		name := fmt.Sprint("robot", owner, "x", i)
		a := mustCall(t, srv, owner, "POST /bots", params{"full_name": name, "short_name": name})
		bots = append(bots, realm.UserID(a["user_id"].(float64)))
	}
	return bots
}

// The bots of a member, each within the share of an account, lose queues when all of them together exceed it. The
// member's own queue is the last one that ends. Another member and another member's bot lose nothing.
func TestBotsUseTheShareOfTheirOwner(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
		srv.delivery.Limits.Realm.Store(8 << 20)
		const share = 256 << 10
		srv.delivery.Limits.Account.Store(share)
		people := createOrganization(t, srv, "eve", "bo")
		eve, bo := people[0], people[1]
		bots := createBots(t, srv, eve, 6)
		others := createBots(t, srv, bo, 1)
		own, other := follow(t, srv, eve), []*follower{follow(t, srv, bo), follow(t, srv, others[0])}
		var queues []*follower
		for _, b := range bots {
			queues = append(queues, follow(t, srv, b))
		}
		time.Sleep(delivery.EvictionGrace * time.Second)
		for range 8 { // about 100 kB for each bot, and for the bot of the other member
			for _, to := range append(bots, others[0]) {
				sendLarge(t, srv, bo, to)
			}
			own.poll(t)
			other[0].poll(t)
			synctest.Wait()
		}
		before := srv.Metrics.UnackedBytes.Load()
		if before < 2*share {
			t.Fatalf("only %d bytes are stored", before)
		}
		time.Sleep(2 * delivery.UsageInterval * time.Second)
		synctest.Wait()
		ended := 0
		for _, f := range queues {
			if a := f.poll(t); a.body["code"] == "BAD_EVENT_QUEUE_ID" {
				ended++
			}
		}
		if ended < 3 || ended == len(queues) {
			t.Errorf("%d of %d queues of the bots ended", ended, len(queues))
		}
		expectEnded(t, "the owner, who polls", false, own)
		expectEnded(t, "another member and the bot of another member", false, other...)
		sendLarge(t, srv, bo, bo) // the usage is computed again after a fact
		time.Sleep(2 * delivery.UsageInterval * time.Second)
		synctest.Wait()
		if n := srv.LargestAccountBytes(); n > share {
			t.Errorf("the accounts of one member use %d bytes of %d", n, share)
		}
		closeServer(t, srv)
	})
}

// Bots and their owner have one limit for the number of unacked events, although session actors do not share queues.
func TestEventsInQueuesOfBots(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
		srv.delivery.MaxRefs.Store(100)
		people := createOrganization(t, srv, "eve", "bo")
		bots := createBots(t, srv, people[0], 8)
		mustCall(t, srv, people[0], "POST /users/me/subscriptions",
			params{"subscriptions": []any{map[string]any{"name": "one"}}, "principals": bots})
		var queues []*follower
		for _, b := range bots {
			queues = append(queues, follow(t, srv, b))
		}
		other := follow(t, srv, people[1])
		time.Sleep(delivery.EvictionGrace * time.Second)
		for range 20 { // 160 events of the bots together, 20 of the other member
			sendLarge(t, srv, people[1], 0)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		open := 0
		for _, f := range queues {
			if a := f.poll(t); a.status == 200 {
				open++
			}
		}
		if open*20 > 100 {
			t.Errorf("%d queues with 20 events each are open for one member, who may have 100 events", open)
		}
		expectEnded(t, "another member", false, other)
		closeServer(t, srv)
	})
}

// The account that is charged for a bot follows the bot's owner, and the owners of that owner, at once.
func TestChargedAccountOfBots(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
		people := createOrganization(t, srv, "eve", "bo")
		bots := createBots(t, srv, people[0], 2)
		setOwner := func(bot, owner realm.UserID) {
			t.Helper()
			_, err := srv.Turn(1, realm.Caller{System: true, Client: "Internal"}, func(tn *realm.Turn) (any, error) {
				tn.Record(&realm.UserChanged{ID: bot, Owner: &owner})
				return nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		expect := func(want ...realm.UserID) {
			t.Helper()
			for i, u := range append(people, bots...) {
				if got, bot := srv.charged(1, u); got != want[i] || bot != (i >= len(people)) {
					t.Errorf("account %d is charged to %d (bot: %v), want %d", u, got, bot, want[i])
				}
			}
		}
		eve, bo := people[0], people[1]
		expect(eve, bo, eve, eve)
		setOwner(bots[1], bots[0]) // as imported data can have it
		expect(eve, bo, eve, eve)
		setOwner(bots[0], bo)
		expect(eve, bo, bo, bo)
		closeServer(t, srv)
	})
}
