package actors

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"parley/actors/realm"
	"parley/wire"
)

// accounts is the directory of accounts: what login goes by, across realms, without asking any realm actor. It changes
// only when the facts behind a change are on disk, and before anybody is told. What it points to never changes.
type accounts struct {
	mu      sync.RWMutex
	byUser  map[userKey]*Account
	byKey   map[[32]byte]*Account // by hash of an API key
	byEmail map[emailKey]*Account

	vouched atomic.Uint64 // raised behind each change
}

type userKey struct {
	realm realm.ID
	user  realm.UserID
}

type emailKey struct {
	realm realm.ID
	email string
}

func newAccounts() *accounts {
	return &accounts{byUser: map[userKey]*Account{}, byKey: map[[32]byte]*Account{}, byEmail: map[emailKey]*Account{}}
}

func (d *accounts) put(a *Account) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.vouched.Add(1)
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

// introduce puts every account of a realm that was just loaded into the directory.
func (d *accounts) introduce(r *realm.Realm) {
	r.EachUser(func(u *realm.User) { d.note(r, u.ID) })
}

// account brings one account's entry up to date.
func (h *House) account(r *realm.Realm, id realm.UserID) { h.accounts.note(r, id) }

// forget takes out every account of a realm, which is to be introduced again.
func (d *accounts) forget(id realm.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.vouched.Add(1)
	maps.DeleteFunc(d.byUser, func(k userKey, _ *Account) bool { return k.realm == id })
	maps.DeleteFunc(d.byKey, func(_ [32]byte, a *Account) bool { return a.Realm == id })
	maps.DeleteFunc(d.byEmail, func(k emailKey, _ *Account) bool { return k.realm == id })
}

func (d *accounts) note(r *realm.Realm, id realm.UserID) {
	u := r.Find(id)
	if u == nil || u.System {
		return
	}
	d.put(&Account{Realm: r.ID(), User: u.ID, Email: u.Email, Keys: slices.Clone(u.Keys), Password: u.Password, Active: u.Active, Bot: u.Bot, Role: u.Role})
}

// Vouched changes with every account and organization.
func (h *House) Vouched() uint64 { return h.accounts.vouched.Load() }

// close says whether an organization is deactivated.
func (r *handle) close(h *House, closed bool) {
	if r.closed.Swap(closed) != closed {
		h.accounts.vouched.Add(1)
	}
}

// ByKeyHash is the account an API key belongs to.
func (h *House) ByKeyHash(hash [32]byte) (*Account, bool) {
	h.accounts.mu.RLock()
	a := h.accounts.byKey[hash]
	h.accounts.mu.RUnlock()
	return a, a != nil
}

// ByEmail is the account with that real address in a realm.
func (h *House) ByEmail(id realm.ID, email string) (*Account, bool) {
	h.accounts.mu.RLock()
	defer h.accounts.mu.RUnlock()
	a := h.accounts.byEmail[emailKey{id, realm.FoldEmail(email)}]
	return a, a != nil
}

// Elsewhere reports whether somebody has an account with that address in another open organization.
func (h *House) Elsewhere(id realm.ID, email string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, r := range h.byName {
		if r.id == id || r.closed.Load() {
			continue
		}
		if a, ok := h.ByEmail(r.id, email); ok && a.Active && a.Bot == realm.Human {
			return true
		}
	}
	return false
}

// RealmNamed is the organization with that string id.
func (h *House) RealmNamed(stringID string) (realm.ID, wire.Site, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	r := h.byName[stringID]
	if r == nil {
		return 0, wire.Site{}, false
	}
	site := r.site
	site.Closed = r.closed.Load()
	return r.id, site, true
}

// Realms lists the organizations by string id.
func (h *House) Realms() map[string]realm.ID {
	h.mu.RLock()
	defer h.mu.RUnlock()
	out := make(map[string]realm.ID, len(h.byName))
	for n, r := range h.byName {
		out[n] = r.id
	}
	return out
}
