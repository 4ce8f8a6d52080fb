package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/wire/peer"
)

// NodeStatus is the status of a node, which parley cluster status prints.
type NodeStatus struct {
	Node      string `json:"node"`
	Role      string `json:"role"`
	Address   string `json:"address"`
	Connected bool   `json:"connected"`
	Leader    bool   `json:"leader"`
	Program   string `json:"program"`
	// KnownLevel is the newest rule level that the node's program knows; 0: the node is not connected.
	KnownLevel uint16 `json:"known_level"`
	Level      uint16 `json:"level"` // rule level of the cluster
	// Realms are the organizations that the node has in memory, Asleep those that it does not, and Waking those that it
	// loads. NextDue is when the first one that is asleep is due, as RFC 3339; "": none is. The leader loads it then.
	Realms  int    `json:"realms"`
	Asleep  int64  `json:"asleep"`
	Waking  int64  `json:"waking"`
	NextDue string `json:"next_due"`
	Queues  int64  `json:"queues"`
	Polls   int64  `json:"polls"`
	// FactsBehind is how many facts the node has not applied. SecondsBehind is the time since it last had all facts.
	FactsBehind   int64   `json:"facts_behind"`
	SecondsBehind float64 `json:"seconds_behind"`
	SentBytes     int64   `json:"sent_bytes"` // to the node, since it connected
	ReceivedBytes int64   `json:"received_bytes"`
	QueuedBytes   int     `json:"queued_bytes"`

	// Voter says that the core has a vote; an edge has none.
	Voter bool `json:"voter"`
}

// sleepOf returns the organizations of this node that are not in memory.
func sleepOf(orgs *actors.Server) sleepReport {
	x := orgs.SleepStats()
	return sleepReport{x.Asleep, x.Waking, x.NextDue}
}

// addSleep adds the organizations of a node that are not in memory.
func (n *NodeStatus) addSleep(x sleepReport) {
	if n.Asleep, n.Waking = x.Asleep, x.Waking; x.Due != 0 {
		n.NextDue = time.Unix(x.Due, 0).UTC().Format(time.RFC3339)
	}
}

// Status returns the state of every node.
func (c *Leader) Status() (list []NodeStatus) {
	voters := map[string]bool{}
	for _, m := range c.Node.Status().Members {
		voters[m.ID] = m.Voter
	}
	for _, m := range c.Directory.ListMembers() {
		n := NodeStatus{Node: m.Node, Role: string(m.Role), Address: m.Address, Voter: voters[m.Node],
			Level: c.Node.Level()}
		if m.Node == c.Directory.Node {
			n.Connected, n.Leader, n.Program, n.KnownLevel = true, c.IsLeader(), c.Program, realm.Level
			n.Realms = len(c.Orgs.AwakeRealms())
			n.addSleep(sleepOf(c.Orgs))
			n.Queues, n.Polls = c.Orgs.Metrics.OpenQueues.Load(), c.Orgs.Metrics.ParkedPolls.Load()
		} else if p := c.links.Find(m.Node); p != nil {
			c.addStatus(&n, p)
		}
		list = append(list, n)
	}
	return list
}

// Verified is the comparison of one organization on all nodes that have it.
type Verified struct {
	Realm  realm.ID `json:"realm"`
	Seq    uint64   `json:"facts"`
	Nodes  int      `json:"nodes"` // compared
	Equal  bool     `json:"equal"`
	Digest string   `json:"digest"`
	Note   string   `json:"note,omitempty"`
}

const (
	// verifyTries is how often the digests are asked for until all nodes give theirs at the same fact.
	verifyTries = 50
	// verifyTimeout is how long a node may take for a digest.
	verifyTimeout = 30 * time.Second
)

// Verify compares the state of every organization on all nodes at the same fact. digest returns that of this node.
func (c *Leader) Verify(digest func(realm.ID) (realm.Seq, string, error)) (list []Verified) {
	realms := c.Orgs.Realms()
	for _, name := range slices.Sorted(maps.Keys(realms)) {
		v := c.verify(realms[name], digest)
		c.Compared.Add(1)
		if !v.Equal {
			c.Different.Add(1)
		}
		list = append(list, v)
	}
	return list
}

func (c *Leader) verify(id realm.ID, digest func(realm.ID) (realm.Seq, string, error)) Verified {
	v := Verified{Realm: id}
	var holders []*peer.Peer
	for _, p := range c.links.Peers() {
		e := p.Link.(*edgeLink)
		e.mu.Lock()
		if e.stopFollowing[id] != nil || p.Role == peer.Core && p.Node != c.Directory.Node {
			holders = append(holders, p)
		}
		e.mu.Unlock()
	}
	for _, p := range holders {
		e, equal := p.Link.(*edgeLink), false
		for range verifyTries {
			seq, here, err := digest(id)
			if err != nil {
				v.Note = err.Error()
				return v
			}
			there, err := e.digest(id, seq)
			if err != nil {
				v.Note = fmt.Sprintf("node %s: %v", p.Node, err)
				return v
			}
			if v.Seq, v.Digest = uint64(seq), here; there.Seq != seq { // facts were added in between
				v.Note = fmt.Sprintf("node %s: facts are added too fast to compare both nodes at the same fact", p.Node)
				continue
			}
			if v.Note = ""; there.Digest != here {
				v.Note = fmt.Sprintf("node %s has digest %s at fact %d", p.Node, there.Digest, seq)
				return v
			}
			equal = true
			break
		}
		if !equal {
			return v
		}
		v.Nodes++
	}
	if v.Digest == "" {
		seq, here, err := digest(id)
		if err != nil {
			v.Note = err.Error()
			return v
		}
		v.Seq, v.Digest = uint64(seq), here
	}
	v.Nodes++
	v.Equal = true
	return v
}

// digest asks a node for the digest of a realm after a fact.
func (e *edgeLink) digest(id realm.ID, seq realm.Seq) (digestMessage, error) {
	ask := &digestMessage{ID: e.nextAsk.Add(1), Realm: id, Seq: seq}
	answer := make(chan digestMessage, 1)
	e.asked.Store(ask.ID, answer)
	defer e.asked.Delete(ask.ID)
	e.peer.Send(encode(msgAskDigest, ask))
	select {
	case x := <-answer:
		if x.Err != "" {
			return x, errors.New(x.Err)
		}
		return x, nil
	case <-time.After(verifyTimeout):
		return digestMessage{}, fmt.Errorf("no answer within %v", verifyTimeout)
	case <-e.peer.Context().Done():
		return digestMessage{}, context.Cause(e.peer.Context())
	}
}

// sendDigest answers a core that asks for a digest.
func (e *Follower) sendDigest(link *peer.Link, ask digestMessage) {
	ctx, cancel := context.WithTimeout(link.Context(), verifyTimeout)
	defer cancel()
	err := e.orgs.WaitFor(ctx, ask.Realm, ask.Seq)
	if err == nil {
		ask.Seq, ask.Digest, err = e.Digest(ask.Realm)
	}
	if err != nil {
		ask.Err = err.Error()
	}
	link.Send(encode(msgDigest, &ask))
}
