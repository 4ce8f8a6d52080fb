package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/control"
	"parley/cmd/internal/handover"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/snapshot/search"
	"parley/wire"
	"parley/wire/httpd"
)

// Operator executes commands.
type Operator struct {
	Orgs      *actors.Server
	Site      func(subdomain string) wire.Site
	SiteByID  func(realm.ID) wire.Site
	Passwords *httpd.Passwords
	Store     *snapshot.Store
	Push      *PushService
	Data      string                   // data directory
	Sign      func(text string) string // by the server's secret
	Log       *slog.Logger
	Version   string // of this program

	// Nil on a stopped server.
	Handover *handover.Handover
	Files    *files.Store
	Search   *search.Service
	// FilesElsewhere says that a file can be on other cores only: the cluster has no bucket.
	FilesElsewhere bool

	Node     *cluster.Directory // nil: a single node
	Leader   *cluster.Leader    // of a running core
	Follower *cluster.Follower  // of a running edge, or the link of a core to the leader
	leaving  atomic.Bool        // see leaveLeadership
}

// command is a command of the operator.
type command struct {
	run func(o *Operator, args map[string]string) (any, error) // returns the answer, which is encoded as JSON
	// from are the nodes of a cluster from which the leader takes the command.
	from cluster.Sender
	self bool // a node may name only itself in the argument node
	// local says that the server executes the command that gets it from the control socket, also if it does not lead.
	local bool
}

// ServeHTTP executes the command in the last part of the path. The body has the arguments.
func (o *Operator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var args map[string]string
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, control.MaxCommandBytes)).Decode(&args)
	var answer any
	if err == nil {
		answer, err = o.runWithRetry(r.PathValue("command"), args)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		answer = map[string]string{"error": err.Error()}
	}
	json.NewEncoder(w).Encode(answer)
}

// Run executes a command that an operator has given at this node.
func (o *Operator) Run(name string, args map[string]string) (any, error) {
	command, ok := commands[name]
	if !ok {
		return nil, fmt.Errorf("unknown command %q", name)
	}
	if o.Follower != nil && !command.local && (o.Leader == nil || !o.Leader.IsLeader()) {
		return o.runAtCore(name, args)
	}
	return command.run(o, args)
}

// RunSent executes a command that another node has sent to this one, the leader, if that node may send it.
func (o *Operator) RunSent(c cluster.SentCommand) (any, error) {
	command, ok := commands[c.Name]
	if !ok {
		return nil, fmt.Errorf("unknown command %q", c.Name)
	}
	if !command.from.Includes(c.From) || command.self && c.Args["node"] != c.Node {
		err := cluster.Refuse(c.Node, c.From, "the operator command "+c.Name)
		o.Log.Warn("operator command of another node refused", "err", err)
		return nil, err
	}
	return command.run(o, c.Args)
}

// runAtCore lets the leader execute a command that was given at an edge, or at a core that does not lead. The leader
// decides whether this node may send it; an edge needs no leader to know that it may not.
func (o *Operator) runAtCore(name string, args map[string]string) (any, error) {
	if name == "cluster-status" {
		return o.statusOfLeader()
	}
	if o.Leader == nil && !commands[name].from.Includes(cluster.FromEdge) {
		return nil, fmt.Errorf("this is an edge, which may not send the operator command %s: use the data directory "+
			"of a core", name)
	}
	if o.Leader != nil && !commands[name].from.Includes(cluster.FromStarting) {
		o.waitForVote()
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaderTimeout)
	defer cancel()
	data, err := o.Follower.Command(ctx, name, args)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(data), nil
}

const (
	// leaderTimeout is how long a command waits for the answer of the leader.
	leaderTimeout = 15 * time.Second
	// voteTimeout is how long a command at a core that has just joined waits for its vote. Without one the leader
	// refuses the command.
	voteTimeout      = 10 * time.Second
	votePollInterval = 20 * time.Millisecond
)

// waitForVote returns when this core has a vote, at the latest after voteTimeout.
func (o *Operator) waitForVote() {
	self := o.Node.Node
	for end := time.Now().Add(voteTimeout); time.Now().Before(end); time.Sleep(votePollInterval) {
		if o.Leader.HasVote(self) || o.Node.IsRemoved(self) {
			return
		}
	}
}

// statusOfLeader returns the status that the leader answers, or at once the view of this node if no leader answers.
func (o *Operator) statusOfLeader() (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), leaderTimeout)
	defer cancel()
	data, err := o.Follower.LeaderStatus(ctx)
	if err == nil {
		return json.RawMessage(data), nil
	}
	var node *cluster.CoreNode
	if o.Leader != nil {
		node = o.Leader.Node
	}
	return o.Follower.OwnView(ctx, node, err), nil
}
