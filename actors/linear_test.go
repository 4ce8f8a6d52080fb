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

// TestLinearizability lets several users act on the same data at once, each from two programs. It checks that one order
// of all operations explains every answer, with each operation taking effect between its request and its answer. In the
// middle the process crashes: operations without an answer may have happened, at any time since, or not; all others
// must still be there. The data are messages, the members of a channel, and personal flags.
func TestLinearizability(t *testing.T) {
	seed := uint64(time.Now().UnixNano() % 1e9)
	t.Logf("seed %d", seed)
	platter := newDiskContents()
	disk := &slowDisk{diskContents: platter}
	srv := openServer(t, disk)
	people := createOrganization(t, srv, "ann", "bo", "cy", "di")
	first := mustCall(t, srv, people[0], "POST /messages", params{"type": "stream", "to": "one", "topic": "flags",
		"content": "to star"})
	rec := &historyRecorder{began: time.Now(), people: people, message: int64(first["id"].(float64)), seed: seed}

	lossy := make(chan *pendingWrite, 64)
	disk.mu.Lock()
	disk.writes = lossy
	disk.mu.Unlock()
	stopped, crash := make(chan struct{}), make(chan struct{})
	go func() { // the disk, until the crash
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
	round := rec.round(srv, 0)
	rec.waitForAnswers(60) // of 240 in the round
	rec.crashed.Store(true)
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
	closeServer(t, srv)

	srv = openServer(t, &slowDisk{diskContents: platter})
	rec.crashed.Store(false)
	rec.round(srv, 1).Wait()
	switch r := porcupine.CheckOperationsTimeout(linearModel(people), rec.history, 5*time.Minute); r {
	case porcupine.Ok:
	case porcupine.Unknown:
		t.Skipf("seed %d: too many orders to check on this machine", seed)
	default:
		t.Errorf("%d operations, %d of them without an answer, are not linearizable: %v", len(rec.history), rec.unknown,
			r)
	}
	t.Logf("%d operations, %d of them without an answer", len(rec.history), rec.unknown)
	closeServer(t, srv)
}

// historyRecorder collects the operations of all clients.
type historyRecorder struct {
	began   time.Time
	people  []realm.UserID
	message int64
	seed    uint64
	crashed atomic.Bool

	mu      sync.Mutex
	history []porcupine.Operation
	unknown int
}

// round lets every program send its operations, until the process crashes.
func (rec *historyRecorder) round(srv *Server, n int) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range 2 * len(rec.people) {
		all.Add(1)
		go func() {
			defer all.Done()
			client := n*100 + i
			random := rand.New(rand.NewPCG(rec.seed, uint64(client)))
			for k := range 30 {
				if rec.crashed.Load() {
					return
				}
				in := userOp{
					kind:    random.IntN(7),
					text:    fmt.Sprintf("%d/%d", client, k),
					user:    rec.people[i/2],
					message: rec.message,
				}
				op := porcupine.Operation{ClientId: client, Input: in, Call: time.Since(rec.began).Nanoseconds()}
				op.Output = in.do(srv)
				op.Return = time.Since(rec.began).Nanoseconds()
				rec.record(op, in)
			}
		}()
	}
	return &all
}

// record adds an operation. An answer after the crash does not count.
func (rec *historyRecorder) record(op porcupine.Operation, in userOp) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.crashed.Load() {
		if in.kind == read || in.kind == readFlag {
			return // a read without an answer changes nothing
		}
		op.Output, op.Return = userOpResult{unknown: true}, math.MaxInt64
		rec.unknown++
	}
	rec.history = append(rec.history, op)
}

// waitForAnswers waits until that many operations have been answered.
func (rec *historyRecorder) waitForAnswers(n int) {
	for {
		rec.mu.Lock()
		have := len(rec.history)
		rec.mu.Unlock()
		if have >= n {
			return
		}
		runtime.Gosched()
	}
}

// userOp is one operation of a user: send, read all, leave or join channel two, add or remove a star, read the star.
type userOp struct {
	kind    int
	text    string
	user    realm.UserID
	message int64
}

// Kinds of operations.
const (
	send = iota
	read
	leave
	join
	star
	unstar
	readFlag
)

// userOpResult is the answer: the texts that were read, or whether it changed anything, or whether the star is set.
type userOpResult struct {
	texts   []string
	changed bool
	unknown bool
}

func (op userOp) do(srv *Server) userOpResult {
	switch op.kind {
	case send:
		a := <-call(srv, op.user, "POST /messages", params{"type": "stream", "to": "one", "topic": "linear",
			"content": op.text})
		return userOpResult{changed: a.status == 200}
	case read:
		a := <-call(srv, op.user, "GET /messages", params{"anchor": "newest", "num_before": 1000, "num_after": 0,
			"apply_markdown": "false", "narrow": []any{[]string{"topic", "linear"}}})
		var d userOpResult
		list, _ := a.body["messages"].([]any)
		for _, m := range list {
			d.texts = append(d.texts, m.(map[string]any)["content"].(string))
		}
		return d
	case leave:
		a := <-call(srv, op.user, "DELETE /users/me/subscriptions", params{"subscriptions": []string{"two"}})
		removed, _ := a.body["removed"].([]any)
		return userOpResult{changed: len(removed) > 0}
	case star, unstar:
		a := <-call(srv, op.user, "POST /messages/flags", params{"messages": []int64{op.message},
			"op": []string{"add", "remove"}[op.kind-star], "flag": "starred"})
		return userOpResult{changed: a.status == 200}
	case readFlag:
		a := <-call(srv, op.user, "GET /messages/{message_id}", params{"message_id": op.message})
		m, _ := a.body["message"].(map[string]any)
		flags, _ := m["flags"].([]any)
		return userOpResult{changed: slices.Contains(flags, any("starred"))}
	}
	a := <-call(srv, op.user, "POST /users/me/subscriptions",
		params{"subscriptions": []any{map[string]any{"name": "two"}}})
	joined, _ := a.body["subscribed"].(map[string]any)
	return userOpResult{changed: len(joined) > 0}
}

// linearState is the model: the messages in order, and as one bit for each user, the members of channel two and the
// stars.
type linearState struct {
	messages         string
	members, starred uint64
}

func linearModel(people []realm.UserID) porcupine.Model {
	var everybody uint64
	for _, u := range people {
		everybody |= 1 << u
	}
	return porcupine.Model{
		Init: func() any { return linearState{members: everybody} },
		Step: func(state, input, output any) (bool, any) {
			w, op, d := state.(linearState), input.(userOp), output.(userOpResult)
			me := uint64(1) << op.user
			was := w.members&me != 0
			switch op.kind {
			case send:
				w.messages += op.text + "\n"
				return d.changed || d.unknown, w
			case read:
				return strings.Join(append(slices.Clone(d.texts), ""), "\n") == w.messages, w
			case leave:
				w.members &^= me
				return d.changed == was || d.unknown, w
			case star:
				w.starred |= me
				return d.changed || d.unknown, w
			case unstar:
				w.starred &^= me
				return d.changed || d.unknown, w
			case readFlag:
				return d.changed == (w.starred&me != 0), w
			}
			w.members |= me
			return d.changed == !was || d.unknown, w
		},
		Equal: func(a, b any) bool { return a == b },
	}
}
