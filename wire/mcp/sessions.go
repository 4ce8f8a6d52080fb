package mcp

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/wire"
)

// Limits of sessions.
const (
	// MaxSessions is the number of sessions of a node: about 500 bytes each, without their subscriptions.
	MaxSessions = 10_000
	// MaxSessionsOfAccount is the number of sessions of an account with its bots. The one that was used least recently
	// ends for a new one.
	MaxSessionsOfAccount = 200
	// MaxSubscriptions is the number of resources that a session can subscribe to.
	MaxSubscriptions = 100
	// sessionIdle is the time after which a session ends that no request names.
	sessionIdle = 24 * time.Hour
	// sessionIDLength is the length of a session id in characters.
	sessionIDLength = 32
)

// session is the memory of a client. It is lost when the node ends: the client begins another one.
type session struct {
	realm   realm.ID
	user    realm.UserID
	charged realm.UserID
	key     [32]byte
	used    time.Time

	queue realm.QueueID  // "": none is open
	last  int64          // the newest event that was sent to the client
	subs  []subscription // by URI, ascending
}

// subscription is a resource whose changes a session wants to know.
type subscription struct {
	uri    string
	place  place
	notice []byte // what the stream says when it has changed
}

// compareURI orders subscriptions.
func compareURI(x subscription, uri string) int { return strings.Compare(x.uri, uri) }

// sessionTable holds the sessions of a node.
type sessionTable struct {
	mu      sync.Mutex
	list    map[string]*session
	shares  *admission.Shares
	refused int64
}

func errTooManySessions() error {
	return realm.Refuse(realm.Busy, "SERVER_OVERLOADED", "The server has too many sessions of agents. Try again later.")
}

// find returns the session of a call, or nil if it has ended or belongs to another key.
func (t *sessionTable) find(c *wire.Call, id string, now time.Time) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.list[id]
	if x == nil || x.realm != c.Realm || x.user != c.Caller.User || x.key != c.Caller.Key {
		return nil
	}
	if now.Sub(x.used) > sessionIdle {
		t.remove(id, x)
		return nil
	}
	x.used = now
	return x
}

// remove ends a session. t.mu is held.
func (t *sessionTable) remove(id string, x *session) {
	delete(t.list, id)
	t.shares.Give(organizationName(x.realm), 1)
}

// organizationName returns the name of an organization in the shares.
func organizationName(id realm.ID) string { return strconv.Itoa(int(id)) }

// begin adds a session and returns its id.
func (s *Server) begin(c *wire.Call) (string, error) {
	id, now, t := s.options.Token(sessionIDLength), s.now(), &s.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	own, oldest := 0, ""
	for key, x := range t.list {
		if now.Sub(x.used) > sessionIdle {
			t.remove(key, x)
		} else if x.realm == c.Realm && x.charged == c.Account.Charged {
			if own++; oldest == "" || x.used.Before(t.list[oldest].used) {
				oldest = key
			}
		}
	}
	if own >= MaxSessionsOfAccount {
		t.remove(oldest, t.list[oldest])
	}
	if len(t.list) >= MaxSessions || !t.shares.Take(organizationName(c.Realm), 1) {
		t.refused++
		return "", errTooManySessions()
	}
	t.list[id] = &session{realm: c.Realm, user: c.Caller.User, charged: c.Account.Charged, key: c.Caller.Key, used: now,
		last: -1}
	return id, nil
}

// End ends a session and its event queue. It reports false if there is none.
func (s *Server) End(c *wire.Call, id string) bool {
	x := s.sessions.find(c, id, s.now())
	if x == nil {
		return false
	}
	s.sessions.mu.Lock()
	queue := x.queue
	if s.sessions.list[id] == x {
		s.sessions.remove(id, x)
	}
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
