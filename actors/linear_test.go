package actors

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"parley/actors/realm"
)

// TestHistoriesAreLinear has several people act on the same things at once and asks whether what each was answered can be
// explained by one order of all they did, in which everything takes effect between its request and its answer.
func TestHistoriesAreLinear(t *testing.T) {
	seed := uint64(time.Now().UnixNano() % 1e9)
	t.Logf("seed %d", seed)
	h := openHouse(t, &slowDisk{platter: newPlatter()})
	people := found(t, h, "ann", "bo", "cy", "di")
	var mu sync.Mutex
	var history []porcupine.Operation
	began := time.Now()
	var all sync.WaitGroup
	for i, u := range people {
		all.Add(1)
		go func() {
			defer all.Done()
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := range 40 {
				in := deed{kind: random.IntN(4), text: fmt.Sprintf("%d/%d", i, n), user: u}
				op := porcupine.Operation{ClientId: i, Input: in, Call: time.Since(began).Nanoseconds()}
				op.Output = in.do(h)
				op.Return = time.Since(began).Nanoseconds()
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
			}
		}()
	}
	all.Wait()
	if r := porcupine.CheckOperationsTimeout(deeds(people), history, 30*time.Second); r != porcupine.Ok {
		t.Errorf("%d operations are not linear: %v", len(history), r)
	}
	endHouse(t, h)
}

// deed is what somebody does: send, read all, leave or join channel two, and look who is in it.
type deed struct {
	kind int
	text string
	user realm.UserID
}

// done is what came of it: the texts read, or whether it changed anything.
type done struct {
	texts   []string
	changed bool
}

func (x deed) do(h *House) done {
	switch x.kind {
	case 0:
		a := <-call(h, x.user, "POST /messages", params{"type": "stream", "to": "one", "topic": "linear", "content": x.text})
		return done{changed: a.status == 200}
	case 1:
		a := <-call(h, x.user, "GET /messages", params{"anchor": "newest", "num_before": 1000, "num_after": 0, "apply_markdown": "false", "narrow": []any{[]string{"topic", "linear"}}})
		var d done
		list, _ := a.body["messages"].([]any)
		for _, m := range list {
			d.texts = append(d.texts, m.(map[string]any)["content"].(string))
		}
		return d
	case 2:
		a := <-call(h, x.user, "DELETE /users/me/subscriptions", params{"subscriptions": []string{"two"}})
		removed, _ := a.body["removed"].([]any)
		return done{changed: len(removed) > 0}
	}
	a := <-call(h, x.user, "POST /users/me/subscriptions", params{"subscriptions": []any{map[string]any{"name": "two"}}})
	joined, _ := a.body["subscribed"].(map[string]any)
	return done{changed: len(joined) > 0}
}

// world is the model: what was said, in order, and who is in channel two, a bit each.
type world struct {
	said string
	in   uint64
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
			case 0:
				w.said += x.text + "\n"
				return d.changed, w
			case 1:
				return strings.Join(append(slices.Clone(d.texts), ""), "\n") == w.said, w
			case 2:
				w.in &^= me
				return d.changed == was, w
			}
			w.in |= me
			return d.changed == !was, w
		},
		Equal: func(a, b any) bool { return a == b },
	}
}
