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

func (d *accountTable) put(a *realm.Account) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.version.Add(1)
	if old := d.byUser[userKey{a.Realm, a.User}]; old != nil {
		for _, k := range old.Keys {
			delete(d.byKey, k)
		}
		at := emailKey{old.Realm, realm.FoldEmail(old.Email)}
		if now := d.byEmail[at]; now != nil && now.User == old.User {
			delete(d.byEmail, at)
		}
	}
	d.byUser[userKey{a.Realm, a.User}] = a
	d.byEmail[emailKey{a.Realm, realm.FoldEmail(a.Email)}] = a
	for _, k := range a.Keys {
		d.byKey[k] = a
	}
}

// addRealm puts every account of a realm that was just loaded into the directory.
func (d *accountTable) addRealm(r *realm.Realm) {
	r.EachUser(func(u *realm.User) { d.update(r, u.ID) })
}

// updateAccount brings one updateAccount's entry up to date.
func (h *Server) updateAccount(r *realm.Realm, id realm.UserID) { h.accounts.update(r, id) }

// removeRealm takes out every account of a realm, which is to be introduced again.
func (d *accountTable) removeRealm(id realm.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.version.Add(1)
	maps.DeleteFunc(d.byUser, func(k userKey, _ *realm.Account) bool { return k.realm == id })
	maps.DeleteFunc(d.byKey, func(_ [32]byte, a *realm.Account) bool { return a.Realm == id })
	maps.DeleteFunc(d.byEmail, func(k emailKey, _ *realm.Account) bool { return k.realm == id })
}

func (d *accountTable) update(r *realm.Realm, id realm.UserID) {
	u := r.Find(id)
	if u == nil || u.System {
		return
	}
	d.put(&realm.Account{Realm: r.ID(), User: u.ID, Email: u.Email, Keys: slices.Clone(u.Keys), Password: u.Password, Active: u.Active, Bot: u.Bot, Role: u.Role})
}

// AuthVersion changes with every account and organization.
func (h *Server) AuthVersion() uint64 { return h.accounts.version.Load() }

// setClosed says whether an organization is deactivated.
func (r *realmHandle) setClosed(h *Server, closed bool) {
	if r.closed.Swap(closed) != closed {
		h.accounts.version.Add(1)
	}
}

// AccountByKeyHash is the account an API key belongs to.
func (h *Server) AccountByKeyHash(hash [32]byte) (*realm.Account, bool) {
	h.accounts.mu.RLock()
	a := h.accounts.byKey[hash]
	h.accounts.mu.RUnlock()
	return a, a != nil
}

// AccountByEmail is the account with that real address in a realm.
func (h *Server) AccountByEmail(id realm.ID, email string) (*realm.Account, bool) {
	h.accounts.mu.RLock()
	defer h.accounts.mu.RUnlock()
	a := h.accounts.byEmail[emailKey{id, realm.FoldEmail(email)}]
	return a, a != nil
}

// HasAccountElsewhere reports whether somebody has an account with that address in another open organization.
func (h *Server) HasAccountElsewhere(id realm.ID, email string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, r := range h.byName {
		if r.id == id || r.closed.Load() {
			continue
		}
		if a, ok := h.AccountByEmail(r.id, email); ok && a.Active && a.Bot == realm.Human {
			return true
		}
	}
	return false
}

// RealmByName is the organization with that string id.
func (h *Server) RealmByName(stringID string) (realm.ID, realm.Site, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	r := h.byName[stringID]
	if r == nil {
		return 0, realm.Site{}, false
	}
	site := r.site
	site.Deactivated = r.closed.Load()
	return r.id, site, true
}

// Realms lists the organizations by string id.
func (h *Server) Realms() map[string]realm.ID {
	h.mu.RLock()
	defer h.mu.RUnlock()
	out := make(map[string]realm.ID, len(h.byName))
	for n, r := range h.byName {
		out[n] = r.id
	}
	return out
}
