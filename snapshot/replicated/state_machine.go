package replicated

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"parley/actors/realm"
	"parley/snapshot"
)

// stateMachine is the state machine of a node: it applies committed log entries to the store. Raft calls it from one
// goroutine. After a failure it applies no further entries.
type stateMachine struct {
	n     *Node
	parts operationParts
}

// errPartsLost is the result of an operation whose leader changed between two of its parts.
var errPartsLost = fmt.Errorf("%w: the leader changed", realm.ErrMoved)

// errPartsPending delays a Raft snapshot until an operation is complete.
var errPartsPending = errors.New("a large operation is not complete yet")

// Apply applies one entry.
func (m *stateMachine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch applies entries and returns a []snapshot.LogResult for each, or the error that stopped the node.
func (m *stateMachine) ApplyBatch(logs []*raft.Log) []any {
	m.n.commits.add(logs[len(logs)-1])
	results, err := m.apply(logs)
	if err != nil {
		err = m.n.storeFailed(err)
		results = make([]any, len(logs))
		for i := range results {
			results[i] = err
		}
	}
	return results
}

func (m *stateMachine) apply(logs []*raft.Log) ([]any, error) {
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
			// The applied index must not pass the parts of an incomplete operation: a start must read them again.
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
	m.n.fsmApplied.Store(logs[len(logs)-1].Index)
	for i, at := range where {
		if at > 0 {
			out[i] = results[at-1]
		}
	}
	return out, nil
}

// decode returns the operations of an entry.
func (m *stateMachine) decode(l *raft.Log) ([]snapshot.LogOp, error) {
	if l.Type != raft.LogCommand {
		return nil, nil
	}
	kind, payload, err := decodeEntry(l.Data)
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
		m.parts = operationParts{}
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
	return ops, nil
}

// Snapshot begins a Raft snapshot; see raftSnapshot.
func (m *stateMachine) Snapshot() (raft.FSMSnapshot, error) {
	if err := m.n.failed.get(); err != nil {
		return nil, err
	}
	if m.parts.pending() {
		return nil, errPartsPending
	}
	return fsmSnapshot{m.n}, nil
}

// fsmSnapshot is the raft.FSMSnapshot of a node: Persist syncs the store before it writes the Raft snapshot.
type fsmSnapshot struct{ n *Node }

func (s fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	k, ok := sink.(*raftSnapshotSink)
	if !ok {
		return fmt.Errorf("BUG: the sink is a %T", sink)
	}
	if err := s.n.store.Load().SyncApplied(k.snapshot.Index); err != nil {
		return s.n.storeFailed(err)
	}
	return sink.Close()
}

func (s fsmSnapshot) Release() {}

// Restore replaces the store with the backup of another node.
func (m *stateMachine) Restore(r io.ReadCloser) error {
	m.parts = operationParts{}
	return m.n.install(r)
}
