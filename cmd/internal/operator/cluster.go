package operator

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/control"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot"
	"parley/wire/peer"
)

// ClusterInit makes a data directory the one of the first core of a new cluster: a new one, or that of a server that is
// not running. place and credentials are the settings files and files-credentials; cores that join get the place. It
// returns where the files are.
func ClusterInit(data, node, peerListen, place, credentials string) (p orgfiles.Place, err error) {
	if _, ran, _ := control.Send(data, "server-info", nil); ran && !cluster.Exists(data) {
		return p, fmt.Errorf("a server is running in %s: stop it first", data)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return p, err
	}
	if err := datadir.CheckVersion(data); err != nil {
		return p, err
	}
	if p, err = orgfiles.ChoosePlace(data, place, credentials); err != nil {
		return p, err
	}
	if err := cluster.Init(data, node, peerListen); err != nil {
		return p, err
	}
	return p, orgfiles.WritePlace(data, p)
}

// ClusterDissolve makes the data directory of a stopped core one of a single node; see cluster.Dissolve.
func ClusterDissolve(data string, acceptLoss bool) (applied uint64, err error) {
	if _, ran, _ := control.Send(data, "server-info", nil); ran {
		return 0, fmt.Errorf("a server is running in %s: stop it first", data)
	}
	if err := datadir.CheckVersion(data); err != nil {
		return 0, err
	}
	if err := orgfiles.InheritOwner(data); err != nil {
		return 0, err
	}
	return cluster.Dissolve(data, acceptLoss)
}

// errSingleNode is the error of cluster commands on a directory that is no node's.
var errSingleNode = errors.New("this is a single node: parley cluster init makes it the first node of a cluster")

// errNotRunning is the error of commands that only a running core can execute.
var errNotRunning = errors.New("the core is not running: start it, or run the command at another core")

// clusterToken returns a new token.
func clusterToken(o *Operator, args map[string]string) (any, error) {
	if o.Node == nil {
		return nil, errSingleNode
	}
	t, err := o.Node.NewToken(peer.Role(args["role"]), time.Now())
	return map[string]any{"token": t}, err
}

// clusterStatus lists the nodes.
func clusterStatus(o *Operator, _ map[string]string) (any, error) {
	if o.Node == nil {
		return nil, errSingleNode
	}
	if o.Leader == nil {
		return nil, errNotRunning
	}
	list := []any{}
	for _, n := range o.Leader.Status() {
		list = append(list, n)
	}
	return map[string]any{"nodes": list}, nil
}

// LastVoterText is the beginning of the error of a removal that the operator has to confirm.
const LastVoterText = "after this removal only one core has a vote"

// errLastVoter is the error of a removal that leaves one core with a vote, unless the argument yes is true.
var errLastVoter = errors.New(LastVoterText + ": when it stops, the service stops, and what is only on its disk is " +
	"not copied. To replace the core, let the new one join first. --yes removes it anyway")

// clusterRemove removes a node.
func clusterRemove(o *Operator, args map[string]string) (any, error) {
	if o.Node == nil {
		return nil, errSingleNode
	}
	if o.Leader != nil && args["yes"] != "true" && o.Leader.Voters() == 2 && o.Leader.HasVote(args["node"]) {
		return nil, errLastVoter
	}
	if o.Leader != nil && args["node"] == o.Node.Node {
		return nil, o.leaveLeadership()
	}
	if err := o.Node.Remove(args["node"]); err != nil && !o.isHalfRemoved(args["node"]) {
		return nil, err
	}
	if o.Leader != nil {
		o.Leader.CutOff(args["node"]) // at once: the node may be in wrong hands
		if err := o.Leader.Node.Remove(args["node"]); err != nil {
			return nil, err
		}
	}
	return map[string]any{"removed": args["node"]}, nil
}

// isHalfRemoved reports whether a node is no member, but the replicated log still counts its vote: the leadership was
// lost in between.
func (o *Operator) isHalfRemoved(node string) bool {
	return o.Leader != nil && o.Node.IsRemoved(node) && o.Leader.HasVote(node)
}

// errLeaderLeaves is the answer of a leader that has to be removed. It lets another core lead first, which removes it:
// without that, an election would follow, and no user could send for about a second.
var errLeaderLeaves = errors.New("the core is the leader; another core will become the leader and remove it")

// leaveLeadership returns errLeaderLeaves, and moves the leadership after this answer has been sent.
func (o *Operator) leaveLeadership() error {
	if o.Leader.Voters() < 2 {
		return errors.New("this is the only core with a vote: to end the cluster, stop it and use " +
			"parley cluster dissolve")
	}
	if o.leaving.CompareAndSwap(false, true) {
		go func() {
			defer o.leaving.Store(false)
			time.Sleep(moveLeaderDelay)
			if err := o.Leader.Move(); err != nil {
				o.Log.Error("moving the leadership failed, so the core is not removed", "err", err)
			}
		}()
	}
	return errLeaderLeaves
}

const (
	// leaveTimeout is how long a leader may take to find a core that takes over and removes it.
	leaveTimeout = 10 * time.Second
	// leaveRetryInterval is the time between two attempts meanwhile.
	leaveRetryInterval = 20 * time.Millisecond
)

// runWithRetry executes a command again while its error is errLeaderLeaves, of this or another node. After this error
// the links to the old leader end, perhaps during the next attempt, so it then retries after every error.
func (o *Operator) runWithRetry(name string, args map[string]string) (answer any, err error) {
	leaves := false
	for end := time.Now().Add(leaveTimeout); ; time.Sleep(leaveRetryInterval) {
		answer, err = o.Run(name, args)
		if err == nil || time.Now().After(end) {
			return answer, err
		}
		if leaves = leaves || strings.Contains(err.Error(), errLeaderLeaves.Error()); !leaves {
			return nil, err
		}
		if o.Node.IsRemoved(args["node"]) { // and the answer was lost
			return map[string]any{"removed": args["node"]}, nil
		}
	}
}

// clusterVerify compares the state of every organization on all nodes.
func clusterVerify(o *Operator, _ map[string]string) (any, error) {
	if o.Node == nil {
		return nil, errSingleNode
	}
	if o.Leader == nil {
		return nil, errNotRunning
	}
	list, different := []any{}, 0
	for _, x := range o.Leader.Verify(o.StateDigest) {
		if !x.Equal {
			different++
		}
		list = append(list, x)
	}
	if different > 0 {
		return nil, fmt.Errorf("the states of %d organizations differ: %v", different, list)
	}
	return map[string]any{"states": list}, nil
}

// digestAt is the digest of a realm's state at a fact.
type digestAt struct {
	seq    realm.Seq
	digest string
}

// StateDigest returns the digest of a realm's state and the number of the last fact in it.
func (o *Operator) StateDigest(id realm.ID) (realm.Seq, string, error) {
	x, err := o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
		return digestAt{v.Seq(), snapshot.StateDigest(v.Realm).String()}, nil
	})
	if err != nil {
		return 0, "", err
	}
	d := x.(digestAt)
	return d.seq, d.digest, nil
}

// clusterLevel raises the rule level of the cluster to that of the program.
func clusterLevel(o *Operator, _ map[string]string) (any, error) {
	if o.Node == nil {
		return nil, errSingleNode
	}
	if o.Leader == nil {
		return nil, errNotRunning
	}
	raised, err := o.Leader.RaiseLevel()
	if err != nil {
		return nil, err
	}
	return map[string]any{"level": int(o.Leader.Node.Level()), "raised": raised}, nil
}

// moveLeaderDelay is the time for sending the answer to a command before the leadership moves.
const moveLeaderDelay = 50 * time.Millisecond

// clusterMoveLeader moves the leadership to another core.
func clusterMoveLeader(o *Operator, _ map[string]string) (any, error) {
	if o.Node == nil {
		return nil, errSingleNode
	}
	if o.Leader == nil {
		return nil, errNotRunning
	}
	if o.Leader.Voters() < 2 {
		return nil, cluster.ErrOnlyCore
	}
	// The answer is sent first: the links of a leader end with its leadership.
	go func() {
		time.Sleep(moveLeaderDelay)
		if err := o.Leader.Move(); err != nil {
			o.Log.Error("moving the leadership failed", "err", err)
		}
	}()
	return map[string]any{"moving_from": o.Node.Node}, nil
}

// clusterPromote gives the core that asks for it a vote.
func clusterPromote(o *Operator, args map[string]string) (any, error) {
	if o.Leader == nil {
		return nil, errSingleNode
	}
	return map[string]any{}, o.Leader.Promote(args["node"])
}
