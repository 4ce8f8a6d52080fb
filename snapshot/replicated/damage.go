package replicated

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"sync"

	"github.com/hashicorp/raft"

	"parley/snapshot"
)

// damageFile is a file in the log directory with the reason why a node must not start again. A start does not read most
// of the store. Without the file the node would start and serve until a request reads the damaged data again.
const damageFile = "damaged"

// minDamageVoters is the number of voters from which on a node with damaged data stops: the other nodes are a majority
// then. In a smaller cluster the node continues and refuses the requests that need the damaged data, as a single server
// does.
const minDamageVoters = 3

// damage is the first damage that a node has found in its store.
type damage struct {
	mu    sync.Mutex
	found *snapshot.DamageError
}

func (d *damage) get() *snapshot.DamageError {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found
}

// storeOptions returns the options of the node's own store. A received backup is verified without them: if it is
// damaged, the store of the node is not.
func (n *Node) storeOptions() snapshot.Options {
	o := n.o.Store
	o.Damaged = n.storeDamaged
	return o
}

// storeFailed stops the node after its store has failed, and returns the reason.
func (n *Node) storeFailed(err error) error {
	var d *snapshot.DamageError
	if errors.As(err, &d) && n.waitUntilStarted() && n.stopForDamage(d) {
		return n.failed.get()
	}
	return n.failed.fail(err)
}

// waitUntilStarted waits until Raft runs, and reports whether it does. A compaction can read damaged data while the
// node is still starting.
func (n *Node) waitUntilStarted() bool {
	if n.started == nil { // in Dissolve, which does not start Raft
		return false
	}
	select {
	case <-n.started:
		return true
	case <-n.closing:
		return false
	}
}

// storeDamaged stops the node if enough other nodes have the data. In this case it returns only when the node is
// closed, so that no client and no other node receives an error because of the damage; they all connect to another
// node.
func (n *Node) storeDamaged(d *snapshot.DamageError) {
	n.damage.mu.Lock()
	if n.damage.found == nil {
		n.damage.found = d
	}
	n.damage.mu.Unlock()
	if n.isStarted() && n.stopForDamage(d) { // before the start, Open decides
		<-n.closing
	}
}

// stopForDamage stops the node because of damage in its store, and reports whether it has.
func (n *Node) stopForDamage(d *snapshot.DamageError) bool {
	if !n.othersHaveData(n.members()) {
		n.log.Error("data is damaged, and no majority of other cores has a copy; requests that need it fail", "err", d)
		return false
	}
	n.damage.mu.Lock()
	defer n.damage.mu.Unlock()
	if n.failed.get() == nil {
		n.failed.fail(n.refuseStarts(d))
	}
	return true
}

// othersHaveData reports whether the other nodes with a vote are a majority.
func (n *Node) othersHaveData(members []raft.Server) bool {
	voters := 0
	for _, x := range members {
		if x.Suffrage == raft.Voter {
			voters++
		}
	}
	return voters >= minDamageVoters
}

// refuseStarts writes the damage file. It returns the reason with which this node stops and each later start fails.
func (n *Node) refuseStarts(d *snapshot.DamageError) error {
	reason := fmt.Sprintf("the data of this core is damaged: %v; %s", d, rejoinAdvice)
	if err := replaceChecksummedFile(n.fs, n.raftDir(), damageFile, []byte(reason)); err != nil {
		n.log.Error("writing the damage file failed: the next start of this core will not be refused", "err", err)
	}
	return errors.New(reason)
}

// damagedAtStart returns the error of a start whose store could not be opened. If that is because of damage, and the
// other nodes have the data, later starts are refused, too.
func (n *Node) damagedAtStart(err error) error {
	var d *snapshot.DamageError
	if n.started == nil || !errors.As(err, &d) {
		return err
	}
	// Raft does not run, so the members are read from the log.
	var logErr error
	if n.wal, logErr = openCheckedLog(n.fs, n.raftDir(), n.o.SegmentBytes, n.log, n.failed, nil); logErr != nil {
		n.wal = nil
		return errors.Join(err, logErr)
	}
	members, logErr := n.newestConfiguration()
	if logErr != nil {
		return errors.Join(err, logErr)
	}
	if !n.othersHaveData(members) {
		return err
	}
	return n.refuseStarts(d)
}

// checkNotDamaged returns the reason why the node has stopped because of damage.
func (n *Node) checkNotDamaged() error {
	path := n.fs.PathJoin(n.raftDir(), damageFile)
	reason, err := readChecksummedFile(n.fs, path)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", path, err)
	}
	return errors.New(string(reason))
}
