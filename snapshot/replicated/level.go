package replicated

import (
	"fmt"
	"strconv"

	"parley/snapshot"
)

// levelError stops a node whose program does not know the level of the log.
type levelError struct{ cluster, program uint16 }

func (e levelError) Error() string {
	return fmt.Sprintf("the rule level of the cluster is %d, but this program knows levels up to %d: install the "+
		"release of the other nodes", e.cluster, e.program)
}

// Level returns the rule level of the cluster, as far as this node has applied the log.
func (n *Node) Level() uint16 { return uint16(n.level.Load()) }

// RaiseLevel raises the rule level of the cluster. From then on nodes whose program does not know the level stop. The
// caller has seen that every node knows it. The error is a realm.ErrMoved if this node is not the leader.
func (n *Node) RaiseLevel(to uint16) error {
	if to < n.Level() || to > n.o.Level {
		return fmt.Errorf("the rule level must be between %d and %d, not %d", n.Level(), n.o.Level, to)
	}
	return n.SetMeta(snapshot.LevelKey, []byte(strconv.Itoa(int(to))))
}

// useLevel records the level of a store, or returns an error if this program does not know it.
func (n *Node) useLevel(s *snapshot.Store) error {
	level, err := s.Level()
	if err != nil {
		return err
	}
	if level > n.o.Level {
		return levelError{level, n.o.Level}
	}
	n.level.Store(uint32(level))
	return nil
}

// checkLevels returns an error if operations that are to be applied need a level that this program does not know. They
// are not applied then, so that a newer program goes on with them.
func (n *Node) checkLevels(ops []snapshot.LogOp) error {
	for i := range ops {
		level := uint16(0)
		if ops[i].Entry != nil {
			level = ops[i].Entry.Level
		} else if ops[i].Meta == snapshot.LevelKey {
			var err error
			if level, err = snapshot.ParseLevel(ops[i].Value); err != nil {
				return err
			}
		}
		if level > n.o.Level {
			return levelError{level, n.o.Level}
		}
	}
	return nil
}

// levelChanged takes over the level of applied operations.
func (n *Node) levelChanged(op *snapshot.LogOp) {
	if op.Meta != snapshot.LevelKey {
		return
	}
	if level, err := snapshot.ParseLevel(op.Value); err == nil { // checkLevels has parsed it
		n.level.Store(uint32(level))
		n.log.Info("rule level of the cluster", "level", level)
	}
}
