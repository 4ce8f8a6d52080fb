package actors

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/realm"
)

// What takes many turns is done wholly, wherever a crash comes between them: by the server itself if nobody waits for it
// any more. If not even the first turn was written nothing has happened.
func TestJobSurvivesCrashes(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		base := newDiskContents()
		h := openServer(t, &slowDisk{diskContents: base})
		names := []string{"ann"}
		for i := range 1100 {
			names = append(names, fmt.Sprint("user", i))
		}
		crowd := createOrganization(t, h, names...)
		var fresh, old []any
		var left []string
		for i := range 2 {
			fresh = append(fresh, map[string]any{"name": fmt.Sprint("new ", i)})
			old = append(old, map[string]any{"name": fmt.Sprint("old ", i)})
			left = append(left, fmt.Sprint("old ", i))
		}
		mustCall(t, h, crowd[0], "POST /users/me/subscriptions", params{"subscriptions": old, "principals": crowd})
		for i := range 250 {
			mustCall(t, h, crowd[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "long", "content": fmt.Sprint(i)})
		}
		h.Turn(1, realm.Caller{System: true}, func(tn *realm.Turn) (any, error) {
			tn.Record(&realm.UserChanged{ID: crowd[0], Role: func() *realm.Role { r := realm.Administrator; return &r }()})
			return nil, nil
		})
		closeServer(t, h)

		members := func(h *Server, name string) (n int) {
			h.View(1, realm.Caller{System: true}, func(v realm.View) (any, error) {
				if c := v.FindChannelByName(name); c != nil {
					n = v.SubscriberCount(c.ID)
				}
				return nil, nil
			})
			return n
		}
		messages := func(h *Server, channel, topic string) (n int) {
			a := mustCall(t, h, crowd[0], "GET /messages", params{"anchor": "newest", "num_before": 1000, "num_after": 0})
			for _, x := range a["messages"].([]any) {
				if m := x.(map[string]any); m["display_recipient"] == channel && m["subject"] == topic {
					n++
				}
			}
			return n
		}
		for _, x := range []struct {
			endpoint string
			asked    params
			look     func(h *Server) []int
			before   []int
			after    []int
		}{
			{"POST /users/me/subscriptions", params{"subscriptions": fresh, "principals": crowd},
				func(h *Server) []int {
					return []int{members(h, "new 0"), members(h, "new 1"), messages(h, "new 1", "channel events")}
				},
				[]int{0, 0, 0}, []int{1101, 1101, 1}},
			{"POST /channels/create", params{"name": "created", "subscribers": crowd}, func(h *Server) []int { return []int{members(h, "created"), messages(h, "created", "channel events")} },
				[]int{0, 0}, []int{1101, 1}},
			{"DELETE /users/me/subscriptions", params{"subscriptions": left, "principals": crowd}, func(h *Server) []int { return []int{members(h, "old 0"), members(h, "old 1")} },
				[]int{1101, 1101}, []int{0, 0}},
			{"POST /streams/{stream_id}/delete_topic", params{"stream_id": 1, "topic_name": "long"},
				func(h *Server) []int { return []int{messages(h, "one", "long")} }, []int{250}, []int{0}},
		} {
			for written := 0; ; written++ {
				d := &slowDisk{diskContents: base.clone()}
				h := openServer(t, d)
				if got := x.look(h); !slices.Equal(got, x.before) {
					t.Fatalf("%s: before it there are %v, want %v", x.endpoint, got, x.before)
				}
				d.mu.Lock()
				d.writes = make(chan *pendingWrite, 100)
				d.mu.Unlock()
				answer := call(h, crowd[0], x.endpoint, x.asked)
				synctest.Wait()
				for range written {
					w := <-d.writes
					w.done <- w.do()
					synctest.Wait()
				}
				answered := false
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
				closeServer(t, h)

				want := x.after
				if written == 0 {
					want = x.before
				}
				closeServer(t, openServer(t, &slowDisk{diskContents: d.diskContents})) // what remains is in the rows now
				h = openServer(t, &slowDisk{diskContents: d.diskContents})
				time.Sleep(10 * time.Second) // the clock's first tick
				synctest.Wait()
				if got := x.look(h); !slices.Equal(got, want) {
					t.Errorf("%s: after a crash behind %d writes there are %v, want %v", x.endpoint, written, got, want)
				}
				again := openServer(t, &slowDisk{diskContents: d.diskContents.clone()})
				if got := x.look(again); !slices.Equal(got, want) {
					t.Errorf("%s: after another crash there are %v, want %v", x.endpoint, got, want)
				}
				closeServer(t, again)
				closeServer(t, h)
				if answered {
					t.Logf("%s: %d writes", x.endpoint, written)
					break
				}
			}
		}
	})
}

func (p *diskContents) clone() *diskContents {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &diskContents{epoch: p.epoch, facts: slices.Clone(p.facts), rows: p.rows, table: maps.Clone(p.table), texts: maps.Clone(p.texts)}
}
