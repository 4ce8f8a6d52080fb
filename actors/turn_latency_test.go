package actors

import (
	"math"
	"testing"
	"time"

	"parley/actors/realm"
)

// fakeObserver adds up the latencies that it gets.
type fakeObserver struct {
	count   int
	seconds float64
}

func (o *fakeObserver) Observe(seconds float64) { o.count, o.seconds = o.count+1, o.seconds+seconds }

// Turns are counted under the name of their operation, and the slowest kind comes first.
func TestSlowestTurns(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		observers := map[string]*fakeObserver{}
		srv := openServerWith(t, &slowDisk{diskContents: newDiskContents()}, Options{
			TurnLatency: func(kind string) Observer {
				observers[kind] = &fakeObserver{}
				return observers[kind]
			},
		})
		ann := createOrganization(t, srv, "ann")[0]
		mustCall(t, srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t", "content": "hi"})
		for _, ms := range []int{7, 30, 2} {
			srv.View(1, realm.Caller{User: ann, Operation: "GET /long"}, func(realm.View) (any, error) {
				time.Sleep(time.Duration(ms) * time.Millisecond)
				return nil, nil
			})
		}
		srv.View(1, realm.Caller{System: true}, func(realm.View) (any, error) {
			time.Sleep(4 * time.Millisecond)
			return nil, nil
		})
		list := srv.SlowestTurns(1, 10)
		if x := list[0]; x.Kind != "GET /long" || x.Max != 30*time.Millisecond || x.Count != 3 || x.Slow != 2 ||
			x.Total != 39*time.Millisecond || x.MaxUser != ann {
			t.Errorf("slowest: %+v", x)
		}
		if x := list[1]; x.Kind != "actors.TestSlowestTurns.func1.3" || x.Max != 4*time.Millisecond || x.Slow != 0 {
			t.Errorf("second: %+v", x)
		}
		named := map[string]TurnLatency{}
		for _, x := range srv.TurnLatencies() {
			named[x.Kind] = x
		}
		if named["POST /messages"].Count != 1 || named["answers and notices"].Count == 0 {
			t.Errorf("all: %+v", named)
		}
		closeServer(t, srv)
		if o := observers["GET /long"]; o.count != 3 || math.Abs(o.seconds-0.039) > 1e-9 {
			t.Errorf("observed: %+v", o)
		}
	})
}
