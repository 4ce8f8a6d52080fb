package certificates

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// TicketKeys are the keys with which the server encrypts TLS session tickets: clients that connect again then need no
// full handshake. They exist in the memory of the process only. A successor gets them in the answer with which its
// predecessor hands over, over the control socket, which only users with access to the data directory can open. They
// are never on disk and not in backups: with a key an attacker can read recorded sessions of TLS 1.2 whose tickets it
// encrypts. So after a crash or a restart clients make full handshakes. Its methods may be called by any goroutine.
type TicketKeys struct {
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

// NewTicketKeys returns a new key.
func NewTicketKeys(now time.Time) *TicketKeys {
	t := &TicketKeys{}
	t.add(now)
	return t
}

// add puts a new key before the others.
func (t *TicketKeys) add(now time.Time) {
	k := ticketKey{Made: now.Unix()}
	rand.Read(k.Key[:]) // never fails
	t.keys = append([]ticketKey{k}, t.keys[:min(len(t.keys), maxTicketKeys-1)]...)
}

// Rotate makes a new key if the newest one is too old, or from the future because the clock was set back, and drops
// keys whose tickets are not valid any more. It returns the valid keys with the newest first, and the time until it
// must be called again.
func (t *TicketKeys) Rotate(now time.Time) (keys [][32]byte, next time.Duration) {
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
func (t *TicketKeys) share() []ticketKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shared = true
	return slices.Clone(t.keys)
}

// Replace replaces the keys by those of a predecessor, if it sent any.
func (t *TicketKeys) Replace(keys []ticketKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(keys) > 0 {
		t.keys = keys[:min(len(keys), maxTicketKeys)]
	}
}

// TicketAnswer is the answer to a successor that asks to take over. Older programs send an empty one.
type TicketAnswer struct {
	TicketKeys []ticketKey `json:"tls_ticket_keys,omitempty"`
}

// EncodeTicketAnswer returns the answer to a successor of a server with these keys; nil: it does not speak TLS.
func EncodeTicketAnswer(t *TicketKeys) []byte {
	var a TicketAnswer
	if t != nil {
		a.TicketKeys = t.share()
	}
	b, err := json.Marshal(a)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return append(b, '\n')
}
