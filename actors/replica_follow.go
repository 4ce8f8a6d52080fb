package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"parley/actors/delivery"
	"parley/actors/mailbox"
	"parley/actors/owner"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/stream"
)

// ReplicaSource is the source of the data of a replica: the disk of the owner, or a link to the owner.
type ReplicaSource interface {
	// LoadReplica puts the rows of one snapshot into r and the presence rows into table, and returns the last fact that
	// the rows contain.
	LoadReplica(id realm.ID, r *realm.Realm, table *presence.Table) (realm.Seq, error)
	// Follow calls fn with every batch after a fact, in order and without a gap. It calls done once at the end; the
	// error is a realm.ErrBehind if the rows must be loaded again. After stop fn may be called once more.
	Follow(id realm.ID, after realm.Seq, fn func(realm.Batch) error, done func(error)) (stop func())
	// Decode decodes a fact of a batch.
	Decode(fact []byte) (realm.Fact, error)
	// Text reads one version of a message's text. It reports false if there is none. An error that is a refusal of the
	// kind realm.Damaged says that the owner cannot read it; after any other error the caller is asked to come back.
	Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error)
}

// OwnerLink sends messages about event queues and presence from a replica to the owner of its realm. Each method calls
// a method of Edge at the other end. The link calls Server.OwnerConnected when it has a new connection.
type OwnerLink interface {
	delivery.Owner
	// ReportPresence reports which users are active or idle, every few seconds and at most MaxPresenceReports users;
	// see Edge.ReportPresence.
	ReportPresence(realm.ID, []presence.Report)
}

// ReplicaOptions are the parts of a replica.
type ReplicaOptions struct {
	Source ReplicaSource
	Owner  OwnerLink
	// Home reports whether this node has sent the request with an id. This node hosts the queue that such a request
	// opens. nil: this node sends no requests.
	Home func(request string) bool
}

// maxQueuedBatches is how many batches may wait in the mailbox of a replica actor. When it is full, the source waits.
const maxQueuedBatches = 64

// Messages of a replica actor besides ask.
type (
	// followedBatch is the next batch, with its facts and their texts.
	followedBatch struct {
		run   int // see replicaActor
		batch realm.Batch
		facts []realm.Fact
	}
	followEnded struct {
		run int
		err error
	}
	retryFollow struct{ run int }
	// batchReleased says that the events of all facts up to seq have been sent to the session actors.
	batchReleased struct{ seq realm.Seq }
	replicaLoaded struct {
		realm *realm.Realm
		err   error
	}
	// waitForFact is answered when a fact has been applied and its events have been sent to the session actors.
	waitForFact struct {
		seq    realm.Seq
		done   chan struct{}
		forget bool // the caller does not wait any more
	}
	// expectRequest registers, or forgets, a view that runs right after the facts of a request.
	expectRequest struct {
		expected *expectedRequest
		forget   bool
	}
)

// replicaActor runs the replica of an organization on an edge. It applies committed batches and runs views. It refuses
// commands: their requests must be forwarded to the owner.
type replicaActor struct {
	replicaClients
	options      ReplicaOptions
	run          int // number of the present subscription to the source; messages of earlier ones are ignored
	stop         func()
	mailboxSlots chan struct{} // one element for each batch in the mailbox
	closed       bool          // see Server.CloseReplica
}

// OpenReplica loads a realm that another node owns and begins to follow its owner. It returns when the rows are loaded.
func (srv *Server) OpenReplica(id realm.ID, o ReplicaOptions) error {
	srv.creating.Lock()
	defer srv.creating.Unlock()
	if srv.find(id) != nil {
		return fmt.Errorf("realm %d is open already", id)
	}
	r, table, err := srv.loadReplica(id, o.Source)
	if err != nil {
		return err
	}
	a := &replicaActor{
		replicaClients: newReplicaClients(srv, r, r.Seq()), options: o,
		mailboxSlots: make(chan struct{}, maxQueuedBatches),
	}
	srv.search.Attach(id, r.Seq(), r.Seq(), srv.searchTextReader(id))
	a.hosting = delivery.NewHosting(&a.handle.sessions, &a.replicaClients)
	a.hosting.Expect() // the owner may believe so of every edge
	a.handle.source, a.handle.owner = o.Source, &remoteOwner{o.Owner, o.Home}
	a.start(a, table)
	a.handle.setClosed(srv, r.Closed())
	srv.accounts.addRealm(r)
	a.handle.sessions.SendAll(&delivery.Restore{Seq: a.durable})
	srv.log.Info("replica open", "realm", id, "name", a.handle.name, "facts", uint64(a.durable))
	srv.runtime.Send(a.handle.pid, retryFollow{a.run}) // its actor changes the state from now on
	return nil
}

// loadReplica loads the rows of a realm.
func (srv *Server) loadReplica(id realm.ID, from ReplicaSource) (*realm.Realm, *presence.Table, error) {
	r, table := realm.New(id), presence.New()
	r.SetClock(srv.now().Unix())
	at, err := from.LoadReplica(id, r, table)
	if err != nil {
		return nil, nil, fmt.Errorf("load a replica of realm %d: %w", id, err)
	}
	r.SetSeq(at, runParallel)
	if !r.Founded() { // no snapshot has been written yet
		err = replayFounding(r, from)
	}
	return r, table, err
}

// errFounded ends replayFounding.
var errFounded = errors.New("founded")

// replayFounding follows a realm without rows until it is founded.
func replayFounding(r *realm.Realm, from ReplicaSource) error {
	done := make(chan error, 1)
	from.Follow(r.ID(), r.Seq(), func(b realm.Batch) error {
		facts, err := decodeBatch(from, &b)
		if err == nil {
			_, err = r.Follow(b, facts)
		}
		if err == nil && r.Founded() {
			err = errFounded
		}
		return err
	}, func(err error) { done <- err })
	if err := <-done; !errors.Is(err, errFounded) {
		return fmt.Errorf("follow realm %d from its first fact: %w", r.ID(), err)
	}
	return nil
}

// decodeBatch returns the facts of a batch, with their texts.
func decodeBatch(from batchSource, b *realm.Batch) ([]realm.Fact, error) {
	facts := make([]realm.Fact, len(b.Facts))
	for i, data := range b.Facts {
		var err error
		if facts[i], err = from.Decode(data); err != nil {
			return nil, err
		}
	}
	b.FillTexts(facts)
	return facts, nil
}

// Receive handles one message.
func (a *replicaActor) Receive(message any) {
	switch m := message.(type) {
	case *ask:
		a.ask(m)
	case asyncBatch:
		for i := range m {
			a.ask(&m[i])
		}
	case *followedBatch:
		<-a.mailboxSlots
		a.apply(m)
	case followEnded:
		a.handleFollowEnded(m)
	case retryFollow:
		if m.run == a.run {
			a.follow()
		}
	case retryLoad:
		if !a.closed {
			a.reload()
		}
	case *replicaLoaded:
		a.handleLoaded(m)
	case clockTick:
		a.hosting.Tick()
	case closeRealm:
		a.close()
		m.done <- nil
	case owner.Save:
		m.Done <- nil
	case owner.SetFrozen:
		m.Done <- nil
	case delivery.HostingMessage:
		m.HandleHosting(&a.hosting)
	default:
		a.receive(m)
	}
}

// ask answers a view. It refuses commands, and refuses views, too, while the state may be old.
func (a *replicaActor) ask(m *ask) {
	p := m.output(stream.Result{})
	switch {
	case a.cannotServe():
		p.Answer.Err = delivery.ErrCannotFollow
	case m.view == nil:
		p.Answer.Err = realm.ErrNotOwner
	default:
		a.srv.Metrics.Views.Add(1)
		p.Answer.Result = a.view(m)
	}
	a.handle.sessions.Flow.Release(&p)
}

// follow subscribes to the batches of the source after the last applied fact. A goroutine of the source decodes them.
func (a *replicaActor) follow() {
	a.run++
	a.stop = followBatches(a.srv, a.handle.pid, a.realm, a.run, a.mailboxSlots, a.options.Source)
}

// batchSource has the methods that ReplicaSource and Cluster share.
type batchSource interface {
	Follow(id realm.ID, after realm.Seq, fn func(realm.Batch) error, done func(error)) (stop func())
	Decode(fact []byte) (realm.Fact, error)
}

// followBatches sends an actor the batches after the state of r. slots limits how many of them are in its mailbox. stop
// may be called more than once.
func followBatches(
	srv *Server, pid mailbox.Address, r *realm.Realm, run int, slots chan struct{}, source batchSource,
) (stop func()) {
	stopped := make(chan struct{})
	end := source.Follow(r.ID(), r.Seq(), func(b realm.Batch) error {
		facts, err := decodeBatch(source, &b)
		if err != nil {
			return err
		}
		select {
		case slots <- struct{}{}:
		case <-stopped:
			return context.Canceled
		}
		srv.runtime.Send(pid, &followedBatch{run, b, facts})
		return nil
	}, func(err error) { srv.runtime.Send(pid, followEnded{run, err}) })
	var once bool
	return func() {
		if !once {
			once = true
			close(stopped)
			end()
		}
	}
}

// apply applies a committed batch and delivers its events.
func (a *replicaActor) apply(m *followedBatch) {
	if m.run != a.run {
		return
	}
	if err := a.realm.CheckFollows(m.batch); err != nil {
		a.fail(err)
		return
	}
	c := a.replay(m)
	a.durable = a.realm.Seq()
	a.handle.markdownConfigSeq.Store(uint64(a.realm.MarkdownConfigVersion()))
	a.srv.search.Feed(a.realm.ID(), a.durable, m.batch.Texts)
	a.handle.setClosed(a.srv, a.realm.Closed())
	a.failed = nil
	a.replica.publish(c)
	a.deliver(c)
}

// withoutOpened removes the publications that open queues. A request with an id comes from another node, which hosts
// its queue.
func withoutOpened(publications []realm.Publication) []realm.Publication {
	return slices.DeleteFunc(publications, func(t realm.Publication) bool {
		return slices.ContainsFunc(t.Notices, func(n realm.Notice) bool {
			_, opened := n.Event.(*realm.QueueOpened)
			return opened
		})
	})
}

// fail stops the replica at a batch that cannot be applied. Requests are refused until a later attempt succeeds.
func (a *replicaActor) fail(err error) {
	a.failed = err
	a.stop()
	a.handleFollowEnded(followEnded{a.run, err})
}

// handleFollowEnded subscribes again. If facts are missing, it first loads the rows again.
func (a *replicaActor) handleFollowEnded(m followEnded) {
	if m.run != a.run || a.reloading {
		return
	}
	a.run++ // the batches in the mailbox are sent again
	a.srv.log.Warn("replica does not follow", "realm", a.realm.ID(), "seq", uint64(a.durable), "err", m.err)
	if !errors.Is(m.err, realm.ErrBehind) {
		retry := retryFollow{a.run}
		a.srv.runtime.After(reclaimInterval, func() { a.srv.runtime.Send(a.handle.pid, retry) })
		return
	}
	a.reload()
}

// reload loads the rows in the background. The result arrives as replicaLoaded.
func (a *replicaActor) reload() {
	a.reloading = true
	a.hosting.Fail()
	id := a.realm.ID()
	a.srv.runtime.RunInBackground(func() {
		r, _, err := a.srv.loadReplica(id, a.options.Source)
		a.srv.runtime.Send(a.handle.pid, &replicaLoaded{r, err})
	})
}

// handleLoaded continues with the loaded rows. The events of the skipped facts are missing on this node, so its queues
// are adopted again when their clients poll.
func (a *replicaActor) handleLoaded(m *replicaLoaded) {
	if a.closed {
		return
	}
	if m.err == nil && m.realm.Seq() < a.durable {
		m.err = fmt.Errorf("the rows are at fact %d, the replica is at fact %d", m.realm.Seq(), a.durable)
	}
	if m.err != nil {
		a.srv.log.Error("replica is not loaded again", "realm", a.realm.ID(), "err", m.err)
		a.srv.runtime.After(reclaimInterval, func() { a.srv.runtime.Send(a.handle.pid, retryLoad{}) })
		return
	}
	a.reloading, a.failed = false, nil
	a.realm, a.durable = m.realm, m.realm.Seq()
	a.srv.configureRealm(a.realm)
	a.srv.renderer.ForgetRealm(a.realm.ID())
	a.srv.texts.dropRealm(a.realm.ID())
	a.handle.durable.Store(uint64(a.durable))
	a.handle.markdownConfigSeq.Store(uint64(a.realm.MarkdownConfigVersion()))
	a.handle.setClosed(a.srv, a.realm.Closed())
	a.handle.sessions.SendAll(delivery.Reload{})
	a.handle.sessions.SendAll(&delivery.Restore{Seq: a.durable})
	a.realm.EachUser(func(u *realm.User) { a.srv.updateAccount(a.realm, u.ID) })
	a.srv.search.Feed(a.realm.ID(), a.durable, nil)
	a.endExpected()
	a.srv.log.Info("replica open again", "realm", a.realm.ID(), "facts", uint64(a.durable))
	a.answerWaiting()
	a.hosting.ListQueues()
	a.follow()
}

// retryLoad asks an actor whose rows could not be loaded to try again.
type retryLoad struct{}

// DurableSeq returns the last fact of a realm that is on disk. On a replica it returns the last fact whose events have
// been sent to the session actors.
func (srv *Server) DurableSeq(id realm.ID) realm.Seq {
	if r := srv.find(id); r != nil {
		return realm.Seq(r.durable.Load())
	}
	return 0
}

// CloseQueue closes a queue whose client no longer polls the node that hosts it.
func (srv *Server) CloseQueue(id realm.ID, q realm.QueueID) {
	if r := srv.find(id); r != nil {
		srv.runSystemAsync(r, func(t *realm.Turn) (any, error) { return realm.CloseQueue{ID: q}.Decide(t) })
	}
}

// Tick records an empty fact, because a queue has no event ids left for ephemeral events.
func (srv *Server) Tick(id realm.ID) {
	if r := srv.find(id); r != nil {
		srv.runSystemAsync(r, func(t *realm.Turn) (any, error) { return nil, t.Tick() })
	}
}
