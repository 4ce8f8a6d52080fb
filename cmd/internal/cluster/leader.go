package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/actors"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/codec"
	"parley/wire/httpd"
	"parley/wire/peer"
)

// LeaderOptions are the options of a Leader.
type LeaderOptions struct {
	Directory *Directory
	Node      *CoreNode
	Orgs      *actors.Server
	Disk      func() snapshot.Disk
	HTTP      *httpd.Server
	Log       *slog.Logger
	Now       func() time.Time
	Program   string // version

	Files string // bucket of the uploaded files; "": they are in the data directory

	Secret []byte // of the server, for cores that join

	// Settings of the core that edges adopt.
	Settings                          map[string]string
	Generation                        int64
	Pushes, Bouncer, DevelopmentLogin bool

	// OpenFile opens a file for another core; nil: the files are in a bucket. The error wraps fs.ErrNotExist if this
	// core does not have the file.
	OpenFile func(kind, name string) (StoredFile, error)

	// Command executes an operator command of another node, if that node may send it.
	Command func(SentCommand) (any, error)
	// HasVote reports whether a core has a vote; nil: as the replicated log says.
	HasVote func(node string) bool
}

// Leader serves the links of the other nodes. Only the leader accepts links.
type Leader struct {
	LeaderOptions
	links    *peer.Server
	stopped  sync.WaitGroup
	isLeader atomic.Bool
	owns     Changes // signaled when this core has begun to own the organizations
	// ownership is signaled at each change of the organizations that this core owns.
	ownership ownershipChanges
	closed    chan struct{}

	sources     *fileSources // other cores with files
	servedFiles atomic.Int64 // see ServedFiles

	totals sync.Map // node -> *peerTotals

	// FactsSent counts the facts that were sent to edges: a fact counts once for each edge with a replica of its
	// organization. Served and ServeFailed count the forwarded requests that were answered, and those that failed.
	FactsSent, Served, ServeFailed atomic.Int64
	// PresenceCopied counts the rows of presence that were sent to other cores.
	PresenceCopied atomic.Int64
	// Compared counts the organizations whose states Verify has compared, Different those whose states differed.
	Compared, Different atomic.Int64
}

// edgeLink is a link from another node, an edge or a core.
type edgeLink struct {
	peer    *peer.Peer
	edge    *actors.Edge
	boot    string // see greeting
	program string
	level   uint16 // newest rule level that its program knows
	since   time.Time

	mu            sync.Mutex
	closed        bool
	stopFollowing map[realm.ID]func() // end the subscriptions to presence and ephemeral events
	// presence has the rows of presence for another core; nil for edges.
	presence *presenceCopies
	report   edgeReport
	lag      map[realm.ID]*realmLag
	// sentThrough is the newest fact of each realm that was sent over this link.
	sentThrough map[realm.ID]realm.Seq
	totals      *peerTotals // of the node

	voter    atomic.Bool  // the core had a vote when it was last asked for
	commands atomic.Int64 // operator commands of the node that are being executed

	nextAsk atomic.Int64
	asked   sync.Map // id of a digestMessage -> chan digestMessage
}

// StartLeader listens for other nodes.
func StartLeader(o LeaderOptions) (*Leader, error) {
	c := &Leader{LeaderOptions: o, closed: make(chan struct{})}
	if c.HasVote == nil {
		c.HasVote = c.hasVote
	}
	var err error
	if c.sources, err = newFileSources(o.Directory); err != nil {
		return nil, err
	}
	listener := o.Node.listener
	listener.OnRefused(func(from net.Addr, err error) {
		c.Log.Warn("connection refused: the other side is not a node of this cluster, or its clock is wrong",
			"from", from.String(), "err", err)
	})
	c.links = peer.NewServer(c)
	c.stopped.Go(func() { c.links.Serve(listener.Protocol(peer.LinkProtocol)) })
	c.stopped.Go(func() {
		peer.ServeJoins(listener.Protocol(peer.JoinProtocol), func(r peer.JoinRequest) peer.JoinAnswer {
			if !c.isLeader.Load() {
				return peer.JoinAnswer{Error: errNotLeader.Error(), Elsewhere: true}
			}
			if err := checkLevel(r.Node, max(r.Level, realm.FirstLevel), c.Node.Level()); err != nil {
				return peer.JoinAnswer{Error: err.Error()}
			}
			a := c.Directory.Admit(r, c.Now())
			if a.Error == "" && a.Role == peer.Core {
				a.Secret, a.Development, a.Files = c.Secret, c.DevelopmentLogin, c.Files
				c.stopped.Go(func() { c.addCore(r.Node, r.Address) })
			}
			c.Log.Info("join request answered", "node", r.Node, "role", string(a.Role), "err", a.Error)
			return a
		})
	})
	clock := newClockWatch(c.Now)
	c.stopped.Go(func() { clock.run(c.closed, c.clockSet) })
	c.stopped.Go(func() { c.HTTP.ServeNodes(listener.Protocol(peer.HTTPProtocol), c.allowed) })
	c.stopped.Go(func() { c.serveFiles(listener.Protocol(peer.FilesProtocol)) })
	c.Log.Info("listening for other nodes", "node", o.Directory.Node, "listen", listener.Addr().String())
	return c, nil
}

// Addr returns the address at which other nodes reach this one.
func (c *Leader) Addr() string { return c.Node.listener.Addr().String() }

// Handshakes returns the connections that have not shown a certificate yet, and how many were closed because there were
// too many.
func (c *Leader) Handshakes() (now int, closed int64) { return c.Node.listener.Handshakes() }

// Close ends all links.
func (c *Leader) Close() error {
	close(c.closed)
	err := c.Node.listener.Close()
	c.links.Close()
	c.sources.client.CloseIdleConnections()
	c.stopped.Wait()
	return err
}

// allowed returns an error if the node of a connection may not stream requests.
func (c *Leader) allowed(conn net.Conn) error {
	node, role, err := peer.NodeOf(conn)
	if err != nil {
		return err
	}
	return c.permitProtocol(node, role, peer.HTTPProtocol)
}

// permitProtocol returns an error if a node may not use a protocol now.
func (c *Leader) permitProtocol(node string, role peer.Role, protocol string) error {
	is := c.Directory.senderOf(node, role, c.HasVote)
	switch {
	case protocolSenders[protocol].Includes(is):
		return nil
	case is == FromRemoved:
		return errors.Join(c.Directory.checkMember(node), Refuse(node, is, protocol))
	}
	return Refuse(node, is, protocol)
}

// Connect checks the greeting of an edge.
func (c *Leader) Connect(p *peer.Peer, data []byte) ([]byte, error) {
	var g greeting
	if err := decode(data, &g); err != nil {
		return nil, err
	}
	// A core that is not the leader may be behind: it refuses a removed node, but not one that it does not know yet.
	_, known := c.Directory.member(p.Node)
	err := errors.Join(peer.CheckVersion(g.Version), c.permitProtocol(p.Node, p.Role, peer.LinkProtocol))
	if err != nil && (known || g.Version != peer.Version) {
		return nil, err
	}
	if !c.isLeader.Load() && !c.awaitOwnership() {
		return nil, errNotLeader
	}
	if err := c.permitProtocol(p.Node, p.Role, peer.LinkProtocol); err != nil {
		return nil, err
	}
	now := c.Now()
	if err := checkClock(p.Node, g.Clock, now); err != nil {
		return nil, err
	}
	g.Level = max(g.Level, realm.FirstLevel)
	if err := checkLevel(p.Node, g.Level, c.Node.Level()); err != nil {
		return nil, err
	}
	if err := checkKeepsNoSecret(p, &g); err != nil {
		c.Log.Warn("link refused", "node", p.Node, "program", g.Program, "err", err)
		return nil, err
	}
	// The last check: an edge that is upgraded takes this error as the sign that a core would accept it otherwise.
	if err := c.rejectDuplicate(p, g.Boot); err != nil {
		return nil, err
	}
	e := &edgeLink{peer: p, boot: g.Boot, program: g.Program, level: g.Level, since: now,
		stopFollowing: map[realm.ID]func(){},
		lag:           map[realm.ID]*realmLag{}, sentThrough: map[realm.ID]realm.Seq{}, totals: c.totalsOf(p.Node)}
	p.Link = e
	e.edge = c.Orgs.ConnectEdge(p.Node, e)
	w := welcome{
		Node: c.Directory.Node, Program: c.Program, Clock: now.UnixMilli(), Settings: c.Settings,
		Generation: c.Generation, Pushes: c.Pushes, Bouncer: c.Bouncer, DevelopmentLogin: c.DevelopmentLogin,
		Seqs: map[realm.ID]realm.Seq{}, Cores: c.Directory.CoreAddresses(),
	}
	for _, id := range g.Realms {
		w.Seqs[id] = c.Orgs.DurableSeq(id)
	}
	return codec.EncodeRow(&w), nil
}

// checkKeepsNoSecret returns an error for an edge of a release that signs with the server's secret. No edge gets it,
// also not one that says that it needs it: with the secret and a stolen edge, others can make invitations, logins and
// keys.
func checkKeepsNoSecret(p *peer.Peer, g *greeting) error {
	if p.Role != peer.Edge || g.NoSecret {
		return nil
	}
	return fmt.Errorf("edge %s runs release %s, whose edges need the server's secret, and this core gives it to no "+
		"edge: install the release of the core at the edge (parley upgrade)", p.Node, g.Program)
}

// duplicateTimeout is how long a new link waits until the previous link of the same node ends. The connection of a
// killed process ends at once; that of an unreachable process ends after peer.DeadAfter.
const duplicateTimeout = peer.DeadAfter + 3*peer.Heartbeat

// rejectDuplicate returns an error if another process stays connected as the same node. Otherwise two processes with
// the same certificate would end each other's links for ever.
func (c *Leader) rejectDuplicate(p *peer.Peer, boot string) error {
	old := c.links.Find(p.Node)
	if old == nil {
		return nil
	}
	if e, ok := old.Link.(*edgeLink); !ok || e.boot == boot {
		return nil
	}
	select {
	case <-old.Context().Done():
		return nil
	case <-time.After(duplicateTimeout):
		return fmt.Errorf(duplicateText+" %s from %s: stop it, or join with a new token, "+
			"another --node and an empty data directory; a copied data directory cannot be used", p.Node, old.Addr())
	}
}

// duplicateText begins the error for a second process of a node.
const duplicateText = "another process is connected as node"

// IsDuplicate reports whether a core refused a node only because another process is connected as the same node.
func IsDuplicate(err error) bool {
	return errors.Is(err, peer.ErrRefused) && strings.Contains(err.Error(), duplicateText)
}

// Connected logs a new link.
func (c *Leader) Connected(p *peer.Peer) {
	e := p.Link.(*edgeLink)
	e.totals.mu.Lock()
	e.totals.links++
	e.totals.mu.Unlock()
	c.sendMembers(p)
	c.Log.Info("node connected", "node", p.Node, "role", string(p.Role), "program", e.program)
	if e.program != c.Program {
		c.Log.Warn("a node runs another release: upgrade all nodes", "node", p.Node, "program", e.program,
			"here", c.Program)
	}
}

// Disconnect ends all subscriptions of an edge.
func (c *Leader) Disconnect(p *peer.Peer, err error) {
	e := p.Link.(*edgeLink)
	e.edge.Disconnect()
	sent, received := p.Traffic()
	e.totals.mu.Lock()
	e.totals.sent, e.totals.received = e.totals.sent+sent, e.totals.received+received
	e.totals.mu.Unlock()
	e.mu.Lock()
	e.closed = true
	for _, stop := range e.stopFollowing {
		stop()
	}
	if e.presence != nil {
		for _, stop := range e.presence.stops {
			stop()
		}
	}
	e.mu.Unlock()
	c.Log.Warn("node disconnected", "node", p.Node, "err", err)
}

func (c *Leader) receiveReport(e *edgeLink, x *edgeReport) error {
	e.handleReport(*x, c.Orgs, time.Now())
	c.copyPresence(e, x.Applied)
	return nil
}

func (c *Leader) receiveDigest(e *edgeLink, x *digestMessage) error {
	if answer, ok := e.asked.LoadAndDelete(x.ID); ok {
		answer.(chan digestMessage) <- *x
	}
	return nil
}

// open subscribes a node that hosts event queues of a realm to its presence and ephemeral events.
func (c *Leader) open(e *edgeLink, id realm.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.stopFollowing[id] != nil {
		return
	}
	e.presence.end(id)
	feed := &presenceFeed{peer: e.peer, realm: id}
	stopPresence := c.Orgs.FollowPresence(id, func(rows []presence.Row) {
		feed.add(rows)
		if e.peer.Role == peer.Core {
			c.PresenceCopied.Add(int64(len(rows)))
		}
	})
	stopEphemeral := c.Orgs.FollowEphemeral(id, func(t realm.Publication) {
		e.peer.Send(encode(msgEphemeral, &ephemeralMessage{id, codec.EncodeUnacked(t)}))
	})
	e.stopFollowing[id] = func() { stopPresence(); stopEphemeral(); feed.end() }
}

func (e *edgeLink) close(id realm.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if stop := e.stopFollowing[id]; stop != nil {
		stop()
		delete(e.stopFollowing, id)
		delete(e.sentThrough, id)
	}
}

// sendRows sends the rows of a realm as of its last snapshot.
func (c *Leader) sendRows(id realm.ID, answer func(*rowsPart) error) error {
	var part rowsPart
	bytes := 0
	at, err := c.Disk().EachRow(id, func(row realm.EncodedRow) error {
		if row.Table == realm.UnackedEventsTable {
			return nil
		}
		// The value belongs to the iterator.
		part.Rows = append(part.Rows, realm.EncodedRow{Table: row.Table, Key: append([]byte{}, row.Key...),
			Value: append([]byte{}, row.Value...)})
		if bytes += len(row.Key) + len(row.Value); bytes < rowsPartBytes {
			return nil
		}
		err := answer(&part)
		part, bytes = rowsPart{}, 0
		return err
	})
	if err != nil {
		return err
	}
	part.Last, part.At = true, at
	return answer(&part)
}

// sendTexts sends the texts of a page of messages. It omits damaged and erased texts: the edge asks for each of them
// again and gets the reason.
func (c *Leader) sendTexts(x *textsCall, answer func(*textsPart) error) error {
	if len(x.Refs) > maxTexts {
		return fmt.Errorf("a call asks for %d texts, more than %d", len(x.Refs), maxTexts)
	}
	var part textsPart
	bytes := 0
	for _, ref := range x.Refs {
		b, found, err := c.Orgs.Text(x.Realm, ref)
		if err != nil || !found {
			continue
		}
		part.Refs, part.Bodies = append(part.Refs, ref), append(part.Bodies, b)
		if bytes += len(b.Text) + len(b.HTML); bytes < rowsPartBytes {
			continue
		}
		if err := answer(&part); err != nil {
			return err
		}
		part, bytes = textsPart{}, 0
	}
	return answer(&part)
}

// errOneBatch ends a followCall for one batch.
var errOneBatch = errors.New("one batch was sent")

// follow sends the batches of a realm. It blocks while the edge reads slowly; see snapshot.Disk.Follow.
func (c *Leader) follow(ctx context.Context, e *edgeLink, x *followCall, reply func([]byte) error) error {
	done := make(chan error, 1)
	stop := c.Disk().Follow(x.Realm, x.After, func(b realm.Batch) error {
		err := reply(codec.EncodeBatch(&b))
		if err == nil {
			c.FactsSent.Add(int64(len(b.Facts)))
			e.countSent(&b)
			if x.One {
				err = errOneBatch
			}
		}
		return err
	}, func(err error) { done <- err })
	defer stop()
	select {
	case err := <-done:
		switch {
		case errors.Is(err, errOneBatch):
			return nil
		case errors.Is(err, realm.ErrBehind):
			return behindError{err}
		}
		return err
	case <-ctx.Done():
		stop()
		return <-done
	}
}
