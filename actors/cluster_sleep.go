package actors

import (
	"container/heap"
	"errors"
	"sync"

	"parley/actors/realm"
)

// sleepLevel is the rule level of the cluster from which on cores let organizations sleep: cores of older releases do
// not know the messages for it.
const sleepLevel uint16 = 5

// maxPendingMessages is how many messages of other nodes wait for an organization that is being loaded. The lists of
// event queues among them are sent again within a minute.
const maxPendingMessages = 1000

// realmFollowers are the nodes that get the presence and the ephemeral events of a realm. They stay while it is asleep.
type realmFollowers struct {
	ephemeral ephemeralFollowers

	mu       sync.Mutex // taken after Server.mu
	presence map[*presenceFollower]struct{}
}

// hasNodes reports whether a node hosts event queues of the realm. Other cores have copies of the presence only.
func (f *realmFollowers) hasNodes() bool { return f.ephemeral.count.Load() > 0 }

// followersOf returns the followers of a realm.
func (srv *Server) followersOf(id realm.ID) *realmFollowers {
	srv.mu.RLock()
	f := srv.followers[id]
	srv.mu.RUnlock()
	if f != nil {
		return f
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if f = srv.followers[id]; f == nil {
		f = &realmFollowers{presence: map[*presenceFollower]struct{}{}}
		srv.followers[id] = f
	}
	return f
}

// maySleep reports whether organizations can leave memory. On the leader of a cluster one that wakes must be owned
// without waiting.
func (srv *Server) maySleep() bool {
	return srv.cluster == nil ||
		srv.cluster.Level() >= sleepLevel && (!srv.isLeader.Load() || srv.cluster.HasOwned())
}

// stateOf reports whether an organization is in memory or on its way, and whether it is asleep, with which facts.
func (srv *Server) stateOf(id realm.ID) (opened, isAsleep bool, seq realm.Seq) {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	s := srv.sleepers.byID[id]
	if s != nil && s.state == asleep {
		return false, true, s.known.Seq
	}
	return s != nil || srv.realms[id] != nil, false, 0
}

// IsInMemory reports whether an organization is in memory.
func (srv *Server) IsInMemory(id realm.ID) bool { return srv.find(id) != nil }

// ownsSleepers reports whether this node owns the organizations that are not in memory.
func (srv *Server) ownsSleepers() bool { return srv.cluster == nil || srv.isLeader.Load() }

// ownSleepers lets the lifetimes of the event queues of all sleepers begin again: their clients may have polled the
// leader before this one, while the organization was asleep here.
func (srv *Server) ownSleepers() {
	z, now, elapsed := &srv.sleepers, srv.now().Unix(), srv.elapsed()
	srv.mu.Lock()
	defer srv.mu.Unlock()
	z.due = z.due[:0]
	for _, s := range z.byID {
		s.place = -1
		if s.state != asleep {
			continue
		}
		s.since = elapsed
		if s.setDue(now); s.due != realm.NeverDue {
			s.place = len(z.due)
			z.due = append(z.due, s)
		}
	}
	heap.Init(&z.due)
}

// AwakeRealms returns the organizations in memory.
func (srv *Server) AwakeRealms() (list []realm.ID) {
	srv.eachRealm(func(r *realmHandle) { list = append(list, r.id) })
	return list
}

// eachResting calls fn with every organization that is on its way out of memory.
func (srv *Server) eachResting(fn func(*realmHandle)) {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	for _, s := range srv.sleepers.byID {
		if s.state == resting {
			fn(s.handle)
		}
	}
}

// sendToSleeper sends a message of another node to an organization that this node owns and that is not in memory, and
// loads it. It returns false if there is none, or if too many messages wait.
func (srv *Server) sendToSleeper(id realm.ID, message any) bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if r := srv.realms[id]; r != nil { // loaded in between
		srv.runtime.Send(r.pid, message)
		return true
	}
	s := srv.sleepers.byID[id]
	if s == nil || !srv.isLeader.Load() || len(s.pending) >= maxPendingMessages {
		return false
	}
	s.pending = append(s.pending, message)
	srv.beginWake(s)
	return true
}

// sendPending sends the messages of other nodes that have waited. Server.mu is locked.
func (srv *Server) sendPending(s *sleeper, r *realmHandle) {
	for _, m := range s.pending {
		srv.runtime.Send(r.pid, m)
	}
	s.pending = nil
}

// wakeIfOlder loads an organization that is asleep with the facts up to seq, if the leader has added others. Then its
// state in memory, its due time and its search index are those of the leader again.
func (srv *Server) wakeIfOlder(id realm.ID, seq realm.Seq) {
	if _, last, err := srv.cluster.Bounds(id); err != nil || last == seq {
		return
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if s := srv.sleepers.byID[id]; s != nil && s.state == asleep {
		srv.beginWake(s)
	}
}

// errNotFounded is the error for an organization that was asleep and has no state.
var errNotFounded = errors.New("the organization has no state on this node")

// wakeStandby opens an organization that was asleep on this core. The leader owns it before the first request finds it.
func (srv *Server) wakeStandby(s *sleeper, o opening) error {
	l, err := srv.loadStandby(s.id)
	if err != nil {
		return err
	}
	if !l.realm.Founded() {
		return errNotFounded
	}
	if err := srv.noteErased(s, l); err != nil {
		return err
	}
	if !srv.isLeader.Load() { // their clients may poll the leader
		o.idle = 0
	}
	a := srv.startStandby(l, o.idle)
	if l.realm.Seq() != s.known.Seq { // accounts may have changed
		srv.accounts.version.Add(1)
	}
	srv.publishStandby(a, s)
	return nil
}

// noteErased lets this node remove the bytes of texts that the owner has erased while the organization was asleep here.
func (srv *Server) noteErased(s *sleeper, l *loadedRealm) error {
	erased := srv.onErased.Load()
	if erased == nil || l.realm.Seq() == s.known.Seq {
		return nil
	}
	found := false
	err := srv.disk.Tail(s.id, s.known.Seq, func(x realm.Record) error {
		_, is := x.Fact.(*realm.TextsCompacted)
		found = found || is
		return nil
	})
	if errors.Is(err, realm.ErrBehind) { // the journal does not have these facts any more
		found, err = true, nil
	}
	if found {
		(*erased)(s.id)
	}
	return err
}
