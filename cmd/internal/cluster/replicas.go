package cluster

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/wire/peer"
)

const (
	// ReplicaIdle is how long the replica of an organization without event queues and requests stays loaded. Loading it
	// again takes about a second for 10,000 users.
	ReplicaIdle = 10 * time.Minute
	// minReplicaIdle is the same if the edge has no memory for another organization. All requests have ended by then.
	minReplicaIdle = time.Minute
	// MaxReplicaLag is how far behind the owner a replica may be and still answer requests. Waiting polls are not
	// ended: their events arrive late, but in order.
	MaxReplicaLag = 10 * time.Second
	// unloadInterval is how often an edge looks for idle replicas.
	unloadInterval = 15 * time.Second
	// DefaultMaxReplicas is the default of FollowerOptions.MaxReplicas.
	DefaultMaxReplicas = 1000
	// MaxUnknownNames limits the requests at an edge that wait for the answer whether there is an organization with
	// their subdomain: each takes a goroutine and its request, about 50 kB. Requests for one subdomain share a
	// question. An edge does not remember that there is none: the organization may have been created since.
	MaxUnknownNames = 1000
)

// openReplica is a replica that answers requests.
type openReplica struct {
	used  time.Time // of the last request; guarded by Follower.mu, like lag and late
	lag   realmLag
	stale bool         // it is more than MaxReplicaLag behind
	bytes atomic.Int64 // of its rows as they were loaded, and of the facts since, without texts
}

// opening is a replica that is being loaded or unloaded.
type opening struct {
	unload bool
	done   chan struct{}
	err    error
}

// errNoRoom is the answer to requests for an organization that an edge has no room for.
var errNoRoom = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"This server has no room for another organization; try again in a few seconds.")

// errStale is the answer to requests for an organization whose replica is too far behind.
var errStale = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"This server is behind the other servers; try again in a few seconds.")

// useReplica records a request for a realm. It returns false if the replica is not open, or if its lag is unknown. With
// an error the replica is too far behind, and the request must be refused.
func (e *Follower) useReplica(id realm.ID) (ok bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.open[id]
	switch {
	case x == nil || !e.ready:
		return false, nil
	case x.stale:
		return true, errStale
	}
	x.used = time.Now()
	return true, nil
}

// updateLag computes how far the replicas are behind. seqs has the last fact of each realm at the core.
func (e *Follower) updateLag(seqs seqsMessage, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, last := range seqs {
		x := e.open[id]
		if x == nil {
			continue
		}
		x.lag.record(e.orgs.DurableSeq(id), last, now)
		facts, seconds := x.lag.behind(last, now)
		if late := seconds > MaxReplicaLag.Seconds(); late != x.stale {
			x.stale = late
			e.updateHostedOf(id)
			e.Log.Warn("replica changed between up to date and too far behind", "realm", id, "behind", late,
				"facts_behind", facts, "seconds_behind", seconds)
		}
	}
}

// Prepare returns nil when this node can answer requests to an HTTP host, or else the error with which to refuse them.
func (e *Follower) Prepare(host string) error {
	name := e.subdomainOf(host)
	if id, _, ok := e.orgs.RealmByName(name); ok {
		if ok, err := e.useReplica(id); ok {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(e.ctx, MaxLinkWait)
	defer cancel()
	if _, err := e.waitForLink(ctx, true); err != nil {
		return errNoLink
	}
	id, err := e.findRealm(ctx, name)
	if err != nil {
		return errNoLink
	}
	if id == 0 {
		return nil // there is no such organization
	}
	switch err := e.openReplica(ctx, id); {
	case err == errNoRoom:
		return err
	case err != nil:
		e.Log.Warn("opening a replica failed", "realm", id, "err", err)
		return errNoLink
	}
	return nil
}

// findRealm returns the organization with a subdomain, from the cache or the core. 0: there is none.
func (e *Follower) findRealm(ctx context.Context, name string) (realm.ID, error) {
	e.mu.Lock()
	id := e.names[name]
	e.mu.Unlock()
	if id != 0 {
		return id, nil
	}
	defer e.asking.Add(-1)
	if e.asking.Add(1) > MaxUnknownNames {
		e.refusedNames.Add(1)
		return 0, errNoLink
	}
	q := e.unknown.join(name, func() (id realm.ID, err error) {
		ctx, cancel := context.WithTimeout(e.ctx, MaxLinkWait)
		defer cancel()
		link, err := e.waitForLink(ctx, true)
		if err != nil {
			return 0, err
		}
		answer, err := link.CallOnce(ctx, encode(callRealm, name))
		if err == nil {
			err = decode(answer, &id)
		}
		if err == nil && id != 0 {
			e.mu.Lock()
			e.names[name] = id
			e.mu.Unlock()
		}
		return id, err
	})
	return q.wait(ctx)
}

// UnknownNames returns how many requests wait for the answer whether there is an organization with their subdomain, and
// how many were refused because there were too many.
func (e *Follower) UnknownNames() (waiting, refused int64) {
	return e.asking.Load(), e.refusedNames.Load()
}

// openReplica returns when a replica is open. It loads it unless another request does.
func (e *Follower) openReplica(ctx context.Context, id realm.ID) error {
	for {
		e.mu.Lock()
		if x := e.open[id]; x != nil {
			x.used = time.Now()
			e.mu.Unlock()
			return nil
		}
		x := e.opening[id]
		if x == nil {
			if !e.makeRoom() {
				e.mu.Unlock()
				e.Counters.NoRoom.Add(1)
				return errNoRoom
			}
			x = &opening{done: make(chan struct{})}
			e.opening[id] = x
			go e.load(id, x)
		}
		e.mu.Unlock()
		select {
		case <-x.done:
			if x.err != nil {
				return x.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// load loads a replica.
func (e *Follower) load(id realm.ID, x *opening) {
	r := &openReplica{used: time.Now()}
	x.err = e.loadReplica(id, r)
	e.mu.Lock()
	delete(e.opening, id)
	if x.err == nil {
		e.open[id] = r
		e.updateHostedOf(id)
	}
	link := e.link
	if e.isCore() && !e.mayHost {
		link = nil
	}
	e.mu.Unlock()
	if x.err == nil && link != nil {
		link.Send(encode(msgOpen, id))
	}
	close(x.done)
}

// loadReplica loads a replica and waits until it is as new as the core.
func (e *Follower) loadReplica(id realm.ID, r *openReplica) error {
	if e.isCore() {
		return e.waitUntilCaughtUp(id)
	}
	began := time.Now()
	source := replicaSource{e, &r.bytes}
	err := e.orgs.OpenReplica(id, actors.ReplicaOptions{Source: source, Owner: e, Home: e.isHome})
	if err != nil {
		return err
	}
	e.orgs.OwnerConnected(id)
	err = e.waitUntilCaughtUp(id)
	if err != nil { // the replica may be far behind: it must not answer requests
		return errors.Join(err, e.orgs.CloseReplica(id))
	}
	e.Log.Info("replica loaded", "realm", id, "seq", uint64(e.orgs.DurableSeq(id)), "bytes", r.bytes.Load(),
		"took", time.Since(began).String())
	return nil
}

// waitUntilCaughtUp returns when a replica has applied all facts that the core had after the link was opened. Over a
// slow link this may take minutes; requests are refused in the meantime.
func (e *Follower) waitUntilCaughtUp(id realm.ID) error {
	for {
		link, err := e.waitForLink(e.ctx, false)
		if err != nil {
			return err
		}
		seq, err := askSeq(link.Context(), link, id)
		if err == nil && e.waitFor(link, id, seq) {
			return nil
		}
		select {
		case <-time.After(redialInterval):
		case <-e.ctx.Done():
		}
	}
}

// waitFor waits until a replica has a fact. It reports false if the link has ended before.
func (e *Follower) waitFor(link *peer.Link, id realm.ID, seq realm.Seq) bool {
	for link.Context().Err() == nil {
		ctx, cancel := context.WithTimeout(link.Context(), lateReplicaTimeout)
		err := e.orgs.WaitFor(ctx, id, seq)
		late := ctx.Err() != nil
		cancel()
		if err == nil || !late { // applied, or the replica was unloaded
			return true
		}
		e.Log.Warn("replica is late", "realm", id, "seq", uint64(e.orgs.DurableSeq(id)), "needed", uint64(seq),
			"err", err)
	}
	return false
}

// makeRoom unloads idle replicas until there is room for another one, the least recently used first. It reports whether
// there is room. e.mu is locked.
func (e *Follower) makeRoom() bool {
	var idle []realm.ID
	now := time.Now()
	var bytes int64
	for id, x := range e.open {
		bytes += x.bytes.Load()
		if now.Sub(x.used) >= minReplicaIdle && !e.orgs.HasQueues(id) {
			idle = append(idle, id)
		}
	}
	slices.SortFunc(idle, func(a, b realm.ID) int { return e.open[a].used.Compare(e.open[b].used) })
	loading := 0
	for _, x := range e.opening {
		if !x.unload {
			loading++
		}
	}
	full := func() bool {
		return len(e.open)+loading >= e.MaxReplicas || e.MaxReplicaBytes > 0 && bytes >= e.MaxReplicaBytes
	}
	for ; full() && len(idle) > 0; idle = idle[1:] {
		bytes -= e.open[idle[0]].bytes.Load()
		e.unload(idle[0])
	}
	return !full()
}

// unloadIdle unloads the replicas that were idle for a time.
func (e *Follower) unloadIdle(idle time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, x := range e.open {
		if time.Since(x.used) >= idle && !e.orgs.HasQueues(id) {
			e.unload(id)
		}
	}
}

// unload unloads a replica in the background. Requests for it wait for the end of this, and load it again. e.mu is
// locked.
func (e *Follower) unload(id realm.ID) {
	x, r, link := &opening{unload: true, done: make(chan struct{})}, e.open[id], e.link
	delete(e.open, id)
	e.opening[id] = x
	e.Counters.Unloads.Add(1)
	go func() {
		err := e.orgs.CloseReplica(id)
		if link != nil {
			link.Send(encode(msgClose, id))
		}
		e.Log.Info("replica unloaded", "realm", id, "bytes", r.bytes.Load(), "err", err)
		e.mu.Lock()
		delete(e.opening, id)
		e.mu.Unlock()
		close(x.done)
	}()
}

// ReplicaStats are the replicas of an edge.
type ReplicaStats struct {
	Open  int64
	Bytes int64 // of their rows as they were loaded, and of the facts since
	Late  int64 // more than MaxReplicaLag behind
}

// Replicas returns how many replicas this edge has.
func (e *Follower) Replicas() (s ReplicaStats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.open {
		s.Open++
		s.Bytes += x.bytes.Load()
		if x.stale {
			s.Late++
		}
	}
	return s
}
