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

// MaxHold is how long one turn, view or slice of work may hold a realm with 10,000 users and 1,000,000 messages: nobody
// else is answered meanwhile (architecture).
const MaxHold = 5 * time.Millisecond

// HoldBounds are the upper bounds of the buckets in which holds are counted; one more bucket has no bound.
var HoldBounds = [...]time.Duration{100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond,
	MaxHold, 10 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond}

// Hold is how long one kind of work held a realm, each time by the wall clock: what waits for a processor or for the
// garbage collector counts, because whoever stood behind it waited too.
type Hold struct {
	Kind    string // the endpoint, or what the server itself does
	Times   int64
	Over    int64 // of them, longer than MaxHold
	Total   time.Duration
	Max     time.Duration
	At      time.Time // of the longest
	User    realm.UserID
	Buckets [len(HoldBounds) + 1]int64
}

// holds is every kind of work one realm was held by. There are as many as the code has endpoints and system commands.
type holds struct {
	mu    sync.Mutex // the realm's actor notes, the metrics page reads
	kinds map[string]*Hold
	each  func(kind string, took time.Duration) // hears of every single hold; nil but in benchmarks
}

func (x *holds) note(kind string, user realm.UserID, began time.Time, took time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.each != nil {
		x.each(kind, took)
	}
	k := x.kinds[kind]
	if k == nil {
		if x.kinds == nil {
			x.kinds = map[string]*Hold{}
		}
		k = &Hold{Kind: kind}
		x.kinds[kind] = k
	}
	k.Times++
	k.Total += took
	if took > MaxHold {
		k.Over++
	}
	if took > k.Max {
		k.Max, k.At, k.User = took, began, user
	}
	i := 0
	for i < len(HoldBounds) && took > HoldBounds[i] {
		i++
	}
	k.Buckets[i]++
}

// list is a copy, slowest first.
func (x *holds) list() []Hold {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make([]Hold, 0, len(x.kinds))
	for _, k := range x.kinds {
		out = append(out, *k)
	}
	slices.SortFunc(out, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(b.Max, a.Max), strings.Compare(a.Kind, b.Kind))
	})
	return out
}

// Slowest is what held a realm longest since the process began, at most n kinds, by the longest hold of each.
func (h *House) Slowest(id realm.ID, n int) []Hold {
	r := h.find(id)
	if r == nil {
		return nil
	}
	list := r.holds.list()
	return list[:min(n, len(list))]
}

// Holds is what held the realms, by kind, all realms together.
func (h *House) Holds() []Hold {
	var all holds
	all.kinds = map[string]*Hold{}
	h.eachRealm(func(r *handle) {
		for _, x := range r.holds.list() {
			k := all.kinds[x.Kind]
			if k == nil {
				all.kinds[x.Kind] = &x
				continue
			}
			k.Times, k.Over, k.Total = k.Times+x.Times, k.Over+x.Over, k.Total+x.Total
			for i, n := range x.Buckets {
				k.Buckets[i] += n
			}
			if x.Max > k.Max {
				k.Max, k.At, k.User = x.Max, x.At, x.User
			}
		}
	})
	return all.list()
}

// kind is what an ask is counted under: what its caller does, or else the function that was sent.
func (m *ask) kind() string {
	if m.caller.Doing != "" {
		return m.caller.Doing
	}
	var f any = m.decide
	if m.look != nil {
		f = m.look
	}
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	return name[strings.LastIndexByte(name, '/')+1:]
}

// held names a message of the realm's mailbox, and whom it is for.
func held(message any) (kind string, user realm.UserID) {
	switch m := message.(type) {
	case *ask:
		return m.kind(), m.caller.User
	case durable:
		return "answers and notices", 0
	case clock, goOn:
		return "clock", 0
	case through:
		return "acknowledgements", 0
	case step, savedRows, written, finish, save:
		return "snapshot", 0
	}
	return "", 0
}
