package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"parley/actors"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/datadir"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/snapshot/replicated"
	"parley/snapshot/search"
	"parley/wire"
	"parley/wire/httpd"
	"parley/wire/peer"
)

// ControlSocketName is the name of a running server's control socket, which takes the operator's commands. It is in the
// data directory, and only the owner of the directory can open it. A command does the same on a stopped server: it then
// opens the directory itself.
const ControlSocketName = "control"

// maxCommandBytes limits the body of one command.
const maxCommandBytes = 1 << 20

// maxCommandAnswerBytes limits the answer to one command.
const maxCommandAnswerBytes = 64 << 20

// operator holds the parts that commands of an operator use.
type operator struct {
	orgs      *actors.Server
	sites     *siteTable
	passwords *httpd.Passwords
	store     *snapshot.Store
	push      *pushService
	data      string                   // data directory
	sign      func(text string) string // by the server's secret
	log       *slog.Logger

	// Nil on a stopped server.
	handover   *handover
	files      *files.Store
	search     *search.Service
	fetcher    *fileFetcher            // nil: all files are here, or in a bucket
	checkSpace func(bytes int64) error // see diskspace.Watcher

	node       *cluster.Directory // nil: a single node
	core       *cluster.Core      // of a running core
	moveLeader func() error       // of a running core
	leaving    atomic.Bool        // see leaveLeadership
	edge       *cluster.Edge      // of a running edge
}

// operatorCommand is a command of the operator.
type operatorCommand struct {
	run func(o *operator, args map[string]string) (any, error) // returns the answer, which is encoded as JSON
	// from are the nodes of a cluster from which the leader takes the command.
	from cluster.Sender
	self bool // a node may name only itself in the argument node
	// local says that the server executes the command that gets it from the control socket, also if it does not lead.
	local bool
}

// serveControl opens the control socket and answers commands until the returned function closes it.
func serveControl(dir string, o *operator, log *slog.Logger) (stop func() error, err error) {
	path := filepath.Join(dir, ControlSocketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), l.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{command}", o.handleCommand)
	mux.HandleFunc("POST /backup", handleBackup(o, log))
	mux.HandleFunc("POST /import", o.handleImport(dir, log))
	mux.HandleFunc("POST /lend", o.handover.handleCopyStore)
	mux.HandleFunc("POST /yield", o.handover.handleYield)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("control socket failed", "err", err)
		}
	}()
	return s.Close, nil
}

func (o *operator) handleCommand(w http.ResponseWriter, r *http.Request) {
	var args map[string]string
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommandBytes)).Decode(&args)
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

// run executes a command that an operator has given at this node.
func (o *operator) run(name string, args map[string]string) (any, error) {
	command, ok := operatorCommands[name]
	if !ok {
		return nil, fmt.Errorf("unknown command %q", name)
	}
	if o.edge != nil && !command.local && (o.core == nil || !o.core.IsLeader()) {
		return o.runAtCore(name, args)
	}
	return command.run(o, args)
}

// runSent executes a command that another node has sent to this one, the leader, if that node may send it.
func (o *operator) runSent(c cluster.SentCommand) (any, error) {
	command, ok := operatorCommands[c.Name]
	if !ok {
		return nil, fmt.Errorf("unknown command %q", c.Name)
	}
	if !command.from.Includes(c.From) || command.self && c.Args["node"] != c.Node {
		err := cluster.Refuse(c.Node, c.From, "the operator command "+c.Name)
		o.log.Warn("operator command of another node refused", "err", err)
		return nil, err
	}
	return command.run(o, c.Args)
}

// Command executes a command of the operator: on the server that runs in a data directory, or on the directory itself
// if no server runs there.
func Command(dir, name string, args map[string]string) (map[string]any, error) {
	if answer, ran, err := RemoteCommand(dir, name, args); ran {
		return answer, err
	}
	if _, err := os.Stat(dir); err != nil && name != "realm-create" {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := datadir.CheckVersion(dir); err != nil {
		return nil, err
	}
	node, err := openStoppedNode(dir)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	store, err := snapshot.Open(dir, snapshot.Options{Log: log})
	if err != nil {
		return nil, err
	}
	secret, err := datadir.LoadSecret(dir)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	sites := newSiteTable("http://" + DefaultSettings().Listen)
	orgs, err := actors.Open(snapshot.Disk{Store: store}, actors.Options{
		Protocol: wire.SessionProtocol{}, Renderer: &wire.Renderer{}, Secret: secret, Log: log, Site: sites.site})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	sites.orgs = orgs
	o := &operator{orgs: orgs, sites: sites, passwords: httpd.NewPasswords(nil), store: store,
		push: &pushService{data: dir}, data: dir, sign: datadir.NewSigner(secret), log: log, node: node}
	answer, err := o.run(name, args)
	if err = errors.Join(err, withShutdownTimeout(orgs.Close), store.Close()); err != nil {
		return nil, err
	}
	return toMap(answer)
}

// openStoppedNode returns the node of a cluster to which a data directory belongs; nil: a single node. It returns an
// error if the directory must not be changed: the log of a core that does not run may lack changes, and changes that
// are not in it would be lost. A core that has never run has no log.
func openStoppedNode(dir string) (*cluster.Directory, error) {
	if !cluster.Exists(dir) {
		return nil, nil
	}
	node, err := cluster.OpenDirectory(dir)
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

// toMap converts an answer to the form in which the control socket transmits it.
func toMap(v any) (m map[string]any, err error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return m, json.Unmarshal(data, &m)
}

// ControlClient returns an HTTP client that is connected to the control socket of a data directory. The host name in
// its requests is ignored. A timeout of 0 means none.
func ControlClient(dir string, timeout time.Duration) *http.Client {
	path := filepath.Join(dir, ControlSocketName)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return &http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
}

// controlURL returns the URL of a request to the control socket.
func controlURL(request string) string { return "http://parley/" + request }

// RemoteCommand sends a command to the server that runs in a data directory; ran is false if no server runs there.
func RemoteCommand(dir, name string, args map[string]string) (answer map[string]any, ran bool, err error) {
	body, err := json.Marshal(args)
	if err != nil {
		return nil, true, err
	}
	r, err := ControlClient(dir, time.Minute).Post(controlURL(name), "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, false, nil
	}
	defer r.Body.Close()
	data, err := io.ReadAll(io.LimitReader(r.Body, maxCommandAnswerBytes))
	if err != nil {
		return nil, true, err
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, true, fmt.Errorf("the server answered %q", data)
	}
	if r.StatusCode != http.StatusOK {
		return nil, true, fmt.Errorf("%v", answer["error"])
	}
	return answer, true, nil
}
