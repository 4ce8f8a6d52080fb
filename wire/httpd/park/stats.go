package park

import "sync/atomic"

type reason int

const (
	reasonMalformed reason = iota
	reasonVersion
	reasonHeaderSize
	reasonBodySize
	reasonEncoding
	reasonTransferCoding
	reasonExpectation
	reasonSlow
	reasonConns
	reasonConnsPerIP
	reasonActive
	reasonSlowClients
	reasonBodies
	reasonPending
	reasonStreams
	reasonCount // how many there are
)

var reasonNames = [reasonCount]string{"malformed", "http_version", "header_size", "body_size", "content_encoding",
	"transfer_coding", "expectation", "slow", "conns", "conns_per_ip", "active", "slow_clients", "bodies", "pending", "streams"}

type counters struct {
	open, parked, active, slow, bodies, pending        atomic.Int64
	streams, longRequests, handedOff                   atomic.Int64
	accepted, requests, parks, answers, clientsGone    atomic.Int64
	writeTimeouts, panics, bytesIn, bytesOut, fastPath atomic.Int64
	refused                                            [reasonCount]atomic.Int64
}

// Stats is a reading of the server's counters.
type Stats struct {
	Open         int // connections now
	Parked       int // requests waiting for their Answer now
	Active       int // requests in handlers (or being read or written) now
	Slow         int // of these, held up by their client now
	Bodies       int // bytes of request bodies that are held or announced now
	Streams      int // requests whose handlers read the body, now
	LongRequests int // requests now that no passage takes in the middle: these, and those with more body than it holds
	Pending      int // bytes of parked answers that sockets did not take at once, now

	Accepted, Requests int64
	FastPath           int64 // of the requests, those that FastPath took
	Parks              int64 // requests parked
	Answers            int64 // Answers that returned true
	Gone               int64 // parked requests whose client left (or that a shutdown dropped)
	HandedOff          int64 // connections given to a successor
	WriteTimeouts      int64 // connections dropped because the client did not take an answer in time
	Panics             int64 // handlers that panicked
	BytesIn, BytesOut  int64 // on the wire; inside TLS, not its records
	Refused            map[string]int64
}

// Stats reads the counters; they are not one consistent cut.
func (s *Server) Stats() Stats {
	st := Stats{
		Open:         int(s.open.Load()),
		Parked:       int(s.parked.Load()),
		Active:       int(s.active.Load()),
		Slow:         int(s.slow.Load()),
		Bodies:       int(s.bodies.Load()),
		Streams:      int(s.streams.Load()),
		LongRequests: int(s.longRequests.Load()),
		Pending:      int(s.pending.Load()),
		Accepted:     s.accepted.Load(),
		Requests:     s.requests.Load(),
		FastPath:     s.counters.fastPath.Load(),
		Parks:        s.parks.Load(),
		Answers:      s.answers.Load(),
		Gone:         s.clientsGone.Load(),
		HandedOff:    s.handedOff.Load(), WriteTimeouts: s.writeTimeouts.Load(),
		Panics:   s.panics.Load(),
		BytesIn:  s.bytesIn.Load(),
		BytesOut: s.bytesOut.Load(),
		Refused:  make(map[string]int64, reasonCount),
	}
	for i := range s.refused {
		st.Refused[reasonNames[i]] = s.refused[i].Load()
	}
	return st
}
