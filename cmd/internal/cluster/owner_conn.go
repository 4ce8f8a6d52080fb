package cluster

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"parley/wire/peer"
)

// maxStall is how long a read or a write of a connection to an owner may take without a byte after the link to it has
// ended. A node that answers, such as one that another has replaced as planned, takes less.
const maxStall = peer.DialTimeout

// ownerConn is a connection for HTTP to an owner. A node that is frozen or cut off keeps its connections open, so once
// the link to it has ended, a request that waits for it ends with the connection. Streams that still send bytes
// continue.
type ownerConn struct {
	net.Conn
	done    atomic.Uint64 // reads and writes that have ended
	waiting atomic.Int32  // reads and writes that have begun and not ended
	seen    uint64        // done at the last look
	waited  bool          // a read or write had begun then
	stop    func() bool
	closed  chan struct{}
	isOver  atomic.Bool
}

// newOwnerConn watches a connection from the end of a link on.
func newOwnerConn(link context.Context, c net.Conn) *ownerConn {
	o := &ownerConn{Conn: c, closed: make(chan struct{})}
	o.stop = context.AfterFunc(link, o.watch)
	return o
}

func (o *ownerConn) watch() {
	tick := time.NewTicker(maxStall)
	defer tick.Stop()
	for !o.isStalled() {
		select {
		case <-o.closed:
			return
		case <-tick.C:
		}
	}
	o.Close()
}

// isStalled reports whether a read or write has waited since the last call, and none has ended since then.
func (o *ownerConn) isStalled() bool {
	done, waits := o.done.Load(), o.waiting.Load() > 0
	stalled := waits && o.waited && done == o.seen
	o.seen, o.waited = done, waits
	return stalled
}

func (o *ownerConn) Read(p []byte) (int, error) {
	o.waiting.Add(1)
	defer o.waiting.Add(-1)
	defer o.done.Add(1)
	return o.Conn.Read(p)
}

func (o *ownerConn) Write(p []byte) (int, error) {
	o.waiting.Add(1)
	defer o.waiting.Add(-1)
	defer o.done.Add(1)
	return o.Conn.Write(p)
}

func (o *ownerConn) Close() error {
	if o.isOver.CompareAndSwap(false, true) {
		o.stop()
		close(o.closed)
	}
	return o.Conn.Close()
}
