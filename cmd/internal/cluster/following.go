package cluster

import (
	"errors"
	"time"

	"parley/actors/realm"
	"parley/wire/peer"
)

// maxClockLead is how far the clock of the leader may differ from that of a core which keeps event queues: presence and
// the state of a registration have the time of the core. With a wrong clock it forwards all requests.
const maxClockLead = 5 * time.Second

func (e *Edge) isCore() bool { return e.Directory.Role == peer.Core }

// beginKeeping lets this core keep event queues when the leader allows it and this core has all facts that the leader
// had when the link was opened. Until then, and if the leader runs an older release, all requests are forwarded.
func (e *Edge) beginKeeping(link *peer.Link, g *Greeted) {
	e.change(func() { e.ready = e.link == link })
	if g.node == e.Directory.Node { // this core owns the organizations
		return
	}
	keeps, err := e.mayKeepQueues(link, g)
	if err != nil {
		return // the link has ended
	}
	if !keeps {
		e.orgs.ForgetLocalQueues()
		return
	}
	e.change(func() { e.keeps = e.link == link })
	e.announce(link)
	e.waitForAll(link, g.seqs)
	e.change(func() {
		if e.link == link {
			e.current = true
			e.orgs.PauseReplicas(false)
			e.setFollowed()
		}
	})
}

// mayKeepQueues asks the leader whether this core may keep event queues.
func (e *Edge) mayKeepQueues(link *peer.Link, g *Greeted) (keeps bool, err error) {
	if g.ahead.Abs() > maxClockLead {
		e.Log.Warn("the clock of the leader differs, so polls are forwarded: set both with NTP", "leader", g.node,
			"ahead", g.ahead.String())
		return false, nil
	}
	answer, err := link.CallOnce(link.Context(), encode(callQueues, g.node))
	var refused *peer.CallError
	if errors.As(err, &refused) {
		e.Log.Info("the leader runs another release, so polls are forwarded", "leader", g.node, "release", g.program)
		return false, nil
	}
	if err == nil {
		err = decode(answer, &keeps)
	}
	return keeps, err
}

// setFollowed records which organizations Keeps returns. e.mu is locked.
func (e *Edge) setFollowed() {
	if !e.isCore() {
		return
	}
	all := map[realm.ID]bool{}
	if e.keeps && e.current {
		for id, x := range e.open {
			if !x.late {
				all[id] = true
			}
		}
	}
	e.followed.Store(&all)
}

// Keeps reports whether this core, which does not own an organization, keeps event queues of it.
func (e *Edge) Keeps(id realm.ID) bool {
	all := e.followed.Load()
	return all != nil && (*all)[id]
}

// FollowsAny reports whether this core keeps event queues of any organization.
func (e *Edge) FollowsAny() bool {
	all := e.followed.Load()
	return all != nil && len(*all) > 0
}

// Follow begins to keep event queues of the organization of a host, unless this core does already. It does not wait:
// until Keeps returns true, requests are forwarded.
func (e *Edge) Follow(host string) {
	id, _, ok := e.orgs.RealmByName(e.subdomainOf(host))
	if !ok || e.Keeps(id) || e.orgs.Owns(id) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.keeps || e.open[id] != nil || e.opening[id] != nil {
		return
	}
	x := &opening{done: make(chan struct{})}
	e.opening[id] = x
	go e.load(id, x)
}
