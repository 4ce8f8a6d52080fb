package replicated

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/hashicorp/raft"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/snapshot"
)

// Journal is the disk of the actors on a core node. Changes of the journal go through the replicated log; reads, and
// writes of rows, use the store of this node.
type Journal struct {
	*Node
	snapshot.Encoder
}

// Journal returns the node as the disk of actors.
func (n *Node) Journal() Journal { return Journal{Node: n} }

// Claim makes this node the only writer of a realm, if the realm's epoch is still seen. The error is a realm.ErrMoved
// if this node is not the leader. Claims that arrive during a commit share the next one: a new leader claims all realms
// at once.
func (j Journal) Claim(id realm.ID, seen uint64) (realm.Claimed, error) {
	r := j.claims.propose(j.Node, snapshot.LogOp{Claim: id, Seen: seen})
	return r.Claimed, snapshot.Moved(r.Err)
}

// sharedProposals puts operations of several callers into the log together.
type sharedProposals struct {
	mu      sync.Mutex
	waiting []sharedProposal
	running bool // a caller proposes
}

type sharedProposal struct {
	op     snapshot.LogOp
	result chan snapshot.LogResult // has room for one
}

// propose returns the result of an operation when it is applied. One of the callers proposes for all.
func (s *sharedProposals) propose(n *Node, op snapshot.LogOp) snapshot.LogResult {
	own := sharedProposal{op, make(chan snapshot.LogResult, 1)}
	s.mu.Lock()
	s.waiting = append(s.waiting, own)
	first := !s.running
	s.running = true
	s.mu.Unlock()
	for first {
		s.mu.Lock()
		list := s.waiting
		s.waiting = nil
		s.running = len(list) > 0
		s.mu.Unlock()
		if len(list) == 0 {
			break
		}
		ops := make([]snapshot.LogOp, len(list))
		for i := range list {
			ops[i] = list[i].op
		}
		for i, r := range n.propose(ops) {
			list[i].result <- r
		}
	}
	return <-own.result
}

// Append puts batches into the log; see actors.Journal. It returns when a majority of the voters have them and this
// node has applied them. After an error that is a realm.ErrMoved because the leader has changed, the batch may still
// be stored.
func (j Journal) Append(batches []realm.Batch) []error {
	entries := snapshot.Entries(batches)
	store := j.store.Load()
	errs := store.CheckEntries(entries)
	var ops []snapshot.LogOp
	var where []int
	first := map[realm.ID]bool{}
	for i := range entries {
		if errs[i] != nil {
			errs[i] = snapshot.Moved(errs[i])
			continue
		}
		op := snapshot.LogOp{Entry: &entries[i]}
		if id := entries[i].Realm; !first[id] {
			first[id] = true
			if hash, last := store.LastHash(id); last == entries[i].After {
				op.Before = hash
			}
		}
		ops, where = append(ops, op), append(where, i)
	}
	if len(ops) == 0 {
		return errs
	}
	for k, r := range j.propose(ops) {
		if r.Err != nil {
			errs[where[k]] = snapshot.Moved(r.Err)
		}
	}
	return errs
}

// Import puts a step of an import into the log and returns when this node has applied it. The error is a realm.ErrMoved
// if this node is not the leader, or if another import has claimed the realm.
func (n *Node) Import(op *snapshot.ImportOp) error {
	if err := n.store.Load().CheckImport(op); err != nil {
		return err
	}
	return snapshot.Moved(n.propose([]snapshot.LogOp{{Import: op}})[0].Err)
}

// Term returns the newest term of the log that this node knows.
func (n *Node) Term() uint64 { return n.raft.CurrentTerm() }

// propose puts operations into the log and returns their results when they are applied.
func (n *Node) propose(ops []snapshot.LogOp) []snapshot.LogResult {
	n.proposeMu.Lock()
	defer n.proposeMu.Unlock()
	results := make([]snapshot.LogResult, len(ops))
	list := pack(ops, rand.Uint64()>>1, MaxEntryBytes)
	futures := make([]raft.ApplyFuture, len(list))
	for i := range list {
		futures[i] = n.raft.Apply(list[i].data, enqueueTimeout)
	}
	for i, f := range futures {
		got, err := n.result(f)
		for k, op := range list[i].ops {
			switch {
			case err != nil:
				results[op].Err = err
			case k < len(got):
				results[op] = got[k]
			default:
				results[op].Err = n.failed.fail(fmt.Errorf("BUG: log entry %d has %d results", f.Index(), len(got)))
			}
		}
	}
	return results
}

// result waits until an entry is applied. After an error of Raft the entry is not stored, or its fate is unknown.
func (n *Node) result(f raft.ApplyFuture) ([]snapshot.LogResult, error) {
	if err := n.wait(f); err != nil {
		if failure := n.failed.get(); failure != nil {
			return nil, failure
		}
		return nil, fmt.Errorf("%w: %w", realm.ErrMoved, err)
	}
	switch r := f.Response().(type) {
	case []snapshot.LogResult:
		return r, nil
	case error:
		return nil, r
	}
	return nil, nil // a part before the last one
}

// WriteRows writes changed rows on this node; see Store.Snapshot. Every node writes its own rows, whether or not it
// owns the realm, so the epoch is ignored, also if a claim changes it meanwhile.
func (j Journal) WriteRows(id realm.ID, _ uint64, at realm.Seq, rows []realm.EncodedRow) error {
	d := j.Disk()
	return underEpoch(d, id, func(epoch uint64) error { return d.WriteRows(id, epoch, at, rows) })
}

// SavePresence writes rows of presence on this node.
func (j Journal) SavePresence(id realm.ID, _ uint64, rows []realm.EncodedRow) error {
	d := j.Disk()
	return underEpoch(d, id, func(epoch uint64) error { return d.SavePresence(id, epoch, rows) })
}

// WriteAsleep stores the record of a sleeping organization on this node; see snapshot.Disk.
func (j Journal) WriteAsleep(id realm.ID, _ uint64, a *realm.Asleep) error {
	d := j.Disk()
	return underEpoch(d, id, func(epoch uint64) error { return d.WriteAsleep(id, epoch, a) })
}

// Asleep returns the record of an organization that is asleep on this node; see snapshot.Disk.
func (j Journal) Asleep(id realm.ID) (realm.Asleep, bool) { return j.Disk().Asleep(id) }

// underEpoch calls write with the epoch of a realm, and again if it was refused because a claim has changed the epoch.
func underEpoch(d snapshot.Disk, id realm.ID, write func(epoch uint64) error) error {
	for {
		epoch := d.Epoch(id)
		err := write(epoch)
		if !errors.Is(err, realm.ErrMoved) || d.Epoch(id) == epoch {
			return err
		}
	}
}

func (j Journal) Realms() ([]realm.ID, error) { return j.Disk().Realms() }

func (j Journal) Bounds(id realm.ID) (rows, last realm.Seq, err error) { return j.Disk().Bounds(id) }

func (j Journal) Load(id realm.ID, r *realm.Realm, table *presence.Table) ([]realm.Publication, error) {
	return j.Disk().Load(id, r, table)
}

func (j Journal) LoadReplica(id realm.ID, r *realm.Realm, table *presence.Table) (realm.Seq, error) {
	return j.Disk().LoadReplica(id, r, table)
}

func (j Journal) LoadPresence(id realm.ID, table *presence.Table) error {
	return j.Disk().LoadPresence(id, table)
}

func (j Journal) Tail(id realm.ID, after realm.Seq, fn func(realm.Record) error) error {
	return j.Disk().Tail(id, after, fn)
}

func (j Journal) FindRequest(id realm.ID, request string) (realm.Seq, bool, error) {
	return j.Disk().FindRequest(id, request)
}

func (j Journal) Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error) {
	return j.Disk().Text(id, ref)
}

// Follow calls fn with every batch after a fact; see snapshot.Disk.Follow. It also ends when a backup is installed; the
// caller then follows again.
func (j Journal) Follow(
	id realm.ID, after realm.Seq, fn func(realm.Batch) error, done func(error),
) (stop func()) {
	return j.Disk().Follow(id, after, fn, done)
}

// ErrNotLeader is the reason why a node that is not the leader refuses a change.
var ErrNotLeader = errors.New("this node is not the leader")
