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

// storeFailed stops the node after its store has failed.
func (n *Node) storeFailed(err error) {
	var d *snapshot.DamageError
	if errors.As(err, &d) && n.isStarted() && n.stopForDamage(d) {
		return
	}
	n.failed.fail(err)
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
	voters := 0
	for _, x := range n.members() {
		if x.Suffrage == raft.Voter {
			voters++
		}
	}
	if voters < minDamageVoters {
		n.log.Error("data is damaged, and no majority of other cores has a copy: the requests that need it are refused",
			"err", d)
		return false
	}
	n.damage.mu.Lock()
	defer n.damage.mu.Unlock()
	if n.failed.get() == nil {
		reason := fmt.Sprintf("the data of this core is damaged: %v; %s", d, rejoinAdvice)
		if err := replaceChecksummedFile(n.fs, n.raftDir(), damageFile, []byte(reason)); err != nil {
			n.log.Error("writing the damage file failed: the next start of this core will not be refused", "err", err)
		}
		n.failed.fail(errors.New(reason))
	}
	return true
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
