package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"parley/actors"
	"parley/cmd/internal/certificates"
	"parley/cmd/internal/control"
	"parley/snapshot"
	"parley/wire/httpd/park"
)

// predecessorEnv is the environment variable with the process id of the predecessor.
const predecessorEnv = "PARLEY_PREDECESSOR"

// Limits of a handover.
const (
	// PartTimeout is how long a stopping server waits for each part that has requests in progress.
	PartTimeout = 15 * time.Second
	// SuccessorTimeout is how long a successor waits for its predecessor to hand over, and then again for the data
	// directory. It is longer than either can take: requests in progress, the last snapshot, and email being sent.
	SuccessorTimeout = 5 * PartTimeout
	// longRequestTimeout is how long a server waits for long request bodies to arrive before it hands over.
	longRequestTimeout = 30 * time.Second
	// DownloadTimeout is how long a process that has handed over waits for clients that are still receiving responses.
	DownloadTimeout = 10 * time.Minute
	// ClosingDelay is how long a server that hands over answers each request with "Connection: close", if it has
	// connections that cannot be handed over (TLS). Connections in use are then gone before idle ones are closed.
	ClosingDelay = 300 * time.Millisecond
	// SnapshotTimeout is how long a successor waits for a snapshot before the predecessor stops. A longer snapshot
	// continues, and the next step waits for it.
	SnapshotTimeout = 10 * time.Second
	// storeCopyTimeout is how long a successor waits for the copy of the store: for a snapshot, and for data in memory
	// to be written.
	storeCopyTimeout = SnapshotTimeout + PartTimeout
	// preloadTimeout is how long a successor may read the copy before the predecessor writes rows again. The work of
	// the successor is lost then, but the predecessor's journal stays short enough for a fast start after a crash.
	preloadTimeout = 5 * time.Minute
	// successorLoadTimeout is how long a successor may take from its first request until it asks to take over: it loads
	// every organization meanwhile. A successor that takes longer hangs, and is ended.
	successorLoadTimeout = preloadTimeout + time.Minute
	// lockPollInterval is the time between two attempts to lock the data directory.
	lockPollInterval = 2 * time.Millisecond
)

// Process has the values that a process needs to start a successor, and to replace its predecessor.
type Process struct {
	Program     string        // path of the program file to start: an upgrade has put another file there
	Args        []string      // command line of the successor, with the program's name first
	Predecessor string        // process id of the predecessor; "" unless this process is a successor
	Connections *park.Handoff // where the predecessor sends its connections; nil if it sends none
}

// Inherit returns this process's values, and the sockets that the process was started with by a service
// manager or a predecessor. It takes them: a second call returns no sockets.
func Inherit() (*Process, []net.Listener, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	h := &Process{Program: program, Args: os.Args, Predecessor: os.Getenv(predecessorEnv)}
	os.Unsetenv(predecessorEnv)
	listeners, err := park.InheritListeners()
	if err != nil {
		return nil, nil, err
	}
	if h.Predecessor != "" {
		h.Connections = park.InheritHandoff()
	}
	return h, listeners, nil
}

// Parts are the parts of a server that a handover uses.
type Parts struct {
	Orgs            *actors.Server
	Store           *snapshot.Store
	TicketKeys      *certificates.TicketKeys // nil without TLS
	LongRequests    func() int               // number of requests in progress whose bodies cannot be handed over
	StopBackground  func() error             // stops the work beside requests, which may take a while
	YieldLeadership func()                   // lets another core lead
}

// Handover is the state of a server's handover.
type Handover struct {
	config    *Process // nil: the server cannot be upgraded while it runs
	log       *slog.Logger
	listeners []net.Listener
	// firstRequestTimeout is how long a successor may take until its first request; see the setting upgrade-timeout
	firstRequestTimeout time.Duration

	parts Parts // set by Connect

	ready   chan struct{} // receives one value when the successor is ready to take over
	yielded bool          // this process has handed over; used by the goroutine that stops the server

	mu         sync.Mutex
	copyExpiry *time.Timer // ends the validity of the copy of the store; nil if there is no copy
	successor  *os.Process // nil if no successor runs
	killed     bool        // the successor hung, and this process is killing it
	deadline   *time.Timer // ends a successor that hangs; nil once the successor has asked to take over
	// connections is where this process sends its connections; nil if the successor takes none. It is decided when the
	// successor asks to take over.
	connections *park.Handoff
}

// New returns the handover of a server with these sockets. config is nil if the server cannot be upgraded while it
// runs. firstRequestTimeout is the setting upgrade-timeout.
func New(
	config *Process, log *slog.Logger, listeners []net.Listener, firstRequestTimeout time.Duration,
) *Handover {
	return &Handover{
		config: config, log: log, listeners: listeners, firstRequestTimeout: firstRequestTimeout,
		ready: make(chan struct{}, 1),
	}
}

// IsSuccessor reports whether this process replaces another one.
func (h *Handover) IsSuccessor() bool { return h.config != nil && h.config.Predecessor != "" }

// Connect sets the parts. The server has opened them, and its control socket accepts no request for a handover yet.
func (h *Handover) Connect(p Parts) { h.parts = p }

// Ready returns the channel that receives a value when a successor is ready to take over; the caller then calls Yield
// and stops the server.
func (h *Handover) Ready() <-chan struct{} { return h.ready }

// Yield records that this process hands over to its successor: when the server stops, it passes on its connections.
func (h *Handover) Yield() { h.yielded = true }

// HasYielded reports whether this process has handed over. Only the goroutine that stops the server calls it.
func (h *Handover) HasYielded() bool { return h.yielded }

// Connections returns where this process sends its connections; nil if the successor takes none. It is decided when the
// successor asks to take over.
func (h *Handover) Connections() *park.Handoff { return h.connections }

// HasSuccessor reports whether a successor is starting.
func (h *Handover) HasSuccessor() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.successor != nil
}

// StartSuccessor starts the process that replaces this one and returns its id. Ready receives a value when that process
// is ready.
func (h *Handover) StartSuccessor() (int, error) {
	if h.config == nil {
		return 0, errors.New("this server does not support upgrades without restart")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.successor != nil {
		return 0, fmt.Errorf("an upgrade is already in progress: process %d is taking over", h.successor.Pid)
	}
	env := append(os.Environ(), predecessorEnv+"="+strconv.Itoa(os.Getpid()))
	p, connections, err := park.StartSuccessor(h.config.Program, h.config.Args, env, h.listeners...)
	if err != nil {
		return 0, err
	}
	h.successor, h.killed, h.connections = p, false, connections
	h.setDeadline(h.firstRequestTimeout, "it has sent no request")
	h.log.Info("successor started", "pid", p.Pid)
	go h.watchSuccessor(p, connections)
	return p.Pid, nil
}

// setDeadline ends the successor after a time, unless it asks to take over before that or gets another deadline. A
// successor that hangs would otherwise prevent every further upgrade, and the journal would grow without a snapshot.
// h.mu is held.
func (h *Handover) setDeadline(after time.Duration, reason string) {
	if h.deadline != nil {
		h.deadline.Stop()
	}
	p := h.successor
	var timer *time.Timer
	timer = time.AfterFunc(after, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.deadline != timer {
			return // it has sent a request, or it has ended
		}
		h.deadline, h.killed = nil, true
		h.log.Error("the successor hangs; killing it", "pid", p.Pid, "reason", reason, "after", after.String())
		if err := p.Kill(); err != nil {
			h.log.Error("killing the successor failed", "pid", p.Pid, "err", err)
		}
	})
	h.deadline = timer
}

// stopDeadline stops the timer of setDeadline. h.mu is held.
func (h *Handover) stopDeadline() {
	if h.deadline != nil {
		h.deadline.Stop()
		h.deadline = nil
	}
}

// watchSuccessor undoes the preparations if the successor ends before this process does.
func (h *Handover) watchSuccessor(p *os.Process, connections *park.Handoff) {
	state, err := p.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.successor = nil
	h.stopDeadline()
	connections.Close()
	if h.copyExpiry != nil {
		h.copyExpiry.Stop()
		h.copyExpiry = nil
		h.resumeSnapshots()
		if err := h.parts.Store.RemoveCheckpoint(); err != nil {
			h.log.Warn("removing the copy of the store failed", "err", err)
		}
	}
	h.log.Error("the successor ended before it took over; this process continues", "state", fmt.Sprint(state), "err",
		err)
}

// resumeSnapshots allows rows to be written again.
func (h *Handover) resumeSnapshots() { h.parts.Orgs.Unfreeze() }

// HandleCopyStore handles the successor's request for a copy of the store. It answers when the copy exists; the server
// serves meanwhile. The successor removes the copy when it has read it.
func (h *Handover) HandleCopyStore(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.successor == nil || h.killed || h.parts.Store == nil || h.copyExpiry != nil {
		http.Error(w, "no successor was started, or it has sent this request before", http.StatusConflict)
		return
	}
	h.setDeadline(successorLoadTimeout, "it has not finished loading the organizations")
	ctx, cancel := context.WithTimeout(r.Context(), SnapshotTimeout)
	defer cancel()
	err := h.parts.Orgs.Save(ctx) // so that the rows are new and the journal after them is short
	if err == nil {
		err = h.parts.Orgs.Freeze(ctx)
	}
	if err == nil {
		err = h.parts.Store.CreateCheckpoint()
	}
	if err != nil {
		h.resumeSnapshots()
		h.log.Warn("copying the store for the successor failed", "err", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.copyExpiry = time.AfterFunc(preloadTimeout, h.resumeSnapshots)
	fmt.Fprintln(w, `{}`)
}

// HandleYield handles the successor's request to take over. It answers before this process begins to stop. A successor
// that takes connections says so in the query: an older program would leave them unread.
func (h *Handover) HandleYield(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	successor := h.successor
	if h.killed {
		successor = nil
	}
	h.stopDeadline()
	if h.connections != nil && r.URL.Query().Get("connections") == "" {
		h.connections.Close()
		h.connections = nil
	}
	h.mu.Unlock()
	if successor == nil || h.parts.Orgs == nil {
		http.Error(w, "no successor was started", http.StatusConflict)
		return
	}
	h.waitForLongRequests(r.Context())
	h.save(r.Context())
	if !h.isRunning(successor) { // it has ended during the wait: no process would serve
		http.Error(w, "the successor has ended", http.StatusConflict)
		return
	}
	h.parts.YieldLeadership()
	if err := h.parts.StopBackground(); err != nil {
		h.log.Warn("stopping background work for the successor failed", "err", err)
	}
	// An unread body would make the kernel reset the connection, and the successor might miss the answer.
	io.Copy(io.Discard, r.Body)
	w.Write(certificates.EncodeTicketAnswer(h.parts.TicketKeys))
	if err := http.NewResponseController(w).Flush(); err != nil {
		h.log.Warn("answering the successor failed", "err", err)
	}
	select {
	case h.ready <- struct{}{}:
	default: // it has sent this request before
	}
}

// isRunning reports whether a successor has not ended.
func (h *Handover) isRunning(p *os.Process) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.successor == p
}

// save writes a snapshot while this process still serves: all clients wait for data that is written during the stop.
// It writes nothing if the successor has a copy of the store.
func (h *Handover) save(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, SnapshotTimeout)
	defer cancel()
	if err := h.parts.Orgs.Save(ctx); err != nil {
		h.log.Warn("snapshot before the handover failed", "err", err)
	}
}

// waitForLongRequests waits until no request is in progress that a stopping server must finish, at most
// longRequestTimeout. Otherwise all clients would wait for that request, and it would be cut off if it took long.
func (h *Handover) waitForLongRequests(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, longRequestTimeout)
	defer cancel()
	n := h.parts.LongRequests()
	if n > 0 {
		h.log.Info("waiting for long requests before the handover", "count", n)
	}
	for ; n > 0 && ctx.Err() == nil; n = h.parts.LongRequests() {
		time.Sleep(lockPollInterval)
	}
}

// Preload loads the organizations from a copy of the predecessor's store while the predecessor serves. It returns nil
// if that fails; the organizations are then loaded later.
func Preload(data string, log *slog.Logger) *actors.Preloaded {
	began := time.Now()
	p, err := preloadCopy(data, log)
	if err != nil {
		log.Warn("preloading failed; requests will wait longer during the handover", "err", err)
		return nil
	}
	log.Info("preloaded", "took", time.Since(began).Round(time.Millisecond).String())
	return p
}

func preloadCopy(data string, log *slog.Logger) (p *actors.Preloaded, err error) {
	r, err := control.Client(data, storeCopyTimeout).Post(control.URL("lend"), "application/json",
		strings.NewReader("{}"))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK { // also if the predecessor's program does not know this request
		why, _ := io.ReadAll(io.LimitReader(r.Body, 1<<10))
		return nil, fmt.Errorf("the predecessor did not copy its store: %s %s", r.Status,
			strings.TrimSpace(string(why)))
	}
	// Use half of the processors at most: the predecessor has clients.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2)))
	store, err := snapshot.OpenCheckpoint(data, snapshot.Options{Log: log})
	if err != nil {
		return nil, err
	}
	p, err = actors.Preload(snapshot.Disk{Store: store}, time.Now())
	if err := store.CloseCheckpoint(); err != nil {
		log.Warn("removing the copy of the store failed", "err", err)
	}
	if err != nil {
		return nil, err
	}
	runtime.GC() // now, while no request waits for it
	return p, nil
}

// TakeOver asks the predecessor in a data directory to hand over. From then on new connections, and those that the
// predecessor hands over, are in the backlog that it returns, at most maxConnections. keys get those of the
// predecessor; nil without TLS.
func (h *Handover) TakeOver(data string, maxConnections int, keys *certificates.TicketKeys) (*park.Backlog, error) {
	c := h.config
	request := control.URL("yield")
	if c.Connections != nil {
		request += "?connections=1"
	}
	r, err := control.Client(data, SuccessorTimeout).Post(request, "application/json", strings.NewReader("{}"))
	if err != nil {
		c.Connections.Close()
		return nil, fmt.Errorf("ask process %s to hand over: %w", c.Predecessor, err)
	}
	var answer certificates.TicketAnswer
	err = json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&answer)
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		c.Connections.Close()
		return nil, fmt.Errorf("process %s refused to hand over: %s", c.Predecessor, r.Status)
	}
	switch {
	case err != nil: // the predecessor hands over anyway
		h.log.Warn("reading the answer of the predecessor failed", "err", err)
	case keys != nil:
		keys.Replace(answer.TicketKeys)
	}
	backlog, err := park.CollectBacklog(maxConnections, h.listeners...)
	if err != nil {
		c.Connections.Close()
		return nil, err
	}
	backlog.ReceiveHandoff(c.Connections)
	return backlog, nil
}

// OpenAfterPredecessor opens something that the predecessor still has open.
func OpenAfterPredecessor[T any](open func() (T, error)) (T, error) {
	for end := time.Now().Add(SuccessorTimeout); ; {
		x, err := open()
		inUse := errors.Is(err, snapshot.ErrInUse) || errors.Is(err, syscall.EADDRINUSE)
		if !inUse || time.Now().After(end) {
			return x, err
		}
		time.Sleep(lockPollInterval)
	}
}
