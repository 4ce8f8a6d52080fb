package replicated

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// reachAgain is how soon a node that cannot be reached is tried again.
const reachAgain = 50 * time.Millisecond

// refusedAgain is how soon entries are sent again to a node that has refused them because it has no space. Each try
// sends up to maxAppendEntries.
const refusedAgain = 500 * time.Millisecond

// patientTransport tries to send entries until the other node is reached. Raft itself waits twice as long after each
// failure, up to 10 s: a node that was down or had no space for some seconds, and is back, would get no entries for as
// long, and could not replace another one in the majority.
type patientTransport struct {
	*raft.NetworkTransport
	send func(raft.ServerID, raft.ServerAddress, *raft.AppendEntriesRequest, *raft.AppendEntriesResponse) error
	// failed returns the reason why this node sends nothing any more.
	failed func() error
	// wanted reports whether this node still leads in a term, with a member of that id.
	wanted        func(term uint64, id raft.ServerID) bool
	closing       <-chan struct{}
	confirmations *confirmations
	handling      sync.RWMutex // locked for reading while a heartbeat is handled
	// consumer passes the requests of other nodes on to Raft; see noteCommit.
	consumer chan raft.RPC
}

// newPatientTransport returns the transport of a node.
func newPatientTransport(n *Node, t *raft.NetworkTransport) *patientTransport {
	p := &patientTransport{NetworkTransport: t, send: t.AppendEntries, failed: n.failed.get,
		wanted: n.sendsEntries, closing: n.closing, confirmations: n.confirmations, consumer: make(chan raft.RPC)}
	go func() {
		term := uint64(0) // of the last request
		for {
			select {
			case r := <-t.Consumer():
				n.admitCandidate(r.Command)
				if a, is := r.Command.(*raft.AppendEntriesRequest); is && !isHeartbeat(a) {
					// The first request may be an old one that the leader could not send before.
					if a.Term == term {
						n.noteCommit(a)
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
func (t *patientTransport) SetHeartbeatHandler(handle func(raft.RPC)) {
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
func (t *patientTransport) Close() error {
	t.handling.Lock()
	defer t.handling.Unlock()
	return t.NetworkTransport.Close()
}

// Consumer returns the requests of other nodes.
func (t *patientTransport) Consumer() <-chan raft.RPC { return t.consumer }

// isHeartbeat reports whether a request says nothing but that there is a leader.
func isHeartbeat(a *raft.AppendEntriesRequest) bool {
	return len(a.Entries) == 0 && a.PrevLogEntry == 0 && a.LeaderCommitIndex == 0
}

// AppendEntries sends entries, which may be none. Heartbeats are sent once, because Raft limits their pauses. A request
// is repeated as it is: with a newer commit index, the other node would take an entry as committed that it has behind
// those of the request, although the leader may have another one in that place.
func (t *patientTransport) AppendEntries(
	id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	for {
		if err := t.failed(); err != nil {
			return err
		}
		check := t.confirmations.began.Load()
		err := t.send(id, to, args, resp)
		if err == nil && resp.Success {
			t.confirmations.note(id, args.Term, check)
		}
		if err == nil && isRefusal(args, resp) {
			// Raft sends them again at once then, and not after its own pause.
			resp.NoRetryBackoff = true
			t.pause(refusedAgain)
		}
		if err == nil || isHeartbeat(args) || !t.wanted(args.Term, id) || !t.pause(reachAgain) {
			return err
		}
	}
}

// pause waits, and reports false if the node is closed meanwhile.
func (t *patientTransport) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-t.closing:
		return false
	}
}

// isRefusal reports whether the other node could not store entries. Raft sets NoRetryBackoff if it lacks the entry
// before them.
func isRefusal(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) bool {
	return !resp.Success && !resp.NoRetryBackoff && resp.Term == args.Term
}

// AppendEntriesPipeline returns a way to send entries without waiting for each answer.
func (t *patientTransport) AppendEntriesPipeline(
	id raft.ServerID, to raft.ServerAddress,
) (raft.AppendPipeline, error) {
	p, err := t.NetworkTransport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	return &sparingPipeline{AppendPipeline: p, failed: t.failed}, nil
}

// sparingPipeline leaves out requests that have nothing new, so that the short commitTimeout costs no messages while
// nothing changes. Raft waits for no single answer of a pipeline. It sends nothing any more when the node has failed:
// it may have read a damaged entry. Only one goroutine uses it.
type sparingPipeline struct {
	raft.AppendPipeline
	failed func() error
	commit uint64    // of the last request
	sent   time.Time // when that was
}

func (p *sparingPipeline) AppendEntries(
	args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	if err := p.failed(); err != nil {
		return nil, err
	}
	now := time.Now()
	if len(args.Entries) == 0 && args.LeaderCommitIndex == p.commit && now.Sub(p.sent) < requestAgainAfter {
		return nil, nil
	}
	p.commit, p.sent = args.LeaderCommitIndex, now
	return p.AppendPipeline.AppendEntries(args, resp)
}

// sendsEntries reports whether this node leads in a term, and a node is a member.
func (n *Node) sendsEntries(term uint64, id raft.ServerID) bool {
	if !n.isStarted() || n.raft.State() != raft.Leader || n.raft.CurrentTerm() != term {
		return false
	}
	return slices.ContainsFunc(n.members(), func(x raft.Server) bool { return x.ID == id })
}
