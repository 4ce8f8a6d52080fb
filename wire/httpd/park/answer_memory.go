package park

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// answerMemory counts the memory of the answers that are being built, or that clients have not received yet. All
// answers count: those of handlers while they are built and sent, and those to parked requests as long as a part of
// them is unsent. Only answers of handlers that ask first are refused at the limit. It is safe for concurrent use.
type answerMemory struct {
	used, refused atomic.Int64

	mu      sync.Mutex
	callers map[string]int64 // bytes reserved for the large answers of each caller
}

// AnswerBytes returns the memory of all answers that are being built or sent.
func (s *Server) AnswerBytes() int { return int(s.answerMemory.used.Load()) }

// ReserveAnswer counts n more bytes of memory for the answer to the request. They count until the answer is sent, until
// its connection ends, or until ReleaseAnswer. It may be called several times, in the handler or while the answer is
// being written. A request without a connection, as tests have, is not counted.
func (s *Server) ReserveAnswer(ctx *fasthttp.RequestCtx, n int) {
	if r := findRequest(ctx); r != nil {
		s.reserveAnswer(r, int64(n))
	}
}

// TryReserveAnswer is ReserveAnswer within two limits: MaxAnswers for all answers, and MaxAnswersPerCaller for those of
// one caller. It reports false, and counts nothing, if a limit would be exceeded. A single answer of a caller always
// fits into the caller's limit. All calls for one request must name the same caller.
func (s *Server) TryReserveAnswer(ctx *fasthttp.RequestCtx, caller string, n int) bool {
	r, m, more := findRequest(ctx), &s.answerMemory, int64(n)
	if r == nil {
		return true
	}
	if m.used.Add(more) > int64(s.cfg.MaxAnswers) ||
		!m.reserveForCaller(r, caller, more, int64(s.cfg.MaxAnswersPerCaller)) {
		m.used.Add(-more)
		m.refused.Add(1)
		return false
	}
	return true
}

// reserveForCaller counts n more bytes of a request for its caller, unless those of all the caller's requests would
// exceed a limit.
func (m *answerMemory) reserveForCaller(r *request, caller string, n, limit int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, more := m.callers[caller], n
	if r.caller == "" {
		more += r.answerBytes // earlier bytes count too from now on
	}
	if others := before + more - n - r.answerBytes; others > 0 && before+more > limit {
		return false
	}
	if m.callers == nil {
		m.callers = map[string]int64{}
	}
	m.callers[caller] = before + more
	r.caller = caller
	r.answerBytes += n
	return true
}

// ReleaseAnswer gives back n bytes that were reserved for the answer to the request, because they are sent.
func (s *Server) ReleaseAnswer(ctx *fasthttp.RequestCtx, n int) {
	if r := findRequest(ctx); r != nil {
		s.releaseAnswer(r, int64(n))
	}
}

func (s *Server) reserveAnswer(r *request, n int64) {
	s.answerMemory.used.Add(n)
	if r.caller == "" {
		r.answerBytes += n
		return
	}
	s.answerMemory.reserveForCaller(r, r.caller, n, math.MaxInt64)
}

// releaseAnswer gives back at most n of the bytes that are reserved for a request.
func (s *Server) releaseAnswer(r *request, n int64) {
	n = min(n, r.answerBytes)
	if n == 0 {
		return
	}
	m := &s.answerMemory
	r.answerBytes -= n
	m.used.Add(-n)
	if r.caller == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.callers[r.caller] -= n; m.callers[r.caller] <= 0 {
		delete(m.callers, r.caller)
	}
}

// reserveUnsent counts the unsent bytes of an answer to a parked request, and reports false, without counting them, if
// all callers together, or this caller, would have too many. Call releaseUnsent with the same caller.
func (s *Server) reserveUnsent(p *Parked, n int64) (caller string, ok bool) {
	if x, named := p.gone.(Caller); named {
		caller = x.Caller()
	}
	if s.pending.Add(n) > int64(s.cfg.MaxPending) || !s.unsent.add(caller, n, int64(s.cfg.MaxPendingPerCaller)) {
		s.pending.Add(-n)
		s.refused[reasonPending].Add(1)
		return caller, false
	}
	s.answerMemory.used.Add(n)
	return caller, true
}

func (s *Server) releaseUnsent(caller string, n int64) {
	s.pending.Add(-n)
	s.answerMemory.used.Add(-n)
	s.unsent.remove(caller, n)
}

// unsentBytes counts the unsent bytes of parked answers for each caller. It is safe for concurrent use.
type unsentBytes struct {
	mu      sync.Mutex
	callers map[string]int64
}

// add counts n more bytes of a caller, unless they would exceed the limit together with earlier ones. The bytes of
// unnamed callers are not counted.
func (u *unsentBytes) add(caller string, n, limit int64) bool {
	if caller == "" {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.callers[caller]
	if before > 0 && before+n > limit {
		return false
	}
	if u.callers == nil {
		u.callers = map[string]int64{}
	}
	u.callers[caller] = before + n
	return true
}

func (u *unsentBytes) remove(caller string, n int64) {
	if caller == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.callers[caller] -= n; u.callers[caller] <= 0 {
		delete(u.callers, caller)
	}
}
