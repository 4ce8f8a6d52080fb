package replicated

import (
	"fmt"

	"github.com/hashicorp/raft"

	"parley/actors/realm"
	"parley/snapshot"
)

// ownLevel is the level from which on one entry gives a new leader all realms. Older programs do not know the entry, so
// a leader claims each realm before.
const ownLevel uint16 = 5

// beginLeadership returns when this node has applied everything that earlier leaders have committed. Then no other node
// can change a realm, unless an older release is in the cluster.
func (n *Node) beginLeadership() error {
	if n.Level() < ownLevel {
		return n.wait(n.raft.Barrier(barrierTimeout))
	}
	r := n.propose([]snapshot.LogOp{{Own: true}})[0]
	if r.Err == nil {
		n.leadership.Store(r.Claimed.Epoch)
	}
	return r.Err
}

// HasOwned reports whether this node's leadership includes the claims of all realms.
func (j Journal) HasOwned() bool { return j.leadership.Load() != 0 }

// Owned returns the claim of a realm that is part of this node's leadership, without waiting. ok is false if there is
// no such claim, because the cluster has the level of an older release: then Claim is needed. The error is a
// realm.ErrMoved if this node has lost the leadership.
func (j Journal) Owned(id realm.ID) (claimed realm.Claimed, ok bool, err error) {
	epoch := j.leadership.Load()
	if epoch == 0 {
		return claimed, false, nil
	}
	if j.raft.State() != raft.Leader {
		return claimed, true, fmt.Errorf("%w: %w", realm.ErrMoved, ErrNotLeader)
	}
	claimed, err = j.store.Load().Owned(id, epoch)
	return claimed, true, snapshot.Moved(err)
}
