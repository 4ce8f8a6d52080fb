package actors

import (
	"cmp"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/actors/realm"
)

// MaxTurnLatency is how long one turn, view or slice of work may hold a realm with 10,000 users and 1,000,000 messages: nobody
// else is answered meanwhile (architecture).
const MaxTurnLatency = 5 * time.Millisecond

// Observer gets the latency of every turn of one kind, in seconds. A Prometheus histogram is one. It is called by several
// realm actors at once and must not block.
type Observer interface {
	Observe(seconds float64)
}

// TurnLatency is how long one kind of work held a realm, each time by the wall clock: what waits for a processor or for the
// garbage collector counts, because whoever stood behind it waited too.
type TurnLatency struct {
	Kind    string // the endpoint, or what the server itself does
	Count   int64
	Slow    int64 // of them, longer than MaxTurnLatency
	Total   time.Duration
	Max     time.Duration
	MaxAt   time.Time // of the longest
	MaxUser realm.UserID

	observer Observer // nil: none
}

// turnLatencies is every kind of work one realm was held by. There are as many as the code has endpoints and system commands.
type turnLatencies struct {
	mu        sync.Mutex // the realm's actor notes, the metrics page reads
	kinds     map[string]*TurnLatency
	observer  func(kind string) Observer            // nil: none
	onObserve func(kind string, took time.Duration) // hears of every single hold; nil but in benchmarks
}

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

// list is a copy, slowest first.
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

// SlowestTurns is what held a realm longest since the process began, at most n kinds, by the longest hold of each.
func (srv *Server) SlowestTurns(id realm.ID, n int) []TurnLatency {
	r := srv.find(id)
	if r == nil {
		return nil
	}
	list := r.latencies.list()
	return list[:min(n, len(list))]
}

// TurnLatencies is what held the realms, by kind, all realms together.
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

// kind is what an ask is counted under: what its caller does, or else the function that was sent.
func (m *ask) kind() string {
	if m.caller.Operation != "" {
		return m.caller.Operation
	}
	var f any = m.decide
	if m.look != nil {
		f = m.look
	}
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	return name[strings.LastIndexByte(name, '/')+1:]
}

// messageKind names a message of the realm's mailbox, and whom it is for.
func messageKind(message any) (kind string, user realm.UserID) {
	switch m := message.(type) {
	case *ask:
		return m.kind(), m.caller.User
	case factsDurable:
		return "answers and notices", 0
	case clockTick, continueJobs:
		return "clock", 0
	case ackReport:
		return "acknowledgements", 0
	case snapshotStep, presenceRows, snapshotWritten, closeRealm, saveRealm:
		return "snapshot", 0
	}
	return "", 0
}
