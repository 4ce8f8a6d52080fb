package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/snapshot"
	"parley/wire/httpd"
)

const (
	// catchUpTimeout is how long a core that starts waits until it has the facts of the other cores. After that it
	// starts all the same: with two of three cores gone there is no leader.
	catchUpTimeout = 10 * time.Second
	// founderPoll is how often the first core looks whether it has become the leader.
	founderPoll = 5 * time.Millisecond
	// ownershipRecheck is how often a new leader looks whether it owns all organizations, besides after each change.
	ownershipRecheck = 100 * time.Millisecond
	// moveAgainAfter is how long a leader with a full disk waits before it tries again to hand over. It hands over only
	// to a core that has space: if all disks are full, reads go on at the leader.
	moveAgainAfter = 10 * time.Second
)

// openCopy opens a core's copy of the organizations.
func (s *Server) openCopy(o snapshot.Options) (*snapshot.Store, error) {
	open := func() (*cluster.CoreNode, error) {
		return cluster.OpenCoreNode(s.node, s.Data, o, s.ElectionTimeout, s.log)
	}
	n, err := open()
	if s.handover.isSuccessor() && err != nil {
		n, err = openAfterPredecessor(open)
	}
	if err != nil {
		return nil, err
	}
	s.copy = n
	ctx, cancel := context.WithTimeout(context.Background(), catchUpTimeout)
	defer cancel()
	if err := n.WaitUntilCaughtUp(ctx); errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("no leader of the cluster yet, or this core is behind", "status", n.Status())
	} else if err != nil {
		return nil, err
	}
	return n.Disk().Store, nil
}

// level returns the rule level at which facts are recorded.
func (s *Server) level() uint16 {
	if s.copy == nil {
		return realm.Level
	}
	return s.copy.Level()
}

// closeStore closes the store, and a core's copy with its log.
func (s *Server) closeStore() error {
	if s.copy != nil {
		return s.copy.Close()
	}
	return s.store.Close()
}

// watchCopy calls Fatal when the copy has failed, and when a backup of another core was installed, because parts of the
// server have the old store open: the process starts again with the new one.
func (s *Server) watchCopy() {
	installs, level := s.copy.Status().Installs, s.copy.Level()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-s.copy.Failed():
			s.fatal(s.copy.Err())
			return
		case <-t.C:
			if s.copy.Status().Installs != installs {
				s.fatal(errors.New("a backup of the leader was installed: restart this core"))
				return
			}
			if now := s.copy.Level(); now != level {
				level = now
				s.noteDataVersion()
			}
		case <-s.stopped:
			return
		}
	}
}

// handOverWhenFull lets a core that has space lead while the disk of this one is full.
func (s *Server) handOverWhenFull() {
	t := time.NewTicker(spaceInterval)
	defer t.Stop()
	var moved time.Time
	for {
		select {
		case <-t.C:
		case <-s.stopped:
			return
		}
		if !s.space.isReadOnly() || !s.core.IsLeader() || time.Since(moved) < moveAgainAfter {
			continue
		}
		// The disks of all cores fill up about at the same time.
		select {
		case <-time.After(cluster.ReportsWithin):
		case <-s.stopped:
			return
		}
		to := s.core.Successor()
		if to == "" {
			continue
		}
		moved = time.Now()
		s.log.Warn("the disk of the leader is full; moving the leadership to another core", "node", to)
		if err := s.copy.MoveLeader(to); err != nil {
			s.log.Error("moving the leadership failed", "err", err)
		}
	}
}

// noteDataVersion writes the version of the data into the data directory.
func (s *Server) noteDataVersion() {
	if err := noteDataVersion(s.Data, s.level()); err != nil {
		s.log.Warn("writing the version of the data directory failed", "err", err)
	}
}

// isFounder reports whether this node may create the demo organization: a single node, or the only core. The only core
// becomes the leader first.
func (s *Server) isFounder() bool {
	if s.copy == nil {
		return true
	}
	if len(s.node.ListMembers()) != 1 {
		return false
	}
	for end := time.Now().Add(catchUpTimeout); !s.orgs.IsLeader() && time.Now().Before(end); {
		time.Sleep(founderPoll)
	}
	return s.orgs.IsLeader() && len(s.orgs.Realms()) == 0
}

// followLeadership makes this core the owner of the organizations while it is the leader.
func (s *Server) followLeadership() {
	if s.copy != nil {
		s.copy.OnLeadership(s.orgs.SetLeader)
	}
}

// startLeadership accepts links while this core is the leader and owns all organizations, and asks for a vote if it has
// none.
func (s *Server) startLeadership() {
	s.orgs.AddOwnerTask(&s.ownership)
	var mu sync.Mutex // a core that has lost the leadership must not become the leader by an older look
	leads := false
	s.copy.OnLeadership(func(on bool) {
		mu.Lock()
		if leads = on; !on {
			s.core.SetLeader(false)
		}
		mu.Unlock()
		s.ownership.signal()
	})
	acceptLinks := func() (done bool) {
		mu.Lock()
		defer mu.Unlock()
		if leads && !s.core.IsLeader() && s.orgs.OwnsAll() {
			s.core.SetLeader(true)
		}
		return !leads || s.core.IsLeader()
	}
	go func() {
		for {
			changed, recheck := s.ownership.next(), (<-chan time.Time)(nil)
			if !acceptLinks() {
				recheck = time.After(ownershipRecheck)
			}
			select {
			case <-changed:
			case <-recheck:
			case <-s.stopped:
				return
			}
		}
	}()
	go s.handOverWhenFull()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-s.stopped
		cancel()
	}()
	go s.link.AskForVote(ctx, s.hasVote)
}

const (
	// drainTimeout is how long requests wait at most, when the organizations move to another core, for those that have
	// begun.
	drainTimeout = 500 * time.Millisecond
	// newLeaderTimeout is how long a core that has given up the leadership waits for the new leader before it stops.
	newLeaderTimeout = 3 * time.Second
)

// errOnlyCore is the error of a move of the leadership where no other core has a vote.
var errOnlyCore = errors.New("the cluster has one core with a vote, which is the leader: add another " +
	"core first, with parley cluster token --role core")

// moveLeader makes another core the leader. Requests wait meanwhile, and the new leader answers them.
func (s *Server) moveLeader() error {
	if s.core == nil || !s.core.IsLeader() {
		return nil
	}
	if s.core.Voters() < 2 {
		return errOnlyCore
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	defer s.http.Pause(ctx)()
	s.orgs.FinishTurns(ctx)
	if err := s.copy.MoveLeader(""); err != nil {
		return fmt.Errorf("move the leadership: %w", err)
	}
	s.log.Info("the leadership was moved to another core", "took", time.Since(began).Round(time.Millisecond).String())
	// The requests that wait must find that another core leads: an organization that this core still owned for a moment
	// would refuse them.
	for ctx.Err() == nil {
		changed := s.ownership.next()
		if !s.core.IsLeader() && s.orgs.OwnsNone() {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// ownershipChanges tells goroutines about each change of the organizations that this node owns. It is an owner task,
// whose methods the organizations call.
type ownershipChanges struct {
	mu   sync.Mutex
	wait chan struct{} // closed at the next change; nil: no one waits
}

func (o *ownershipChanges) Begin(realm.ID) { o.signal() }
func (o *ownershipChanges) End(realm.ID)   { o.signal() }

func (o *ownershipChanges) signal() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wait != nil {
		close(o.wait)
		o.wait = nil
	}
}

// next returns a channel that is closed at the next change after this call.
func (o *ownershipChanges) next() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wait == nil {
		o.wait = make(chan struct{})
	}
	return o.wait
}

// yieldLeadership moves the leadership before this core stops, and waits for the new leader.
func (s *Server) yieldLeadership() {
	if s.core == nil || !s.core.IsLeader() {
		return
	}
	err := s.moveLeader()
	if errors.Is(err, errOnlyCore) {
		return
	}
	if err != nil {
		s.log.Warn("stopping while this core is still the leader", "err", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), newLeaderTimeout)
	defer cancel()
	if err := s.link.WaitForLink(ctx); err != nil {
		s.log.Warn("no other core is the leader yet", "err", err)
	}
}

// hasVote reports whether this core has a vote in the cluster.
func (s *Server) hasVote() bool {
	for _, m := range s.copy.Status().Members {
		if m.ID == s.node.Node {
			return m.Voter
		}
	}
	return false
}

// clusterState returns the function that tells why this core cannot serve clients: it neither leads nor has a link to
// the leader. A single node has none.
func (s *Server) clusterState() func() string {
	if s.node == nil {
		return nil
	}
	return func() string {
		if s.link == nil {
			return "" // it is starting
		}
		return s.link.State()
	}
}

// coreCluster is the cluster as a core's HTTP server sees it. While the core is not the leader, it keeps event queues
// if the leader allows it, and forwards everything else.
type coreCluster struct {
	*actors.Server
	s *Server
}

func (c coreCluster) IsReady() bool {
	return c.s.core != nil && (c.s.core.IsLeader() || c.s.link != nil && c.s.link.HostsAnyQueues())
}

// Prepare does not wait: what this node cannot answer is forwarded.
func (c coreCluster) Prepare(host string) error {
	if c.s.link != nil && !c.s.core.IsLeader() {
		c.s.link.StartHosting(host)
	}
	return nil
}

func (c coreCluster) HostsQueues(id realm.ID) bool {
	return c.s.link != nil && c.s.link.HostsQueues(id)
}
func (c coreCluster) NewRequest() string           { return c.s.link.NewRequest() }
func (c coreCluster) DialOwner() (net.Conn, error) { return c.s.link.DialOwner() }

func (c coreCluster) Forward(ctx context.Context, r httpd.ForwardedRequest) (httpd.ForwardedAnswer, error) {
	return c.s.link.Forward(ctx, r)
}
