package actors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"parley/actors/realm"
)

// TestHistoriesAreLinear has several people act on the same things at once, each from two programs, and asks whether what
// each was answered can be explained by one order of all they did, in which everything takes effect between its request
// and its answer. Halfway the process crashes: what had no answer by then may have happened, at any time since, or not;
// everything else must still be there. What is acted on: what was said, who is in a channel, and personal flags.
func TestHistoriesAreLinear(t *testing.T) {
	seed := uint64(time.Now().UnixNano() % 1e9)
	t.Logf("seed %d", seed)
	platter := newPlatter()
	disk := &slowDisk{platter: platter}
	h := openHouse(t, disk)
	people := found(t, h, "ann", "bo", "cy", "di")
	first := must(t, h, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "flags", "content": "to star"})
	l := &linear{began: time.Now(), people: people, message: int64(first["id"].(float64)), seed: seed}

	lossy := make(chan *write, 64)
	disk.mu.Lock()
	disk.writes = lossy
	disk.mu.Unlock()
	stopped, crash := make(chan struct{}), make(chan struct{})
	go func() { // the disk, until the power goes
		defer close(stopped)
		for {
			select {
			case w := <-lossy:
				time.Sleep(100 * time.Microsecond)
				w.done <- w.do()
			case <-crash:
				return
			}
		}
	}()
	round := l.round(h, 0)
	l.answered(60) // of the round's 240
	l.crashed.Store(true)
	close(crash)
	<-stopped
	disk.crash()
	for random := rand.New(rand.NewPCG(seed, 99)); ; {
		select {
		case w := <-lossy:
			if random.IntN(2) == 0 {
				if err := w.do(); err != nil {
					t.Error(err)
				}
			}
			w.done <- nil
			continue
		default:
		}
		break
	}
	round.Wait()
	endHouse(t, h)

	h = openHouse(t, &slowDisk{platter: platter})
	l.crashed.Store(false)
	l.round(h, 1).Wait()
	switch r := porcupine.CheckOperationsTimeout(deeds(people), l.history, 5*time.Minute); r {
	case porcupine.Ok:
	case porcupine.Unknown:
		t.Skipf("seed %d: too many orders to try for a machine this busy", seed)
	default:
		t.Errorf("%d operations, %d of them without an answer, are not linear: %v", len(l.history), l.unknown, r)
	}
	t.Logf("%d operations, %d of them without an answer", len(l.history), l.unknown)
	endHouse(t, h)
}

// linear is a history in the making.
type linear struct {
	began   time.Time
	people  []realm.UserID
	message int64
	seed    uint64
	crashed atomic.Bool

	mu      sync.Mutex
	history []porcupine.Operation
	unknown int
}

// round has every program do its share at once, until the process crashes.
func (l *linear) round(h *House, n int) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range 2 * len(l.people) {
		all.Add(1)
		go func() {
			defer all.Done()
			client := n*100 + i
			random := rand.New(rand.NewPCG(l.seed, uint64(client)))
			for k := range 30 {
				if l.crashed.Load() {
					return
				}
				in := deed{kind: random.IntN(7), text: fmt.Sprintf("%d/%d", client, k), user: l.people[i/2], message: l.message}
				op := porcupine.Operation{ClientId: client, Input: in, Call: time.Since(l.began).Nanoseconds()}
				op.Output = in.do(h)
				op.Return = time.Since(l.began).Nanoseconds()
				l.note(op, in)
			}
		}()
	}
	return &all
}

// note adds an operation. One that was answered behind the crash was answered by nobody.
func (l *linear) note(op porcupine.Operation, in deed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.crashed.Load() {
		if in.kind == look || in.kind == lookFlag {
			return // what it read is lost
		}
		op.Output, op.Return = done{unknown: true}, math.MaxInt64
		l.unknown++
	}
	l.history = append(l.history, op)
}

// answered waits until so many operations have been answered.
func (l *linear) answered(n int) {
	for {
		l.mu.Lock()
		have := len(l.history)
		l.mu.Unlock()
		if have >= n {
			return
		}
		runtime.Gosched()
	}
}

// deed is what somebody does: send, read all, leave or join channel two, and look who is in it.
type deed struct {
	kind    int
	text    string
	user    realm.UserID
	message int64
}

// Kinds of deeds.
const (
	send = iota
	look
	leave
	join
	star
	unstar
	lookFlag
)

// done is what came of it: the texts read, or whether it changed anything, or the flag that was seen.
type done struct {
	texts   []string
	changed bool
	unknown bool
}

func (x deed) do(h *House) done {
	switch x.kind {
	case send:
		a := <-call(h, x.user, "POST /messages", params{"type": "stream", "to": "one", "topic": "linear", "content": x.text})
		return done{changed: a.status == 200}
	case look:
		a := <-call(h, x.user, "GET /messages", params{"anchor": "newest", "num_before": 1000, "num_after": 0, "apply_markdown": "false", "narrow": []any{[]string{"topic", "linear"}}})
		var d done
		list, _ := a.body["messages"].([]any)
		for _, m := range list {
			d.texts = append(d.texts, m.(map[string]any)["content"].(string))
		}
		return d
	case leave:
		a := <-call(h, x.user, "DELETE /users/me/subscriptions", params{"subscriptions": []string{"two"}})
		removed, _ := a.body["removed"].([]any)
		return done{changed: len(removed) > 0}
	case star, unstar:
		a := <-call(h, x.user, "POST /messages/flags", params{"messages": []int64{x.message}, "op": []string{"add", "remove"}[x.kind-star], "flag": "starred"})
		return done{changed: a.status == 200}
	case lookFlag:
		a := <-call(h, x.user, "GET /messages/{message_id}", params{"message_id": x.message})
		m, _ := a.body["message"].(map[string]any)
		flags, _ := m["flags"].([]any)
		return done{changed: slices.Contains(flags, any("starred"))}
	}
	a := <-call(h, x.user, "POST /users/me/subscriptions", params{"subscriptions": []any{map[string]any{"name": "two"}}})
	joined, _ := a.body["subscribed"].(map[string]any)
	return done{changed: len(joined) > 0}
}

// world is the model: what was said, in order, who is in channel two, and who has the star, a bit each.
type world struct {
	said        string
	in, starred uint64
}

func deeds(people []realm.UserID) porcupine.Model {
	var everybody uint64
	for _, u := range people {
		everybody |= 1 << u
	}
	return porcupine.Model{
		Init: func() any { return world{in: everybody} },
		Step: func(state, input, output any) (bool, any) {
			w, x, d := state.(world), input.(deed), output.(done)
			me := uint64(1) << x.user
			was := w.in&me != 0
			switch x.kind {
			case send:
				w.said += x.text + "\n"
				return d.changed || d.unknown, w
			case look:
				return strings.Join(append(slices.Clone(d.texts), ""), "\n") == w.said, w
			case leave:
				w.in &^= me
				return d.changed == was || d.unknown, w
			case star:
				w.starred |= me
				return d.changed || d.unknown, w
			case unstar:
				w.starred &^= me
				return d.changed || d.unknown, w
			case lookFlag:
				return d.changed == (w.starred&me != 0), w
			}
			w.in |= me
			return d.changed == !was || d.unknown, w
		},
		Equal: func(a, b any) bool { return a == b },
	}
}
