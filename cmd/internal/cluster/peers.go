package cluster

import (
	"slices"
	"strings"
	"sync"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/wire/peer"
)

// maxLagSamples limits the samples of a realm for each edge. There is one for each report, so a lag of up to ten
// minutes can be measured. Older facts are no longer in the journal.
const maxLagSamples = int(10 * time.Minute / reportInterval)

// lagSample records which fact was the last of a realm at a time.
type lagSample struct {
	at  time.Time
	seq realm.Seq
}

// realmLag measures how long ago an edge last had the newest fact of a realm, with the precision of reportInterval.
type realmLag struct {
	samples []lagSample // the first is the newest one that the edge has caught up with
	applied realm.Seq
}

// record records that the edge has applied a fact, while last is the newest fact at the core.
func (l *realmLag) record(applied, last realm.Seq, now time.Time) {
	l.applied = applied
	if n := len(l.samples); n == 0 || l.samples[n-1].seq < last {
		l.samples = append(l.samples, lagSample{now, last})
	} else if applied >= last {
		l.samples[n-1].at = now
	}
	for len(l.samples) > 1 && l.samples[1].seq <= applied {
		l.samples = l.samples[1:]
	}
	if len(l.samples) > maxLagSamples {
		l.samples = slices.Delete(l.samples, 1, 2)
	}
}

// behind returns how many facts the edge has not applied, and the time since it last had all of them.
func (l *realmLag) behind(last realm.Seq, now time.Time) (facts int64, seconds float64) {
	if last <= l.applied {
		return 0, 0
	}
	return int64(last - l.applied), now.Sub(l.samples[0].at).Seconds()
}

// peerTotals are the counters of one node since the start of this process, over all its links.
type peerTotals struct {
	mu             sync.Mutex
	sent, received int64 // bytes on links that have ended
	// Facts that were sent to the node, and those of them that were not sent over the same link before.
	facts, distinct int64
	adoptions       int64
	links           int64
}

// totalsOf returns the totals of a node.
func (c *Leader) totalsOf(node string) *peerTotals {
	x, _ := c.totals.LoadOrStore(node, &peerTotals{})
	return x.(*peerTotals)
}

// countSent counts the facts of a batch that was sent to an edge.
func (e *edgeLink) countSent(b *realm.Batch) {
	n, last := int64(len(b.Facts)), b.Last()
	e.mu.Lock()
	before := max(e.sentThrough[b.Realm], b.After)
	fresh := int64(max(last, before) - before)
	e.sentThrough[b.Realm] = max(before, last)
	e.mu.Unlock()
	e.totals.mu.Lock()
	defer e.totals.mu.Unlock()
	e.totals.facts, e.totals.distinct = e.totals.facts+n, e.totals.distinct+fresh
}

// PeerMetrics are the gauges and counters of one node. The counters began with this process.
type PeerMetrics struct {
	Node                  string
	Connected             bool
	FactsBehind           int64
	SecondsBehind         float64
	Queues                int64
	Sent, Received        int64 // bytes
	QueuedBytes           int64
	Adoptions, Links      int64
	FactsSent, FactsFresh int64 // FactsFresh: without those that were sent to the same link before
}

// Peers returns the counters of every other node that was connected since the start.
func (c *Leader) Peers() (list []PeerMetrics) {
	c.totals.Range(func(node, x any) bool {
		t := x.(*peerTotals)
		m := PeerMetrics{Node: node.(string)}
		t.mu.Lock()
		m.Sent, m.Received, m.Adoptions, m.Links = t.sent, t.received, t.adoptions, t.links
		m.FactsSent, m.FactsFresh = t.facts, t.distinct
		t.mu.Unlock()
		if p := c.links.Find(m.Node); p != nil {
			var n NodeStatus
			c.addStatus(&n, p)
			m.Connected, m.FactsBehind, m.SecondsBehind, m.Queues = true, n.FactsBehind, n.SecondsBehind, n.Queues
			m.Sent, m.Received = m.Sent+n.SentBytes, m.Received+n.ReceivedBytes
			m.QueuedBytes = int64(n.QueuedBytes)
		}
		if m.Node != c.Directory.Node {
			list = append(list, m)
		}
		return true
	})
	slices.SortFunc(list, func(x, y PeerMetrics) int { return strings.Compare(x.Node, y.Node) })
	return list
}

// handleReport records the report of an edge and answers with the last fact of each realm.
func (e *edgeLink) handleReport(x edgeReport, orgs *actors.Server, now time.Time) {
	seqs := seqsMessage{}
	defer func() { e.peer.Send(encode(msgSeqs, &seqs)) }()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report = x
	for id, seq := range x.Applied {
		l := e.lag[id]
		if l == nil {
			l = &realmLag{}
			e.lag[id] = l
		}
		seqs[id] = orgs.DurableSeq(id)
		l.record(seq, seqs[id], now)
	}
	for id := range e.lag {
		if _, has := x.Applied[id]; !has {
			delete(e.lag, id)
		}
	}
}

// isFull reports whether the node has reported that its disk is full.
func (e *edgeLink) isFull() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.report.Full
}

// addStatus adds the state of a node with a link.
func (c *Leader) addStatus(n *NodeStatus, p *peer.Peer) {
	n.Connected = true
	n.SentBytes, n.ReceivedBytes = p.Traffic()
	_, n.QueuedBytes = p.Queued()
	e := p.Link.(*edgeLink)
	e.mu.Lock()
	defer e.mu.Unlock()
	n.KnownLevel = e.level
	n.Program, n.Realms, n.Queues, n.Polls = e.program, len(e.report.Applied), e.report.Queues, e.report.Polls
	n.addSleep(e.report.Sleep)
	now := time.Now()
	for id, l := range e.lag {
		facts, seconds := l.behind(c.Orgs.DurableSeq(id), now)
		n.FactsBehind += facts
		n.SecondsBehind = max(n.SecondsBehind, seconds)
	}
}
