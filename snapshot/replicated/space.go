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

// errNoRoom is the reason why a node takes no operations. The leader tries again, at least every 10 s.
var errNoRoom = errors.New("the disk is full: the log takes no operations until there is space")

// spaceWaiter is used by the log and the note when the disk is full. A write that found no space has changed nothing,
// and is tried again with the space of the store's ballast. After that the log takes no operations, so the other nodes
// go on without this one, and small files wait for space. The node catches up when there is space. A leader hands over
// before.
type spaceWaiter struct {
	release func() bool // makes some space once; see snapshot.Store.ReleaseRoom
	hasRoom func() bool // see snapshot.Store.HasRoom
	failed  *failure
	closing <-chan struct{}
}

// once makes a change again if the ballast has made space for it.
func (w *spaceWaiter) once(change func() error) error {
	err := change()
	if err != nil && w != nil && snapshot.IsFull(err) && w.release() {
		err = change()
	}
	return err
}

// refuses reports whether a node that does not lead refuses entries: those with operations while there is no space.
// Elections need the others.
func (w *spaceWaiter) refuses(logs []*raft.Log) bool {
	return w != nil && !w.hasRoom() && slices.ContainsFunc(logs, func(l *raft.Log) bool {
		return l.Type == raft.LogCommand && l.Data[1] != kindCheckpoint
	})
}

// do makes a change again until there is space for it. It returns other errors, and that of a full disk if the node has
// failed or is closed. A nil spaceWaiter does not wait.
func (w *spaceWaiter) do(change func() error) error {
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
