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
	reasonHandshakes
	reasonCount // number of reasons
)

var reasonNames = [reasonCount]string{"malformed", "http_version", "header_size", "body_size", "content_encoding",
	"transfer_coding", "expectation", "slow", "conns", "conns_per_ip", "active", "slow_clients", "bodies", "pending",
	"streams", "handshakes"}

type counters struct {
	open, parked, active, slow, bodies, pending        atomic.Int64
	handshakes                                         atomic.Int64
	streams, longRequests, handedOff                   atomic.Int64
	accepted, requests, parks, answers, clientsGone    atomic.Int64
	writeTimeouts, panics, bytesIn, bytesOut, fastPath atomic.Int64
	refused                                            [reasonCount]atomic.Int64
}

// Stats is a snapshot of the server's counters.
type Stats struct {
	Open    int // connections
	HTTP2   int // of these, connections with HTTP/2
	Parked  int // requests waiting for their Answer
	Active  int // requests in handlers, or being read or written
	Slow    int // of these, requests waiting for their clients
	Bodies  int // bytes of request bodies that are held or announced
	Streams int // requests with streamed bodies
	// TLS handshakes that have begun and are not complete
	Handshakes int
	// requests that cannot be handed off midway: streamed bodies, and bodies above the size of a handoff
	LongRequests int
	Pending      int // bytes of parked answers that sockets did not take at once
	AnswerBytes  int // bytes of all answers being built or sent, Pending included

	Accepted, Requests int64
	HTTP2Full          int64 // handshakes that got HTTP/1.1 because there were too many connections with HTTP/2
	FastPath           int64 // of the requests, those handled by FastPath
	Parks              int64 // requests parked
	Answers            int64 // Answers that returned true
	AnswersRefused     int64 // large answers refused because answers took too much memory
	Gone               int64 // parked requests whose client left, or that a shutdown dropped
	HandedOff          int64 // connections handed off to a successor
	WriteTimeouts      int64 // connections dropped because the client did not read an answer in time
	Panics             int64 // handlers that panicked
	BytesIn, BytesOut  int64 // on the wire; with TLS, without its records
	Refused            map[string]int64
}

// Stats returns the counters. They are read one after the other, so they need not agree exactly.
func (s *Server) Stats() Stats {
	st := Stats{
		Open:         int(s.open.Load()),
		HTTP2:        int(s.http2.open.Load()),
		HTTP2Full:    s.http2.full.Load(),
		Parked:       int(s.parked.Load()),
		Active:       int(s.active.Load()),
		Slow:         int(s.slow.Load()),
		Bodies:       int(s.bodies.Load()),
		Streams:      int(s.streams.Load()),
		Handshakes:   int(s.handshakes.Load()),
		LongRequests: int(s.longRequests.Load()),
		Pending:      int(s.pending.Load()),
		AnswerBytes:  int(s.answerMemory.used.Load()),
		Accepted:     s.accepted.Load(),
		Requests:     s.requests.Load(),
		FastPath:     s.counters.fastPath.Load(),
		Parks:        s.parks.Load(),
		Answers:      s.answers.Load(),

		AnswersRefused: s.answerMemory.refused.Load(),

		Gone:      s.clientsGone.Load(),
		HandedOff: s.handedOff.Load(), WriteTimeouts: s.writeTimeouts.Load(),
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
