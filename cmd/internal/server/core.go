package server

import (
	"context"
	"errors"
	"net"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/handover"
	"parley/snapshot"
	"parley/snapshot/replicated"
	"parley/wire/httpd"
)

const (
	// catchUpTimeout is how long a core that starts waits until it has the facts of the other cores. After that it
	// starts without them: with two of three cores gone there is no leader.
	catchUpTimeout = 10 * time.Second
	// founderPollInterval is how often the first core checks whether it has become the leader.
	founderPollInterval = 5 * time.Millisecond
)

// openCoreNode opens the store and the replicated log of a core.
func (s *Server) openCoreNode(o snapshot.Options) (*snapshot.Store, error) {
	open := func() (*cluster.CoreNode, error) {
		return cluster.OpenCoreNode(s.node, s.Data, replicated.Options{Store: o, Log: s.log,
			ElectionTimeout: s.ElectionTimeout, CheckpointInterval: s.CheckpointInterval})
	}
	n, err := open()
	if s.handover.IsSuccessor() && err != nil {
		n, err = handover.OpenAfterPredecessor(open)
	}
	if err != nil {
		return nil, err
	}
	s.coreNode = n
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
	if s.coreNode == nil {
		return realm.Level
	}
	return s.coreNode.Level()
}

// closeStore closes the store, and with it the replicated log of a core.
func (s *Server) closeStore() error {
	if s.coreNode != nil {
		return s.coreNode.Close()
	}
	return s.store.Close()
}

// watchCoreNode calls Fatal when the store or the log has failed, and when a backup of another core was installed,
// because parts of the server have the old store open: the process starts again with the new one.
func (s *Server) watchCoreNode() {
	installs, level := s.coreNode.Status().Installs, s.coreNode.Level()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-s.coreNode.Failed():
			s.fatal(s.coreNode.Err())
			return
		case <-t.C:
			if s.coreNode.Status().Installs != installs {
				s.fatal(errors.New("a backup of the leader was installed: restart this core"))
				return
			}
			if now := s.coreNode.Level(); now != level {
				level = now
				s.recordDataVersion()
			}
		case <-s.stopped:
			return
		}
	}
}

// recordDataVersion writes the version of the data into the data directory.
func (s *Server) recordDataVersion() {
	if err := datadir.RecordVersion(s.Data, s.level()); err != nil {
		s.log.Warn("writing the version of the data directory failed", "err", err)
	}
}

// mayCreateDemo reports whether this node may create the demo organization: a single node, or the only core. The only
// core becomes the leader first.
func (s *Server) mayCreateDemo() bool {
	if s.coreNode == nil {
		return true
	}
	if len(s.node.ListMembers()) != 1 {
		return false
	}
	for end := time.Now().Add(catchUpTimeout); !s.orgs.IsLeader() && time.Now().Before(end); {
		time.Sleep(founderPollInterval)
	}
	return s.orgs.IsLeader() && len(s.orgs.Realms()) == 0
}

// followLeadership makes this core the owner of the organizations while it is the leader.
func (s *Server) followLeadership() {
	if s.coreNode != nil {
		s.coreNode.OnLeadership(s.orgs.SetLeader)
	}
}

// yieldLeadership lets another core lead before this one stops.
func (s *Server) yieldLeadership() {
	if s.core != nil {
		s.core.Yield(s.link)
	}
}

// diskState returns the state of the disk for the health check; "" is normal. A core that does not lead refuses no
// change and no file because of its own disk: the leader stores them.
func (s *Server) diskState() string {
	if s.core == nil || s.core.IsLeader() {
		return s.space.State()
	}
	switch {
	case s.space.IsReadOnly():
		return "full: this core stores no change; the leader does"
	case s.space.IsLow():
		return "almost full: this core stores no file; the leader does"
	}
	return ""
}

// clusterState returns a function with the reason why this core cannot serve clients: it neither leads nor has a link
// to the leader. The function is nil at a single node.
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

// coreCluster gives a core's HTTP server access to the cluster. While the core is not the leader, it hosts event queues
// if the leader allows it, and forwards all other requests.
type coreCluster struct {
	*actors.Server
	s *Server
}

func (c coreCluster) IsReady() bool {
	return c.s.core != nil && (c.s.core.IsLeader() || c.s.link != nil && c.s.link.HostsAnyQueues())
}

// Prepare does not wait: requests that this node cannot answer are forwarded.
func (c coreCluster) Prepare(host string) error {
	if c.s.link != nil && !c.s.core.IsLeader() {
		c.s.link.StartHosting(host)
	}
	return nil
}

func (c coreCluster) HostsQueues(id realm.ID) bool {
	return c.s.link != nil && c.s.link.HostsQueues(id)
}
func (c coreCluster) NewestSeq(ctx context.Context, id realm.ID) (realm.Seq, error) {
	return c.s.link.NewestSeq(ctx, id)
}
func (c coreCluster) NewRequest() string           { return c.s.link.NewRequest() }
func (c coreCluster) DialOwner() (net.Conn, error) { return c.s.link.DialOwner() }

func (c coreCluster) Forward(ctx context.Context, r httpd.ForwardedRequest) (httpd.ForwardedAnswer, error) {
	return c.s.link.Forward(ctx, r)
}
