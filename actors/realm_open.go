package actors

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"parley/actors/delivery"
	"parley/actors/owner"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/stream"
)

// opening says how a realm is opened.
type opening struct {
	forClient bool  // a request or a due time needs it: it has been asleep
	noRestart bool  // this process has had it in memory: its clients know the process
	idle      int64 // seconds for which its event queues have had no client
}

// openRealm opens a realm: it loads the rows, or takes over what Preload loaded, replays the journal after them, starts
// the actors and restores the event queues.
func (srv *Server) openRealm(id realm.ID, before *loadedRealm) error {
	return srv.openRealmAs(id, before, opening{})
}

func (srv *Server) openRealmAs(id realm.ID, before *loadedRealm, o opening) error {
	began := srv.now()
	claimed, err := srv.disk.Claim(id, realm.AnyEpoch)
	if err != nil {
		return fmt.Errorf("claim realm %d: %w", id, err)
	}
	epoch, last, rows := claimed.Epoch, claimed.Last, claimed.Rows
	l, from := before, rows
	if l == nil || l.rowsSeq != rows || l.realm.Seq() > last {
		if l != nil {
			srv.log.Info("rows changed after they were preloaded; loading them again", "realm", id)
			srv.accounts.removeRealm(id)
		}
		if l, err = load(srv.disk, id, rows, began); err != nil {
			return err
		}
		before = nil
	} else {
		from = l.realm.Seq()
		l.presence = presence.New() // presence is not in the journal: only the rows have the newest
		if err := srv.disk.LoadPresence(id, l.presence); err != nil {
			return fmt.Errorf("load presence of realm %d: %w", id, err)
		}
		t := readJournalTail(srv.disk, id, from)
		defer t.close()
		if err := l.replay(t); err != nil {
			return err
		}
	}
	a := newRealmActor(srv, l.realm, l.realm.Seq())
	a.own(epoch)
	a.owned.Restore(l.publications, l.fromRows, l.ackedThrough)
	a.rows.Opened(rows, last, true)
	a.owned.SetGrace()
	if !l.realm.Founded() && last == 0 {
		// Nothing was ever stored under this number: an import or the creation of an organization was interrupted.
		return nil
	}
	if a.Durable() != last {
		return fmt.Errorf("replay realm %d: reached number %d of %d", id, a.Durable(), last)
	}
	srv.search.Attach(id, last, rows, srv.searchTextReader(id))
	l.presence.BeginEpoch(epoch)
	a.start(a, l.presence)
	if l.realm.Founded() {
		a.handle.closed.Store(l.realm.Closed())
		if before == nil {
			srv.accounts.addRealm(l.realm)
		}
		for _, u := range l.accountsToUpdate {
			srv.updateAccount(l.realm, u)
		}
	}
	srv.setOwned(a.handle, true)
	srv.restoreQueues(a, l.queues, l.publications, o)
	if srv.sleepers.disk != nil && o.forClient {
		if err := srv.sleepers.disk.WriteAsleep(id, epoch, nil); err != nil {
			srv.log.Warn("the state of an organization that was asleep is not removed", "realm", id, "err", err)
		}
	}
	srv.mu.RLock()
	frozen := srv.sleepers.frozen
	srv.mu.RUnlock()
	if frozen {
		srv.runtime.Send(a.handle.pid, owner.SetFrozen{On: true, Done: make(chan error, 1)})
	}
	if o.forClient {
		srv.runtime.Send(a.handle.pid, clockTick{srv.now().Unix()}) // it may be due
	}
	a.publish()
	if !o.forClient {
		srv.accounts.version.Add(1)
	}
	srv.log.Log(context.Background(), o.level(), "realm open", "realm", id, "name", a.handle.name, "facts",
		uint64(last), "replayed", uint64(last-from), "preloaded", before != nil, "took",
		srv.now().Sub(began).Round(time.Millisecond).String())
	return nil
}

// level returns the log level of the opening of a realm: realms that were asleep are too many to be logged.
func (o opening) level() slog.Level {
	if o.forClient {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// restoreQueues opens the queues in a realm's rows with the events that they may not have acknowledged.
func (srv *Server) restoreQueues(a *realmActor, queues []realm.Queue, publications []realm.Publication, o opening) {
	a.owned.RestoreQueues(queues, publications, o.idle)
	if o.noRestart {
		return
	}
	// Every queue gets the restart event. It follows the messages above, so queues that the replay opened get it too.
	restarted := func(t *realm.Turn) (any, error) { return nil, t.AnnounceRestart() }
	caller := realm.Caller{System: true}
	srv.runtime.Send(a.handle.pid, &ask{decide: restarted, caller: caller, reply: make(chan stream.Result, 1)})
}

// CreateRealm founds an organization under a string id ("" is the root organization) and returns the new realm's id.
func (srv *Server) CreateRealm(stringID, name string) (realm.ID, error) {
	srv.creating.Lock()
	defer srv.creating.Unlock()
	id, err := srv.nextRealm(stringID)
	if err != nil {
		return 0, err
	}
	if err := srv.checkWritable(); err != nil {
		return 0, err
	}
	claimed, err := srv.disk.Claim(id, realm.AnyEpoch)
	if err != nil {
		return 0, fmt.Errorf("claim realm %d: %w", id, err)
	}
	a := newRealmActor(srv, realm.New(id), 0)
	a.own(claimed.Epoch)
	srv.search.Attach(id, 0, 0, srv.searchTextReader(id))
	table := presence.New()
	table.BeginEpoch(claimed.Epoch)
	a.start(a, table)
	a.publish()
	a.handle.sessions.SendAll(&delivery.Restore{}) // session actors without users must report acknowledgements too
	_, err = srv.Turn(id, realm.System, func(t *realm.Turn) (any, error) {
		return realm.FoundRealm{StringID: stringID, Name: name}.Decide(t)
	})
	if err != nil {
		return 0, err
	}
	srv.mu.Lock()
	a.handle.name, a.handle.sessions.Site = stringID, srv.site(stringID)
	srv.byName[stringID] = a.handle
	srv.mu.Unlock()
	srv.setOwned(a.handle, true)
	srv.accounts.version.Add(1)
	return id, nil
}

// nextRealm returns the number of a new organization with a string id. srv.creating is locked.
func (srv *Server) nextRealm(stringID string) (id realm.ID, err error) {
	srv.mu.RLock()
	taken := srv.byName[stringID] != nil || srv.sleepers.byName[stringID] != nil
	for x := range srv.realms {
		id = max(id, x)
	}
	for x := range srv.sleepers.byID {
		id = max(id, x)
	}
	srv.mu.RUnlock()
	switch {
	case taken && stringID == "":
		return 0, realm.BadRequest("There is a root organization already; another one needs a subdomain")
	case taken:
		return 0, realm.BadRequest("Organization '%s' exists already", stringID)
	}
	claimed, err := srv.disk.Realms() // also those that an unfinished import has claimed
	for _, x := range claimed {
		id = max(id, x)
	}
	return id + 1, err
}

// ReserveRealm claims the number of an organization that is to be imported, which no other organization will get.
// wanted is the number that an interrupted import of it has claimed, or 0. The caller writes the rows of the realm, and
// then calls ServeImported.
func (srv *Server) ReserveRealm(stringID string, wanted realm.ID) (realm.ID, error) {
	return srv.reserveRealm(stringID, wanted, true)
}

// ReserveFreeRealm is ReserveRealm for an import that has claimed no number before. It gets the wanted one only if no
// other import has claimed that.
func (srv *Server) ReserveFreeRealm(stringID string, wanted realm.ID) (realm.ID, error) {
	return srv.reserveRealm(stringID, wanted, false)
}

// reserveRealm claims a number. repeated says that the import may have claimed the wanted one before.
func (srv *Server) reserveRealm(stringID string, wanted realm.ID, repeated bool) (realm.ID, error) {
	srv.creating.Lock()
	defer srv.creating.Unlock()
	id, err := srv.nextRealm(stringID)
	if err != nil {
		return 0, err
	}
	if wanted != 0 && !repeated {
		claimed, err := srv.disk.Realms()
		if err != nil {
			return 0, err
		}
		if slices.Contains(claimed, wanted) {
			wanted = 0
		}
	}
	if wanted != 0 && !srv.has(wanted) {
		id = wanted
	}
	if err := srv.checkWritable(); err != nil {
		return 0, err
	}
	if _, err := srv.disk.Claim(id, realm.AnyEpoch); err != nil {
		return 0, fmt.Errorf("claim realm %d: %w", id, err)
	}
	return id, nil
}

// ServeImported opens an organization whose rows an import has written. It is visible from then on.
func (srv *Server) ServeImported(stringID string, id realm.ID) error {
	srv.creating.Lock()
	defer srv.creating.Unlock()
	if srv.has(id) {
		return nil // an earlier run of the import has opened it
	}
	if _, err := srv.nextRealm(stringID); err != nil {
		return err
	}
	return srv.openRealm(id, nil)
}

// configureRealm gives a realm the settings of the server that it does not store.
func (srv *Server) configureRealm(r *realm.Realm) {
	if srv.archiveDays == nil {
		r.PauseRetention()
	} else {
		r.SetArchiveTime(*srv.archiveDays)
	}
	r.SetLimits(srv.limits)
}
