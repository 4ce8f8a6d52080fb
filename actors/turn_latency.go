package actors

import (
	"cmp"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/actors/delivery"
	"parley/actors/owner"
	"parley/actors/realm"
)

// MaxTurnLatency is how long one turn, view or part of a job may take in a realm with 10,000 users and 1,000,000
// messages: nothing else is answered in that time.
const MaxTurnLatency = 5 * time.Millisecond

// Observer gets the latency of every turn of one kind, in seconds. A Prometheus histogram is one. It is called by
// several realm actors at once and must not block.
type Observer interface {
	Observe(seconds float64)
}

// TurnLatency is how long turns of one kind took, by the wall clock. Waiting for a processor or for the garbage
// collector counts, because later requests waited for it too.
type TurnLatency struct {
	Kind    string // the endpoint, or the work of the server itself
	Count   int64
	Slow    int64 // how many took longer than MaxTurnLatency
	Total   time.Duration
	Max     time.Duration
	MaxAt   time.Time    // when the slowest one began
	MaxUser realm.UserID // its user

	observer Observer // nil: none
}

// turnLatencies are the latencies of one realm by kind. There are as many kinds as endpoints and system commands.
type turnLatencies struct {
	mu        sync.Mutex // the realm actor writes, metrics read
	kinds     map[string]*TurnLatency
	observer  func(kind string) Observer            // nil: none
	onObserve func(kind string, took time.Duration) // gets every turn; only benchmarks set it
}

// observe records one turn.
func (l *turnLatencies) observe(kind string, user realm.UserID, began time.Time, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.onObserve != nil {
		l.onObserve(kind, took)
	}
	k := l.kinds[kind]
	if k == nil {
		if l.kinds == nil {
			l.kinds = map[string]*TurnLatency{}
		}
		k = &TurnLatency{Kind: kind}
		if l.observer != nil {
			k.observer = l.observer(kind)
		}
		l.kinds[kind] = k
	}
	k.Count++
	k.Total += took
	if took > MaxTurnLatency {
		k.Slow++
	}
	if took > k.Max {
		k.Max, k.MaxAt, k.MaxUser = took, began, user
	}
	if k.observer != nil {
		k.observer.Observe(took.Seconds())
	}
}

// list returns a copy, slowest first.
func (l *turnLatencies) list() []TurnLatency {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]TurnLatency, 0, len(l.kinds))
	for _, k := range l.kinds {
		out = append(out, *k)
	}
	slices.SortFunc(out, func(a, b TurnLatency) int {
		return cmp.Or(cmp.Compare(b.Max, a.Max), strings.Compare(a.Kind, b.Kind))
	})
	return out
}

// SlowestTurns returns the n slowest kinds of turns of a realm since the process started, ordered by their slowest
// turn.
func (srv *Server) SlowestTurns(id realm.ID, n int) []TurnLatency {
	r := srv.find(id)
	if r == nil {
		return nil
	}
	list := r.latencies.list()
	return list[:min(n, len(list))]
}

// TurnLatencies returns the latencies of all realms together, by kind, slowest first.
func (srv *Server) TurnLatencies() []TurnLatency {
	var all turnLatencies
	all.kinds = map[string]*TurnLatency{}
	srv.eachRealm(func(r *realmHandle) {
		for _, x := range r.latencies.list() {
			k := all.kinds[x.Kind]
			if k == nil {
				all.kinds[x.Kind] = &x
				continue
			}
			k.Count, k.Slow, k.Total = k.Count+x.Count, k.Slow+x.Slow, k.Total+x.Total
			if x.Max > k.Max {
				k.Max, k.MaxAt, k.MaxUser = x.Max, x.MaxAt, x.MaxUser
			}
		}
	})
	return all.list()
}

// kind returns the name under which an ask is counted: its caller's operation, or else the name of the function that
// was sent.
func (m *ask) kind() string {
	if m.caller.Operation != "" {
		return m.caller.Operation
	}
	var f any = m.decide
	if m.view != nil {
		f = m.view
	}
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	return name[strings.LastIndexByte(name, '/')+1:]
}

// messageKind returns the name under which a message of a realm actor is counted, and its user. It is "" for messages
// that are not counted.
func messageKind(message any) (kind string, user realm.UserID) {
	switch m := message.(type) {
	case *ask:
		return m.kind(), m.caller.User
	case owner.Durable:
		return "answers and notices", 0
	case clockTick, owner.ContinueJobs:
		return "clock", 0
	case delivery.AckReport:
		return "acknowledgements", 0
	case owner.RowsMessage, closeRealm:
		return "snapshot", 0
	}
	return "", 0
}
