package cluster

import (
	"errors"
	"fmt"

	"parley/snapshot/replicated"
	"parley/wire/peer"
)

// OpenStopped returns the node of a cluster to which a data directory belongs; nil: a single node. It returns an
// error if the directory must not be changed: the log of a core that does not run may lack changes, and changes that
// are not in it would be lost. A core that has never run has no log.
func OpenStopped(dir string) (*Directory, error) {
	if !Exists(dir) {
		return nil, nil
	}
	node, err := OpenDirectory(dir)
	if err != nil {
		return nil, err
	}
	if node.Role == peer.Edge {
		return nil, fmt.Errorf("no server is running in %s; an edge stores nothing", dir)
	}
	hasLog, err := replicated.HasLog(dir)
	if err != nil {
		return nil, err
	}
	if hasLog {
		return nil, fmt.Errorf("no server is running in %s, which is a core of a cluster: start it, or run the "+
			"command at a running node", dir)
	}
	if !node.IsFounder() {
		return nil, fmt.Errorf("%s is the directory of core %s, which has joined a cluster but has not run yet, so it "+
			"has none of the data: start it with parley serve --data %s, or run the command at a running core",
			dir, node.Node, dir)
	}
	return node, nil
}

// ErrOnlyCore is the error of a move of the leadership where no other core has a vote.
var ErrOnlyCore = errors.New("the cluster has one core with a vote, which is the leader: add another " +
	"core first, with parley cluster token --role core")
