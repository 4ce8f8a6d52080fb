package cluster

import (
	"errors"
	"fmt"

	"parley/actors/realm"
	"parley/wire/peer"
)

// checkLevel returns an error if the program of a node does not know the rule level of the cluster.
func checkLevel(node string, known, cluster uint16) error {
	if known < cluster {
		return fmt.Errorf("the rule level of the cluster is %d, but the program of node %s knows levels up to %d: "+
			"install the release of the other nodes", cluster, node, known)
	}
	return nil
}

// RaiseLevel raises the rule level of the cluster to that of this program, if every node knows it. It reports whether
// the level was lower. After it, nodes of an older release cannot run.
func (c *Leader) RaiseLevel() (raised bool, err error) {
	for _, n := range c.Status() {
		switch {
		case !n.Connected && n.Role == string(peer.Core):
			err = errors.Join(err, fmt.Errorf("core %s is not connected, so its release is not known: start it, or "+
				"remove it with parley cluster remove %s", n.Node, n.Node))
		case n.KnownLevel > realm.Level:
			err = errors.Join(err, fmt.Errorf("node %s (%s) knows rule levels up to %d, and the leader %s up to %d: "+
				"upgrade the leader first", n.Node, n.Program, n.KnownLevel, c.Directory.Node, realm.Level))
		case n.Connected && n.KnownLevel < realm.Level:
			err = errors.Join(err, fmt.Errorf("node %s (%s) knows rule levels up to %d: upgrade it first", n.Node,
				n.Program, n.KnownLevel))
		}
	}
	if err != nil {
		return false, fmt.Errorf("the rule level stays at %d: %w", c.Node.Level(), err)
	}
	if c.Node.Level() == realm.Level {
		return false, nil
	}
	return true, c.Node.RaiseLevel(realm.Level)
}
