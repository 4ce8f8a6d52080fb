package actors

import (
	"slices"
	"strings"

	"parley/actors/realm"
	"parley/wire"
)

// The directory of accounts is what login goes by, across realms, without asking any realm actor. It changes only when
// the facts behind a change are on disk, and before anybody is told.

// introduce puts every account of a realm that was just loaded into the directory.
func (h *House) introduce(a *realmActor) {
	a.handle.closed.Store(a.r.Closed())
	a.r.EachUser(func(u *realm.User) { h.account(a.r, u.ID) })
}

// account brings one account's entry up to date.
func (h *House) account(r *realm.Realm, id realm.UserID) {
	u := r.Find(id)
	if u == nil || u.System {
		return
	}
	a := Account{Realm: r.ID(), User: u.ID, Email: u.Email, Keys: slices.Clone(u.Keys), Password: u.Password, Active: u.Active, Bot: u.Bot, Role: u.Role}
	old, had := h.users.Swap(userKey{a.Realm, a.User}, a)
	if had {
		o := old.(Account)
		for _, k := range o.Keys {
			if !slices.Contains(a.Keys, k) {
				h.keys.Delete(k)
			}
		}
		if foldEmail(o.Email) != foldEmail(a.Email) {
			h.emails.CompareAndDelete(emailKey{o.Realm, foldEmail(o.Email)}, o.User)
		}
	}
	h.emails.Store(emailKey{a.Realm, foldEmail(a.Email)}, a.User)
	for _, k := range a.Keys {
		h.keys.Store(k, userKey{a.Realm, a.User})
	}
}

func foldEmail(e string) string { return strings.ToLower(strings.TrimSpace(e)) }

type userKey struct {
	realm realm.ID
	user  realm.UserID
}

func (h *House) byUser(k userKey) (Account, bool) {
	v, ok := h.users.Load(k)
	if !ok {
		return Account{}, false
	}
	return v.(Account), true
}

// ByKeyHash is the account an API key belongs to.
func (h *House) ByKeyHash(hash [32]byte) (Account, bool) {
	k, ok := h.keys.Load(hash)
	if !ok {
		return Account{}, false
	}
	return h.byUser(k.(userKey))
}

// ByEmail is the account with that real address in a realm.
func (h *House) ByEmail(id realm.ID, email string) (Account, bool) {
	u, ok := h.emails.Load(emailKey{id, foldEmail(email)})
	if !ok {
		return Account{}, false
	}
	return h.byUser(userKey{id, u.(realm.UserID)})
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
