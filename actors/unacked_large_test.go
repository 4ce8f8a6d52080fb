package actors

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// heapBytes returns the live heap.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Queues that are behind make no large text stay in memory: neither in the list of the realm, nor encoded once for each
// session actor. 30 messages of 10 kB with 200 kB of HTML took 120 MB, and each further one 3.7 MB.
func TestLargeEventsTakeLittleMemoryWhileTheyAreUnacked(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
		var names []string
		for i := range SessionActors {
			names = append(names, fmt.Sprint("user", i))
		}
		people := createOrganization(t, srv, names...)
		var behind, alive []*follower
		for _, u := range people {
			for _, list := range []*[]*follower{&behind, &alive} {
				a := mustCall(
					t,
					srv,
					u,
					"POST /register",
					params{"event_types": []string{"message"}, "apply_markdown": true},
				)
				*list = append(*list, &follower{srv: srv, user: u, id: a["queue_id"], last: -1})
			}
		}
		send := func(n int) {
			for range n {
				mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
					"content": strings.Repeat(":o: ", 2490)})
				for _, f := range alive {
					f.poll(t)
				}
			}
			synctest.Wait()
		}
		send(2)
		before := heapBytes()
		const messages, limit = 30, 40 << 20
		send(messages)
		grown := heapBytes() - before
		t.Logf("the heap grew by %d MB", grown>>20)
		if grown > limit { // 20 MB are the fake disk, the cache of texts and the shared encodings
			t.Errorf("the heap grew by %d MB for %d unacknowledged messages", grown>>20, messages)
		}
		if n := srv.Metrics.UnackedBytes.Load(); n > messages*40<<10 {
			t.Errorf("%d bytes are counted for %d messages without their texts", n, messages)
		}
		for n := -1; n < behind[1].messages; {
			n = behind[1].messages
			behind[1].poll(t)
		}
		if n := behind[1].messages; n != messages+2 {
			t.Errorf("a queue that was behind got %d messages", n)
		}
		closeServer(t, srv)
	})
}
