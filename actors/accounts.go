package actors

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"parley/actors/realm"
)

// accountTable is the directory of accountTable: what login goes by, across realms, without asking any realm actor. It changes
// only when the facts behind a change are on disk, and before anybody is told. What it points to never changes.
type accountTable struct {
	mu      sync.RWMutex
	byUser  map[userKey]*realm.Account
	byKey   map[[32]byte]*realm.Account // by hash of an API key
	byEmail map[emailKey]*realm.Account

	version atomic.Uint64 // raised behind each change
}

type userKey struct {
	realm realm.ID
	user  realm.UserID
}

type emailKey struct {
	realm realm.ID
	email string
}

func newAccountTable() *accountTable {
	return &accountTable{byUser: map[userKey]*realm.Account{}, byKey: map[[32]byte]*realm.Account{}, byEmail: map[emailKey]*realm.Account{}}
}

func (t *accountTable) put(a *realm.Account) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.version.Add(1)
	if old := t.byUser[userKey{a.Realm, a.User}]; old != nil {
		for _, k := range old.Keys {
			delete(t.byKey, k)
		}
		at := emailKey{old.Realm, realm.FoldEmail(old.Email)}
		if now := t.byEmail[at]; now != nil && now.User == old.User {
			delete(t.byEmail, at)
		}
	}
	t.byUser[userKey{a.Realm, a.User}] = a
	t.byEmail[emailKey{a.Realm, realm.FoldEmail(a.Email)}] = a
	for _, k := range a.Keys {
		t.byKey[k] = a
	}
}

// addRealm puts every account of a realm that was just loaded into the directory.
func (t *accountTable) addRealm(r *realm.Realm) {
	r.EachUser(func(u *realm.User) { t.update(r, u.ID) })
}

// updateAccount brings one updateAccount's entry up to date.
func (srv *Server) updateAccount(r *realm.Realm, id realm.UserID) { srv.accounts.update(r, id) }

// removeRealm takes out every account of a realm, which is to be introduced again.
func (t *accountTable) removeRealm(id realm.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.version.Add(1)
	maps.DeleteFunc(t.byUser, func(k userKey, _ *realm.Account) bool { return k.realm == id })
	maps.DeleteFunc(t.byKey, func(_ [32]byte, a *realm.Account) bool { return a.Realm == id })
	maps.DeleteFunc(t.byEmail, func(k emailKey, _ *realm.Account) bool { return k.realm == id })
}

func (t *accountTable) update(r *realm.Realm, id realm.UserID) {
	u := r.Find(id)
	if u == nil || u.System {
		return
	}
	t.put(&realm.Account{Realm: r.ID(), User: u.ID, Email: u.Email, Keys: slices.Clone(u.Keys), Password: u.Password, Active: u.Active, Bot: u.Bot, Role: u.Role})
}

// AuthVersion changes with every account and organization.
func (srv *Server) AuthVersion() uint64 { return srv.accounts.version.Load() }

// setClosed says whether an organization is deactivated.
func (r *realmHandle) setClosed(srv *Server, closed bool) {
	if r.closed.Swap(closed) != closed {
		srv.accounts.version.Add(1)
	}
}

// AccountByKeyHash is the account an API key belongs to.
func (srv *Server) AccountByKeyHash(hash [32]byte) (*realm.Account, bool) {
	srv.accounts.mu.RLock()
	a := srv.accounts.byKey[hash]
	srv.accounts.mu.RUnlock()
	return a, a != nil
}

// AccountByEmail is the account with that real address in a realm.
func (srv *Server) AccountByEmail(id realm.ID, email string) (*realm.Account, bool) {
	srv.accounts.mu.RLock()
	defer srv.accounts.mu.RUnlock()
	a := srv.accounts.byEmail[emailKey{id, realm.FoldEmail(email)}]
	return a, a != nil
}

// HasAccountElsewhere reports whether somebody has an account with that address in another open organization.
func (srv *Server) HasAccountElsewhere(id realm.ID, email string) bool {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	for _, r := range srv.byName {
		if r.id == id || r.closed.Load() {
			continue
		}
		if a, ok := srv.AccountByEmail(r.id, email); ok && a.Active && a.Bot == realm.Human {
			return true
		}
	}
	return false
}

// RealmByName is the organization with that string id.
func (srv *Server) RealmByName(stringID string) (realm.ID, realm.Site, bool) {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	r := srv.byName[stringID]
	if r == nil {
		return 0, realm.Site{}, false
	}
	site := r.site
	site.Deactivated = r.closed.Load()
	return r.id, site, true
}

// Realms lists the organizations by string id.
func (srv *Server) Realms() map[string]realm.ID {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	out := make(map[string]realm.ID, len(srv.byName))
	for n, r := range srv.byName {
		out[n] = r.id
	}
	return out
}
