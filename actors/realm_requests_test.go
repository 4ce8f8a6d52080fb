package actors

import (
	"errors"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/realm"
	"parley/snapshot"
)

// openStore opens a real store in memory, as a disk.
func openStore(t testing.TB, fs vfs.FS) snapshot.Disk {
	t.Helper()
	s, err := snapshot.Open("data", snapshot.Options{FS: fs, MemTable: 1 << 20, Kept: snapshot.FollowedKept})
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.Disk{Store: s}
}

// sendAs sends a direct message in a turn of a request with an id.
func sendAs(srv *Server, from, to realm.UserID, request, text string) (realm.MessageID, error) {
	x, err := srv.Turn(1, realm.Caller{User: from, Client: "test", Request: request}, func(t *realm.Turn) (any, error) {
		sent, err := realm.SendMessage{People: []realm.Principal{{ID: to}}, Body: realm.Body{Text: text}}.Decide(t)
		return sent.ID, err
	})
	id, _ := x.(realm.MessageID)
	return id, err
}

// A request with an id is carried out once, however often and at whatever moment it is repeated: also while its facts
// are being written, after a snapshot, and after a restart. The repetition does not end the ownership of the realm, and
// the message of the first run can be found by its fact.
func TestRequestRunsOnce(t *testing.T) {
	fs := vfs.NewMem()
	d := openStore(t, fs)
	srv := openServer(t, d)
	people := createOrganization(t, srv, "ann", "bo")
	ann, bo := people[0], people[1]
	q := mustCall(t, srv, bo, "POST /register", params{"event_types": []string{"message"}})

	var mu sync.Mutex
	var sent []realm.MessageID
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			id, err := sendAs(srv, ann, bo, "edge-1", "once")
			var repeated *realm.RepeatedRequest
			if err == nil {
				mu.Lock()
				sent = append(sent, id)
				mu.Unlock()
			} else if !errors.As(err, &repeated) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(sent) != 1 {
		t.Fatalf("the request was carried out %d times", len(sent))
	}
	expect := func(srv *Server, what string) {
		t.Helper()
		_, err := sendAs(srv, ann, bo, "edge-1", "once")
		var repeated *realm.RepeatedRequest
		if !errors.As(err, &repeated) {
			t.Fatalf("%s: a repeated request: %v", what, err)
		}
		seq, found, err := srv.FindRequest(1, "edge-1")
		if err != nil || !found || seq != repeated.Seq {
			t.Errorf("%s: found the request at %d, %v, %v, want %d", what, seq, found, err, repeated.Seq)
		}
		if m, found, err := srv.SentMessage(1, ann, seq); err != nil || !found || m != sent[0] {
			t.Errorf("%s: the request has sent message %d, %v, %v, want %d", what, m, found, err, sent[0])
		}
		if _, found, err := srv.FindRequest(1, "edge-2"); err != nil || found {
			t.Errorf("%s: found another request: %v, %v", what, found, err)
		}
		if n := srv.Metrics.OwnershipsLost.Load(); n != 0 {
			t.Errorf("%s: the realm lost its ownership %d times", what, n)
		}
	}
	expect(srv, "at once")
	for range 2 {
		if err := srv.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := sendAs(srv, bo, ann, "", "another one"); err != nil {
			t.Fatal(err)
		}
	}
	expect(srv, "after two snapshots")
	expectTexts(t, srv, bo, q["queue_id"], "once", "another one", "another one")
	closeServer(t, srv)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openStore(t, fs)
	srv = openServer(t, d)
	expect(srv, "after a restart")
	closeServer(t, srv)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// A request that was refused has recorded nothing, so it may come again.
func TestRefusedRequestMayBeRepeated(t *testing.T) {
	d := &slowDisk{diskContents: newDiskContents()}
	srv := openServer(t, d)
	people := createOrganization(t, srv, "ann", "bo")
	for range 2 {
		var refusal *realm.Refusal
		if _, err := sendAs(srv, people[0], 4711, "edge-1", "to no user"); !errors.As(err, &refusal) {
			t.Errorf("answered %v", err)
		}
	}
	if _, err := sendAs(srv, people[0], people[1], "edge-1", "now"); err != nil {
		t.Error(err)
	}
	closeServer(t, srv)
}
