package replicated

import (
	"errors"
	"testing"

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
