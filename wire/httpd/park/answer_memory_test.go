package park

import (
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// The memory of answers is limited in total and for each caller. A caller's first answer always fits into the caller's
// limit, forced holds count too, and everything is given back.
func TestAnswerMemory(t *testing.T) {
	s := New(Config{Handler: func(*fasthttp.RequestCtx) {}, MaxAnswers: 100, MaxAnswersPerCaller: 30,
		MaxAnswersPerOrganization: 100})
	hold := func(r *request, account string, n int64) bool {
		m := &s.answerMemory
		if m.used.Add(n) > int64(s.cfg.MaxAnswers) ||
			!m.reserveForCaller(r, Caller{"org", account}, n, s.cfg.answerLimits()) {
			m.used.Add(-n)
			return false
		}
		return true
	}
	var a, b, c, d request
	if !hold(&a, "ann", 40) || !hold(&a, "ann", 5) {
		t.Error("the only answer of a caller was refused")
	}
	if hold(&b, "ann", 1) {
		t.Error("a second answer was accepted beyond the caller's limit")
	}
	if !hold(&c, "bo", 30) {
		t.Error("another caller was refused")
	}
	if hold(&d, "cy", 26) {
		t.Error("an answer was accepted beyond the total limit")
	}
	s.reserveAnswer(&d, 20) // a small answer, or one that must be sent
	if used := s.answerMemory.used.Load(); used != 95 {
		t.Errorf("%d bytes are counted, want 95", used)
	}
	s.releaseAnswer(&a, 44)
	if !hold(&b, "ann", 5) {
		t.Error("refused although the caller's first answer is sent")
	}
	if !hold(&d, "cy", 5) || s.answerMemory.callers.callers[Caller{"org", "cy"}] != 25 {
		t.Errorf("what was held before the first check does not count for the caller: %v",
			s.answerMemory.callers.callers)
	}
	for _, r := range []*request{&a, &b, &c, &d} {
		s.releaseAnswer(r, 1000)
	}
	left := &s.answerMemory.callers
	if used := s.answerMemory.used.Load(); used != 0 || len(left.callers)+len(left.organizations) != 0 {
		t.Errorf("%d bytes are left, of %v, %v", used, left.callers, left.organizations)
	}
}

// All callers of an organization together hold at most half of the memory, so that the others have the rest. A first
// answer of an organization always fits.
func TestAnswersOfOrganization(t *testing.T) {
	cfg := Config{MaxAnswers: 160}.WithDefaults()
	var b callerBytes
	use := func(organization, account string, n int64) bool {
		return b.add(Caller{organization, account}, n, 0, cfg.answerLimits())
	}
	for _, account := range []string{"a1", "a2", "a3", "a4"} {
		if !use("a", account, 20) {
			t.Errorf("account %s is refused within half of the memory", account)
		}
	}
	if use("a", "a5", 1) {
		t.Error("an organization uses more than half of the memory")
	}
	if !use("b", "b1", 20) || !use("c", "c1", 159) {
		t.Error("another organization is refused")
	}
	b.remove(Caller{"a", "a1"}, 20)
	if !use("a", "a5", 20) {
		t.Error("refused although another answer of the organization is sent")
	}
}

// A client that took much of an answer quickly and then stops reading is dropped after two write timeouts.
func TestSendPauseIsBounded(t *testing.T) {
	s := New(Config{Handler: func(*fasthttp.RequestCtx) {}, WriteTimeout: time.Second})
	if wait := s.sendDeadline(s.now(), 100<<20) - s.now(); wait > 2000 {
		t.Errorf("after 100 MB the client may pause for %d ms", wait)
	}
	if wait := s.sendDeadline(s.now(), 0) - s.now(); wait < 900 || wait > 1000 {
		t.Errorf("at the beginning the client may pause for %d ms", wait)
	}
}
