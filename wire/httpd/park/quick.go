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
	taken bool
}

// Gone is told, like Park's gone, when the client of a parked request has left.
type Gone interface{ Gone() }

type goneFunc func()

func (f goneFunc) Gone() { f() }
