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

// RaiseLevel raises the rule level of the cluster. Nodes whose program does not know the new level stop, so the caller
// must check that every node knows it. The error is a realm.ErrMoved if this node is not the leader.
func (n *Node) RaiseLevel(to uint16) error {
	if to < n.Level() || to > n.o.Level {
		return fmt.Errorf("the rule level must be between %d and %d, not %d", n.Level(), n.o.Level, to)
	}
	return n.SetMeta(snapshot.LevelKey, []byte(strconv.Itoa(int(to))))
}

// loadLevel reads the level from a store. It returns an error if this program does not know the level.
func (n *Node) loadLevel(s *snapshot.Store) error {
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

// checkLevels returns an error if an operation needs a level that this program does not know. The operations are then
// not applied, so that a newer program can apply them.
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

// levelChanged sets the level if an applied operation has changed it.
func (n *Node) levelChanged(op *snapshot.LogOp) {
	if op.Meta != snapshot.LevelKey {
		return
	}
	if level, err := snapshot.ParseLevel(op.Value); err == nil { // checkLevels has parsed it
		n.level.Store(uint32(level))
		n.log.Info("rule level of the cluster changed", "level", level)
	}
}
