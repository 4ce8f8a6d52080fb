package park

import (
	"math"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// answerMemory counts the memory of the answers that are being built, or that clients have not received yet. All
// answers count: those of handlers while they are built and sent, and those to parked requests as long as a part of
// them is unsent. Only answers of handlers that ask first are refused at the limit. It is safe for concurrent use.
type answerMemory struct {
	used, refused atomic.Int64

	callers callerBytes // reserved for large answers
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

// TryReserveAnswer is ReserveAnswer within three limits: MaxAnswers for all answers, MaxAnswersPerCaller for those of
// one caller, and MaxAnswersPerOrganization. It reports false, and counts nothing, if a limit would be exceeded. A
// single answer always fits into the limits of its caller and organization. All calls for one request must name the
// same caller.
func (s *Server) TryReserveAnswer(ctx *fasthttp.RequestCtx, caller Caller, n int) bool {
	r, m, more := findRequest(ctx), &s.answerMemory, int64(n)
	if r == nil {
		return true
	}
	if m.used.Add(more) > int64(s.cfg.MaxAnswers) ||
		!m.reserveForCaller(r, caller, more, s.cfg.answerLimits()) {
		m.used.Add(-more)
		m.refused.Add(1)
		return false
	}
	return true
}

// reserveForCaller counts n more bytes of a request for its caller, unless they would exceed a limit.
func (m *answerMemory) reserveForCaller(r *request, caller Caller, n int64, limits callerLimits) bool {
	more, own := n, r.answerBytes
	if r.caller == (Caller{}) { // earlier bytes count too from now on
		more, own = n+r.answerBytes, 0
	}
	if !m.callers.add(caller, more, own, limits) {
		return false
	}
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
	if r.caller == (Caller{}) {
		r.answerBytes += n
		return
	}
	s.answerMemory.reserveForCaller(r, r.caller, n, callerLimits{math.MaxInt64, math.MaxInt64})
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
	m.callers.remove(r.caller, n)
}

// reserveUnsent counts the unsent bytes of an answer to a parked request, and reports false, without counting them, if
// all callers together, this caller or its organization would have too many. Call releaseUnsent with the same caller.
func (s *Server) reserveUnsent(p *Parked, n int64) (caller Caller, ok bool) {
	if x, named := p.gone.(HasCaller); named {
		caller = x.Caller()
	}
	if s.pending.Add(n) > int64(s.cfg.MaxPending) || !s.unsent.add(caller, n, 0, s.cfg.pendingLimits()) {
		s.pending.Add(-n)
		s.refused[reasonPending].Add(1)
		return caller, false
	}
	s.answerMemory.used.Add(n)
	return caller, true
}

func (s *Server) releaseUnsent(caller Caller, n int64) {
	s.pending.Add(-n)
	s.answerMemory.used.Add(-n)
	s.unsent.remove(caller, n)
}
