package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/actors/realm"
)

const (
	// ownershipCheckInterval is how often a new leader checks whether it owns all organizations, besides after each
	// change.
	ownershipCheckInterval = 100 * time.Millisecond
	// fullCheckInterval is how often a leader checks whether its disk is full. moveRetryInterval is how long a leader
	// with a full disk waits before it tries again to move the leadership. It moves only to a core that has space: if
	// all disks are full, the leader continues to serve reads.
	fullCheckInterval = time.Second
	moveRetryInterval = 10 * time.Second
	// drainTimeout limits how long a move of the leadership waits for requests in progress. New requests wait, too.
	drainTimeout = 500 * time.Millisecond
	// newLeaderTimeout is how long a core that has given up the leadership waits for the new leader before it stops.
	newLeaderTimeout = 3 * time.Second
)

// Move makes another core the leader. Requests wait meanwhile, and the new leader answers them. It does nothing if this
// core does not lead.
func (c *Leader) Move() error {
	if !c.IsLeader() {
		return nil
	}
	if c.Voters() < 2 {
		return ErrOnlyCore
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	defer c.HTTP.Pause(ctx)()
	c.Orgs.FinishTurns(ctx)
	var err error
	for _, id := range c.moveTargets() {
		if err = c.Node.MoveLeader(id); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("move the leadership: %w", err)
	}
	c.Log.Info("the leadership was moved to another core", "took", time.Since(began).Round(time.Millisecond).String())
	// The requests that wait must find that another core leads: an organization that this core still owned for a moment
	// would refuse them.
	for ctx.Err() == nil {
		changed := c.ownership.Next()
		if !c.IsLeader() && c.Orgs.OwnsNone() {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// ownershipChanges signals each change of the organizations that this node owns. It is an owner task, whose methods the
// organizations call.
type ownershipChanges struct{ Changes }

func (o *ownershipChanges) Begin(realm.ID) { o.Signal() }
func (o *ownershipChanges) End(realm.ID)   { o.Signal() }

// FollowLeadership accepts links while this core is the leader and owns all organizations, moves the leadership while
// its disk is full, and asks for a vote over link if it has none.
func (c *Leader) FollowLeadership(link *Follower, isFull func() bool) {
	c.Orgs.AddOwnerTask(&c.ownership)
	var mu sync.Mutex // a core that has lost the leadership must not become the leader by an older look
	leads := false
	c.Node.OnLeadership(func(on bool) {
		mu.Lock()
		if leads = on; !on {
			c.SetLeader(false)
		}
		mu.Unlock()
		c.ownership.Signal()
	})
	acceptLinks := func() (done bool) {
		mu.Lock()
		defer mu.Unlock()
		if leads && !c.IsLeader() && c.Orgs.OwnsAll() {
			c.SetLeader(true)
		}
		return !leads || c.IsLeader()
	}
	go func() {
		for {
			changed, recheck := c.ownership.Next(), (<-chan time.Time)(nil)
			if !acceptLinks() {
				recheck = time.After(ownershipCheckInterval)
			}
			select {
			case <-changed:
			case <-recheck:
			case <-c.closed:
				return
			}
		}
	}()
	go c.moveWhenFull(isFull)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-c.closed
		cancel()
	}()
	go link.AskForVote(ctx, func() bool { return c.hasVote(c.Directory.Node) })
}

// moveWhenFull lets a core that has space lead while the disk of this one is full.
func (c *Leader) moveWhenFull(isFull func() bool) {
	t := time.NewTicker(fullCheckInterval)
	defer t.Stop()
	var moved time.Time
	for {
		select {
		case <-t.C:
		case <-c.closed:
			return
		}
		if !isFull() || !c.IsLeader() || time.Since(moved) < moveRetryInterval {
			continue
		}
		// The disks of all cores fill up about at the same time.
		select {
		case <-time.After(reportsWithin):
		case <-c.closed:
			return
		}
		to := c.Successor()
		if to == "" {
			continue
		}
		moved = time.Now()
		c.Log.Warn("the disk of the leader is full; moving the leadership to another core", "node", to)
		if err := c.Node.MoveLeader(to); err != nil {
			c.Log.Error("moving the leadership failed", "err", err)
		}
	}
}

// moveTargets returns the cores to which the leadership can be moved, in the order in which they are tried: "" is the
// one with the newest entries. That can be one that has just stopped, as when all are restarted one after the other, so
// those with links follow; if one has none, only they are tried.
func (c *Leader) moveTargets() (list []string) {
	missing := false
	for _, m := range c.Node.Status().Members {
		switch {
		case !m.Voter || m.ID == c.Directory.Node:
		case c.links.Find(m.ID) == nil:
			missing = true
		default:
			list = append(list, m.ID)
		}
	}
	if !missing || len(list) == 0 {
		list = append([]string{""}, list...)
	}
	return list
}

// Yield moves the leadership before this core stops, and waits until link leads to the new leader.
func (c *Leader) Yield(link *Follower) {
	if !c.IsLeader() {
		return
	}
	err := c.Move()
	if errors.Is(err, ErrOnlyCore) {
		return
	}
	if err != nil {
		c.Log.Warn("stopping while this core is still the leader", "err", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), newLeaderTimeout)
	defer cancel()
	if err := link.WaitForLink(ctx); err != nil {
		c.Log.Warn("no other core is the leader yet", "err", err)
	}
}
