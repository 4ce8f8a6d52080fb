package replicated

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/raft"
)

// OthersError says that a node cannot leave its cluster, because other nodes have a vote in it, or it has none itself:
// its copy may be old.
type OthersError struct {
	Voters []string // the others
	Voter  bool     // this node has a vote, too
}

func (e *OthersError) Error() string {
	if !e.Voter {
		return "this core has no vote in the cluster, so its copy may be old"
	}
	return "the cluster has other cores with a vote: " + strings.Join(e.Voters, ", ")
}

// Leave makes the data directory of a node that is not running one of a single node, with everything that the log of
// the node contains. It returns the number of entries that the store did not contain yet. With an OthersError nothing
// has changed; acceptLoss goes on in spite of it: the organizations are then as this node has them. Leave can be called
// again if it was interrupted.
func Leave(dir string, o Options, acceptLoss bool) (applied uint64, err error) {
	o = o.withDefaults()
	n := &Node{dir: dir, o: o, fs: o.Store.FS, log: o.Log, failed: newFailure(), closing: make(chan struct{})}
	defer close(n.closing)
	err = n.openStore()
	if errors.Is(err, errNoCluster) { // an earlier call has come so far
		return 0, errors.Join(n.releaseFiles(), n.fs.RemoveAll(n.raftDir()))
	}
	if err == nil {
		err = n.openLog()
	}
	if err == nil && !acceptLoss {
		err = n.checkAlone()
	}
	if err == nil {
		applied, err = n.applyRest()
	}
	if err == nil {
		err = n.store.Load().LeaveLog()
	}
	if err = errors.Join(err, n.releaseFiles()); err != nil {
		return applied, err
	}
	return applied, n.fs.RemoveAll(n.raftDir())
}

// checkAlone returns an OthersError unless this node is the only one with a vote.
func (n *Node) checkAlone() error {
	servers, err := n.newestServers()
	if err != nil {
		return err
	}
	e := &OthersError{}
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

// newestServers returns the members as the newest entry of the log has them. The log must be open.
func (n *Node) newestServers() ([]raft.Server, error) {
	x, err := n.notes.read()
	if err != nil {
		return nil, err
	}
	var servers []raft.Server
	if x != nil {
		servers = x.Servers
	}
	err = n.eachLog(1, func(l *raft.Log) error {
		if l.Type == raft.LogConfiguration && (x == nil || l.Index > x.ServersIndex) {
			servers = raft.DecodeConfiguration(l.Data).Servers
		}
		return nil
	})
	return servers, err
}

// eachLog calls fn with the entries of the log from an index on.
func (n *Node) eachLog(from uint64, fn func(*raft.Log) error) error {
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

// applyRest applies the entries of the log that the store does not contain, and syncs it.
func (n *Node) applyRest() (applied uint64, err error) {
	m := &machine{n: n}
	err = n.eachLog(n.store.Load().Applied()+1, func(l *raft.Log) error {
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
