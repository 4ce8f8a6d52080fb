package park

import "net/netip"

// FastPath takes requests on the loop that read them, without a goroutine, without fasthttp and without a copy: for the two
// requests that a chat server gets more often than all others together, asking for events and sending. Each loop has its
// own, so it may keep what it likes between requests without a lock.
type FastPath interface {
	// Take is offered a request that begins with one of Config.QuickTargets. It either calls Park or CollectBacklog once and
	// returns true, or returns false, and the request goes the usual way as if nothing had been. It must not wait for
	// anything, and keep nothing of q.
	Handle(q *FastRequest) bool
	// Again is offered a request that is, byte for byte, the one Take had remembered on this connection, but for the
	// number. It does what Take does, and may use the same Parked once more: the request before has its answer.
	HandleRepeated(q *FastRequest, m *Memo, number []byte) bool
	// Flush is called when no further request is at hand: what Take put off happens now.
	Flush()
}

// FastRequest is an HTTP/1.1 request, whole with its body, with nothing behind it, that keeps its connection and passed
// the gate. Its slices lie in the loop's buffer. Of headers there is one of a kind; nil if there is none.
type FastRequest struct {
	Method        []byte
	Target        []byte // path and query as sent
	Host          []byte
	Authorization []byte
	ContentType   []byte
	UserAgent     []byte
	Body          []byte
	Address       netip.Addr

	c          *eventConn
	head       []byte
	taken      bool
	remembered bool // the connection's memo is this request
}

// Memo is a request as its connection remembers it, without the number in it. A client that waits for events asks the
// same again and again: what was found out about these bytes need not be found out anew.
type Memo struct {
	Owner any // whatever FastPath wants to find again

	template   []byte // the head before the number, and behind it
	numberAt   int
	lastNumber [maxNumberBytes]byte // the number it came with last
	lastDigits uint8                // of it; 0: a longer one
}

// maxNumberBytes is how long a number may be for the request to be put together again, in bytes: as an int64's digits with a
// sign, which is longer than any of an event.
const maxNumberBytes = 20

// setNumber notes the number of the request that is at hand.
func (m *Memo) setNumber(number []byte) {
	m.lastDigits = 0
	if len(number) <= maxNumberBytes {
		m.lastDigits = uint8(copy(m.lastNumber[:], number))
	}
}

// appendRequest appends the appendRequest as it came last, and reports whether it is known.
func (m *Memo) appendRequest(b []byte) ([]byte, bool) {
	if m.lastDigits == 0 {
		return b, false
	}
	b = append(b, m.template[:m.numberAt]...)
	b = append(b, m.lastNumber[:m.lastDigits]...)
	return append(b, m.template[m.numberAt:]...), true
}

// maxMemoBytes is how long a request may be that is remembered, in bytes: a connection keeps it as long as it lives. A poll
// of a program has some 250, of a browser behind a proxy 600.
const maxMemoBytes = 768

// matchNumber is what stands in b in the matchNumber's place, nil if b is not the request remembered.
func (m *Memo) matchNumber(b []byte) []byte {
	n := len(b) - len(m.template)
	if n <= 0 || string(b[:m.numberAt]) != string(m.template[:m.numberAt]) || string(b[m.numberAt+n:]) != string(m.template[m.numberAt:]) {
		return nil
	}
	return b[m.numberAt : m.numberAt+n]
}

// Gone is told, like Park's gone, when the client of a parked request has left.
type Gone interface{ Gone() }

type goneFunc func()

func (f goneFunc) Gone() { f() }

// prefetch reads a word of each line that comparing is going to need.
func (m *Memo) prefetch() (sum uint32) {
	for i := 0; i < len(m.template); i += 64 {
		sum += uint32(m.template[i])
	}
	return sum
}

// Prefetch reads a word of what answering is going to need, while the request waits: a caller who is going to answer many
// gets there sooner by calling it for some of them first. The number means nothing.
func (p *Parked) Prefetch() uint32 { return p.conn.prefetch() }
