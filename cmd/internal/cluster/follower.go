package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/actors"
	"parley/actors/delivery"
	"parley/actors/realm"
	"parley/snapshot/codec"
	"parley/wire/httpd"
	"parley/wire/peer"
)

const (
	// MaxLinkWait is how long a request waits for the link to the core, or for a replica. A core that was killed is
	// back sooner; clients repeat a request after 15 seconds or later.
	MaxLinkWait = httpd.MaxForwardWait
	// redialInterval is the time between two attempts to open a link. While no core leads, the first pause is
	// firstRedialInterval, and each further one twice as long: a move of the leadership takes some milliseconds.
	redialInterval      = 50 * time.Millisecond
	firstRedialInterval = 5 * time.Millisecond
	// refusedRetryInterval is the time between two attempts after a core has refused the node.
	refusedRetryInterval = 2 * time.Second
	// reportInterval is how often an edge reports its state to the core.
	reportInterval = 500 * time.Millisecond
	// lateReplicaTimeout is the time after which an edge logs that a replica still lacks facts that the core had when
	// the link was opened.
	lateReplicaTimeout = 30 * time.Second
)

// FollowerOptions are the options of a Follower.
type FollowerOptions struct {
	Directory *Directory
	Program   string // version
	Log       *slog.Logger
	// Digest returns the digest of a realm's state, and the last fact in it.
	Digest func(realm.ID) (realm.Seq, string, error)
	// Settings are the settings of a core that must be the same at the leader, by name; nil at an edge.
	Settings map[string]string
	// MaxReplicas and MaxReplicaBytes limit the replicas of an edge; 0: DefaultMaxReplicas, and any number of bytes.
	MaxReplicas     int
	MaxReplicaBytes int64
	// Clock is the wall clock; nil: the system's. It is for tests.
	Clock func() time.Time
}

// Follower is a node with replicas of organizations that another node, the leader, owns. A core that is not the leader
// also uses a Follower.
type Follower struct {
	FollowerOptions
	clock *clockWatch // used by a goroutine of Start
	id    *peer.Identity
	boot  string // prefix of the ids of this process's requests
	count atomic.Int64

	orgs        *actors.Server // set by Start
	subdomainOf func(host string) string
	offset      atomic.Int64 // how far the core's clock is ahead, in nanoseconds

	mu        sync.Mutex
	link      *peer.Link
	address   string                                  // of the core at the other end of the link
	core      string                                  // the node at that address
	coreNode  *CoreNode                               // nil at an edge
	leader    string                                  // node that leads, as Raft says at a core; "" at an edge
	changed   chan struct{}                           // closed when link or ready changes
	ready     bool                                    // the replicas have caught up since the link was opened
	mayHost   bool                                    // the leader allows this core to host event queues
	current   bool                                    // it has all facts that the leader had when the link was opened
	unready   time.Time                               // since when ready has been false
	refused   error                                   // why the core refused the node at the last attempt
	adoptions map[int64]func(delivery.Adopted, error) // not answered by the core yet
	adopted   int64                                   // number of the last one
	names     map[string]realm.ID
	opening   map[realm.ID]*opening
	open      map[realm.ID]*openReplica
	newest    questions[realm.ID, realm.Seq] // see NewestSeq
	unknown   questions[string, realm.ID]    // see findRealm
	asking    atomic.Int64                   // callers of findRealm that wait for an answer

	refusedNames atomic.Int64 // beyond MaxUnknownNames

	newLeader chan struct{} // has room for one: leader has changed

	// hosted are the organizations whose event queues this core hosts now (realm.ID -> struct{}); see HostsQueues.
	hosted sync.Map

	ctx     context.Context
	cancel  context.CancelFunc
	stopped sync.WaitGroup

	Counters FollowerCounters
}

// FollowerCounters are counters since the start of the process.
type FollowerCounters struct {
	// Forwarded requests: those that were answered, those that were not sent because there was no link, and ambiguous
	// ones, whose answers were lost.
	Answered, NotSent, Ambiguous atomic.Int64
	Connects, Adoptions          atomic.Int64
	Sent, Received               atomic.Int64 // bytes on links that have ended
	TextCalls                    atomic.Int64 // requests for message texts
	NoRoom, Unloads              atomic.Int64 // of replicas
}

// Greeted is the answer of a core to the greeting of an edge.
type Greeted struct {
	Settings                          map[string]string
	Generation                        int64
	Pushes, Bouncer, DevelopmentLogin bool

	link          *peer.Link
	program       string // version of the core's
	seqs          map[realm.ID]realm.Seq
	address, node string        // of the core
	cores         []string      // addresses of all cores
	ahead         time.Duration // of the core's clock
}

// Close ends the link of a greeting that is not used.
func (g *Greeted) Close() { g.link.Close(nil) }

// NewFollower returns an edge without a link.
func NewFollower(o FollowerOptions) (*Follower, error) {
	id, err := o.Directory.Identity()
	if err != nil {
		return nil, err
	}
	if o.MaxReplicas == 0 {
		o.MaxReplicas = DefaultMaxReplicas
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	e := &Follower{
		FollowerOptions: o, clock: newClockWatch(o.Clock), changed: make(chan struct{}),
		id: id, boot: o.Directory.Node + "-" + actors.Token(12) + "-",
		names: map[string]realm.ID{}, opening: map[realm.ID]*opening{}, open: map[realm.ID]*openReplica{},
		adoptions: map[int64]func(delivery.Adopted, error){}, unready: time.Now(), newLeader: make(chan struct{}, 1),
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// Greet opens the first link. It repeats the attempt until the context ends or a core refuses the node.
func (e *Follower) Greet(ctx context.Context) (*Greeted, error) {
	for {
		g, err := e.dial(ctx)
		if err == nil || errors.Is(err, peer.ErrRefused) || errors.Is(err, peer.ErrOtherCluster) {
			return g, err
		}
		e.Log.Warn("no link to a core", "err", err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Second):
		}
	}
}

// nextCoreDelay is how long a core may take to answer before the edge also dials the next core: a suspended process
// accepts connections but does not answer.
const nextCoreDelay = 100 * time.Millisecond

// dialed is the result of dialing one core.
type dialed struct {
	address string
	greeted *Greeted
	err     error
}

// maxDials limits the attempts of one dial.
const maxDials = 256

// dial opens a link to the leader. It dials one core after the other, without waiting for cores that do not answer. It
// dials cores that are not the leader again, because they may become the leader.
func (e *Follower) dial(ctx context.Context) (g *Greeted, err error) {
	left := e.leaderFirst(e.Directory.CoreAddresses())
	pause := firstRedialInterval
	err = errors.New("the address of no core is known")
	results, running := make(chan dialed, maxDials), 0
	defer func() { go closeLate(results, running) }()
	for end := time.Now().Add(peer.DialTimeout); (len(left) > 0 || running > 0) && time.Now().Before(end); {
		if len(left) > 0 && running < maxDials {
			address := left[0]
			left, running = left[1:], running+1
			go func() {
				g, err := e.dialCore(ctx, address)
				results <- dialed{address, g, err}
			}()
		}
		select {
		case x := <-results:
			running--
			switch err = x.err; {
			case err == nil:
				e.applyGreeting(x.greeted)
				return x.greeted, nil
			case strings.Contains(err.Error(), errNotLeader.Error()):
				err = errNotLeader
				left = append(left, x.address)
				select {
				case <-time.After(pause):
					pause = min(2*pause, redialInterval)
				case <-e.newLeader:
					left, pause = e.leaderFirst(left), firstRedialInterval
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			case errors.Is(err, peer.ErrRefused):
				return nil, err
			}
		case <-time.After(nextCoreDelay):
		}
	}
	return nil, err
}

// closeLate closes the links of n results that arrive after dial has returned.
func closeLate(results chan dialed, n int) {
	for range n {
		if x := <-results; x.err == nil {
			x.greeted.link.Close(errNotLeader)
		}
	}
}

// applyGreeting applies the answer of a core: its clock, its address and the addresses of all cores.
func (e *Follower) applyGreeting(g *Greeted) {
	e.offset.Store(int64(g.ahead))
	if d := g.ahead.Round(time.Millisecond); d.Abs() > time.Second {
		e.Log.Warn("the clock of the core differs from that of this node, which uses the core's", "ahead", d.String())
	}
	e.mu.Lock()
	e.address, e.core = g.address, g.node
	e.mu.Unlock()
	if err := e.Directory.setCores(g.cores); err != nil {
		e.Log.Warn("storing the addresses of the cores failed", "err", err)
	}
	e.Counters.Connects.Add(1)
	if g.program != e.Program {
		e.Log.Warn("the core runs another release: upgrade all nodes", "core", g.node, "program", g.program,
			"here", e.Program)
	}
	for name, here := range e.Settings {
		if there, has := g.Settings[name]; has && there != here {
			e.Log.Warn("the leader has another value of a setting, so clients will notice which core leads: give "+
				"all cores the same one", "setting", name, "here", here, "leader", there, "core", g.node)
		}
	}
	e.Log.Info("link to the core opened", "core", g.node, "address", g.address)
}

func (e *Follower) dialCore(ctx context.Context, address string) (*Greeted, error) {
	began := e.Clock()
	hello := greeting{Version: peer.Version, Boot: e.boot, Program: e.Program, Clock: began.UnixMilli(),
		Level: realm.Level, NoSecret: true}
	hello.Realms = e.openRealms()
	link, err := e.id.Open(e.ctx, address, codec.EncodeRow(&hello))
	if err != nil {
		return nil, err
	}
	var w welcome
	err = decode(link.Answer(), &w)
	switch {
	case err != nil:
	case e.Directory.IsRemoved(link.Node()):
		err = fmt.Errorf("node %s at %s was removed from the cluster", link.Node(), address)
	case w.Node != link.Node():
		err = fmt.Errorf("the node at %s is %s by its certificate, but says that it is %s", address, link.Node(),
			w.Node)
	}
	if err != nil {
		link.Close(err)
		return nil, err
	}
	now := e.Clock()
	middle := began.Add(now.Sub(began) / 2)
	return &Greeted{Settings: w.Settings, Generation: w.Generation, Pushes: w.Pushes, Bouncer: w.Bouncer,
		DevelopmentLogin: w.DevelopmentLogin, link: link, program: w.Program, seqs: w.Seqs, address: address,
		node: w.Node, cores: w.Cores, ahead: time.UnixMilli(w.Clock).Sub(middle)}, nil
}

// Now returns the time by the clock of the core.
func (e *Follower) Now() time.Time { return e.Clock().Add(time.Duration(e.offset.Load())) }

// Start uses the first link and opens others when it breaks. subdomainOf returns the subdomain of an organization by
// its host.
func (e *Follower) Start(first *Greeted, orgs *actors.Server, subdomainOf func(host string) string) {
	e.orgs, e.subdomainOf = orgs, subdomainOf
	e.stopped.Go(func() { e.run(first) })
	e.stopped.Go(func() { e.clock.run(e.ctx.Done(), e.clockSet) })
	unload := func() { e.unloadIdle(ReplicaIdle) }
	if e.isCore() {
		unload = e.closeSleeping
	}
	e.stopped.Go(func() {
		t := time.NewTicker(unloadInterval)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				unload()
			case <-e.ctx.Done():
				return
			}
		}
	})
}

// Close ends the link.
func (e *Follower) Close() {
	e.cancel()
	e.stopped.Wait()
}

// run opens a link whenever there is none, until the edge is closed.
func (e *Follower) run(g *Greeted) {
	for e.ctx.Err() == nil {
		var err error
		if g == nil {
			g, err = e.dial(e.ctx)
		}
		if err != nil {
			wait := redialInterval
			if errors.Is(err, peer.ErrRefused) || errors.Is(err, peer.ErrOtherCluster) {
				e.Log.Error("the core refuses this node", "err", err)
				wait = refusedRetryInterval
			}
			e.change(func() {
				if e.refused = nil; wait == refusedRetryInterval {
					e.refused = err
				}
			})
			select {
			case <-time.After(wait):
			case <-e.ctx.Done():
			}
			continue
		}
		link := g.link
		e.change(func() {
			e.link, e.refused = link, nil
			// The time without a link does not count as lag: requests wait until all facts have been applied.
			for _, x := range e.open {
				x.lag, x.stale = realmLag{}, false
			}
		})
		if e.isCore() {
			e.stopped.Go(func() { e.beginHosting(link, g) })
		} else {
			e.stopped.Go(func() {
				e.announce(link)
				e.catchUp(link, g.seqs)
			})
		}
		e.stopped.Go(func() { e.report(link) })
		err = link.Run(func(m []byte) { e.receive(link, m) })
		if e.ctx.Err() == nil && !errors.Is(err, errNotLeader) {
			leader, address := g.node, g.address
			e.stopped.Go(func() { e.replaceLeader(leader, address) })
		}
		e.change(func() {
			if e.ready {
				e.unready = time.Now()
			}
			e.link, e.ready, e.mayHost, e.current = nil, false, false, false
			e.updateHosted()
			sent, received := link.Traffic()
			e.Counters.Sent.Add(sent)
			e.Counters.Received.Add(received)
		})
		e.orgs.PauseReplicas(true)
		e.failAdoptions(err)
		if e.ctx.Err() == nil {
			e.Log.Warn("link to the core broken", "err", err)
		}
		g = nil
	}
}

// maxAnnounced is how many bytes of announcements wait to be sent. Thousands of organizations are announced after a
// change of the leader: without waiting, their messages would fill the link, which is then cut.
const maxAnnounced = 1 << 20

// announce reports all organizations that are open on this node to the owner, as fast as the link sends.
func (e *Follower) announce(link *peer.Link) {
	for _, id := range e.openRealms() {
		if !link.WaitForRoom(maxAnnounced) {
			return
		}
		link.Send(encode(msgOpen, id))
		e.orgs.OwnerConnected(id)
	}
}

// change changes the state of the link and wakes all goroutines that wait for a change.
func (e *Follower) change(fn func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fn()
	close(e.changed)
	e.changed = make(chan struct{})
}

// catchUp accepts requests as soon as the replicas have all facts that the core had when the link was opened.
func (e *Follower) catchUp(link *peer.Link, seqs map[realm.ID]realm.Seq) {
	e.waitForAll(link, seqs)
	e.change(func() {
		if e.link == link {
			e.ready = true
			e.orgs.PauseReplicas(false)
		}
	})
}

// waitForAll waits until this node has applied the given facts, or the link has ended.
func (e *Follower) waitForAll(link *peer.Link, seqs map[realm.ID]realm.Seq) {
	var all sync.WaitGroup
	for id, seq := range seqs {
		all.Go(func() { e.waitFor(link, id, seq) })
	}
	all.Wait()
}

// report reports the state of this edge to the core, every reportInterval.
func (e *Follower) report(link *peer.Link) {
	t := time.NewTicker(reportInterval)
	defer t.Stop()
	for {
		r := edgeReport{Applied: map[realm.ID]realm.Seq{}, Queues: e.orgs.Metrics.OpenQueues.Load(),
			Polls: e.orgs.Metrics.ParkedPolls.Load(), Full: e.orgs.IsReadOnly(), Sleep: sleepOf(e.orgs)}
		list := e.openRealms()
		if e.isCore() {
			list = e.orgs.AwakeRealms()
		}
		for _, id := range list {
			r.Applied[id] = e.orgs.DurableSeq(id)
		}
		link.Send(encodeReport(&r))
		select {
		case <-t.C:
		case <-link.Context().Done():
			return
		}
	}
}

// openRealms returns the realms of which this edge has replicas.
func (e *Follower) openRealms() (list []realm.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range e.open {
		list = append(list, id)
	}
	return list
}

// waitForLink returns the link as soon as there is one. With ready it also waits until the replicas have caught up, and
// returns a refusal of the core at once.
func (e *Follower) waitForLink(ctx context.Context, ready bool) (*peer.Link, error) {
	for {
		e.mu.Lock()
		link, changed, refused := e.link, e.changed, e.refused
		ok := link != nil && (!ready || e.ready)
		e.mu.Unlock()
		if ok {
			return link, nil
		}
		if ready && refused != nil {
			return nil, refused
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-e.ctx.Done():
			return nil, e.ctx.Err()
		}
	}
}

// WaitForLink returns when there is a link to the leader.
func (e *Follower) WaitForLink(ctx context.Context) error {
	_, err := e.waitForLink(ctx, false)
	return err
}

// errNoLink is the answer to requests while the core cannot be reached.
var errNoLink = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"This server cannot reach the other servers; try again in a few seconds.")

// Leader returns a text with the name and address of the core at the other end of the link.
func (e *Follower) Leader() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.link == nil {
		return "unknown, because this node has no link to it"
	}
	return fmt.Sprintf("node %s at %s", e.core, e.address)
}

// IsReady reports whether the replicas have caught up, so that requests need not wait.
func (e *Follower) IsReady() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ready
}

// unreadyTimeout is how long a node may be without a leader before its health check fails: as long as a change of the
// leader may take, so that load balancers do not remove all nodes during one, and less than MaxLinkWait, after which
// requests are refused.
const unreadyTimeout = 3 * time.Second

// State returns "" while this node follows a leader. After unreadyTimeout without a leader it returns the reason, for
// the health check.
func (e *Follower) State() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch d := time.Since(e.unready); {
	case e.ready || d < unreadyTimeout:
		return ""
	case e.refused != nil:
		return "refused by the core: " + e.refused.Error()
	case e.link != nil:
		return fmt.Sprintf("behind the core for %v", d.Round(time.Second))
	default:
		return fmt.Sprintf("no link to a leading core for %v", d.Round(time.Second))
	}
}

func (e *Follower) isHome(request string) bool { return strings.HasPrefix(request, e.boot) }

// The methods of httpd.Cluster, besides those of actors.Server.

// NewRequest returns the id of a new request.
func (e *Follower) NewRequest() string { return e.boot + strconv.FormatInt(e.count.Add(1), 36) }

// Traffic returns the bytes of all links to cores: sent and received.
func (e *Follower) Traffic() (sent, received int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.link != nil {
		sent, received = e.link.Traffic()
	}
	return sent + e.Counters.Sent.Load(), received + e.Counters.Received.Load()
}

// Silence returns the time since the last message of the core; -1: there is no link.
func (e *Follower) Silence() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.link == nil {
		return -1
	}
	return e.link.Silence()
}

// DialOwner opens a connection for HTTP to the owner. Nothing of the request has been sent before, so it waits for an
// owner that answers as long as other requests do.
func (e *Follower) DialOwner() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(e.ctx, MaxLinkWait)
	defer cancel()
	for {
		link, err := e.waitForLink(ctx, false)
		if err != nil {
			return nil, err
		}
		e.mu.Lock()
		address, core, changed := e.address, e.core, e.changed
		isNewest := e.link == link
		e.mu.Unlock()
		if !isNewest {
			continue
		}
		c, err := e.dialWhile(link, address, core)
		switch {
		case err == nil || ctx.Err() != nil:
			return c, err
		case link.Context().Err() != nil:
			select {
			case <-changed:
			case <-ctx.Done():
			}
		case !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		}
	}
}

// dialWhile opens a connection for HTTP to a node, if its link lasts that long.
func (e *Follower) dialWhile(link *peer.Link, address, node string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(link.Context(), peer.DialTimeout)
	defer cancel()
	c, err := e.id.DialNode(ctx, address, node, peer.HTTPProtocol)
	if err != nil {
		return nil, err
	}
	return newOwnerConn(link.Context(), c), nil
}

// errNoLeader says why a command of the operator cannot be carried out, and what to do.
func (e *Follower) errNoLeader() error {
	e.mu.Lock()
	refused := e.refused
	e.mu.Unlock()
	cores := strings.Join(e.Directory.CoreAddresses(), ", ")
	if refused != nil {
		return refused
	}
	if !e.isCore() {
		return fmt.Errorf("no core that leads can be reached at %s: start the cores, or check the network", cores)
	}
	return fmt.Errorf("no core leads, so nothing can be changed: more than half of the cores with a vote must run and "+
		"reach each other at their addresses, of %s. Start the others. If they are lost for ever, stop this core, and "+
		"parley cluster dissolve makes it a single server", cores)
}

// Command forwards an operator command to the core. The answer is JSON.
func (e *Follower) Command(ctx context.Context, name string, args map[string]string) ([]byte, error) {
	link, err := e.waitForLink(ctx, false)
	if err != nil {
		return nil, e.errNoLeader()
	}
	return link.CallOnce(ctx, encode(callCommand, &commandCall{name, args}))
}
