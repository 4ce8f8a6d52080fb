package owner_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/actors/mailbox"
	"parley/actors/owner"
	"parley/actors/realm"
	"parley/actors/stream"
	"parley/snapshot/codec"
)

// node is a node that owns one organization. Its mailboxes are handled only by run, so a test decides when the journal
// commits.
type node struct {
	mailbox.Runtime
	owner.Disk
	*testing.T

	env     owner.Env
	realm   *realm.Realm
	rows    owner.Rows
	turns   *owner.Turns
	journal owner.Journal
	self    mailbox.Address

	mail     []any // of the organization
	writes   []any // of the journal
	refuses  error // of the disk for each batch
	confirms []func(error)

	stored   map[string]realm.Seq // requests on the disk
	durable  realm.Seq
	happened []string
}

func newNode(t *testing.T) *node {
	n := &node{T: t, realm: realm.New(1), self: mailbox.NewAddress("organization"), stored: map[string]realm.Seq{}}
	n.env = owner.Env{Runtime: n, Disk: n, Log: slog.New(slog.DiscardHandler), Counters: &owner.Counters{},
		Now: func() time.Time { return time.Unix(1_700_000_000, 0) }, Elapsed: func() int64 { return 0 },
		Fatal: func(err error) { t.Fatal(err) }, ReadOnly: func() bool { return false }, Refused: func(error) {},
		Journal: mailbox.NewAddress("journal")}
	n.env.MaxFrozenBytes.Store(owner.MaxFrozenBytes)
	n.journal = owner.Journal{Env: &n.env, Self: n.env.Journal}
	n.rows = owner.NewRows(&n.env, n, nil, &atomic.Int64{})
	n.turns = owner.NewTurns(&n.env, n, &n.rows, n.realm, 1)
	command(n, "", realm.FoundRealm{Name: "Organization"})
	n.run()
	n.happened = nil
	return n
}

// The runtime and the disk.

func (n *node) Send(to mailbox.Address, message any) {
	if to == n.self {
		n.mail = append(n.mail, message)
	} else {
		n.writes = append(n.writes, message)
	}
}

func (n *node) Encode(f realm.Fact) []byte { return codec.EncodeFact(f) }

func (n *node) FindRequest(_ realm.ID, id string) (realm.Seq, bool, error) {
	seq, found := n.stored[id]
	return seq, found, nil
}

func (n *node) Append(batches []realm.Batch) []error {
	errs := make([]error, len(batches))
	for i, b := range batches {
		errs[i] = n.refuses
		for _, r := range b.Requests {
			n.stored[r.ID] = r.Seq
		}
	}
	return errs
}

// The replica on this node.

func (n *node) Address() mailbox.Address                { return n.self }
func (n *node) Realm() *realm.Realm                     { return n.realm }
func (n *node) Durable() realm.Seq                      { return n.durable }
func (n *node) Epoch() uint64                           { return 1 }
func (n *node) Settled() bool                           { return true }
func (n *node) BeforeSave()                             {}
func (n *node) SendPresence(int, bool)                  {}
func (n *node) Released()                               {}
func (n *node) Stored(s realm.Seq, _ []realm.TextWrite) { n.durable = s }

func (n *node) TurnEnv() realm.TurnEnv {
	return realm.TurnEnv{Now: n.env.Now().Unix(), Token: func(k int) string { return strings.Repeat("t", k) },
		UUID:   func() string { return "00000000-0000-4000-8000-000000000001" },
		APIKey: func(u realm.UserID, _ int64) string { return fmt.Sprint("key", u) },
		Hash:   func(string) [32]byte { return [32]byte{} }}
}

func (n *node) Publish(c *stream.Committed, _ *stream.Output) {
	n.happened = append(n.happened, fmt.Sprint("publish ", c.Batch.Last()))
}

func (n *node) Release(o *stream.Output) {
	what := fmt.Sprint("answer ", o.Answer.Value)
	var repeated *realm.RepeatedRequest
	switch {
	case errors.As(o.Answer.Err, &repeated):
		what = fmt.Sprint("repeated ", repeated.Seq)
	case o.Answer.Err != nil:
		what = fmt.Sprint("refused ", errors.Is(o.Answer.Err, owner.ErrOwnershipLost), len(o.Publications))
	}
	n.happened = append(n.happened, what)
}

// command gives a command its turn. The answer is the last fact of the command; the entry of the audit log follows.
func command[A any](n *node, request string, c realm.Command[A]) {
	n.turns.Command(realm.Caller{System: true, Request: request}, func(t *realm.Turn) (any, error) {
		_, err := c.Decide(t)
		return t.Seq(), err
	}, stream.Output{})
}

// join creates an account, which records facts.
func (n *node) join(request, name string) {
	command(n, request, realm.CreateUser{Name: name, Email: name + "@example.com"})
}

func (n *node) view() {
	n.turns.View(stream.Output{Answer: stream.Answer{Result: stream.Result{Value: "view"}}})
}

// run handles the messages that wait: those of the journal first.
func (n *node) run() {
	for len(n.writes)+len(n.mail) > 0 {
		writes := n.writes
		n.writes = nil
		for _, m := range writes {
			n.journal.Receive(m)
		}
		mail := n.mail
		n.mail = nil
		for _, m := range mail {
			switch m := m.(type) {
			case owner.TurnsMessage:
				m.HandleTurns(n.turns)
			case owner.Refused:
				n.turns.End()
			}
		}
	}
}

// expect compares the output of the owner since the last call.
func (n *node) expect(when string, want ...string) {
	n.Helper()
	if got := fmt.Sprint(n.happened); got != fmt.Sprint(want) {
		n.Errorf("%s: %s, want %s", when, got, want)
	}
	n.happened = nil
}

// Nothing that a crash could take back leaves the owner: answers, also those of views and of refused commands that saw
// the facts, leave after the commit, in the order of the turns.
func TestOutputLeavesAfterTheCommit(t *testing.T) {
	n := newNode(t)
	first := n.realm.Seq()
	n.join("", "ann")
	second := n.realm.Seq()
	n.view()
	n.join("", "bob")
	third := n.realm.Seq()
	n.join("", "bob") // the address is taken
	n.expect("before the commit")
	n.run()
	if first == second || second == third {
		t.Fatal("the commands have recorded nothing")
	}
	n.expect("after the commit", fmt.Sprint("publish ", second), fmt.Sprint("answer ", second-1), "answer view",
		fmt.Sprint("publish ", third), fmt.Sprint("answer ", third-1), "refused false 0")
	n.view()
	n.expect("with everything on disk", "answer view")
}

// If the journal refuses a batch, another node owns the organization: all that waits is refused, no event leaves, and
// a later answer of the journal changes nothing.
func TestOwnershipEnds(t *testing.T) {
	n := newNode(t)
	n.join("", "ann")
	n.refuses = realm.ErrMoved
	n.view()
	n.run()
	n.expect("after the refusal", "refused true 0", "refused true 0")
	owner.Durable{Seq: n.realm.Seq()}.HandleTurns(n.turns)
	n.expect("after a late commit")
	if n.turns.AllStored() {
		t.Error("the facts that were not stored count as stored")
	}
}

// A request is carried out once: while its facts wait for the disk, after they are stored, and by the next owner.
func TestRequestRunsOnce(t *testing.T) {
	n := newNode(t)
	n.join("edge-1", "ann")
	seq := n.realm.Seq()
	n.join("edge-1", "bob")
	n.run()
	n.join("edge-1", "cid")
	n.turns = owner.NewTurns(&n.env, n, &n.rows, n.realm, 2)
	n.join("edge-1", "dan")
	n.join(strings.Repeat("x", realm.MaxRequestID+1), "eve")
	repeated := fmt.Sprint("repeated ", seq)
	n.expect("four times", fmt.Sprint("publish ", seq), fmt.Sprint("answer ", seq-1), repeated, repeated, repeated,
		"refused false 0")
	if n.realm.Seq() != seq || n.env.RequestsRepeated.Load() != 3 {
		t.Errorf("fact %d, want %d; %d repetitions", n.realm.Seq(), seq, n.env.RequestsRepeated.Load())
	}
}

// In a cluster, a view is answered only when the node is known to be the owner after it: a node that was suspended may
// have an old state. Views that arrive meanwhile wait for the next confirmation.
func TestViewsWaitForConfirmation(t *testing.T) {
	n := newNode(t)
	n.env.Confirm = func(done func(error)) { n.confirms = append(n.confirms, done) }
	n.view()
	n.view()
	n.run()
	n.expect("before the confirmation")
	n.confirms[0](nil)
	n.run()
	n.expect("after the first confirmation", "answer view")
	if len(n.confirms) != 2 {
		t.Fatalf("%d confirmations, want 2", len(n.confirms))
	}
	n.confirms[1](realm.ErrMoved)
	n.run()
	n.expect("after the loss", "refused true 0")
}
