package replica_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/actors/mailbox"
	"parley/actors/realm"
	"parley/actors/replica"
	"parley/actors/stream"
	"parley/snapshot/codec"
)

// follower is a node that follows the owner of one organization. Its mailbox is handled only by run.
type follower struct {
	mailbox.Runtime
	*testing.T

	replica   replica.Follower
	published atomic.Uint64
	queues    bool // it hosts event queues
	mail      []any
	outputs   []*stream.Output

	// The source, as of the last subscription.
	after   realm.Seq
	give    func(realm.Batch) error
	stopped bool
}

func newFollower(t *testing.T) *follower {
	f := &follower{T: t}
	env := &replica.Env{Runtime: f, Log: slog.New(slog.DiscardHandler), Refused: func(error) {},
		Now: func() time.Time { return time.Unix(1_700_000_000, 0) }}
	f.replica = replica.NewFollower(env, f, f, &f.published, realm.New(1), 0)
	f.replica.Follow(f)
	return f
}

// The source.

func (f *follower) Follow(
	_ realm.ID, after realm.Seq, fn func(realm.Batch) error, _ func(error),
) (stop func()) {
	f.after, f.give, f.stopped = after, fn, false
	return func() { f.stopped = true }
}

func (f *follower) Decode(fact []byte) (realm.Fact, error) { return codec.DecodeFact(fact) }

// The runtime, the caches and the clients.

func (f *follower) Send(_ mailbox.Address, message any)     { f.mail = append(f.mail, message) }
func (f *follower) Address() mailbox.Address                { return mailbox.Address{} }
func (f *follower) Opens(string) bool                       { return false }
func (f *follower) Expect()                                 {}
func (f *follower) HasQueues() bool                         { return f.queues }
func (f *follower) Applied()                                {}
func (f *follower) Release(o *stream.Output)                { f.outputs = append(f.outputs, o) }
func (f *follower) Stored(realm.Seq, []realm.TextWrite)     {}
func (f *follower) Publish(*realm.Realm, *stream.Committed) {}

// run handles the messages that wait. It returns the error of the last batch.
func (f *follower) run() (last error) {
	for len(f.mail) > 0 {
		m := f.mail[0]
		f.mail = f.mail[1:]
		switch m := m.(type) {
		case *replica.Next:
			c, err := f.replica.Apply(m)
			if last = err; c != nil {
				f.replica.Deliver(c, 0)
			}
		case replica.Message:
			m.HandleFollower(&f.replica)
		}
	}
	return last
}

// wait returns the channel that is closed when the events of a fact were sent.
func (f *follower) wait(seq realm.Seq) chan struct{} {
	done := make(chan struct{})
	f.mail = append(f.mail, replica.Wait{Seq: seq, Done: done})
	f.run()
	return done
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// author is the owner, on another node.
type author struct {
	*testing.T
	realm *realm.Realm
}

// batch returns the batch of a turn that founds the organization or creates an account.
func (a *author) batch(request, name string) realm.Batch {
	env := realm.TurnEnv{Now: 1_700_000_000, Token: func(k int) string { return strings.Repeat("t", k) },
		UUID:   func() string { return "00000000-0000-4000-8000-000000000001" },
		APIKey: func(u realm.UserID, _ int64) string { return fmt.Sprint("key", u) },
		Hash:   func(string) [32]byte { return [32]byte{} }}
	a.realm.SetClock(env.Now)
	_, facts, _, err := realm.RunTurn(a.realm, realm.Caller{System: true}, env, func(t *realm.Turn) (any, error) {
		if name == "" {
			return realm.FoundRealm{Name: "Organization"}.Decide(t)
		}
		return realm.CreateUser{Name: name, Email: name + "@example.com"}.Decide(t)
	})
	if err != nil {
		a.Fatal(err)
	}
	b := realm.NewBatch(a.realm, 1, facts, func(f realm.Fact) []byte { return codec.EncodeFact(f) })
	if request != "" {
		b.Requests = []realm.Request{{ID: request, Seq: b.Last()}}
	}
	return b
}

// A follower applies each batch once, in order: one that leaves facts out, comes again, belongs to another organization
// or needs newer rules is refused and changes nothing. After that the right batch is still applied.
func TestOnlyTheNextBatchIsApplied(t *testing.T) {
	a, f := &author{t, realm.New(1)}, newFollower(t)
	first := a.batch("", "")
	second := a.batch("", "ann")
	third := a.batch("", "bob")
	other, newer := second, second
	other.Realm = 2
	newer.Level = realm.Level + 1
	f.give(first)
	if err := f.run(); err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string]realm.Batch{"a gap": third, "a batch that came before": first,
		"a batch of another organization": other, "a batch of newer rules": newer} {
		f.give(b)
		if err := f.run(); err == nil || f.replica.Durable() != first.Last() {
			t.Errorf("%s: %v, the follower is at fact %d", what, err, f.replica.Durable())
		}
	}
	f.give(second)
	f.give(third)
	if err := f.run(); err != nil || f.replica.Realm().Seq() != a.realm.Seq() {
		t.Errorf("%v, the follower is at fact %d", err, f.replica.Realm().Seq())
	}
}

// A batch of an earlier subscription is ignored, also if it is the next one: the new subscription sends it again.
func TestBatchesOfAnEarlierSubscriptionAreIgnored(t *testing.T) {
	a, f := &author{t, realm.New(1)}, newFollower(t)
	first, retry := a.batch("", ""), f.replica.Retry()
	f.give(first)
	f.replica.Follow(f)
	if err := f.run(); err != nil || f.replica.Durable() != 0 || f.replica.MustRetry(retry) {
		t.Errorf("%v, the follower is at fact %d", err, f.replica.Durable())
	}
	f.give(first)
	if err := f.run(); err != nil || f.replica.Durable() != first.Last() {
		t.Errorf("%v, the follower is at fact %d", err, f.replica.Durable())
	}
}

// A caller that waits for a fact is answered when the events up to it were sent, and a view for a request sees exactly
// the facts up to those of the request, also in a batch with later facts.
func TestReadsFollowTheFacts(t *testing.T) {
	a, f := &author{t, realm.New(1)}, newFollower(t)
	f.queues = true
	joined := a.batch("", "")
	for _, next := range []realm.Batch{a.batch("edge-1", "ann"), a.batch("", "bob")} {
		if !joined.Join(next) {
			t.Fatal("the batches cannot be joined")
		}
	}
	of := joined.Requests[0].Seq
	x := &replica.Expected{Request: "edge-1", Caller: realm.Caller{System: true}, Result: make(chan stream.Result, 1),
		View: func(v realm.View, _ *realm.Queue) (any, error) { return v.Seq(), nil }}
	f.mail = append(f.mail, replica.Expect{Expected: x})
	done, later := f.wait(joined.Last()), f.wait(joined.Last()+1)
	f.give(joined)
	if err := f.run(); err != nil {
		t.Fatal(err)
	}
	if r := <-x.Result; r.Err != nil || r.Value != of {
		t.Errorf("the view saw fact %v (%v), want %d", r.Value, r.Err, of)
	}
	if isClosed(done) {
		t.Error("the caller is answered before the events are sent")
	}
	for _, o := range f.outputs {
		o.Answer.Send()
	}
	f.run()
	if !isClosed(done) || isClosed(later) {
		t.Errorf("answered: %v; for a later fact: %v", isClosed(done), isClosed(later))
	}
}

// When the node becomes the owner, or continues with a state that was loaded again, all that waits ends in a defined
// way, and nothing of the old subscription is applied.
func TestHotSwap(t *testing.T) {
	a, f := &author{t, realm.New(1)}, newFollower(t)
	f.give(a.batch("", ""))
	f.run()
	next := a.batch("", "ann")
	x := &replica.Expected{Request: "edge-1", Result: make(chan stream.Result, 1)}
	f.mail = append(f.mail, replica.Expect{Expected: x})
	done, lost := f.wait(next.Last()), errors.New("lost")
	f.give(next)
	f.replica.BecomeOwner(lost)
	if r := <-x.Result; !errors.Is(r.Err, lost) || !isClosed(done) || !f.stopped {
		t.Errorf("the view got %v, waiting ended: %v, the subscription ended: %v", r.Err, isClosed(done), f.stopped)
	}
	f.run()
	if f.replica.Durable() != next.After || f.replica.IsFollowing() {
		t.Errorf("the owner applied a batch of its subscription: fact %d", f.replica.Durable())
	}
	if later := f.wait(next.Last()); isClosed(later) {
		t.Error("a caller is answered before its fact")
	}
	f.replica.Replace(a.realm, a.realm.Seq())
	f.replica.Follow(f)
	if f.after != a.realm.Seq() || f.replica.Durable() != a.realm.Seq() {
		t.Errorf("the follower continues after fact %d, want %d", f.after, a.realm.Seq())
	}
}
