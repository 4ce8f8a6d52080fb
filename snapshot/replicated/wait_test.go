package replicated

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// unanswered is a future that Raft has taken at the moment of its shutdown.
type unanswered chan struct{}

func (u unanswered) Error() error {
	<-u
	return nil
}

// TestCloseLeavesNoWaits requires that a wait for Raft ends with its shutdown: else the server would not stop. An
// answer that came before counts.
func TestCloseLeavesNoWaits(t *testing.T) {
	n := &Node{ended: make(chan struct{})}
	never, answered := make(unanswered), make(unanswered)
	defer close(never)
	close(answered)
	if err := n.wait(answered); err != nil {
		t.Errorf("an answer: %v", err)
	}
	ended := make(chan error)
	go func() { ended <- n.wait(never) }()
	close(n.ended)
	if err := <-ended; !errors.Is(err, raft.ErrRaftShutdown) {
		t.Errorf("without an answer: %v", err)
	}
}

// TestClosedNodeAnswers sends each request that Raft answers to a node that is closed, many times: Raft puts some into a
// queue then that it never reads.
func TestClosedNodeAnswers(t *testing.T) {
	c := newCluster(t, nil, "a")
	n := c.leader()
	delete(c.nodes, "a")
	c.must(n.Close())
	for name, ask := range map[string]func() error{
		"confirmation of the leader": n.confirmLeader,
		"checkpoint":                 n.Checkpoint,
		"barrier or claim":           n.beginLeadership,
		"snapshot":                   func() error { return n.takeRaftSnapshot(keepAll) },
		"new node":                   func() error { return n.Add("b", "127.0.0.1:1") },
		"vote":                       func() error { return n.Promote("a") },
		"removal":                    func() error { return n.Remove("a") },
		"move to the newest node":    func() error { return n.MoveLeader("") },
		"move to a node":             func() error { return n.MoveLeader("a") },
	} {
		for range 30 {
			answer := make(chan error, 1)
			go func() { answer <- ask() }()
			select {
			case err := <-answer:
				if err == nil {
					t.Errorf("%s: no error", name)
				}
				continue
			case <-time.After(testTimeout):
				t.Errorf("%s: no answer", name)
			}
			break
		}
	}
}
