package replicated

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// unreachableRetryInterval is the time between two attempts to reach a node.
const unreachableRetryInterval = 50 * time.Millisecond

// rejectedRetryInterval is the time after which entries are sent again to a node that has rejected them because its
// disk is full. Each attempt sends up to maxAppendEntries.
const rejectedRetryInterval = 500 * time.Millisecond

// retryingTransport repeats requests with entries until the other node receives them. Raft itself doubles its pause
// after each failure, up to 10 s. A node that was down for some seconds would get no entries for as long after its
// return, and could not take another node's place in the majority.
type retryingTransport struct {
	*raft.NetworkTransport
	send func(raft.ServerID, raft.ServerAddress, *raft.AppendEntriesRequest, *raft.AppendEntriesResponse) error
	// failed returns the reason why this node has failed and must not send entries; nil if it has not.
	failed func() error
	// stillNeeded reports whether this node is still the leader of a term, and the other node still a member.
	stillNeeded   func(term uint64, id raft.ServerID) bool
	closing       <-chan struct{}
	confirmations *confirmations
	commits       *commits
	handling      sync.RWMutex // locked for reading while a heartbeat is handled
	// consumer passes the requests of other nodes on to Raft; see recordLeaderCommit.
	consumer chan raft.RPC
}

// newRetryingTransport returns the transport of a node.
func newRetryingTransport(n *Node, t *raft.NetworkTransport) *retryingTransport {
	p := &retryingTransport{NetworkTransport: t, send: t.AppendEntries, failed: n.failed.get,
		stillNeeded: n.replicatesTo, closing: n.closing, confirmations: n.confirmations, commits: &n.commits,
		consumer: make(chan raft.RPC)}
	go func() {
		term := uint64(0) // of the last request
		for {
			select {
			case r := <-t.Consumer():
				n.admitCandidate(r.Command)
				if a, is := r.Command.(*raft.AppendEntriesRequest); is && !isHeartbeat(a) {
					// The first request may be an old one that the leader could not send before.
					if a.Term == term {
						n.recordLeaderCommit(a)
					}
					term = a.Term
				}
				select {
				case p.consumer <- r:
				case <-n.closing:
					return
				}
			case <-n.closing:
				return
			}
		}
	}()
	return p
}

// admitCandidate lets Raft treat a candidate like a voter. Raft itself refuses a candidate that has no vote in this
// node's newest configuration, which may be older than that of the candidate: if the leader is lost right after it has
// given a third core a vote and only the third core knows, this node cannot win an election without the lost leader,
// and the third core cannot win without this node. Raft is safe when every candidate can get a vote (Ongaro's thesis,
// section 4.1): the candidate needs a majority of its own configuration, and a log as new as that of the voters. A node
// that was removed cannot disturb the others: it has no links to them, and gets no vote while there is a leader.
func (n *Node) admitCandidate(command any) {
	var h *raft.RPCHeader
	switch c := command.(type) {
	case *raft.RequestVoteRequest:
		h = &c.RPCHeader
	case *raft.RequestPreVoteRequest:
		h = &c.RPCHeader
	default:
		return
	}
	if len(h.ID) == 0 || !n.isStarted() {
		return
	}
	var voter raft.ServerID
	for _, x := range n.members() {
		if x.Suffrage != raft.Voter {
			continue
		}
		if x.ID == raft.ServerID(h.ID) {
			return
		}
		voter = x.ID
	}
	if voter != "" {
		h.ID = []byte(voter) // used for these checks only; a vote is noted by address
	}
}

// SetHeartbeatHandler sets the function that handles heartbeats beside Raft's own loop. A node that closes handles
// none.
func (t *retryingTransport) SetHeartbeatHandler(handle func(raft.RPC)) {
	t.NetworkTransport.SetHeartbeatHandler(func(r raft.RPC) {
		t.handling.RLock()
		defer t.handling.RUnlock()
		select {
		case <-t.closing:
		default:
			handle(r)
		}
	})
}

// Close closes all links. It waits for heartbeats that are being handled: they may write the term to the log, which is
// closed next, and Raft would end the process. The caller has closed Node.closing.
func (t *retryingTransport) Close() error {
	t.handling.Lock()
	defer t.handling.Unlock()
	return t.NetworkTransport.Close()
}

// Consumer returns the requests of other nodes.
func (t *retryingTransport) Consumer() <-chan raft.RPC { return t.consumer }

// isHeartbeat reports whether a request only shows that the leader is alive.
func isHeartbeat(a *raft.AppendEntriesRequest) bool {
	return len(a.Entries) == 0 && a.PrevLogEntry == 0 && a.LeaderCommitIndex == 0
}

// AppendEntries sends a request with entries, or one without. Heartbeats are sent once, because Raft limits the pauses
// between them. A request is repeated unchanged. With a newer commit index the other node could consider entries
// committed that follow those of the request in its own log, although the leader has different entries there.
func (t *retryingTransport) AppendEntries(
	id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	for {
		if err := t.failed(); err != nil {
			return err
		}
		check := t.confirmations.began.Load()
		err := t.send(id, to, args, resp)
		if err == nil && resp.Success {
			t.confirmations.record(id, args.Term, check)
		}
		if err == nil && isRefusal(args, resp) {
			// Raft sends them again at once then, and not after its own pause.
			resp.NoRetryBackoff = true
			t.pause(rejectedRetryInterval)
		}
		if err == nil || isHeartbeat(args) || !t.stillNeeded(args.Term, id) || !t.pause(unreachableRetryInterval) {
			return err
		}
	}
}

// pause waits, and reports false if the node is closed meanwhile.
func (t *retryingTransport) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-t.closing:
		return false
	}
}

// isRefusal reports whether the other node could not store entries. (Raft sets NoRetryBackoff if that node lacks the
// entry before them.)
func isRefusal(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) bool {
	return !resp.Success && !resp.NoRetryBackoff && resp.Term == args.Term
}

// AppendEntriesPipeline returns a way to send entries without waiting for each answer.
func (t *retryingTransport) AppendEntriesPipeline(
	id raft.ServerID, to raft.ServerAddress,
) (raft.AppendPipeline, error) {
	p, err := t.NetworkTransport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	out := &throttledPipeline{AppendPipeline: p, failed: t.failed, answers: make(chan raft.AppendFuture),
		closed: make(chan struct{}), commits: t.commits}
	go out.passAnswers()
	go out.sendCommits()
	return out, nil
}

// throttledPipeline drops requests without new entries and without a new commit index, so that the short commitTimeout
// causes no traffic while nothing changes. When this node has committed an entry, it sends the request without entries
// that Raft would send after commitTimeout: the clients of the other node see the entry about 10 ms earlier. Raft does
// not wait for the answer to each request of a pipeline. After a failure of the node it sends no requests: they could
// contain a damaged entry.
type throttledPipeline struct {
	raft.AppendPipeline
	failed  func() error
	commits *commits // of this node

	mu   sync.Mutex                // held while a request is sent
	last raft.AppendEntriesRequest // a request without entries that follows the last one
	sent time.Time                 // when that was

	answers chan raft.AppendFuture
	closed  chan struct{}
}

// commits tells the pipelines of a node which entry is committed.
type commits struct {
	mu    sync.Mutex
	index uint64
	term  uint64
	next  chan struct{} // closed at the next entry; nil: no pipeline waits
}

// add notes an entry that is committed.
func (c *commits) add(l *raft.Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index, c.term = l.Index, l.Term
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

// newest returns the newest entry that is committed, and a channel that is closed when there is a newer one.
func (c *commits) newest() (index, term uint64, next <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.index, c.term, c.next
}

// sendCommits sends each commit index at once, until the pipeline is closed.
func (p *throttledPipeline) sendCommits() {
	for {
		index, term, next := p.commits.newest()
		p.sendCommit(index, term)
		select {
		case <-next:
		case <-p.closed:
			return
		}
	}
}

// sendCommit tells the other node that an entry is committed, unless it knows. The entry must be of the term of this
// pipeline: after a change of the leader, the entry with this index may be another one than the pipeline has sent. For
// the same reason the request names no entry after the last that was sent.
func (p *throttledPipeline) sendCommit(index, term uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	args := p.last
	if args.Term != term || p.failed() != nil {
		return
	}
	if args.LeaderCommitIndex = min(index, args.PrevLogEntry); args.LeaderCommitIndex <= p.last.LeaderCommitIndex {
		return
	}
	p.last.LeaderCommitIndex, p.sent = args.LeaderCommitIndex, time.Now()
	p.AppendPipeline.AppendEntries(&args, new(raft.AppendEntriesResponse)) // Raft sees an error at its next request
}

// passAnswers passes answers on to Raft. Raft stops to read them after a refusal, but can still be sending a request,
// which waits in its own pipeline until the answers before it are read: without this goroutine, Raft would wait for
// itself. Few answers wait here, because Raft closes the pipeline once that request is sent.
func (p *throttledPipeline) passAnswers() {
	var waiting []raft.AppendFuture
	for {
		var to chan raft.AppendFuture
		var next raft.AppendFuture
		if len(waiting) > 0 {
			to, next = p.answers, waiting[0]
		}
		select {
		case f := <-p.AppendPipeline.Consumer():
			waiting = append(waiting, f)
		case to <- next:
			waiting = waiting[1:]
		case <-p.closed:
			return
		}
	}
}

// Consumer returns the answers.
func (p *throttledPipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close closes the pipeline. Raft calls it once.
func (p *throttledPipeline) Close() error {
	close(p.closed)
	return p.AppendPipeline.Close()
}

func (p *throttledPipeline) AppendEntries(
	args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	if err := p.failed(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if len(args.Entries) == 0 && args.LeaderCommitIndex <= p.last.LeaderCommitIndex &&
		now.Sub(p.sent) < idleRequestInterval {
		return nil, nil
	}
	p.sent, p.last = now, *args
	if n := len(args.Entries); n > 0 {
		p.last.Entries, p.last.PrevLogEntry, p.last.PrevLogTerm = nil, args.Entries[n-1].Index, args.Entries[n-1].Term
	}
	return p.AppendPipeline.AppendEntries(args, resp)
}

// replicatesTo reports whether this node is the leader of a term and another node is a member.
func (n *Node) replicatesTo(term uint64, id raft.ServerID) bool {
	if !n.isStarted() || n.raft.State() != raft.Leader || n.raft.CurrentTerm() != term {
		return false
	}
	return slices.ContainsFunc(n.members(), func(x raft.Server) bool { return x.ID == id })
}
