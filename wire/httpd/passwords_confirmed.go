package httpd

import (
	"sync"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

const (
	// confirmedTime is how long a session can do dangerous acts after its user has entered the password.
	confirmedTime = wire.FreshSeconds * time.Second
	// MaxConfirmedSessions limits the sessions that are remembered, about 60 bytes each. Beyond it, any of them is
	// forgotten, and its user enters the password again.
	MaxConfirmedSessions = 10_000
)

// confirmedPasswords are the sessions whose users have just entered their passwords. They exist in memory only: after a
// change of the owner, users enter the password again. The zero value is ready. It is safe for concurrent use.
type confirmedPasswords struct {
	mu   sync.Mutex
	list map[confirmedSession]time.Time
}

type confirmedSession struct {
	realm   realm.ID
	session int64
}

// add records that the user of the call's session has just entered the password. It ignores calls without a session.
func (l *confirmedPasswords) add(c *wire.Call, now time.Time) {
	if c.Session == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, at := range l.list {
		if now.Sub(at) >= confirmedTime || len(l.list) >= MaxConfirmedSessions {
			delete(l.list, k)
		}
	}
	if l.list == nil {
		l.list = map[confirmedSession]time.Time{}
	}
	l.list[confirmedSession{c.Realm, c.Session.ID}] = now
}

// has reports whether the user of the call's session has entered the password less than confirmedTime ago.
func (l *confirmedPasswords) has(c *wire.Call, now time.Time) bool {
	if c.Session == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at, known := l.list[confirmedSession{c.Realm, c.Session.ID}]
	return known && now.Sub(at) < confirmedTime
}

// ConfirmedSessions returns the number of sessions whose users have just entered their passwords, expired ones
// included.
func (s *Server) ConfirmedSessions() int64 {
	s.confirmedPasswords.mu.Lock()
	defer s.confirmedPasswords.mu.Unlock()
	return int64(len(s.confirmedPasswords.list))
}
