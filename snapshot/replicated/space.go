package replicated

import (
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"parley/snapshot"
)

// spacePoll is the time between two attempts of a write that waits for space.
const spacePoll = 100 * time.Millisecond

// errDiskFull is the reason why a node rejects entries with operations. The leader sends them again, at least every 10
// s.
var errDiskFull = errors.New("the disk is full: the log rejects operations until there is space")

// diskFullRetrier repeats writes of the log and of small files that failed because the disk is full. A failed write has
// changed nothing. It is repeated first with the space of the store's ballast. When that is used up, a follower rejects
// operations, so the other nodes continue without it, and small files wait for space. The node catches up when there is
// space again. A leader with a full disk hands over the leadership earlier.
type diskFullRetrier struct {
	release func() bool // makes some space once; see snapshot.Store.ReleaseBallast
	hasRoom func() bool // see snapshot.Store.HasSpace
	failed  *failure
	closing <-chan struct{}
}

// retryOnce repeats a write if releasing the ballast has made space for it.
func (w *diskFullRetrier) retryOnce(change func() error) error {
	err := change()
	if err != nil && w != nil && snapshot.IsFull(err) && w.release() {
		err = change()
	}
	return err
}

// rejects reports whether a follower must reject entries: those with operations while there is no space. Elections need
// the other entries.
func (w *diskFullRetrier) rejects(logs []*raft.Log) bool {
	return w != nil && !w.hasRoom() && slices.ContainsFunc(logs, func(l *raft.Log) bool {
		return l.Type == raft.LogCommand && l.Data[1] != kindCheckpoint
	})
}

// retryUntilSpace repeats a write until there is space for it. It returns all other errors, and the error of the full
// disk if the node has failed or is closed. A nil diskFullRetrier does not repeat writes.
func (w *diskFullRetrier) retryUntilSpace(change func() error) error {
	for {
		err := change()
		if err == nil || w == nil || !snapshot.IsFull(err) {
			return err
		}
		if w.release() {
			continue
		}
		select {
		case <-w.closing:
			return err
		case <-w.failed.done:
			return err
		case <-time.After(spacePoll):
		}
	}
}
