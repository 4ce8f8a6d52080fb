package replicated

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"parley/actors/realm"
	"parley/snapshot"
)

// machine is the state machine of a node: it applies committed log entries to the store. Raft calls it from one
// goroutine. After a failure it applies nothing any more.
type machine struct {
	n     *Node
	parts parts
}

// errPartsLost is the result of an operation whose leader changed between two of its parts.
var errPartsLost = fmt.Errorf("%w: the leader changed", realm.ErrMoved)

// errPartsPending delays a Raft snapshot until an operation is complete.
var errPartsPending = errors.New("a large operation is not complete yet")

// Apply applies one entry.
func (m *machine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch applies entries and returns a []snapshot.LogResult for each, or the error that stopped the node.
func (m *machine) ApplyBatch(logs []*raft.Log) []any {
	results, err := m.apply(logs)
	if err != nil {
		err = m.n.failed.fail(err)
		results = make([]any, len(logs))
		for i := range results {
			results[i] = err
		}
	}
	return results
}

func (m *machine) apply(logs []*raft.Log) ([]any, error) {
	if err := m.n.failed.get(); err != nil {
		return nil, err
	}
	store := m.n.store.Load()
	applied := store.Applied()
	var list []snapshot.LogEntry
	out := make([]any, len(logs))
	where := make([]int, len(logs)) // 1 + index in list; 0: the entry has no operations
	for i, l := range logs {
		m.n.logBytes.Add(int64(len(l.Data)))
		m.n.logEntries.Add(1)
		if l.Index <= applied {
			continue
		}
		ops, err := m.decode(l)
		switch {
		case errors.Is(err, errPartsLost):
			out[i] = []snapshot.LogResult{{Err: err}}
			continue
		case err != nil:
			return nil, fmt.Errorf("log entry %d (term %d) is damaged: %w", l.Index, l.Term, err)
		}
		if err := m.n.checkLevels(ops); err != nil {
			return nil, err
		}
		if len(ops) > 0 || !m.parts.pending() {
			// The index must not pass the parts of an operation that is not complete: a start reads them again.
			list = append(list, snapshot.LogEntry{Index: l.Index, Ops: ops})
			where[i] = len(list)
		}
	}
	results, err := store.ApplyLog(list)
	if err != nil {
		return nil, err
	}
	if err := (snapshot.Disk{Store: store}).Published(list, results); err != nil {
		return nil, err
	}
	m.n.metaChanged(list)
	m.n.handled.Store(logs[len(logs)-1].Index)
	for i, at := range where {
		if at > 0 {
			out[i] = results[at-1]
		}
	}
	return out, nil
}

// decode returns the operations of an entry.
func (m *machine) decode(l *raft.Log) ([]snapshot.LogOp, error) {
	if l.Type != raft.LogCommand {
		return nil, nil
	}
	kind, payload, err := open(l.Data)
	if err != nil {
		return nil, err
	}
	var ops []snapshot.LogOp
	switch kind {
	case kindCheckpoint:
		return nil, nil
	case kindPart:
		op, complete, err := m.parts.add(payload)
		if err != nil || !complete {
			return nil, err
		}
		if op == nil {
			return nil, errPartsLost
		}
		ops, err = decodeOps(op)
		if err != nil {
			return nil, err
		}
	case kindOps:
		m.parts = parts{}
		if ops, err = decodeOps(payload); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("its kind %q is unknown to this program", kind)
	}
	for i := range ops {
		if x := ops[i].Import; x != nil {
			x.Stale = x.Term != 0 && x.Term != l.Term
		}
	}
	if m.n.o.mutant == mutantNoEpochCheck {
		for _, op := range ops {
			if op.Entry != nil {
				op.Entry.Epoch = m.n.store.Load().Epoch(op.Entry.Realm)
			}
		}
	}
	return ops, nil
}

// Snapshot begins a note; see notes.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if err := m.n.failed.get(); err != nil {
		return nil, err
	}
	if m.parts.pending() {
		return nil, errPartsPending
	}
	return syncNote{m.n}, nil
}

// syncNote is a Raft snapshot: the store is synced before the note is written.
type syncNote struct{ n *Node }

func (s syncNote) Persist(sink raft.SnapshotSink) error {
	k, ok := sink.(*noteSink)
	if !ok {
		return fmt.Errorf("BUG: the sink is a %T", sink)
	}
	if s.n.o.mutant != mutantUnsyncedNote {
		if err := s.n.store.Load().SyncApplied(k.note.Index); err != nil {
			return s.n.failed.fail(err)
		}
	}
	return sink.Close()
}

func (s syncNote) Release() {}

// Restore replaces the store with the backup of another node.
func (m *machine) Restore(r io.ReadCloser) error {
	m.parts = parts{}
	return m.n.install(r)
}
