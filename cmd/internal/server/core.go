package server

import (
	"context"
	"errors"
	"net"
	"time"

	"parley/actors"
	"parley/cmd/internal/cluster"
	"parley/snapshot"
	"parley/wire/httpd"
)

const (
	// currentTimeout is how long a core that starts waits until it has the facts of the other cores. After that it
	// starts all the same: with two of three cores gone there is no leader.
	currentTimeout = 10 * time.Second
	// ownPoll is how often a new leader looks whether it owns all organizations.
	ownPoll = 5 * time.Millisecond
	// moveAgainAfter is how long a leader with a full disk waits before it tries again to hand over. If all disks are
	// full, changes are refused anyway, and reads must not stop all the time.
	moveAgainAfter = 10 * time.Second
)

// openCopy opens a core's copy of the organizations.
func (s *Server) openCopy(o snapshot.Options) (*snapshot.Store, error) {
	n, err := cluster.OpenCoreNode(s.node, s.Data, o, s.ElectionTimeout, s.log)
	if err != nil {
		return nil, err
	}
	s.copy = n
	ctx, cancel := context.WithTimeout(context.Background(), currentTimeout)
	defer cancel()
	if err := n.WaitUntilCurrent(ctx); errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("no leader of the cluster yet, or this core is behind", "status", n.Status())
	} else if err != nil {
		return nil, err
	}
	return n.Disk().Store, nil
}

// closeStore closes the store, and a core's copy with its log.
func (s *Server) closeStore() error {
	if s.copy != nil {
		return s.copy.Close()
	}
	return s.store.Close()
}

// watchCopy calls Fatal when the copy has failed, and when a backup of another core was installed, because parts of the
// server have the old store open: the process starts again with the new one. While the disk is full, it hands the
// leadership over.
func (s *Server) watchCopy() {
	installs := s.copy.Status().Installs
	var moved time.Time
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-s.copy.Failed():
			s.fatal(s.copy.Err())
			return
		case <-t.C:
			if s.copy.Status().Installs != installs {
				s.fatal(errors.New("a backup of another core was installed: start again"))
				return
			}
			if s.space.isReadOnly() && s.copy.Status().Leading && time.Since(moved) > moveAgainAfter {
				moved = time.Now()
				s.log.Warn("the disk of the leader is full; another core takes over")
				if err := s.copy.MoveLeader(""); err != nil {
					s.log.Error("no other core takes over", "err", err)
				}
			}
		case <-s.stopped:
			return
		}
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
	for end := time.Now().Add(currentTimeout); !s.orgs.Leads() && time.Now().Before(end); {
		time.Sleep(ownPoll)
	}
	return s.orgs.Leads() && len(s.orgs.Realms()) == 0
}

// followLeadership makes this core the owner of the organizations while it is the leader.
func (s *Server) followLeadership() {
	if s.copy != nil {
		s.copy.OnLeadership(s.orgs.Lead)
	}
}

// startLeadership accepts links while this core is the leader and owns all organizations, and asks for a vote if it has
// none.
func (s *Server) startLeadership() {
	changes := make(chan bool, 16)
	s.copy.OnLeadership(func(on bool) {
		if !on {
			s.core.SetLeading(false)
		}
		select {
		case changes <- on:
		case <-s.stopped:
		}
	})
	go func() {
		leads := false
		for {
			wait := time.Hour
			if leads && !s.core.Leads() {
				wait = ownPoll
				if s.orgs.OwnsAll() {
					s.core.SetLeading(true)
				}
			}
			select {
			case leads = <-changes:
			case <-time.After(wait):
			case <-s.stopped:
				return
			}
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-s.stopped
		cancel()
	}()
	go s.link.AskForVote(ctx, s.hasVote)
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

// coreCluster is the cluster as a core's HTTP server sees it: while the core is not the leader, it forwards everything.
type coreCluster struct {
	*actors.Server
	s *Server
}

func (c coreCluster) IsReady() bool                { return c.s.core != nil && c.s.core.Leads() }
func (c coreCluster) Prepare(string) error         { return nil }
func (c coreCluster) NewRequest() string           { return c.s.link.NewRequest() }
func (c coreCluster) DialOwner() (net.Conn, error) { return c.s.link.DialOwner() }

func (c coreCluster) Forward(ctx context.Context, r httpd.ForwardedRequest) (httpd.ForwardedAnswer, error) {
	return c.s.link.Forward(ctx, r)
}
