package server

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// ticketKeys are the keys with which the server encrypts TLS session tickets: clients that connect again then need no
// full handshake. They exist in the memory of the process only. A successor gets them in the answer with which its
// predecessor hands over, over the control socket, which only users with access to the data directory can open. They
// are never on disk and not in backups: with a key an attacker can read recorded sessions of TLS 1.2 whose tickets it
// encrypts. So after a crash or a restart clients make full handshakes. Its methods may be called by any goroutine.
type ticketKeys struct {
	mu     sync.Mutex
	keys   []ticketKey // newest first; never empty
	shared bool        // a successor has them: this process makes no further ones
}

// ticketKey is one key. The JSON is for successors.
type ticketKey struct {
	Key  [32]byte `json:"key"`
	Made int64    `json:"made"` // Unix seconds
}

// Times of ticket keys; crypto/tls has the same ones if the program sets no keys.
const (
	// ticketKeyPeriod is how long new tickets are encrypted with one key.
	ticketKeyPeriod = 24 * time.Hour
	// ticketKeyLife is how long tickets of a key are accepted: RFC 8446 lets clients use a ticket for seven days.
	ticketKeyLife = 7 * 24 * time.Hour
	// maxTicketKeys is the number of keys that are valid at a time.
	maxTicketKeys = int(ticketKeyLife/ticketKeyPeriod) + 1
)

// newTicketKeys returns a new key.
func newTicketKeys(now time.Time) *ticketKeys {
	t := &ticketKeys{}
	t.add(now)
	return t
}

// add puts a new key before the others.
func (t *ticketKeys) add(now time.Time) {
	k := ticketKey{Made: now.Unix()}
	rand.Read(k.Key[:]) // never fails
	t.keys = append([]ticketKey{k}, t.keys[:min(len(t.keys), maxTicketKeys-1)]...)
}

// rotate makes a new key if the newest one is too old, or from the future because the clock was set back, and drops
// keys whose tickets are not valid any more. It returns the valid keys with the newest first, and the time until it
// must be called again.
func (t *ticketKeys) rotate(now time.Time) (keys [][32]byte, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	age := func(k ticketKey) time.Duration { return now.Sub(time.Unix(k.Made, 0)) }
	if newest := age(t.keys[0]); !t.shared && (newest >= ticketKeyPeriod || newest < -ticketKeyPeriod) {
		t.add(now)
	}
	t.keys = append(t.keys[:1], slices.DeleteFunc(t.keys[1:], func(k ticketKey) bool {
		return age(k) >= ticketKeyLife || age(k) < -ticketKeyPeriod
	})...)
	for _, k := range t.keys {
		keys = append(keys, k.Key)
	}
	return keys, max(ticketKeyPeriod-age(t.keys[0]), time.Minute)
}

// share returns the keys for a successor.
func (t *ticketKeys) share() []ticketKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shared = true
	return slices.Clone(t.keys)
}

// replace replaces the keys by those of a predecessor, if it sent any.
func (t *ticketKeys) replace(keys []ticketKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(keys) > 0 {
		t.keys = keys[:min(len(keys), maxTicketKeys)]
	}
}

// yieldAnswer is the answer to a successor that asks to take over. Older programs send an empty one.
type yieldAnswer struct {
	TicketKeys []ticketKey `json:"tls_ticket_keys,omitempty"`
}

// encodeYieldAnswer returns the answer to a successor of a server with these keys; nil: it does not speak TLS.
func encodeYieldAnswer(t *ticketKeys) []byte {
	var a yieldAnswer
	if t != nil {
		a.TicketKeys = t.share()
	}
	b, err := json.Marshal(a)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return append(b, '\n')
}

// rotateTicketKeys gives the HTTP server a new key each day, until the server is closed.
func (s *Server) rotateTicketKeys() {
	for {
		keys, next := s.ticketKeys.rotate(time.Now())
		s.http.SetSessionTicketKeys(keys)
		select {
		case <-time.After(next):
		case <-s.stopped:
			return
		}
	}
}
