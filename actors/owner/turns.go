package owner

import (
	"runtime/debug"
	"slices"

	"parley/actors/mailbox"
	"parley/actors/realm"
	"parley/actors/stream"
)

// Replica is the replica of a realm on the owner's node. It shares the plain data with Turns, so no fact is applied
// twice, and it is the first to get what leaves them.
type Replica interface {
	// Address is where messages to the turns are sent.
	Address() mailbox.Address
	// TurnEnv returns the environment of the next turn.
	TurnEnv() realm.TurnEnv
	// Durable returns the last fact that is on disk.
	Durable() realm.Seq
	// Stored records that all facts up to seq are on disk. texts are those that the newest of them wrote. The batches
	// and outputs that depend on these facts follow.
	Stored(seq realm.Seq, texts []realm.TextWrite)
	// Publish gets a committed batch before the output that depends on it, and may add to that.
	Publish(*stream.Committed, *stream.Output)
	// Release sends an output.
	Release(*stream.Output)
	// Released is called after all outputs that depend on stored facts were released.
	Released()
}

// ErrOwnershipLost is the answer to commands and views that depend on facts which were not stored.
var ErrOwnershipLost = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"The organization is being moved; try again in a few seconds.")

// Turns give the commands of a realm their turns, number and append their facts, and hold answers and events back until
// the facts that these depend on are on disk. A node has a Turns from its claim of the realm until it loses the
// ownership. Its methods run in the mailbox of the realm's actor.
type Turns struct {
	env     *Env
	replica Replica
	rows    *Rows
	realm   *realm.Realm
	epoch   uint64

	pending    []pendingOutput // by seq
	continuing bool            // ContinueJobs is in the mailbox
	requests   recentRequests  // also of turns whose facts are not on disk yet

	unconfirmed  []stream.Output // wait until this node is known to be the owner
	confirmation *confirmation   // that is in progress, or nil
}

// pendingOutput is sent when all facts up to seq are on disk.
type pendingOutput struct {
	stream.Output
	seq       realm.Seq
	committed *stream.Committed // nil without facts
}

// confirmation asks whether this node still owns the realm, for the first outputs that wait.
type confirmation struct{ outputs int }

// Messages about turns, besides Durable.
type (
	ContinueJobs struct{} // runs the next turn of a job
	confirmed    struct {
		confirmation *confirmation
		err          error
	}
)

// TurnsMessage is a message to the actor of a realm about its turns.
type TurnsMessage interface{ HandleTurns(*Turns) }

// NewTurns returns the turns of a realm that this node has claimed with an epoch. All facts of r are on disk.
func NewTurns(env *Env, replica Replica, rows *Rows, r *realm.Realm, epoch uint64) *Turns {
	t := &Turns{env: env, replica: replica, rows: rows, realm: r, epoch: epoch}
	r.SetClock(env.Now().Unix())
	return t
}

// Command gives a command its turn. p is released when its facts are on disk.
func (t *Turns) Command(c realm.Caller, decide func(*realm.Turn) (any, error), p stream.Output) {
	t.env.Turns.Add(1)
	committed := t.turn(c, decide, &p)
	t.hold(p, committed)
}

// View releases p, the result of a view, when every fact that the view could see is on disk.
func (t *Turns) View(p stream.Output) { t.hold(p, nil) }

// System gives a command of the server itself its turn.
func (t *Turns) System(decide func(*realm.Turn) (any, error)) {
	t.Command(realm.System, decide, stream.Output{})
}

// hold releases an output when all facts of the realm are on disk.
func (t *Turns) hold(p stream.Output, c *stream.Committed) {
	seq := t.realm.Seq()
	isStored := t.replica.Durable() == seq
	if t.env.Confirm != nil && isStored && c == nil && len(p.Publications) == 0 {
		t.holdUntilConfirmed(p)
		return
	}
	t.pending = append(t.pending, pendingOutput{p, seq, c})
	if isStored {
		t.release(seq)
	}
}

// turn runs a command. A bug before the first recorded fact costs one answer; a bug after it ends the process. It
// returns nil if the command has recorded no fact.
func (t *Turns) turn(c realm.Caller, decide func(*realm.Turn) (any, error), p *stream.Output) (b *stream.Committed) {
	defer func() {
		if x := recover(); x != nil {
			if incomplete, ok := x.(realm.IncompleteTurn); ok {
				panic(incomplete)
			}
			t.env.Log.Error("panic in a turn", "realm", t.realm.ID(), "panic", x, "stack", string(debug.Stack()))
			p.Answer.Result = stream.Result{Err: stream.ErrInternal}
		}
	}()
	if c.Request != "" {
		if err := t.checkRequest(c.Request); err != nil {
			p.Answer.Result = stream.Result{Err: err}
			return nil
		}
	}
	env := t.replica.TurnEnv()
	t.realm.SetClock(env.Now)
	v, facts, publications, err := realm.RunTurn(t.realm, c, env, decide)
	if c.Request != "" {
		publications = withoutOpened(publications)
	}
	p.Answer.Result, p.Publications = stream.Result{Value: v, Err: err}, publications
	if err != nil {
		t.env.Refused(err)
	}
	if len(facts) == 0 {
		return nil
	}
	b = stream.NewCommitted(t.realm, t.append(facts, c.Request), facts, publications)
	b.Sender = c.Edge
	if t.realm.HasJobs() {
		t.continueSoon()
	}
	return b
}

// withoutOpened removes the publications that open queues. A request with an id comes from another node, which hosts
// its queue.
func withoutOpened(publications []realm.Publication) []realm.Publication {
	return slices.DeleteFunc(publications, func(p realm.Publication) bool {
		return slices.ContainsFunc(p.Notices, func(n realm.Notice) bool {
			_, opened := n.Event.(*realm.QueueOpened)
			return opened
		})
	})
}

// append sends facts, and the texts that belong to them, to the journal actor, and returns them as a batch. request is
// the id of the request that caused them, if it has one.
func (t *Turns) append(facts []realm.Fact, request string) realm.Batch {
	b := realm.NewBatch(t.realm, t.epoch, facts, t.env.Disk.Encode)
	if request != "" {
		b.Requests = []realm.Request{{ID: request, Seq: t.realm.Seq()}}
		t.requests.add(request, t.realm.Seq())
	}
	t.rows.Journaled(b.Facts)
	t.env.Runtime.Send(t.env.Journal, &Append{Batch: b, From: t.replica.Address()})
	return b
}

// HandleTurns releases the output that depends on facts up to Seq.
func (m Durable) HandleTurns(t *Turns) { t.release(m.Seq) }

// release sends the output that depends on facts up to seq, in the order of the turns. Accounts and the Markdown
// configuration are published before the answers and events that depend on them. Then the work that waited for these
// facts continues.
func (t *Turns) release(seq realm.Seq) {
	seq = max(seq, t.replica.Durable())
	n := 0
	for n < len(t.pending) && t.pending[n].seq <= seq {
		n++
	}
	if texts, hasFacts := textsOf(t.pending[:n]); hasFacts {
		t.replica.Stored(seq, texts)
	}
	for i := range t.pending[:n] {
		p := &t.pending[i]
		if p.committed != nil {
			t.replica.Publish(p.committed, &p.Output)
			p.committed = nil
		}
		t.replica.Release(&p.Output)
	}
	t.replica.Released()
	if rest := t.pending[n:]; len(rest) <= n { // reuse the space at the front
		copy(t.pending, rest)
		clear(t.pending[len(rest):])
		t.pending = t.pending[:len(rest)]
	} else {
		clear(t.pending[:n])
		t.pending = rest
	}
	if len(t.pending) == 0 && cap(t.pending) > 4096 {
		t.pending = nil
	}
	t.rows.Continue()
}

// textsOf returns the texts of the batches in some output, and whether there are batches.
func textsOf(list []pendingOutput) (texts []realm.TextWrite, hasFacts bool) {
	for i := range list {
		c := list[i].committed
		if c == nil {
			continue
		}
		hasFacts = true
		if len(texts) == 0 { // usually there is only one batch with texts: it is not copied
			texts = slices.Clip(c.Batch.Texts)
		} else {
			texts = append(texts, c.Batch.Texts...)
		}
	}
	return texts, hasFacts
}

// Restore publishes facts that are on disk and were not published yet, such as those of another owner.
func (t *Turns) Restore(list []*stream.Committed) {
	for _, c := range list {
		t.pending = append(t.pending, pendingOutput{
			Output: stream.Output{Publications: c.Publications}, seq: c.Batch.After + 1, committed: c,
		})
	}
	t.release(t.realm.Seq())
	t.Continue()
}

// AllStored reports whether all facts are on disk and nothing waits for them.
func (t *Turns) AllStored() bool {
	return t.replica.Durable() == t.realm.Seq() && len(t.pending) == 0
}

// End refuses everything that waits, because this node has lost the ownership.
func (t *Turns) End() {
	for i := range t.pending {
		t.refuse(&t.pending[i].Output)
	}
	for i := range t.unconfirmed {
		t.refuse(&t.unconfirmed[i])
	}
	t.pending, t.unconfirmed, t.confirmation = nil, nil, nil
}

// refuse answers a turn or view whose facts were not stored.
func (t *Turns) refuse(p *stream.Output) {
	t.env.RefuseOutput(p)
	t.replica.Release(p)
}

// RefuseOutput replaces the result of a command or view, because this node has lost the realm.
func (e *Env) RefuseOutput(p *stream.Output) {
	p.Answer.Result = stream.Result{Err: ErrOwnershipLost}
	p.Publications, p.Answer.Sent = nil, nil
	e.Refused(ErrOwnershipLost)
}

// Tick runs the command that is due.
func (t *Turns) Tick(now int64) {
	t.realm.SetClock(now)
	if !t.realm.Founded() {
		return
	}
	if due := t.realm.Due(now); due != nil {
		before := t.realm.Seq()
		t.System(due)
		if t.realm.Seq() > before { // without a fact, the next one waits for the clock
			t.continueSoon()
		}
	}
}

// Continue begins with the work that a job of the realm has left.
func (t *Turns) Continue() {
	if t.realm.HasJobs() {
		t.continueSoon()
	}
}

// continueSoon makes the actor look for more due work soon, after the messages that wait already.
func (t *Turns) continueSoon() {
	if !t.continuing {
		t.continuing = true
		t.env.Runtime.Send(t.replica.Address(), ContinueJobs{})
	}
}

// HandleTurns runs the command that is due.
func (ContinueJobs) HandleTurns(t *Turns) {
	t.continuing = false
	t.Tick(t.env.Now().Unix())
}

// holdUntilConfirmed delays the answer to a view, or to a command without facts, until this node is known to have been
// the owner after the view. A node that was suspended does not know that another node has become the owner. All waiting
// answers share one confirmation.
func (t *Turns) holdUntilConfirmed(p stream.Output) {
	if t.unconfirmed = append(t.unconfirmed, p); t.confirmation == nil {
		t.confirm()
	}
}

// confirm begins to confirm the ownership for the answers that wait now.
func (t *Turns) confirm() {
	c := &confirmation{len(t.unconfirmed)}
	t.confirmation = c
	t.env.Confirm(func(err error) { t.env.Runtime.Send(t.replica.Address(), confirmed{c, err}) })
}

// HandleTurns releases or refuses the answers that have waited for a confirmation.
func (m confirmed) HandleTurns(t *Turns) {
	if t.confirmation != m.confirmation { // of an ownership that has ended
		return
	}
	n := m.confirmation.outputs
	for i := range t.unconfirmed[:n] {
		if m.err != nil {
			t.refuse(&t.unconfirmed[i])
		} else {
			t.replica.Release(&t.unconfirmed[i])
		}
	}
	t.unconfirmed, t.confirmation = append([]stream.Output(nil), t.unconfirmed[n:]...), nil
	if len(t.unconfirmed) > 0 {
		t.confirm()
	}
}
