package mcp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/wire"
)

// Limits of sessions and of their subscriptions.
const (
	// MaxSessions is the number of sessions of a node: about 400 bytes each, without their subscriptions.
	MaxSessions = 10_000
	// MaxSessionsOfAccount is the number of sessions of an account with its bots. The one that was used least recently
	// ends for a new one.
	MaxSessionsOfAccount = 200
	// MaxSubscriptions is the number of resources that a session can subscribe to. Each event is compared with all of
	// them, which takes some microseconds.
	MaxSubscriptions = 100
	// MaxSubscriptionsOfNode is the number of subscriptions of all sessions of a node: usually 100 bytes each, and at
	// most 1.5 kB.
	MaxSubscriptionsOfNode = 50_000
	// MaxSubscriptionsOfAccount is the number of subscriptions of the sessions of an account with its bots: 25 accounts
	// would have to use all of it to fill a node.
	MaxSubscriptionsOfAccount = 2_000
	// sessionIdle is the time after which a session ends that no request names.
	sessionIdle = 24 * time.Hour
	// sweepInterval is how often a new session looks for idle ones.
	sweepInterval = time.Minute
	// sessionIDLength is the length of a session id in characters.
	sessionIDLength = 32
)

// session is the memory of a client. It is lost when the node ends: the client begins another one.
type session struct {
	id    string
	user  realm.UserID
	owner account
	key   [32]byte
	used  int64    // Unix seconds
	next  *session // of the same account

	queue realm.QueueID  // "": none is open
	last  int64          // the newest event that was sent to the client
	subs  []subscription // ascending
}

// account is the account that is charged for a session.
type account struct {
	realm   realm.ID
	charged realm.UserID
}

// usage is the sessions of an account, linked by next, and the number of their subscriptions.
type usage struct {
	first       *session
	count, subs int32
}

// subscription is a resource whose changes a session wants to know.
type subscription struct {
	uri   string // as JSON
	place place
}

// compareURI orders subscriptions.
func compareURI(x subscription, uri string) int { return strings.Compare(x.uri, uri) }

// sessionTable holds the sessions of a node.
type sessionTable struct {
	mu       sync.Mutex
	list     map[string]*session
	accounts map[account]usage
	having   [MaxSessionsOfAccount + 1]int32 // accounts by the number of their sessions
	swept    int64                           // when idle sessions were removed, in Unix seconds
	refused  int64
	shares   *admission.Shares

	subs, subsRefused int64
	subShares         *admission.Shares
}

func newSessionTable(several func() bool) sessionTable {
	return sessionTable{list: map[string]*session{}, accounts: map[account]usage{},
		shares: admission.NewShares(MaxSessions, several), subShares: admission.NewShares(MaxSubscriptionsOfNode, several)}
}

func errTooManySessions() error {
	return realm.Refuse(realm.Busy, "SERVER_OVERLOADED", "The server has too many sessions of agents. Try again later.")
}

// find returns the session of a call, or nil if it has ended or belongs to another key.
func (t *sessionTable) find(c *wire.Call, id []byte, now time.Time) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.list[string(id)]
	if x == nil || x.owner.realm != c.Realm || x.user != c.Caller.User || x.key != c.Caller.Key {
		return nil
	}
	if x.isIdle(now) {
		t.remove(x)
		return nil
	}
	x.used = now.Unix()
	return x
}

func (x *session) isIdle(now time.Time) bool {
	return now.Unix()-x.used > int64(sessionIdle/time.Second)
}

// add adds a session. t.mu is held.
func (t *sessionTable) add(x *session) {
	u := t.accounts[x.owner]
	x.next, u.first = u.first, x
	t.setUsage(x.owner, u, u.count+1)
	t.list[x.id] = x
}

// setUsage stores the usage of an account that now has so many sessions. t.mu is held.
func (t *sessionTable) setUsage(a account, u usage, count int32) {
	if u.count > 0 {
		t.having[u.count]--
	}
	if u.count = count; count == 0 {
		delete(t.accounts, a)
		return
	}
	t.having[count]++
	t.accounts[a] = u
}

// remove ends a session. Its event queue ends when no client has polled it for some minutes. t.mu is held.
func (t *sessionTable) remove(x *session) {
	if t.list[x.id] != x {
		return
	}
	delete(t.list, x.id)
	u := t.accounts[x.owner]
	at := &u.first
	for *at != x {
		at = &(*at).next
	}
	*at = x.next
	t.countSubscriptions(x.owner, &u, -len(x.subs))
	t.setUsage(x.owner, u, u.count-1)
	t.shares.Give(organizationName(x.owner.realm), 1)
}

// countSubscriptions counts n more subscriptions of an account. t.mu is held.
func (t *sessionTable) countSubscriptions(a account, u *usage, n int) {
	u.subs += int32(n)
	t.subs += int64(n)
	if n < 0 {
		t.subShares.Give(organizationName(a.realm), int64(-n))
	}
}

// organizationName returns the name of an organization in the shares.
func organizationName(id realm.ID) string { return strconv.Itoa(int(id)) }

// begin adds a session and returns its id.
func (s *Server) begin(c *wire.Call) (string, error) {
	now, t := s.now(), &s.sessions
	x := &session{id: s.options.Token(sessionIDLength), user: c.Caller.User, key: c.Caller.Key, used: now.Unix(), last: -1,
		owner: account{c.Realm, c.Account.Charged}}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
	if u := t.accounts[x.owner]; u.count == MaxSessionsOfAccount {
		t.remove(u.oldest())
	}
	if !t.takePlace(x.owner) {
		t.refused++
		return "", errTooManySessions()
	}
	t.add(x)
	return x.id, nil
}

// takePlace counts another session of an account. If there is no place for it, a session of the account with the most
// ends, so that some accounts cannot take all places. t.mu is held.
func (t *sessionTable) takePlace(a account) bool {
	organization := organizationName(a.realm)
	if !t.shares.Take(organization, 1) && !(t.makePlace(a, true) && t.shares.Take(organization, 1)) {
		return false
	}
	if len(t.list) < MaxSessions || t.makePlace(a, false) {
		return true
	}
	t.shares.Give(organization, 1)
	return false
}

// makePlace ends a session of the account with the most, within the organization of another account or in all of them.
// It returns false if none has more sessions than that account will have. t.mu is held.
func (t *sessionTable) makePlace(a account, within bool) bool {
	own, most := t.accounts[a].count+1, int32(0)
	for n := int32(MaxSessionsOfAccount); n > own && most == 0; n-- {
		if t.having[n] > 0 {
			most = n
		}
	}
	if most == 0 { // the usual case of a full node is found without looking at all accounts
		return false
	}
	var from usage
	for b, u := range t.accounts {
		if u.count > max(own, from.count) && (!within || b.realm == a.realm) {
			if from = u; u.count == most {
				break
			}
		}
	}
	if from.first == nil {
		return false
	}
	t.remove(from.oldest())
	return true
}

// oldest returns the session that was used least recently.
func (u usage) oldest() *session {
	x := u.first
	for y := x; y != nil; y = y.next {
		if y.used <= x.used { // of those of a second, the first one, which is last in the list
			x = y
		}
	}
	return x
}

// sweep ends the sessions that no request has named for long. t.mu is held.
func (t *sessionTable) sweep(now time.Time) {
	if now.Unix()-t.swept < int64(sweepInterval/time.Second) {
		return
	}
	t.swept = now.Unix()
	for _, x := range t.list {
		if x.isIdle(now) {
			t.remove(x)
		}
	}
}

// errTooManySubscriptions refuses a subscription.
func errTooManySubscriptions(of string, limit int) error {
	return &rpcError{codeInvalidRequest, fmt.Sprintf("%s has at most %d subscriptions", of, limit)}
}

// subscribe adds a subscription to a session, if it does not have it.
func (t *sessionTable) subscribe(x *session, sub subscription) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.accounts[x.owner]
	i, known := slices.BinarySearchFunc(x.subs, sub.uri, compareURI)
	switch {
	case t.list[x.id] != x:
		return errNoSession()
	case known:
		return nil
	case len(x.subs) >= MaxSubscriptions:
		return errTooManySubscriptions("A session", MaxSubscriptions)
	case u.subs >= MaxSubscriptionsOfAccount:
		return errTooManySubscriptions("An account", MaxSubscriptionsOfAccount)
	case t.subs >= MaxSubscriptionsOfNode, !t.subShares.Take(organizationName(x.owner.realm), 1):
		t.subsRefused++
		return &rpcError{codeInternal, "The server has too many subscriptions of agents. Try again later."}
	}
	x.subs = slices.Insert(x.subs, i, sub)
	t.countSubscriptions(x.owner, &u, 1)
	t.accounts[x.owner] = u
	return nil
}

// unsubscribe removes a subscription from a session, if it has it.
func (t *sessionTable) unsubscribe(x *session, uri string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, known := slices.BinarySearchFunc(x.subs, uri, compareURI)
	if !known || t.list[x.id] != x {
		return
	}
	x.subs = slices.Delete(x.subs, i, i+1)
	u := t.accounts[x.owner]
	t.countSubscriptions(x.owner, &u, -1)
	t.accounts[x.owner] = u
}

// End ends a session and its event queue. It reports false if there is none.
func (s *Server) End(c *wire.Call, id string) bool {
	x := s.sessions.find(c, []byte(id), s.now())
	if x == nil {
		return false
	}
	s.sessions.mu.Lock()
	queue := x.queue
	s.sessions.remove(x)
	s.sessions.mu.Unlock()
	if queue != "" {
		s.ask(c, "DELETE /events", nil, params{"queue_id": string(queue)}) // it may have ended already
	}
	return true
}

// Sessions returns the number of sessions, and how many were refused.
func (s *Server) Sessions() (now, refused int64) {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return int64(len(s.sessions.list)), s.sessions.refused
}

// Shares returns the shares of the organizations in MaxSessions.
func (s *Server) Shares() *admission.Shares { return s.sessions.shares }

// Subscriptions returns the number of subscriptions, and how many were refused because the node had too many.
func (s *Server) Subscriptions() (now, refused int64) {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return s.sessions.subs, s.sessions.subsRefused
}

// SubscriptionShares returns the shares of the organizations in MaxSubscriptionsOfNode.
func (s *Server) SubscriptionShares() *admission.Shares { return s.sessions.subShares }
