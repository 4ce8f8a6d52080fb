package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"parley/snapshot/replicated"
	"parley/wire/peer"
)

// metaKey is the key of the members and tokens in the replicated log.
const metaKey = "cluster"

// CoreNode is a core's copy of the organizations, with the listener for the other nodes.
type CoreNode struct {
	*replicated.Node
	Directory *Directory
	listener  *peer.Listener
}

// OpenCoreNode opens the listener for other nodes and the copy of the organizations in a data directory. It sets the
// id, the address and the links of the options.
func OpenCoreNode(d *Directory, data string, o replicated.Options) (*CoreNode, error) {
	id, err := d.Identity()
	if err != nil {
		return nil, err
	}
	l, err := peer.Listen(d.PeerListen, id, peer.LinkProtocol, peer.JoinProtocol, peer.HTTPProtocol, peer.RaftProtocol,
		peer.FilesProtocol)
	if err != nil {
		return nil, fmt.Errorf("peer-listen: %w", err)
	}
	l.OnMember(func(node string, role peer.Role) bool {
		m, ok := d.member(node)
		return ok && m.Removed == 0 && m.Role == role
	})
	reservePlaces(l, d)
	o.ID, o.Address, o.Links = d.Node, l.Addr().String(), newRaftLinks(l, id, d)
	has, err := replicated.HasLog(data)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if !has {
		begin := replicated.PrepareJoin
		if d.IsFounder() {
			begin = replicated.Bootstrap
		}
		if err := begin(data, o); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	n, err := replicated.Open(data, o)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	d.mu.Lock()
	d.replicate = func(value []byte) error { return n.SetMeta(metaKey, value) }
	d.mu.Unlock()
	if err := n.OnMeta(metaKey, func(value []byte) { go d.applyShared(value, l, o.Log) }); err != nil {
		return nil, errors.Join(err, n.Close(), l.Close())
	}
	return &CoreNode{n, d, l}, nil
}

// lookupTimeout limits the lookup of the addresses of other nodes.
const lookupTimeout = 5 * time.Second

// reservePlaces reserves places for the connections of the members, as far as their addresses are known.
func reservePlaces(l *peer.Listener, d *Directory) {
	for _, m := range d.ListMembers() {
		host, _, err := net.SplitHostPort(m.Address)
		if err != nil || host == "" {
			continue
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
			defer cancel()
			list, err := net.DefaultResolver.LookupIPAddr(ctx, host)
			if err != nil {
				return // its first connection reserves them
			}
			for _, a := range list {
				if !a.IP.IsUnspecified() {
					l.AddMemberAddress(a.IP)
				}
			}
		}()
	}
}

// WaitUntilCaughtUp returns when this node is the leader or has caught up; see replicated.Node.IsCaughtUp. It returns
// an error if the context ends or the node fails before.
func (n *CoreNode) WaitUntilCaughtUp(ctx context.Context) error {
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for !n.IsCaughtUp() {
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.Failed():
			return n.Err()
		}
	}
	return nil
}

// raftLinks are the connections of the replicated log between cores.
type raftLinks struct {
	net.Listener
	id     *peer.Identity
	d      *Directory
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newRaftLinks(l *peer.Listener, id *peer.Identity, d *Directory) *raftLinks {
	r := &raftLinks{Listener: l.Protocol(peer.RaftProtocol), id: id, d: d, conns: make(chan net.Conn),
		closed: make(chan struct{})}
	go func() {
		for {
			c, err := r.Listener.Accept()
			if err != nil {
				return
			}
			node, role, err := peer.NodeOf(c)
			if err != nil || !d.mayUseRaft(node, role) {
				c.Close()
				continue
			}
			select {
			case r.conns <- c:
			case <-r.closed:
				c.Close()
			}
		}
	}()
	return r
}

func (r *raftLinks) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return c, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. It does not close the listener, which serves other protocols, too.
func (r *raftLinks) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

func (r *raftLinks) Dial(address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := r.id.Dial(ctx, address, peer.RaftProtocol)
	if err != nil {
		return nil, err
	}
	if node, _, err := peer.NodeOf(c); err != nil || r.d.IsRemoved(node) {
		return nil, errors.Join(err, c.Close(), fmt.Errorf("node %s at %s was removed from the cluster", node, address))
	}
	return c, nil
}

// sharedState is the part of the state that is the same on every core.
type sharedState struct {
	Version int64         `json:"version"` // counts the changes
	Members []Member      `json:"members"`
	Tokens  []storedToken `json:"tokens,omitempty"`
}

// applyShared applies a change that another core has made. It ends the connections of nodes that were removed.
func (d *Directory) applyShared(value []byte, l *peer.Listener, log *slog.Logger) {
	var x sharedState
	err := json.Unmarshal(value, &x)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if x.Version <= d.Version {
			return
		}
		d.Version, d.Members, d.Tokens = x.Version, x.Members, x.Tokens
		err = d.write()
		for _, m := range d.Members {
			if m.Removed != 0 {
				l.CutOff(m.Node)
			}
		}
	}
	if err != nil {
		log.Error("storing the members of the cluster failed", "err", err)
	}
}
