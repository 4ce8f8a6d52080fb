package replicated

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/raft"
)

// OtherVotersError is the reason why a node cannot become a single server: other nodes have a vote in its cluster, or
// the node itself has none. In both cases its copy may be old.
type OtherVotersError struct {
	Voters []string // the others
	Voter  bool     // this node has a vote, too
}

func (e *OtherVotersError) Error() string {
	if !e.Voter {
		return "this core has no vote in the cluster, so its copy may be old"
	}
	return "the cluster has other cores with a vote: " + strings.Join(e.Voters, ", ")
}

// Dissolve turns the data directory of a stopped node into that of a single server. It first applies the entries of the
// node's log that the store does not contain yet, and returns their number. After an OtherVotersError nothing has
// changed. With acceptLoss there is no such error: changes that this node does not have are lost. An interrupted
// Dissolve can be repeated.
func Dissolve(dir string, o Options, acceptLoss bool) (applied uint64, err error) {
	o = o.withDefaults()
	n := &Node{dir: dir, o: o, fs: o.Store.FS, log: o.Log, failed: newFailure(), closing: make(chan struct{})}
	defer close(n.closing)
	err = n.openStore()
	if errors.Is(err, errNoCluster) { // an earlier call was interrupted after LeaveLog
		return 0, errors.Join(n.releaseFiles(), n.fs.RemoveAll(n.raftDir()))
	}
	if err == nil {
		err = n.openLog()
	}
	if err == nil && !acceptLoss {
		err = n.checkSoleVoter()
	}
	if err == nil {
		applied, err = n.applyRemaining()
	}
	if err == nil {
		err = n.store.Load().LeaveLog()
	}
	if err = errors.Join(err, n.releaseFiles()); err != nil {
		return applied, err
	}
	return applied, n.fs.RemoveAll(n.raftDir())
}

// checkSoleVoter returns an OtherVotersError unless this node is the only one with a vote.
func (n *Node) checkSoleVoter() error {
	servers, err := n.newestConfiguration()
	if err != nil {
		return err
	}
	e := &OtherVotersError{}
	for _, s := range servers {
		switch {
		case s.Suffrage != raft.Voter:
		case string(s.ID) == n.o.ID:
			e.Voter = true
		default:
			e.Voters = append(e.Voters, string(s.ID))
		}
	}
	if !e.Voter || len(e.Voters) > 0 {
		return e
	}
	return nil
}

// newestConfiguration returns the members according to the newest configuration entry of the log. The log must be open.
func (n *Node) newestConfiguration() ([]raft.Server, error) {
	x, err := n.snapshots.read()
	if err != nil {
		return nil, err
	}
	var servers []raft.Server
	if x != nil {
		servers = x.Servers
	}
	err = n.eachEntry(1, func(l *raft.Log) error {
		if l.Type == raft.LogConfiguration && (x == nil || l.Index > x.ServersIndex) {
			servers = raft.DecodeConfiguration(l.Data).Servers
		}
		return nil
	})
	return servers, err
}

// eachEntry calls fn with the entries of the log, beginning at an index.
func (n *Node) eachEntry(from uint64, fn func(*raft.Log) error) error {
	first, err := n.wal.FirstIndex()
	if err != nil {
		return err
	}
	last, err := n.wal.LastIndex()
	if err != nil {
		return err
	}
	for i := max(first, from); i > 0 && i <= last; i++ {
		var l raft.Log
		if err := n.wal.read(i, &l); err != nil {
			return err
		}
		if err := fn(&l); err != nil {
			return err
		}
	}
	return nil
}

// applyRemaining applies the entries of the log that the store does not contain, and syncs it.
func (n *Node) applyRemaining() (applied uint64, err error) {
	m := &stateMachine{n: n}
	err = n.eachEntry(n.store.Load().Applied()+1, func(l *raft.Log) error {
		applied++
		_, err := m.apply([]*raft.Log{l})
		return err
	})
	if err == nil {
		err = n.store.Load().SyncApplied(n.store.Load().Applied())
	}
	if err != nil {
		return applied, fmt.Errorf("apply the replicated log: %w", err)
	}
	return applied, nil
}
