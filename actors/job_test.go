package actors

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/realm"
)

// A job of several turns is completed after a crash between any two of them, by the server itself if no caller waits
// any more. If the crash was before the first turn was on disk, nothing has happened.
func TestJobSurvivesCrashes(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		base := newDiskContents()
		srv := openServer(t, &slowDisk{diskContents: base})
		names := []string{"ann"}
		for i := range 1100 {
			names = append(names, fmt.Sprint("user", i))
		}
		crowd := createOrganization(t, srv, names...)
		var fresh, old []any
		var left []string
		for i := range 2 {
			fresh = append(fresh, map[string]any{"name": fmt.Sprint("new ", i)})
			old = append(old, map[string]any{"name": fmt.Sprint("old ", i)})
			left = append(left, fmt.Sprint("old ", i))
		}
		mustCall(t, srv, crowd[0], "POST /users/me/subscriptions", params{"subscriptions": old, "principals": crowd})
		for i := range 250 {
			mustCall(t, srv, crowd[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "long",
				"content": fmt.Sprint(i)})
		}
		srv.Turn(1, realm.Caller{System: true}, func(tn *realm.Turn) (any, error) {
			tn.Record(&realm.UserChanged{
				ID:   crowd[0],
				Role: func() *realm.Role { r := realm.Administrator; return &r }(),
			})
			return nil, nil
		})
		closeServer(t, srv)

		messages := func(srv *Server, channel, topic string) int {
			return countMessages(t, srv, crowd[0], channel, topic)
		}
		for _, x := range []jobCase{
			{"POST /users/me/subscriptions", params{"subscriptions": fresh, "principals": crowd},
				func(srv *Server) []int {
					notices := messages(srv, "new 1", "channel events")
					return []int{countMembers(srv, "new 0"), countMembers(srv, "new 1"), notices}
				},
				[]int{0, 0, 0}, []int{1101, 1101, 1}},
			{"POST /channels/create", params{"name": "created", "subscribers": crowd},
				func(srv *Server) []int {
					return []int{countMembers(srv, "created"), messages(srv, "created", "channel events")}
				},
				[]int{0, 0}, []int{1101, 1}},
			{"DELETE /users/me/subscriptions", params{"subscriptions": left, "principals": crowd},
				func(srv *Server) []int { return []int{countMembers(srv, "old 0"), countMembers(srv, "old 1")} },
				[]int{1101, 1101}, []int{0, 0}},
			{"POST /streams/{stream_id}/delete_topic", params{"stream_id": 1, "topic_name": "long"},
				func(srv *Server) []int { return []int{messages(srv, "one", "long")} }, []int{250}, []int{0}},
		} {
			written := 0
			for !crashDuringJob(t, base, crowd[0], x, written) {
				written++
			}
			t.Logf("%s: %d writes", x.endpoint, written)
		}
	})
}

// jobCase is a request that starts a job, with a few counts of the state before and after the job.
type jobCase struct {
	endpoint string
	params   params
	counts   func(srv *Server) []int
	before   []int
	after    []int
}

func countMembers(srv *Server, channel string) (n int) {
	srv.View(1, realm.Caller{System: true}, func(v realm.View) (any, error) {
		if c := v.FindChannelByName(channel); c != nil {
			n = v.SubscriberCount(c.ID)
		}
		return nil, nil
	})
	return n
}

func countMessages(t *testing.T, srv *Server, u realm.UserID, channel, topic string) (n int) {
	a := mustCall(t, srv, u, "GET /messages", params{"anchor": "newest", "num_before": 1000, "num_after": 0})
	for _, x := range a["messages"].([]any) {
		if m := x.(map[string]any); m["display_recipient"] == channel && m["subject"] == topic {
			n++
		}
	}
	return n
}

// crashDuringJob crashes after a number of writes, and checks the state after the next starts. It reports whether the
// request was answered before the crash.
func crashDuringJob(t *testing.T, base *diskContents, u realm.UserID, x jobCase, written int) (answered bool) {
	d := &slowDisk{diskContents: base.copied()}
	srv := openServer(t, d)
	if got := x.counts(srv); !slices.Equal(got, x.before) {
		t.Fatalf("%s: counts before it are %v, want %v", x.endpoint, got, x.before)
	}
	d.mu.Lock()
	d.writes = make(chan *pendingWrite, 100)
	d.mu.Unlock()
	answer := call(srv, u, x.endpoint, x.params)
	synctest.Wait()
	for range written {
		w := <-d.writes
		w.done <- w.do()
		synctest.Wait()
	}
	select {
	case a := <-answer:
		if answered = true; a.status != 200 {
			t.Fatalf("%s: %d %v", x.endpoint, a.status, a.body)
		}
	default:
	}
	d.crash()
	for len(d.writes) > 0 {
		(<-d.writes).done <- nil
	}
	closeServer(t, srv)

	want := x.after
	if written == 0 {
		want = x.before
	}
	closeServer(t, openServer(t, &slowDisk{diskContents: d.diskContents})) // writes the rest of the job into the rows
	srv = openServer(t, &slowDisk{diskContents: d.diskContents})
	time.Sleep(10 * time.Second) // until the clock ticks
	synctest.Wait()
	if got := x.counts(srv); !slices.Equal(got, want) {
		t.Errorf("%s: counts after a crash that followed %d writes are %v, want %v", x.endpoint, written, got, want)
	}
	again := openServer(t, &slowDisk{diskContents: d.diskContents.copied()})
	if got := x.counts(again); !slices.Equal(got, want) {
		t.Errorf("%s: counts after another crash are %v, want %v", x.endpoint, got, want)
	}
	closeServer(t, again)
	closeServer(t, srv)
	return answered
}
