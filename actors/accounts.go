package actors

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/actors/realm"
)

// accountTable finds accounts for login, across realms, without asking a realm actor. An account changes only when the
// facts of the change are on disk, and before any client gets an answer or event about it. The accounts themselves are
// never modified.
type accountTable struct {
	mu      sync.RWMutex
	byUser  map[userKey]*realm.Account
	byKey   map[[32]byte]*realm.Account // by hash of an API key
	byEmail map[emailKey]*realm.Account
	// bySession finds accounts by the hash of the secret of a browser session.
	bySession map[[32]byte]*realm.Account

	// expiries are the times at which additional keys end, in Unix seconds; nextExpiry is at most the first of them.
	// The keys that ended until expiredThrough are not in it.
	expiries                   map[[32]byte]int64
	nextExpiry, expiredThrough int64

	version atomic.Uint64 // increased after each change
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
	return &accountTable{
		byUser:  map[userKey]*realm.Account{},
		byKey:   map[[32]byte]*realm.Account{},
		byEmail: map[emailKey]*realm.Account{},

		expiries:   map[[32]byte]int64{},
		nextExpiry: math.MaxInt64,
		bySession:  map[[32]byte]*realm.Account{},
	}
}

// credentialLoss says which credentials of an account are no longer valid.
type credentialLoss uint8

const (
	nothingLost credentialLoss = iota
	credentialEnded
	secretRenewed // the secret of a browser session, which got another one; others may have ended
)

// put adds or replaces an account, with all its keys and browser sessions. It returns the account's loss. A new account
// does not change the version: it makes no lookup invalid.
func (t *accountTable) put(a *realm.Account) (lost credentialLoss) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.byUser[userKey{a.Realm, a.User}]; old != nil {
		defer t.version.Add(1)
		for k := range old.Hashes() {
			delete(t.byKey, k)
			delete(t.expiries, k)
		}
		if lostKey(old, a) {
			lost = credentialEnded
		}
		for i := range old.Sessions {
			hash := old.Sessions[i].Hash
			delete(t.bySession, hash)
			lost = max(lost, sessionLoss(&old.Sessions[i], a))
		}
		at := emailKey{old.Realm, realm.FoldEmail(old.Email)}
		if now := t.byEmail[at]; now != nil && now.User == old.User {
			delete(t.byEmail, at)
		}
	}
	t.byUser[userKey{a.Realm, a.User}] = a
	t.byEmail[emailKey{a.Realm, realm.FoldEmail(a.Email)}] = a
	for k := range a.Hashes() {
		t.byKey[k] = a
	}
	for _, k := range a.KeyInfo {
		if k.Expires > t.expiredThrough {
			t.expiries[k.Hash] = k.Expires
			t.nextExpiry = min(t.nextExpiry, k.Expires)
		}
	}
	for i := range a.Sessions {
		t.bySession[a.Sessions[i].Hash] = a
	}
	return lost
}

// sessionLoss returns an account's loss of one of its former sessions.
func sessionLoss(s *realm.BrowserSession, now *realm.Account) credentialLoss {
	if now.FindSession(s.Hash) != nil {
		return nothingLost
	}
	for i := range now.Sessions {
		if now.Sessions[i].ID == s.ID {
			return secretRenewed
		}
	}
	return credentialEnded
}

// lostKey reports whether an account has lost a key.
func lostKey(old, now *realm.Account) bool {
	kept := map[[32]byte]bool{}
	for k := range now.Hashes() {
		kept[k] = true
	}
	for k := range old.Hashes() {
		if !kept[k] {
			return true
		}
	}
	return false
}

// expire removes the keys that have expired and returns the accounts that had them.
func (t *accountTable) expire(now int64) (had []*realm.Account) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now < t.nextExpiry {
		return nil
	}
	t.nextExpiry, t.expiredThrough = math.MaxInt64, now
	for k, expires := range t.expiries {
		if expires > now {
			t.nextExpiry = min(t.nextExpiry, expires)
			continue
		}
		had = append(had, t.byKey[k])
		delete(t.byKey, k)
		delete(t.expiries, k)
	}
	if len(had) > 0 {
		t.version.Add(1)
	}
	return had
}

// expireKeys ends the polls that wait under API keys that have expired. Requests check the expiry themselves.
func (srv *Server) expireKeys() {
	for _, a := range srv.accounts.expire(srv.now().Unix()) {
		srv.endPolls(a.Realm, a.User, 0)
	}
}

// addRealm adds every account of a realm that was just loaded.
func (t *accountTable) addRealm(r *realm.Realm) {
	r.EachUser(func(u *realm.User) { t.update(r, u.ID) })
}

// updateAccount replaces one account after its user changed. If a key was revoked or a browser session has ended, the
// user's waiting polls end before they get an event: the session actor receives this message before the events of the
// same turn. If a browser session got a new secret, the polls are answered a little later: the browser polls again at
// once, and the request that renewed the session has to bring it the secret before.
func (srv *Server) updateAccount(r *realm.Realm, id realm.UserID) {
	lost := srv.accounts.update(r, id)
	switch lost {
	case credentialEnded:
		srv.endPolls(r.ID(), id, 0)
	case secretRenewed:
		srv.endPolls(r.ID(), id, newSecretArrives)
	}
}

// newSecretArrives is the time in which the answer with a new secret reaches the browser before its polls end. A poll
// under a revoked session has to end within 100 ms.
const newSecretArrives = 50 * time.Millisecond

// dropRealm removes the accounts of a realm that leaves memory. The version stays the same: until the realm is loaded
// again, the accounts are as before.
func (t *accountTable) dropRealm(r *realm.Realm) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.EachUser(func(u *realm.User) {
		at := userKey{r.ID(), u.ID}
		a := t.byUser[at]
		if a == nil {
			return
		}
		delete(t.byUser, at)
		delete(t.byEmail, emailKey{a.Realm, realm.FoldEmail(a.Email)})
		for k := range a.Hashes() {
			delete(t.byKey, k)
			delete(t.expiries, k)
		}
		for i := range a.Sessions {
			delete(t.bySession, a.Sessions[i].Hash)
		}
	})
}

// removeRealm removes every account of a realm. The realm is loaded again after it.
func (t *accountTable) removeRealm(id realm.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.version.Add(1)
	maps.DeleteFunc(t.byUser, func(k userKey, _ *realm.Account) bool { return k.realm == id })
	maps.DeleteFunc(t.expiries, func(k [32]byte, _ int64) bool { a := t.byKey[k]; return a != nil && a.Realm == id })
	maps.DeleteFunc(t.byKey, func(_ [32]byte, a *realm.Account) bool { return a.Realm == id })
	maps.DeleteFunc(t.bySession, func(_ [32]byte, a *realm.Account) bool { return a.Realm == id })
	maps.DeleteFunc(t.byEmail, func(k emailKey, _ *realm.Account) bool { return k.realm == id })
}

// update replaces the account of one user by the user's present data. The server's own users have no accounts: they
// cannot log in. update returns the account's loss.
func (t *accountTable) update(r *realm.Realm, id realm.UserID) credentialLoss {
	u := r.Find(id)
	if u == nil || u.System {
		return nothingLost
	}
	return t.put(&realm.Account{
		Realm:    r.ID(),
		User:     u.ID,
		Charged:  r.ChargedUser(u.ID),
		Email:    u.Email,
		Keys:     slices.Clone(u.Keys),
		Password: u.Password,
		Active:   u.Active,
		Bot:      u.Bot,
		Role:     u.Role,
		KeyInfo:  slices.Clone(u.KeyInfo),
		Sessions: r.StoredBrowserSessions(id),
	})
}

// updateCharged replaces the accounts of the bots that a bot owns, because another owner of the bot changes the account
// that is charged for them. Only imported bots own bots.
func (t *accountTable) updateCharged(r *realm.Realm, id realm.UserID) {
	if u := r.Find(id); u == nil || !u.IsBot() {
		return
	}
	r.EachBot(func(b *realm.User) {
		t.mu.RLock()
		a := t.byUser[userKey{r.ID(), b.ID}]
		t.mu.RUnlock()
		if a != nil && a.Charged != r.ChargedUser(b.ID) {
			t.update(r, b.ID)
		}
	})
}

// charged returns the account under which the bounds count the requests and data of a user, and whether the user is a
// bot.
func (srv *Server) charged(id realm.ID, u realm.UserID) (charged realm.UserID, bot bool) {
	srv.accounts.mu.RLock()
	defer srv.accounts.mu.RUnlock()
	if a := srv.accounts.byUser[userKey{id, u}]; a != nil {
		return a.Charged, a.Bot != realm.Human
	}
	return u, false
}

// AuthVersion changes whenever a cached key lookup becomes invalid: an account changed, or an organization was added,
// deactivated or reactivated. The change is visible here before any client gets an answer that depends on it.
func (srv *Server) AuthVersion() uint64 { return srv.accounts.version.Load() }

// setClosed records whether the organization is deactivated.
func (r *realmHandle) setClosed(srv *Server, closed bool) {
	if r.closed.Swap(closed) != closed {
		srv.accounts.version.Add(1)
	}
}

// AccountByKeyHash returns the account with that API key, if the key has not expired. The account must not be modified.
func (srv *Server) AccountByKeyHash(hash [32]byte) (*realm.Account, bool) {
	srv.accounts.mu.RLock()
	a := srv.accounts.byKey[hash]
	srv.accounts.mu.RUnlock()
	if a == nil {
		return nil, false
	}
	if k := a.AdditionalKey(hash); k != nil && k.Expired(srv.now().Unix()) {
		return nil, false
	}
	return a, true
}

// AccountBySessionHash returns the account with a browser session whose secret has that hash, and the session, if it
// has not expired; otherwise nil. Neither must be modified.
func (srv *Server) AccountBySessionHash(hash [32]byte) (*realm.Account, *realm.BrowserSession) {
	srv.accounts.mu.RLock()
	a := srv.accounts.bySession[hash]
	srv.accounts.mu.RUnlock()
	if a == nil {
		return nil, nil
	}
	s := a.FindSession(hash)
	if s == nil || srv.now().Unix() >= s.Expires() {
		return nil, nil
	}
	return a, s
}

// RealmOfKey returns the organization that has an API key with a hash, also if it is asleep.
func (srv *Server) RealmOfKey(hash [32]byte) (realm.ID, bool) {
	if a, found := srv.AccountByKeyHash(hash); found {
		return a.Realm, true
	}
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	id, found := srv.sleepers.byKey[realm.KeyDigest(hash)]
	return id, found
}

// AccountByEmail returns the account with that real email address in a realm, which it loads if it is asleep. The
// account must not be modified.
func (srv *Server) AccountByEmail(id realm.ID, email string) (*realm.Account, bool) {
	a, ok := srv.loadedAccount(id, email)
	if ok {
		return a, ok
	}
	if _, sleeping := srv.sleeperOf(id); sleeping && srv.Wake(id) == nil {
		return srv.loadedAccount(id, email)
	}
	return nil, false
}

// loadedAccount is AccountByEmail for a realm in memory.
func (srv *Server) loadedAccount(id realm.ID, email string) (*realm.Account, bool) {
	srv.accounts.mu.RLock()
	defer srv.accounts.mu.RUnlock()
	a := srv.accounts.byEmail[emailKey{id, realm.FoldEmail(email)}]
	return a, a != nil
}

// HasAccountElsewhere reports whether another active organization has an active human account with that address.
func (srv *Server) HasAccountElsewhere(id realm.ID, email string) bool {
	return slices.ContainsFunc(srv.RealmsWithPerson(email), func(x realm.ID) bool { return x != id })
}

// RealmByName returns the organization with that string id.
func (srv *Server) RealmByName(stringID string) (realm.ID, realm.Site, bool) {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	r := srv.byName[stringID]
	if r == nil {
		s := srv.sleepers.byName[stringID]
		if s == nil {
			return 0, realm.Site{}, false
		}
		site := s.site
		site.Deactivated = s.known.Closed
		return s.id, site, true
	}
	site := r.sessions.Site
	site.Deactivated = r.closed.Load()
	return r.id, site, true
}

// HasSeveralRealms reports whether this node serves several organizations, which share its budgets; see
// admission.Shares.
func (srv *Server) HasSeveralRealms() bool {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	return len(srv.byName)+len(srv.sleepers.byName) > 1
}

// Realms returns every organization by its string id.
func (srv *Server) Realms() map[string]realm.ID {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	out := make(map[string]realm.ID, len(srv.byName)+len(srv.sleepers.byName))
	for n, s := range srv.sleepers.byName {
		out[n] = s.id
	}
	for n, r := range srv.byName {
		out[n] = r.id
	}
	return out
}

// StringID returns the string id of an organization.
func (srv *Server) StringID(id realm.ID) (string, bool) {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	if r := srv.realms[id]; r != nil && srv.byName[r.name] == r {
		return r.name, true
	}
	if s := srv.sleepers.byID[id]; s != nil {
		return s.known.StringID, true
	}
	return "", false
}
