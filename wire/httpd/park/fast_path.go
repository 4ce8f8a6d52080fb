package park

import (
	"bytes"
	"net/netip"
)

// FastPath handles requests on the loop that read them, without a goroutine, without fasthttp and without a copy.
// It is for the requests that a chat server gets more often than all others together: event polls, messages and
// presence reports. Each loop has its own FastPath and calls it from one goroutine, so it needs no locks for its
// own state.
type FastPath interface {
	// Handle is offered a request that begins with one of Config.FastPathTargets. It either calls Park,
	// ParkStream or ParkBriefly once and returns true, or returns false without side effects; then the Handler gets the
	// request. It must not block, and must not retain anything of q.
	Handle(q *FastRequest) bool
	// HandleRepeated is offered a request that equals the one that Handle remembered on this connection, byte for
	// byte except for the number. It has the same contract as Handle. It may use the same Parked again, because
	// the earlier request was answered.
	HandleRepeated(q *FastRequest, m *Memo, number []byte) bool
	// Flush is called when no further request is available: Handle may have postponed work until now.
	Flush()
}

// FastRequest is an HTTP/1.1 request that is complete with its body, has no bytes after it, keeps its connection,
// and passed the strict head check. Its slices point into the loop's buffer. Each header occurs at most once; it
// is nil if absent.
type FastRequest struct {
	Method        []byte
	Target        []byte // path and query as sent
	Host          []byte
	Authorization []byte
	ContentType   []byte
	UserAgent     []byte
	Cookie        []byte
	CSRFToken     []byte // header X-CSRFToken
	Origin        []byte
	Referer       []byte
	Accept        []byte // the first one
	LastEventID   []byte
	AgentSession  []byte // header Mcp-Session-Id
	AgentVersion  []byte // header Mcp-Protocol-Version
	Body          []byte
	Address       netip.Addr

	c          *eventConn
	head       []byte
	taken      bool
	remembered bool // the connection's memo holds this request
}

// ParseFastRequest parses a request that another node has received: the head, and a body of the length that the head
// says. It reports false if the request is not one for a FastPath. The result cannot be parked.
func ParseFastRequest(b []byte) (q FastRequest, ok bool) {
	h, ok := wholeRequest(b)
	if !ok {
		return q, false
	}
	return h.fastRequest(b[h.size:]), true
}

// wholeRequest returns the head of a request that is complete with its body. It reports false if there is more or less
// than that, or if the request is not one for a FastPath.
func wholeRequest(b []byte) (h head, ok bool) {
	size, _, ref := endOfHead(b, 0)
	if ref != nil || size == 0 {
		return h, false
	}
	h, ref = parseHead(b[:size])
	return h, ref == nil && h.length == int64(len(b)-size) && h.fastPath
}

// fastRequest returns the request with a head and a body.
func (h *head) fastRequest(body []byte) FastRequest {
	return FastRequest{Method: h.method, Target: h.target, Host: h.host, Authorization: h.authorization,
		ContentType: h.contentType, UserAgent: h.userAgent,
		Cookie: h.cookie, CSRFToken: h.csrfToken, Origin: h.origin, Referer: h.referer, Accept: h.accept,
		LastEventID: h.lastEventID, AgentSession: h.agentSession, AgentVersion: h.agentVersion, Body: body}
}

// Memo is a request as its connection remembers it, without the number in it. A client that waits for events
// sends the same request again and again. The results of checking these bytes can be used again.
type Memo struct {
	Owner any // the data that FastPath wants to find again

	template   []byte // the head without the number
	numberAt   int
	lastNumber [maxNumberBytes]byte // the number in the latest request
	lastDigits uint8                // its length; 0 if it was too long
}

// maxNumberBytes is the longest number with which a request can be reassembled: an int64 with a sign, which is
// longer than any event ID.
const maxNumberBytes = 20

// setNumber stores the number of the current request.
func (m *Memo) setNumber(number []byte) {
	m.lastDigits = 0
	if len(number) <= maxNumberBytes {
		m.lastDigits = uint8(copy(m.lastNumber[:], number))
	}
}

// path returns the path of the remembered request.
func (m *Memo) path() []byte { return m.template[bytes.IndexByte(m.template, ' ')+1:] }

// appendRequest appends the latest request to b. It reports false if its number was too long.
func (m *Memo) appendRequest(b []byte) ([]byte, bool) {
	if m.lastDigits == 0 {
		return b, false
	}
	b = append(b, m.template[:m.numberAt]...)
	b = append(b, m.lastNumber[:m.lastDigits]...)
	return append(b, m.template[m.numberAt:]...), true
}

// maxMemoBytes is the longest request that is remembered, since it is stored as long as the connection exists. A poll
// of a program has about 250 bytes, that of a browser with its cookies 810, behind a proxy 1,100.
const maxMemoBytes = 1280

// matchNumber returns the bytes of b in the place of the number, or nil if b is not the remembered request.
func (m *Memo) matchNumber(b []byte) []byte {
	n := len(b) - len(m.template)
	if n <= 0 || string(b[:m.numberAt]) != string(m.template[:m.numberAt]) ||
		string(b[m.numberAt+n:]) != string(m.template[m.numberAt:]) {
		return nil
	}
	return b[m.numberAt : m.numberAt+n]
}

// Gone is notified, like the gone function of Server.Park, when the client of a parked request has left.
type Gone interface{ Gone() }

// HasCaller is implemented by a Gone that knows the caller of its request. The unsent answers of a caller are limited
// to Config.MaxPendingPerCaller, and those of an organization to MaxPendingPerOrganization.
type HasCaller interface{ Caller() Caller }

// goneFunc is the gone function of a request, with its caller.
type goneFunc struct {
	caller Caller
	gone   func()
}

func (g *goneFunc) Gone() {
	if g.gone != nil {
		g.gone()
	}
}

func (g *goneFunc) Caller() Caller { return g.caller }

// prefetch reads a word of each cache line that comparing will need.
func (m *Memo) prefetch() (sum uint32) {
	for i := 0; i < len(m.template); i += 64 {
		sum += uint32(m.template[i])
	}
	return sum
}

// Prefetch reads the memory that answering will need. A caller that is going to answer many requests is faster
// if it first calls Prefetch for some of them. The result is meaningless; it only keeps the reads from being
// optimized away.
func (p *Parked) Prefetch() uint32 { return p.conn.prefetch() }
