package park

import "net/netip"

// Quick takes requests on the loop that read them, without a goroutine, without fasthttp and without a copy: for the two
// requests that a chat server gets more often than all others together, asking for events and sending. Each loop has its
// own, so it may keep what it likes between requests without a lock.
type Quick interface {
	// Take is offered a request that begins with one of Config.QuickTargets. It either calls Park or Hold once and
	// returns true, or returns false, and the request goes the usual way as if nothing had been. It must not wait for
	// anything, and keep nothing of q.
	Take(q *QuickRequest) bool
	// Again is offered a request that is, byte for byte, the one Take had remembered on this connection, but for the
	// number. It does what Take does, and may use the same Parked once more: the request before has its answer.
	Again(q *QuickRequest, m *Memo, number []byte) bool
	// Flush is called when no further request is at hand: what Take put off happens now.
	Flush()
}

// QuickRequest is an HTTP/1.1 request, whole with its body, with nothing behind it, that keeps its connection and passed
// the gate. Its slices lie in the loop's buffer. Of headers there is one of a kind; nil if there is none.
type QuickRequest struct {
	Method        []byte
	Target        []byte // path and query as sent
	Host          []byte
	Authorization []byte
	ContentType   []byte
	UserAgent     []byte
	Body          []byte
	Address       netip.Addr

	c     *eventConn
	head  []byte
	taken bool
	known bool // the connection's memo is this request
}

// Memo is a request as its connection remembers it, without the number in it. A client that waits for events asks the
// same again and again: what was found out about these bytes need not be found out anew.
type Memo struct {
	Owner any // whatever Quick wants to find again

	around []byte // the head before the number, and behind it
	before int
	last   [maxNumber]byte // the number it came with last
	digits uint8           // of it; 0: a longer one
}

// maxNumber is how long a number may be for the request to be put together again, in bytes: as an int64's digits with a
// sign, which is longer than any of an event.
const maxNumber = 20

// came notes the number of the request that is at hand.
func (m *Memo) came(number []byte) {
	m.digits = 0
	if len(number) <= maxNumber {
		m.digits = uint8(copy(m.last[:], number))
	}
}

// request appends the request as it came last, and reports whether it is known.
func (m *Memo) request(b []byte) ([]byte, bool) {
	if m.digits == 0 {
		return b, false
	}
	b = append(b, m.around[:m.before]...)
	b = append(b, m.last[:m.digits]...)
	return append(b, m.around[m.before:]...), true
}

// maxMemo is how long a request may be that is remembered, in bytes: a connection keeps it as long as it lives. A poll
// of a program has some 250, of a browser behind a proxy 600.
const maxMemo = 768

// number is what stands in b in the number's place, nil if b is not the request remembered.
func (m *Memo) number(b []byte) []byte {
	n := len(b) - len(m.around)
	if n <= 0 || string(b[:m.before]) != string(m.around[:m.before]) || string(b[m.before+n:]) != string(m.around[m.before:]) {
		return nil
	}
	return b[m.before : m.before+n]
}

// Gone is told, like Park's gone, when the client of a parked request has left.
type Gone interface{ Gone() }

type goneFunc func()

func (f goneFunc) Gone() { f() }

// near reads a word of each line that comparing is going to need.
func (m *Memo) near() (sum uint32) {
	for i := 0; i < len(m.around); i += 64 {
		sum += uint32(m.around[i])
	}
	return sum
}

// Near reads a word of what answering is going to need, while the request waits: a caller who is going to answer many
// gets there sooner by calling it for some of them first. The number means nothing.
func (p *Parked) Near() uint32 { return p.link.near() }
