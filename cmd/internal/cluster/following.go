package cluster

import (
	"errors"
	"time"

	"parley/actors/realm"
	"parley/wire/peer"
)

// maxClockLead is how far the clock of the leader may differ from that of a core that hosts event queues, because
// presence and the initial state of a registration use the clock of the core. With a larger difference the core
// forwards all requests.
const maxClockLead = 5 * time.Second

func (e *Follower) isCore() bool { return e.Directory.Role == peer.Core }

// beginHosting lets this core host event queues as soon as the leader allows it and this core has all facts that the
// leader had when the link was opened. Until then, and if the leader runs an older release, all requests are forwarded.
func (e *Follower) beginHosting(link *peer.Link, g *Greeted) {
	e.change(func() { e.ready = e.link == link })
	if g.node == e.Directory.Node { // this core owns the organizations
		return
	}
	mayHost, err := e.mayHostQueues(link, g)
	if err != nil {
		return // the link has ended
	}
	if !mayHost {
		e.orgs.ForgetLocalQueues()
		return
	}
	e.change(func() { e.mayHost = e.link == link })
	e.announce(link)
	e.waitForAll(link, g.seqs)
	e.change(func() {
		if e.link == link {
			e.current = true
			e.orgs.PauseReplicas(false)
			e.updateHosted()
		}
	})
}

// mayHostQueues asks the leader whether this core may host event queues.
func (e *Follower) mayHostQueues(link *peer.Link, g *Greeted) (mayHost bool, err error) {
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
		err = decode(answer, &mayHost)
	}
	return mayHost, err
}

// updateHosted computes the organizations for which HostsQueues returns true. e.mu is locked.
func (e *Follower) updateHosted() {
	for id := range e.open {
		e.updateHostedOf(id)
	}
	e.hosted.Range(func(id, _ any) bool {
		e.updateHostedOf(id.(realm.ID))
		return true
	})
}

// updateHostedOf is updateHosted for one organization, as thousands of them can change one after the other. e.mu is
// locked.
func (e *Follower) updateHostedOf(id realm.ID) {
	if x := e.open[id]; x != nil && !x.stale && e.isCore() && e.mayHost && e.current {
		e.hosted.Store(id, struct{}{})
	} else {
		e.hosted.Delete(id)
	}
}

// HostsQueues reports whether this core hosts event queues of an organization that it does not own.
func (e *Follower) HostsQueues(id realm.ID) bool {
	_, is := e.hosted.Load(id)
	return is
}

// HostsAnyQueues reports whether this core hosts event queues of any organization that it does not own.
func (e *Follower) HostsAnyQueues() (is bool) {
	e.hosted.Range(func(_, _ any) bool {
		is = true
		return false
	})
	return is
}

// closeSleeping ends the hosting of organizations that have left the memory of this core, so that they can leave that
// of the leader, too.
func (e *Follower) closeSleeping() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range e.open {
		if e.orgs.IsInMemory(id) {
			continue
		}
		delete(e.open, id)
		e.updateHostedOf(id)
		if e.link != nil && e.mayHost {
			e.link.Send(encode(msgClose, id))
		}
	}
}

// StartHosting begins to host event queues of the organization at an HTTP host, unless this core does so already. It
// does not wait: until HostsQueues returns true, requests are forwarded.
func (e *Follower) StartHosting(host string) {
	id, _, ok := e.orgs.RealmByName(e.subdomainOf(host))
	if !ok || e.HostsQueues(id) || e.orgs.Owns(id) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.mayHost || e.open[id] != nil || e.opening[id] != nil {
		return
	}
	x := &opening{done: make(chan struct{})}
	e.opening[id] = x
	go e.load(id, x)
}
