package actors

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// TestQueueLifetime follows a queue through its life. A waiting poll gets a heartbeat within a minute and keeps its
// queue alive for as long as it waits. Without polls the queue lasts exactly as long as was asked for.
func TestQueueLifetime(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		ann := createOrganization(t, srv, "ann")[0]
		asked := mustCall(t, srv, ann, "POST /register", params{"event_types": []string{"message"},
			"idle_queue_timeout": 60})
		usual := mustCall(t, srv, ann, "POST /register", params{"event_types": []string{"message"}})
		if asked["idle_queue_timeout_secs"] != 60.0 || usual["idle_queue_timeout_secs"] != 600.0 {
			t.Errorf("timeouts in the answers: %v and %v seconds", asked["idle_queue_timeout_secs"],
				usual["idle_queue_timeout_secs"])
		}
		last := -1.0
		for range 3 { // three minutes, three times the queue's idle timeout
			began := time.Now()
			a := <-call(srv, ann, "GET /events", params{"queue_id": asked["queue_id"], "last_event_id": last})
			events, _ := a.body["events"].([]any)
			if a.status != 200 || len(events) != 1 || events[0].(map[string]any)["type"] != "heartbeat" {
				t.Fatalf("a poll without events is answered with %d %v", a.status, a.body)
			}
			if waited := time.Since(began); waited > time.Minute {
				t.Errorf("the heartbeat came after %v", waited)
			}
			last = events[0].(map[string]any)["id"].(float64)
		}
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if a := <-call(srv, ann, "GET /events", params{"queue_id": asked["queue_id"], "last_event_id": last,
			"dont_block": true}); a.status != 200 {
			t.Errorf("the queue ended too early: %v", a.body)
		}
		time.Sleep(70 * time.Second)
		synctest.Wait()
		for _, dontBlock := range []bool{true, false} {
			if a := <-call(srv, ann, "GET /events", params{"queue_id": asked["queue_id"], "last_event_id": last,
				"dont_block": dontBlock}); a.status != 400 || a.body["code"] != "BAD_EVENT_QUEUE_ID" {
				t.Errorf("after the queue's timeout: %d %v", a.status, a.body)
			}
		}
		if a := <-call(srv, ann, "GET /events", params{"queue_id": usual["queue_id"], "last_event_id": -1,
			"dont_block": true}); a.status != 200 {
			t.Errorf("the other queue: %v", a.body)
		}
		closeServer(t, srv)
	})
}

// A poll request that is sent again in the same memory, as a connection does, gets heartbeats like any other and keeps
// its queue alive, even if its client left for a time.
func TestRepeatedPollsGetHeartbeats(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		ann := createOrganization(t, srv, "ann")[0]
		queue := mustCall(t, srv, ann, "POST /register", params{"event_types": []string{"message"},
			"idle_queue_timeout": 60})
		reply := make(responseChan, 1)
		poll := &wire.PollRequest{
			Realm: 1,
			User:  ann,
			Queue: realm.QueueID(queue["queue_id"].(string)),
			Last:  -1,
			Reply: reply,
		}
		for n := range 4 { // three minutes, three times the queue's idle timeout
			srv.PollAll([]*wire.PollRequest{poll})
			if n == 2 {
				time.Sleep(30 * time.Second)
				srv.CancelPoll(*poll)
				srv.PollAll([]*wire.PollRequest{poll})
			}
			time.Sleep(40 * time.Second)
			synctest.Wait()
			if len(reply) > 0 {
				t.Fatalf("poll %d is answered early: %v", n, <-reply)
			}
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if len(reply) == 0 {
				t.Fatalf("poll %d is not answered within a minute", n)
			}
			a := <-reply
			events, _ := a.body["events"].([]any)
			if a.status != 200 || len(events) != 1 || events[0].(map[string]any)["type"] != "heartbeat" {
				t.Fatalf("poll %d is answered within a minute with %v", n, a)
			}
			poll.Last = int64(events[0].(map[string]any)["id"].(float64))
		}
		time.Sleep(70 * time.Second)
		synctest.Wait()
		srv.PollAll([]*wire.PollRequest{poll})
		if a := <-reply; a.status != 400 || a.body["code"] != "BAD_EVENT_QUEUE_ID" {
			t.Errorf("after the queue's timeout: %v", a)
		}
		closeServer(t, srv)
	})
}

// TestRevokedKeyEndsPollsAndRequests holds that a poll that waits under a revoked key ends at once, before an event of
// a later turn reaches it, that a poll authenticated before the revocation does not wait after it, and that a command
// or view under the key is refused when it acts.
func TestRevokedKeyEndsPollsAndRequests(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		d := &slowDisk{diskContents: newDiskContents()}
		srv := openServer(t, d)
		people := createOrganization(t, srv, "ann", "bo")
		ann, bo := people[0], people[1]
		key := srv.accounts.byUser[userKey{1, ann}].Keys[0]
		queues := map[realm.UserID]any{}
		polls := map[realm.UserID]responseChan{}
		for _, u := range people {
			queues[u] = mustCall(t, srv, u, "POST /register", params{"event_types": []string{"message"}})["queue_id"]
			polls[u] = call(srv, u, "GET /events", params{"queue_id": queues[u], "last_event_id": -1})
		}
		synctest.Wait()
		version := srv.AuthVersion()
		began := time.Now()
		system := realm.Caller{System: true, Client: "Internal"}
		if _, err := srv.Turn(1, system, func(tn *realm.Turn) (any, error) {
			return realm.IssueAPIKey{User: ann, Only: true}.Decide(tn)
		}); err != nil {
			t.Fatal(err)
		}
		a := <-polls[ann]
		if events, _ := a.body["events"].([]any); a.status != 200 || len(events) != 0 ||
			time.Since(began) > time.Second {
			t.Errorf("the poll ended after %v with %d %v", time.Since(began), a.status, a.body)
		}
		late := make(responseChan, 1)
		srv.Poll(
			wire.PollRequest{Realm: 1, User: ann, Queue: realm.QueueID(queues[ann].(string)), Last: -1, Reply: late,
				AuthVersion: version},
		)
		synctest.Wait()
		select {
		case <-late:
		default:
			t.Error("a poll that was authenticated before the revocation waits")
		}
		select {
		case a := <-polls[bo]:
			t.Errorf("the poll of another user ended with %v", a.body)
		default:
		}
		for what, caller := range map[string]realm.Caller{
			"Invalid API key": {User: ann, Key: key}, "": {User: ann, Key: srv.accounts.byUser[userKey{1,
				ann}].Keys[0]},
		} {
			_, turn := srv.Turn(1, caller, func(*realm.Turn) (any, error) { return nil, nil })
			_, view := srv.View(1, caller, func(realm.View) (any, error) { return nil, nil })
			for _, err := range []error{turn, view} {
				if r, _ := err.(*realm.Refusal); what == "" && err != nil || what != "" && (r == nil || r.Msg != what) {
					t.Errorf("a request is answered with %v, want %q", err, what)
				}
			}
		}
		srv.Drain()
		<-polls[bo]
		closeServer(t, srv)
	})
}

// TestExpiredSessionIsNobodys holds that the secret of a session finds its account until the session expires, and not
// from that second on, although the organization keeps the row of the session.
func TestExpiredSessionIsNobodys(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
		ann := createOrganization(t, srv, "ann")[0]
		var session realm.BrowserSession
		open := func(tn *realm.Turn) (any, error) {
			opened, err := realm.OpenBrowserSession{LogIn: realm.LogIn{User: ann}}.Decide(tn)
			session = realm.BrowserSession{ID: opened.ID, Hash: tn.Hash(opened.Secret), Used: tn.Now}
			session.Used -= session.Expires() - tn.Now - 60 // it ends in a minute
			tn.Record(&realm.BrowserSessionRenewed{User: ann, ID: session.ID, Hash: session.Hash, Used: session.Used})
			return nil, err
		}
		if _, err := srv.Turn(1, realm.Caller{System: true, Client: "Internal"}, open); err != nil {
			t.Fatal(err)
		}
		end := time.Unix(session.Expires(), 0)
		for _, c := range []struct {
			at   time.Time
			want bool
		}{{time.Now(), true}, {end.Add(-time.Second), true}, {end, false}, {end.Add(time.Minute), false}} {
			time.Sleep(time.Until(c.at))
			a, s := srv.AccountBySessionHash(session.Hash)
			if found := a != nil && a.User == ann && s != nil && s.ID == session.ID; found != c.want {
				t.Errorf("%v before the end: found %v, want %v", end.Sub(c.at), found, c.want)
			}
			if !c.want && (a != nil || s != nil) {
				t.Errorf("%v after the end: %v, %v", c.at.Sub(end), a, s)
			}
		}
		closeServer(t, srv)
	})
}

// TestPollsEndWithTheirSession holds that a poll that waits ends within 100 ms after a browser session of its user has
// ended. If the session got a new secret, the poll ends after the answer with the secret had some time to arrive.
func TestPollsEndWithTheirSession(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
		ann := createOrganization(t, srv, "ann")[0]
		system := realm.Caller{System: true, Client: "Internal"}
		queue := mustCall(t, srv, ann, "POST /register", params{"event_types": []string{"message"}})["queue_id"]
		var session realm.OpenedBrowserSession
		change := func(f func(tn *realm.Turn) error) {
			if _, err := srv.Turn(1, system, func(tn *realm.Turn) (any, error) { return nil, f(tn) }); err != nil {
				t.Fatal(err)
			}
		}
		change(func(tn *realm.Turn) (err error) {
			session, err = realm.OpenBrowserSession{LogIn: realm.LogIn{User: ann}}.Decide(tn)
			return err
		})
		for _, c := range []struct {
			name        string
			change      func(tn *realm.Turn) error
			least, most time.Duration
		}{
			{"a new secret", func(tn *realm.Turn) error {
				tn.Record(&realm.BrowserSessionRenewed{User: ann, ID: session.ID, Hash: [32]byte{1}, Used: tn.Now})
				return nil
			}, newSecretArrives, 100 * time.Millisecond},
			{"the end of the session", func(tn *realm.Turn) error {
				_, err := realm.EndBrowserSessions{User: ann}.Decide(tn)
				return err
			}, 0, 100 * time.Millisecond},
		} {
			poll := call(srv, ann, "GET /events", params{"queue_id": queue, "last_event_id": -1})
			synctest.Wait()
			began := time.Now()
			change(c.change)
			a := <-poll
			events, _ := a.body["events"].([]any)
			if took := time.Since(began); a.status != 200 || len(events) != 0 || took < c.least || took > c.most {
				t.Errorf("%s: the poll ended after %v with %d %v", c.name, took, a.status, a.body)
			}
		}
		closeServer(t, srv)
	})
}

// TestAdditionalKeyEndsPollsAndRequests holds for an additional key that expires, and for one that is revoked, what
// TestRevokedKeyEndsPollsAndRequests holds for the account's own key. An expired key finds no account.
func TestAdditionalKeyEndsPollsAndRequests(t *testing.T) {
	const lifetime = 600
	for name, expires := range map[string]bool{"expired": true, "revoked": false} {
		t.Run(name, func(t *testing.T) {
			runSynctest(t, func(t *testing.T) {
				d := &slowDisk{diskContents: newDiskContents()}
				srv := openServer(t, d)
				ann := createOrganization(t, srv, "ann")[0]
				system := realm.Caller{System: true, Client: "Internal"}
				made, err := srv.Turn(1, realm.Caller{User: ann}, func(tn *realm.Turn) (any, error) {
					return realm.AddKey{User: ann, Label: "script", Lifetime: lifetime}.Decide(tn)
				})
				if err != nil {
					t.Fatal(err)
				}
				key := made.(realm.NewKey)
				under := realm.Caller{User: ann, Key: key.Hash}
				if _, ok := srv.AccountByKeyHash(key.Hash); !ok {
					t.Fatal("the key finds no account")
				}
				time.Sleep((lifetime - 10) * time.Second)
				queue := mustCall(t, srv, ann, "POST /register", params{"event_types": []string{"message"}})["queue_id"]
				poll := call(srv, ann, "GET /events", params{"queue_id": queue, "last_event_id": -1})
				synctest.Wait()
				began, version := time.Now(), srv.AuthVersion()
				if !expires {
					if _, err := srv.Turn(1, system, func(tn *realm.Turn) (any, error) {
						return realm.RevokeKey{User: ann, Key: key.ID}.Decide(tn)
					}); err != nil {
						t.Fatal(err)
					}
				}
				a := <-poll
				limit := time.Second
				if expires {
					limit += 10 * time.Second
				}
				if events, _ := a.body["events"].([]any); len(events) != 0 || time.Since(began) > limit {
					t.Errorf("the poll ended after %v with %v", time.Since(began), a.body)
				}
				if _, ok := srv.AccountByKeyHash(key.Hash); ok || srv.AuthVersion() == version {
					t.Error("the key still finds an account, or cached lookups stay valid")
				}
				_, turn := srv.Turn(1, under, func(*realm.Turn) (any, error) { return nil, nil })
				_, view := srv.View(1, under, func(realm.View) (any, error) { return nil, nil })
				for _, err := range []error{turn, view} {
					if r, _ := err.(*realm.Refusal); r == nil || r.Msg != "Invalid API key" {
						t.Errorf("a request under the key is answered with %v", err)
					}
				}
				closeServer(t, srv)
			})
		})
	}
}
