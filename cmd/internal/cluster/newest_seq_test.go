package cluster

import (
	"sync"
	"sync/atomic"
	"testing"

	"parley/actors/realm"
)

// Callers do not share a question that is on its way, because the owner may have answered it before their write. All
// callers that wait for its end share the next one.
func TestQuestionsAreShared(t *testing.T) {
	var s questions[realm.ID, realm.Seq]
	var asked atomic.Int64
	begun, release := make(chan struct{}, 10), make(chan struct{})
	ask := func() (realm.Seq, error) {
		n := asked.Add(1)
		begun <- struct{}{}
		<-release
		return realm.Seq(n), nil
	}
	first := s.join(1, ask)
	<-begun
	var all sync.WaitGroup
	for range 100 {
		q := s.join(1, ask)
		all.Go(func() {
			if <-q.done; q.answer != 2 {
				t.Errorf("a caller got the answer to question %d, not that to the next one", q.answer)
			}
		})
	}
	close(release)
	if <-first.done; first.answer != 1 {
		t.Errorf("the first caller got the answer to question %d", first.answer)
	}
	all.Wait()
	if n := asked.Load(); n != 2 {
		t.Errorf("%d questions for 101 callers", n)
	}
}

// An edge learns the newest fact of its core over the link.
func TestEdgeAsksForTheNewestFact(t *testing.T) {
	c := startTestCore(t, "")
	e := startTestEdge(c, "e", nil)
	for range 10 {
		c.send(1, "hello")
		want := c.orgs.DurableSeq(1)
		if got, err := e.NewestSeq(t.Context(), 1); err != nil || got < want {
			t.Fatalf("the newest fact is %d, %v; the core had acknowledged %d", got, err, want)
		}
	}
	if _, err := e.NewestSeq(t.Context(), 4711); err == nil {
		t.Error("an organization that does not exist has a newest fact")
	}
}
