package cluster

import (
	"errors"
	"fmt"
	"time"

	"parley/snapshot/codec"
	"parley/wire/peer"
)

// leaderEntry is a message that the leader sends to a node.
type leaderEntry struct {
	kind    byte
	name    string
	receive func(e *Follower, link *peer.Link, data []byte) error
}

// leaderTable lists every message that the leader can send to a node. Only the core at the other end of the link that
// the node has opened can send them. Messages that this release does not know are dropped, because newer releases may
// send them.
var leaderTable = []leaderEntry{
	fromLeader(msgPresence, "presence", func(e *Follower, _ *peer.Link, x *presenceMessage) error {
		e.orgs.RestorePresence(x.Realm, x.Rows)
		return nil
	}),
	fromLeader(msgEphemeral, "ephemeral", func(e *Follower, _ *peer.Link, x *ephemeralMessage) error {
		t, err := codec.DecodeUnacked(x.Told)
		if err == nil {
			t.Ephemeral = true
			e.orgs.DeliverEphemeral(x.Realm, t)
		}
		return err
	}),
	fromLeader(msgAskDigest, "ask-digest", func(e *Follower, link *peer.Link, x *digestMessage) error {
		go e.sendDigest(link, *x)
		return nil
	}),
	fromLeader(msgAdopted, "adopted", func(e *Follower, _ *peer.Link, x *adoptedMessage) error {
		return e.handleAdopted(x)
	}),
	fromLeader(msgDrop, "drop", func(e *Follower, _ *peer.Link, x *dropMessage) error {
		e.orgs.DropQueues(x.Realm, x.Queues)
		return nil
	}),
	fromLeader(msgEvict, "evict", func(e *Follower, _ *peer.Link, x *evictMessage) error {
		e.orgs.EvictQueues(x.Realm, x.Before)
		return nil
	}),
	fromLeader(msgSeqs, "seqs", func(e *Follower, _ *peer.Link, x *seqsMessage) error {
		e.updateLag(*x, time.Now())
		return nil
	}),
	fromLeader(msgMembers, "members", func(e *Follower, _ *peer.Link, x *membersMessage) error {
		return e.receiveMembers(x)
	}),
}

// fromLeader returns the entry of a message of type T.
func fromLeader[T any](kind byte, name string, receive func(*Follower, *peer.Link, *T) error) leaderEntry {
	return leaderEntry{kind, name, func(e *Follower, link *peer.Link, data []byte) error {
		var x T
		if err := decode(data, &x); err != nil {
			return err
		}
		return receive(e, link, &x)
	}}
}

// receive handles a message of the core at the other end of the link. It closes the link if the core was removed.
func (e *Follower) receive(link *peer.Link, m []byte) {
	if e.Directory.IsRemoved(link.Node()) {
		link.Close(fmt.Errorf("node %s was removed from the cluster", link.Node()))
		return
	}
	if err := e.handle(link, m); err != nil {
		e.Log.Error("handling a message of the core failed", "err", err)
	}
}

func (e *Follower) handle(link *peer.Link, m []byte) error {
	if len(m) == 0 {
		return errors.New("an empty message")
	}
	for i := range leaderTable {
		if x := &leaderTable[i]; x.kind == m[0] {
			return x.receive(e, link, m[1:])
		}
	}
	return nil
}
