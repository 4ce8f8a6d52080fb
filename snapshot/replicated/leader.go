package replicated

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// OnLeadership calls fn with true when this node has become the leader and has applied everything that earlier leaders
// have committed, and with false when it has lost the leadership. One goroutine makes all calls, in order; fn must not
// block it for long.
func (n *Node) OnLeadership(fn func(leader bool)) {
	n.leaderMu.Lock()
	defer n.leaderMu.Unlock()
	n.onLeadership = append(n.onLeadership, fn)
	if n.leading {
		fn(true)
	}
}

// IsElected reports whether this node has won the newest election that it knows of. It may not have applied the entries
// of earlier leaders yet; when it has, OnLeadership reports it as the leader.
func (n *Node) IsElected() bool { return n.isStarted() && n.raft.State() == raft.Leader }

// IsCandidate reports whether this node asks for votes.
func (n *Node) IsCandidate() bool { return n.isStarted() && n.raft.State() == raft.Candidate }

// OnLeaderChange calls fn with the id of each new leader, until the node is closed. fn must not block.
func (n *Node) OnLeaderChange(fn func(id string)) {
	n.observe(func(data any) string {
		l, _ := data.(raft.LeaderObservation)
		return string(l.LeaderID)
	}, fn)
}

// OnLeadershipTransfer calls fn with the id of each node that asks this one for its vote because the leadership is
// moved to it, until the node is closed. Almost always that node is the leader some milliseconds later. fn must not
// block.
func (n *Node) OnLeadershipTransfer(fn func(id string)) {
	n.observe(func(data any) string {
		if r, is := data.(raft.RequestVoteRequest); is && r.LeadershipTransfer {
			return string(r.ID)
		}
		return ""
	}, fn)
}

// observe calls fn with the id that idOf finds in an observation of Raft, unless it is "".
func (n *Node) observe(idOf func(data any) string, fn func(id string)) {
	seen := make(chan raft.Observation, 16)
	o := raft.NewObserver(seen, false, func(x *raft.Observation) bool { return idOf(x.Data) != "" })
	n.raft.RegisterObserver(o)
	n.loops.Go(func() {
		for {
			select {
			case x := <-seen:
				fn(idOf(x.Data))
			case <-n.closing:
				n.raft.DeregisterObserver(o)
				return
			}
		}
	})
}

// barrierTimeout is how long a new leader may take to apply the entries of earlier leaders before it tries again.
const barrierTimeout = 10 * time.Second

// watchLeadership calls the functions of OnLeadership.
func (n *Node) watchLeadership() {
	defer n.loops.Done()
	for {
		select {
		case leader := <-n.raft.LeaderCh():
			n.leadership.Store(0)
			n.setLeading(false) // the channel has only the newest change: another node may have led in between
			for leader && n.raft.State() == raft.Leader {
				if err := n.beginLeadership(); err == nil {
					n.setLeading(true)
					break
				}
			}
		case <-n.closing:
			n.setLeading(false)
			return
		}
	}
}

func (n *Node) setLeading(on bool) {
	n.leaderMu.Lock()
	defer n.leaderMu.Unlock()
	if n.leading == on {
		return
	}
	n.leading = on
	n.log.Info("leadership changed", "leader", on, "term", n.raft.CurrentTerm())
	for _, fn := range n.onLeadership {
		fn(on)
	}
}

// verifyRounds shares the checks that this node is still the leader.
type verifyRounds struct {
	mu      sync.Mutex
	waiting []func(error)
	wake    chan struct{}
	shared  int64 // callers, and rounds that answered them
	rounds  int64
}

// VerifyLeader calls done with nil when a majority of the voters have confirmed, after this call, that this node is the
// leader. All calls that arrive during one check share the next check.
func (n *Node) VerifyLeader(done func(error)) {
	v := &n.rounds
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting = append(v.waiting, done)
	v.shared++
	if v.wake == nil {
		v.wake = make(chan struct{}, 1)
	}
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// verifyLeader runs the checks, one at a time.
func (n *Node) verifyLeader() {
	defer n.loops.Done()
	v := &n.rounds
	v.mu.Lock()
	if v.wake == nil {
		v.wake = make(chan struct{}, 1)
	}
	wake := v.wake
	v.mu.Unlock()
	for {
		closing := false
		select {
		case <-wake:
		case <-n.closing:
			closing = true
		}
		v.mu.Lock()
		list := v.waiting
		v.waiting = nil
		v.rounds++
		v.mu.Unlock()
		if len(list) > 0 {
			err := n.confirmLeader()
			if err != nil {
				err = fmt.Errorf("%w: %w", ErrNotLeader, err)
			}
			for _, done := range list {
				done(err)
			}
		}
		if closing {
			return
		}
	}
}

// truncateLog takes a Raft snapshot after every Options.SnapshotThreshold entries, and truncates the log whenever it
// has grown by Options.LogBytes.
func (n *Node) truncateLog() {
	defer n.loops.Done()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-n.closing:
			return
		}
		var err error
		if n.logBytes.Load() >= n.o.LogBytes {
			err = n.Truncate()
		} else if n.raft.AppliedIndex() >= n.snapshots.index.Load()+n.o.SnapshotThreshold {
			err = n.takeRaftSnapshot(keepAll)
		}
		if err != nil {
			n.log.Warn("taking a Raft snapshot or truncating the log failed", "err", err)
		}
	}
}

// keepAll is a number of trailing entries with which no entry is deleted.
const keepAll = 1 << 62

// takeRaftSnapshot takes a Raft snapshot and deletes the log entries before it, except the newest ones: trailing is
// their number.
func (n *Node) takeRaftSnapshot(trailing uint64) error {
	c := n.raft.ReloadableConfig()
	c.TrailingLogs = trailing
	if err := n.raft.ReloadConfig(c); err != nil {
		return err
	}
	return n.wait(n.raft.Snapshot())
}

// Truncate takes a Raft snapshot, and deletes the log entries before it except the newest Options.LogBytes.
func (n *Node) Truncate() error {
	bytes, entries := n.logBytes.Load(), n.logEntries.Load()
	// The average size of the entries since the last truncation is enough: the limit only bounds the space on the disk.
	size := max(float64(bytes)/float64(max(entries, 1)), 1)
	n.logBytes.Add(-bytes)
	n.logEntries.Add(-entries)
	err := n.takeRaftSnapshot(min(uint64(max(entries, 1)), uint64(float64(n.o.LogBytes)/size)))
	if err != nil {
		n.logBytes.Add(bytes)
		n.logEntries.Add(entries)
	}
	return err
}

// addCheckpoints adds a checkpoint to the log at every Options.CheckpointInterval, while this node is the leader.
func (n *Node) addCheckpoints() {
	defer n.loops.Done()
	t := time.NewTicker(n.o.CheckpointInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if n.raft.State() == raft.Leader {
				if err := n.Checkpoint(); err != nil {
					n.log.Warn("comparing the logs of the nodes failed", "err", err)
				}
			}
		case <-n.closing:
			return
		}
	}
}

// Checkpoint makes every node compare its log since the last checkpoint with that of the leader.
func (n *Node) Checkpoint() error {
	n.proposeMu.Lock()
	defer n.proposeMu.Unlock()
	return n.wait(n.raft.Apply(encodeEntry(kindCheckpoint, nil), enqueueTimeout))
}
