package actors

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"parley/actors/admission"
	"parley/actors/realm"
)

// An organization without requests and waiting polls leaves memory: it is asleep. Its facts, rows and unacked events
// are on disk, and so are its event queues, which keep their ids. The server keeps a sleeper for it.
//
//	            nothing to do for SleepAfter              the actor has closed
//	awake ──────────────────────────────────► resting ─────────────────────────► asleep
//	  ▲  ◄──── a poll waits, or work is left ────┘                                  │
//	  └──────────── loaded ──────────── waking ◄── request, poll, due time ─────────┘
//
// The organization is found in Server.realms while it is awake, and in Server.sleepers in the other states. Code that
// needs it in memory calls enter or awaken. A resting organization has left Server.realms, so no request reaches its
// actor; a request waits until it is asleep and loads it again.
//
// Every core of a cluster has sleepers of its own. A core that does not lead loads an organization again when the
// leader has added facts to it, so all cores have about the same ones in memory; only the leader looks at due times. A
// new leader owns the sleepers as they are.

const (
	// DefaultSleepAfter is how long an organization without requests and waiting polls stays in memory. Event queues of
	// the default lifetime have ended by then.
	DefaultSleepAfter = 15 * time.Minute
	// sleepAfterWork is how many seconds an organization stays in memory after work that no client has asked for, such
	// as a message that was due. It is long enough for the outbox.
	sleepAfterWork = 30
	// sleepRetry is after how many seconds the server tries again to unload an organization that must stay.
	sleepRetry = 10
	// MaxWaitingForWake is how many requests can wait for organizations that are being loaded, each of which takes
	// about 20 kB: all clients of 10,000 organizations that poll at once after a start.
	MaxWaitingForWake = 10_000
	// MaxWakesAtOnce is how many organizations are loaded at the same time. More would be no faster, and each takes
	// some megabytes while it is loaded.
	MaxWakesAtOnce = 8
	// unlimitedAwake is the limit of the organizations in memory that the bounds show if there is none.
	unlimitedAwake = 1 << 20
	// maxRestsAtOnce is how many organizations begin to rest at one tick of five seconds. Each encodes all that has
	// changed since its last snapshot: with 6,000 at once the memory of a server doubled.
	maxRestsAtOnce = 200
	// wakeTimeout is how long a request waits for an organization. Clients repeat a request after 15 seconds or later.
	wakeTimeout = 10 * time.Second
	// slowWakesKept is how many of the slowest wake-ups the server remembers.
	slowWakesKept = 10
	// stoppedActorsAfter is how long the actors of an organization that is asleep still drop late messages.
	stoppedActorsAfter = 5 * time.Second
)

const secondsPerDay = 86400

// errWaking is the answer to requests for an organization that could not be loaded in time.
var errWaking = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"The organization is being loaded; try again in a few seconds.")

// SleepingDisk is a Disk that stores what must be known of organizations that are not in memory. Without it, all
// organizations stay in memory.
type SleepingDisk interface {
	// WriteAsleep stores the record of an organization with that epoch; nil removes it. It need not be durable.
	WriteAsleep(id realm.ID, epoch uint64, a *realm.Asleep) error
	// Asleep returns the record, unless the organization has another epoch or other facts since.
	Asleep(id realm.ID) (realm.Asleep, bool)
}

// sleepState is the state of a sleeper.
type sleepState uint8

const (
	resting sleepState = iota
	asleep
	waking
)

// sleeper is an organization that is not in memory, or is on its way. Server.mu guards its fields.
type sleeper struct {
	id     realm.ID
	site   realm.Site
	state  sleepState
	known  realm.Asleep // without Files; not complete while it is resting
	handle *realmHandle // while it is resting
	change *sleepChange // the next change of the state
	// opened says that this process has had the organization in memory. Otherwise clients get the restart event.
	opened bool
	since  int64 // elapsed seconds; when it fell asleep, or this node became the leader
	due    int64 // Unix seconds
	place  int   // in sleepers.due; -1: not in it
	// waiting is how many requests wait for it.
	waiting int64
	// pending are messages of other nodes, which the actor gets first.
	pending []any
}

// sleepChange is the end of a state of a sleeper.
type sleepChange struct {
	done chan struct{} // closed at the end
	err  error         // why it could not be loaded; set before done is closed
}

// sleepers are the organizations that are not in memory. Server.mu guards the maps and the heap.
type sleepers struct {
	disk   SleepingDisk // nil: all organizations stay in memory
	after  int64        // seconds without requests
	limit  int          // of organizations in memory
	byID   map[realm.ID]*sleeper
	byName map[string]*sleeper
	byKey  map[realm.Digest]realm.ID // API keys of organizations that are asleep
	due    dueHeap
	slots  chan struct{} // of wake-ups in progress
	frozen bool          // see Server.Freeze

	waiting, refused, wakes, sleeps, limitHits atomic.Int64
	slowest                                    []WakeUp // the slowest first
}

// WakeUp is how long it took to load an organization that was asleep.
type WakeUp struct {
	Realm realm.ID
	Took  time.Duration
	At    int64 // Unix seconds
}

// dueHeap has the sleepers that are due at some time, the earliest first.
type dueHeap []*sleeper

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *dueHeap) Push(x any) {
	s := x.(*sleeper)
	s.place = len(*h)
	*h = append(*h, s)
}

func (h *dueHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	s.place, *h = -1, old[:len(old)-1]
	return s
}

// prepare prepares the sleepers of a server.
func (z *sleepers) prepare(disk Disk, o *Options) {
	z.byID, z.byName, z.byKey = map[realm.ID]*sleeper{}, map[string]*sleeper{}, map[realm.Digest]realm.ID{}
	z.after, z.limit, z.slots = int64(o.SleepAfter/time.Second), o.MaxAwake, make(chan struct{}, MaxWakesAtOnce)
	if o.SleepAfter > 0 {
		z.disk, _ = disk.(SleepingDisk)
	}
}

// setAsleep records that an organization is asleep. Server.mu is locked.
func (z *sleepers) setAsleep(s *sleeper, known realm.Asleep, now, elapsed int64) {
	known.Files = nil // on disk
	s.state, s.known, s.handle, s.since = asleep, known, nil, elapsed
	known.Keys.Each(func(k realm.Digest) { z.byKey[k] = s.id })
	s.setDue(now)
	if s.due != realm.NeverDue {
		heap.Push(&z.due, s)
	}
}

// setDue computes when a sleeper is due whose event queues have a client at now.
func (s *sleeper) setDue(now int64) {
	s.due = s.known.Due
	if s.known.QueueIdle > 0 {
		s.due = min(s.due, now+s.known.QueueIdle)
	}
}

// unsetAsleep removes what only organizations have that are asleep. Server.mu is locked.
func (z *sleepers) unsetAsleep(s *sleeper) {
	s.known.Keys.Each(func(k realm.Digest) {
		if z.byKey[k] == s.id {
			delete(z.byKey, k)
		}
	})
	if s.place >= 0 {
		heap.Remove(&z.due, s.place)
	}
}

// endState ends the state of a sleeper for all that wait for it. Server.mu is locked.
func (s *sleeper) endState(err error) {
	s.change.err = err
	close(s.change.done)
	s.change = &sleepChange{done: make(chan struct{})}
}

// addSleeper adds an organization that the disk knows to be asleep.
func (srv *Server) addSleeper(id realm.ID, known realm.Asleep) {
	z := &srv.sleepers
	s := &sleeper{id: id, site: srv.site(known.StringID), change: &sleepChange{done: make(chan struct{})}, place: -1}
	if known.Archived > 0 && srv.archiveDays != nil && known.ArchiveTime != int64(*srv.archiveDays)*secondsPerDay {
		known.Due = srv.now().Unix() // the setting has changed
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	z.byID[id], z.byName[known.StringID] = s, s
	z.setAsleep(s, known, srv.now().Unix(), srv.elapsed())
}

// stayAwake keeps the organization in memory until an elapsed second.
func (r *realmHandle) stayAwake(until int64) {
	if r.sleepAt.Load() < until {
		r.sleepAt.Store(until)
	}
}

// use is why an organization must be in memory. It says how long it stays there afterwards.
type use uint8

const (
	forLook   use = iota // a view of the operator: as if it had not been made, so that lists keep nothing in memory
	forWork              // sleepAfterWork
	forClient            // Options.SleepAfter
)

// enter returns an organization that is in memory, and keeps it there until leave; nil if it is not in memory.
func (srv *Server) enter(id realm.ID, u use) *realmHandle {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	r := srv.realms[id]
	if r == nil {
		return nil
	}
	r.entered.Add(1)
	if srv.sleepers.disk != nil {
		switch now := srv.second.Load(); u {
		case forClient:
			r.stayAwake(now + srv.sleepers.after)
		case forWork:
			r.stayAwake(now + sleepAfterWork)
		}
	}
	return r
}

// leave ends enter.
func (r *realmHandle) leave() { r.entered.Add(-1) }

// awaken is enter for an organization that may be asleep: it waits until it is in memory. The error is a refusal.
func (srv *Server) awaken(id realm.ID, u use) (*realmHandle, error) {
	for {
		if r := srv.enter(id, u); r != nil {
			return r, nil
		}
		known, err := srv.wake(id)
		if err != nil {
			return nil, err
		}
		if !known {
			if r := srv.enter(id, u); r != nil { // loaded by another call in between
				return r, nil
			}
			return nil, errUnknownRealm
		}
	}
}

// Wake returns when an organization is in memory, or does not exist. The error is a refusal: too many others wait, or
// loading it takes long or has failed.
func (srv *Server) Wake(id realm.ID) error {
	r, err := srv.awaken(id, forClient)
	if r != nil {
		r.leave()
	}
	if err == errUnknownRealm {
		return nil
	}
	return err
}

// WakeByKey loads the organization that has an API key with a hash. It reports false if none that was asleep has it.
func (srv *Server) WakeByKey(hash [32]byte) bool {
	srv.mu.RLock()
	id, ok := srv.sleepers.byKey[realm.KeyDigest(hash)]
	srv.mu.RUnlock()
	return ok && srv.Wake(id) == nil
}

// wake waits for the next change of an organization that is not in memory, which it begins to load. It reports false if
// the organization is in memory or does not exist.
func (srv *Server) wake(id realm.ID) (known bool, err error) {
	z := &srv.sleepers
	srv.mu.Lock()
	s := z.byID[id]
	if s == nil {
		srv.mu.Unlock()
		return false, nil
	}
	several := len(srv.byName)+len(z.byName) > 1
	if z.waiting.Load() >= MaxWaitingForWake || several && s.waiting >= admission.Half(MaxWaitingForWake) {
		srv.mu.Unlock()
		z.refused.Add(1)
		return true, errWaking
	}
	z.waiting.Add(1)
	s.waiting++
	defer func() {
		z.waiting.Add(-1)
		srv.mu.Lock()
		s.waiting--
		srv.mu.Unlock()
	}()
	change := s.change
	srv.beginWake(s)
	srv.mu.Unlock()
	t := time.NewTimer(wakeTimeout)
	defer t.Stop()
	select {
	case <-change.done:
		return true, change.err
	case <-t.C:
		z.refused.Add(1)
		return true, errWaking
	}
}

// beginWake begins to load an organization that is asleep. Server.mu is locked.
func (srv *Server) beginWake(s *sleeper) {
	if s.state != asleep {
		return
	}
	s.state = waking
	srv.runtime.RunInBackground(func() {
		srv.sleepers.slots <- struct{}{}
		defer func() { <-srv.sleepers.slots }()
		srv.loadSleeper(s)
	})
}

// loadSleeper loads an organization that is waking.
func (srv *Server) loadSleeper(s *sleeper) {
	z, began := &srv.sleepers, srv.sinceOpen()
	err := srv.openSleeper(s)
	took := srv.sinceOpen() - began
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if err != nil {
		srv.log.Error("an organization that was asleep cannot be loaded", "realm", s.id, "err", err)
		s.state = asleep
		if s.place < 0 && s.due != realm.NeverDue { // its work is still to be done
			s.due = srv.now().Unix() + sleepRetry
			heap.Push(&z.due, s)
		}
		s.endState(errors.Join(errWaking, err))
		return
	}
	z.unsetAsleep(s)
	delete(z.byID, s.id)
	delete(z.byName, s.known.StringID)
	z.wakes.Add(1)
	z.slowest = append(z.slowest, WakeUp{s.id, took, srv.now().Unix()})
	slices.SortStableFunc(z.slowest, func(a, b WakeUp) int { return cmp.Compare(b.Took, a.Took) })
	z.slowest = z.slowest[:min(len(z.slowest), slowWakesKept)]
	s.endState(nil)
}

// openSleeper opens an organization that was asleep. Its event queues have had no client since it fell asleep.
func (srv *Server) openSleeper(s *sleeper) error {
	o := opening{forClient: true, noRestart: s.opened, idle: srv.elapsed() - s.since}
	if !s.opened {
		o.idle = 0
	}
	if srv.cluster != nil {
		return srv.wakeStandby(s, o)
	}
	return srv.openRealmAs(s.id, nil, o)
}

// wakeDue loads the organizations that are due, on the node that owns them.
func (srv *Server) wakeDue() {
	if srv.cluster != nil && !srv.isLeader.Load() {
		return
	}
	z, now := &srv.sleepers, srv.now().Unix()
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for len(z.due) > 0 && z.due[0].due <= now && z.waiting.Load() < MaxWaitingForWake {
		s := heap.Pop(&z.due).(*sleeper)
		srv.beginWake(s)
	}
}

// restIdle lets organizations rest that have had nothing to do. While there are more in memory than the limit, those
// that have waited longest need not wait for the usual time.
func (srv *Server) restIdle() {
	z := &srv.sleepers
	if z.disk == nil || srv.readOnly.Load() || !srv.maySleep() {
		return
	}
	now := srv.elapsed()
	var idle []*realmHandle
	awake := 0
	srv.eachRealm(func(r *realmHandle) {
		awake++
		if now >= r.sleepAt.Load() {
			idle = append(idle, r)
		}
	})
	if z.limit > 0 && awake-len(idle) > z.limit {
		idle = idle[:0]
		srv.eachRealm(func(r *realmHandle) {
			if now >= r.sleepAt.Load()-z.after+sleepAfterWork {
				idle = append(idle, r)
			}
		})
		slices.SortFunc(idle, func(a, b *realmHandle) int { return cmp.Compare(a.sleepAt.Load(), b.sleepAt.Load()) })
		idle = idle[:min(len(idle), awake-z.limit)]
		z.limitHits.Add(int64(len(idle)))
	}
	for _, r := range idle[:min(len(idle), maxRestsAtOnce)] {
		if srv.beginRest(r) {
			srv.runtime.Send(r.pid, restRealm{})
		}
	}
}

// beginRest removes an organization from those in memory, so that no request reaches its actor. It reports false if a
// request does.
func (srv *Server) beginRest(r *realmHandle) bool {
	z := &srv.sleepers
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.realms[r.id] != r || z.frozen || r.entered.Load() != 0 || r.inFlight.Load() != 0 ||
		srv.cluster == nil && !r.owned.Load() || srv.byName[r.name] != r {
		return false
	}
	s := &sleeper{id: r.id, site: r.sessions.Site, handle: r, opened: true, place: -1,
		change: &sleepChange{done: make(chan struct{})},
		known:  realm.Asleep{StringID: r.name, Closed: r.closed.Load(), Seq: realm.Seq(r.durable.Load())}}
	z.byID[r.id], z.byName[r.name] = s, s
	delete(srv.realms, r.id)
	delete(srv.byName, r.name)
	return true
}

// endRest returns an organization that must stay to those in memory. retryAfter is in seconds.
func (srv *Server) endRest(r *realmHandle, retryAfter int64) {
	z := &srv.sleepers
	r.stayAwake(srv.elapsed() + retryAfter)
	srv.mu.Lock()
	defer srv.mu.Unlock()
	s := z.byID[r.id]
	srv.realms[r.id], srv.byName[r.name] = r, r
	delete(z.byID, r.id)
	delete(z.byName, r.name)
	srv.sendPending(s, r)
	s.endState(nil)
}

// fallAsleep completes the rest of an organization whose actor has stopped, after known was stored.
func (srv *Server) fallAsleep(r *realmHandle, known realm.Asleep) {
	z := &srv.sleepers
	srv.mu.Lock()
	defer srv.mu.Unlock()
	s := z.byID[r.id]
	z.setAsleep(s, known, srv.now().Unix(), srv.elapsed())
	z.sleeps.Add(1)
	s.endState(nil)
	if len(s.pending) > 0 {
		srv.beginWake(s)
	}
}

// SleepStats are the organizations of a node by their state.
type SleepStats struct {
	Awake, Asleep, Waking int64
	NextDue               int64 // Unix seconds; 0: none
	// Waiting is how many requests wait for organizations; Refused how many were refused, because too many waited or it
	// took too long.
	Waiting, Refused int64
	Wakes, Sleeps    int64
	Limit, LimitHits int64 // of organizations in memory, and those that left it early because of it
	Slowest          []WakeUp
}

// SleepStats returns how many organizations are in memory, asleep and being loaded.
func (srv *Server) SleepStats() (x SleepStats) {
	z := &srv.sleepers
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	x.Awake = int64(len(srv.realms))
	for _, s := range z.byID {
		switch s.state {
		case resting:
			x.Awake++
		case asleep:
			x.Asleep++
		case waking:
			x.Waking++
		}
	}
	if len(z.due) > 0 {
		x.NextDue = z.due[0].due
	}
	x.Waiting, x.Refused, x.Wakes, x.Sleeps = z.waiting.Load(), z.refused.Load(), z.wakes.Load(), z.sleeps.Load()
	x.Limit, x.LimitHits, x.Slowest = int64(z.limit), z.limitHits.Load(), slices.Clone(z.slowest)
	return x
}

// sleepersUsage returns the numbers of the organizations that are asleep, with the people of a day. A core that does
// not lead returns none: the leader counts them.
func (srv *Server) sleepersUsage(day int64) realm.UsageNumbers {
	n := realm.UsageNumbers{Day: day}
	if !srv.ownsSleepers() {
		return n
	}
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	for _, s := range srv.sleepers.byID {
		if s.state != resting {
			n.Add(s.known.Usage)
		} else if u := s.handle.usage.Load(); u != nil { // its record is not complete yet
			n.Add(*u)
		}
	}
	return n
}

// sleeperOf returns the record of an organization that is not in memory.
func (srv *Server) sleeperOf(id realm.ID) (known realm.Asleep, ok bool) {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	if s := srv.sleepers.byID[id]; s != nil {
		return s.known, true
	}
	return known, false
}

// SleepingFiles returns the digests of the files of an organization that is asleep, so that it need not be loaded. It
// reports false if the organization must be asked.
func (srv *Server) SleepingFiles(id realm.ID) (realm.Digests, bool) {
	if _, ok := srv.asleepRealm(id); !ok {
		return nil, false
	}
	known, ok := srv.sleepers.disk.Asleep(id)
	return known.Files, ok
}

// asleepRealm returns the record of an organization that is asleep, and not on its way in or out of memory.
func (srv *Server) asleepRealm(id realm.ID) (known realm.Asleep, ok bool) {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	if s := srv.sleepers.byID[id]; s != nil && s.state == asleep {
		return s.known, true
	}
	return known, false
}

// IsAsleep reports whether an organization that this node owns is asleep. Then no work is left that would have to be
// done in it before a request wakes it: no outbox job, no export, no erased text.
func (srv *Server) IsAsleep(id realm.ID) bool {
	_, ok := srv.asleepRealm(id)
	return ok && srv.ownsSleepers()
}

// HasUncheckedLinks reports whether an organization may have messages whose links were not counted; see
// realm.MarkLinks. It loads no organization.
func (srv *Server) HasUncheckedLinks(id realm.ID) bool {
	known, ok := srv.asleepRealm(id)
	return !ok || known.LinksUnchecked
}

// SleepingSummary returns the record of an organization that is asleep, without its files.
func (srv *Server) SleepingSummary(id realm.ID) (realm.Asleep, bool) { return srv.asleepRealm(id) }

// RealmsWithAddress returns the organizations that can have a channel with an email address token: all in memory, and
// those asleep that have it.
func (srv *Server) RealmsWithAddress(token string) (list []realm.ID) {
	d := realm.DigestOf(token)
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	for id := range srv.realms {
		list = append(list, id)
	}
	for id, s := range srv.sleepers.byID {
		if s.state == resting || s.known.Addresses.Has(d) {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// RealmsWithPerson returns the organizations in which an active person has an email address, except deactivated
// organizations.
func (srv *Server) RealmsWithPerson(email string) (list []realm.ID) {
	d := realm.DigestOf(realm.FoldEmail(email))
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	isPerson := func(id realm.ID) bool {
		a, ok := srv.loadedAccount(id, email)
		return ok && a.Active && a.Bot == realm.Human
	}
	for id, r := range srv.realms {
		if !r.closed.Load() && isPerson(id) {
			list = append(list, id)
		}
	}
	for id, s := range srv.sleepers.byID {
		if !s.known.Closed && (s.state == asleep && s.known.Emails.Has(d) || s.state != asleep && isPerson(id)) {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// freezeSleepers lets no organization rest, and waits for those that rest or are being loaded.
func (srv *Server) freezeSleepers(ctx context.Context) error {
	z := &srv.sleepers
	for {
		var busy *sleepChange
		srv.mu.Lock()
		z.frozen = true
		for _, s := range z.byID {
			if s.state != asleep {
				busy = s.change
				break
			}
		}
		srv.mu.Unlock()
		if busy == nil {
			return nil
		}
		select {
		case <-busy.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
