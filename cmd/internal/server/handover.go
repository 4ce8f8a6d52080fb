package server

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
	"parley/snapshot"
	"parley/wire/httpd/park"
)

// A handover replaces a server by a new process (the successor) without interrupting clients. It starts on SIGHUP or
// `parley upgrade`:
//
//	predecessor                              successor
//	starts the program file, passes          reads its configuration
//	  listening sockets
//	serves                            <----  POST /lend: asks for a copy of the store
//	copies the store (hard links),    ---->  loads every organization from the copy
//	  writes no more rows
//	serves until long requests end    <----  POST /yield: is ready to take over
//	passes waiting polls and idle     ---->  accepts connections; requests wait in its backlog
//	  connections, stops, closes the store
//	                                         opens the store, applies the facts since the copy, serves
//
// The predecessor continues if the successor ends before it asks to take over. It ends a successor that hangs: see
// firstRequestTimeout and successorLoadTimeout. After the copy, the predecessor writes no rows, so that the journal
// contains everything that the copy lacks. If the copy fails, or rows were written after
// it, the successor loads the organizations after the predecessor has stopped, and requests wait longer. Event queues
// are in the data directory, so no client has to register again.

// predecessorEnv is the environment variable with the process id of the predecessor.
const predecessorEnv = EnvironmentPrefix + "PREDECESSOR"

// Limits of a handover.
const (
	// successorTimeout is how long a successor waits for its predecessor to hand over, and then again for the data
	// directory. It is longer than either can take: requests in progress, the last snapshot, and email being sent.
	successorTimeout = 5 * shutdownTimeout
	// longRequestTimeout is how long a server waits for long request bodies to arrive before it hands over.
	longRequestTimeout = 30 * time.Second
	// downloadTimeout is how long a process that has handed over waits for clients that are still receiving responses.
	downloadTimeout = 10 * time.Minute
	// closingDelay is how long a server that hands over answers each request with "Connection: close", if it has
	// connections that cannot be handed over (TLS). Connections in use are then gone before idle ones are closed.
	closingDelay = 300 * time.Millisecond
	// snapshotTimeout is how long a successor waits for a snapshot before the predecessor stops. A longer snapshot
	// continues, and the next step waits for it.
	snapshotTimeout = 10 * time.Second
	// storeCopyTimeout is how long a successor waits for the copy of the store: for a snapshot, and for data in memory
	// to be written.
	storeCopyTimeout = snapshotTimeout + shutdownTimeout
	// preloadTimeout is how long a successor may read the copy before the predecessor writes rows again. The work of
	// the successor is lost then, but the predecessor's journal stays short enough for a fast start after a crash.
	preloadTimeout = 5 * time.Minute
	// successorLoadTimeout is how long a successor may take from its first request until it asks to take over: it loads
	// every organization meanwhile. A successor that takes longer hangs, and is ended.
	successorLoadTimeout = preloadTimeout + time.Minute
	// lockPollInterval is the time between two attempts to lock the data directory.
	lockPollInterval = 2 * time.Millisecond
)

// Handover has the values that a process needs to start a successor, and to replace its predecessor.
type Handover struct {
	Program     string        // path of the program file to start: an upgrade has put another file there
	Args        []string      // command line of the successor, with the program's name first
	Predecessor string        // process id of the predecessor; "" unless this process is a successor
	Connections *park.Handoff // where the predecessor sends its connections; nil if it sends none
}

// InheritHandover returns this process's handover, and the sockets that the process was started with by a service
// manager or a predecessor. It takes them: a second call returns no sockets.
func InheritHandover() (*Handover, []net.Listener, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	h := &Handover{Program: program, Args: os.Args, Predecessor: os.Getenv(predecessorEnv)}
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

// handover is the state of a server's handover.
type handover struct {
	config    *Handover // nil: the server cannot be upgraded while it runs
	log       *slog.Logger
	listeners []net.Listener
	// firstRequestTimeout is how long a successor may take until its first request; see the setting upgrade-timeout
	firstRequestTimeout time.Duration

	// Set by connect, before the control socket accepts a request for a handover.
	orgs            *actors.Server
	store           *snapshot.Store
	ticketKeys      *certificates.TicketKeys // nil without TLS
	longRequests    func() int               // number of requests in progress whose bodies cannot be handed over
	stopBackground  func() error             // stops the work beside requests, which may take a while
	yieldLeadership func()                   // lets another core lead

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

func newHandover(
	config *Handover, log *slog.Logger, listeners []net.Listener, firstRequestTimeout time.Duration,
) *handover {
	return &handover{
		config: config, log: log, listeners: listeners, firstRequestTimeout: firstRequestTimeout,
		ready: make(chan struct{}, 1),
	}
}

// isSuccessor reports whether this process replaces another one.
func (h *handover) isSuccessor() bool { return h.config != nil && h.config.Predecessor != "" }

// connect sets the parts that a handover uses. The server has opened them.
func (h *handover) connect(s *Server) {
	h.orgs, h.store, h.ticketKeys, h.yieldLeadership = s.orgs, s.store, s.ticketKeys, s.yieldLeadership
	h.longRequests = func() int { return s.http.Stats().LongRequests }
	h.stopBackground = func() error {
		if s.edge != nil {
			return nil
		}
		s.search.HandOff()
		return s.closeBackground()
	}
}

// StartSuccessor starts the process that replaces this one and returns its id. Successor receives a value when that
// process is ready.
func (s *Server) StartSuccessor() (int, error) { return s.handover.startSuccessor() }

// Successor returns the channel that receives a value when a successor is ready to take over; the caller then calls
// Yield and stops the server.
func (s *Server) Successor() <-chan struct{} { return s.handover.ready }

// Yield records that this process hands over to its successor: when the server stops, it passes on its connections.
func (s *Server) Yield() { s.handover.yielded = true }

func (h *handover) startSuccessor() (int, error) {
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
func (h *handover) setDeadline(after time.Duration, reason string) {
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
func (h *handover) stopDeadline() {
	if h.deadline != nil {
		h.deadline.Stop()
		h.deadline = nil
	}
}

// watchSuccessor undoes the preparations if the successor ends before this process does.
func (h *handover) watchSuccessor(p *os.Process, connections *park.Handoff) {
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
		if err := h.store.RemoveCheckpoint(); err != nil {
			h.log.Warn("removing the copy of the store failed", "err", err)
		}
	}
	h.log.Error("the successor ended before it took over; this process continues", "state", fmt.Sprint(state), "err",
		err)
}

// resumeSnapshots allows rows to be written again.
func (h *handover) resumeSnapshots() { h.orgs.Unfreeze() }

// handleCopyStore handles the successor's request for a copy of the store. It answers when the copy exists; the server
// serves meanwhile. The successor removes the copy when it has read it.
func (h *handover) handleCopyStore(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.successor == nil || h.killed || h.store == nil || h.copyExpiry != nil {
		http.Error(w, "no successor was started, or it has sent this request before", http.StatusConflict)
		return
	}
	h.setDeadline(successorLoadTimeout, "it has not finished loading the organizations")
	ctx, cancel := context.WithTimeout(r.Context(), snapshotTimeout)
	defer cancel()
	err := h.orgs.Save(ctx) // so that the rows are new and the journal after them is short
	if err == nil {
		err = h.orgs.Freeze(ctx)
	}
	if err == nil {
		err = h.store.CreateCheckpoint()
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

// handleYield handles the successor's request to take over. It answers before this process begins to stop. A successor
// that takes connections says so in the query: an older program would leave them unread.
func (h *handover) handleYield(w http.ResponseWriter, r *http.Request) {
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
	if successor == nil || h.orgs == nil {
		http.Error(w, "no successor was started", http.StatusConflict)
		return
	}
	h.waitForLongRequests(r.Context())
	h.save(r.Context())
	if !h.isRunning(successor) { // it has ended during the wait: no process would serve
		http.Error(w, "the successor has ended", http.StatusConflict)
		return
	}
	h.yieldLeadership()
	if err := h.stopBackground(); err != nil {
		h.log.Warn("stopping background work for the successor failed", "err", err)
	}
	// An unread body would make the kernel reset the connection, and the successor might miss the answer.
	io.Copy(io.Discard, r.Body)
	w.Write(certificates.EncodeTicketAnswer(h.ticketKeys))
	if err := http.NewResponseController(w).Flush(); err != nil {
		h.log.Warn("answering the successor failed", "err", err)
	}
	select {
	case h.ready <- struct{}{}:
	default: // it has sent this request before
	}
}

// isRunning reports whether a successor has not ended.
func (h *handover) isRunning(p *os.Process) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.successor == p
}

// save writes a snapshot while this process still serves: all clients wait for data that is written during the stop.
// It writes nothing if the successor has a copy of the store.
func (h *handover) save(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	if err := h.orgs.Save(ctx); err != nil {
		h.log.Warn("snapshot before the handover failed", "err", err)
	}
}

// waitForLongRequests waits until no request is in progress that a stopping server must finish, at most
// longRequestTimeout. Otherwise all clients would wait for that request, and it would be cut off if it took long.
func (h *handover) waitForLongRequests(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, longRequestTimeout)
	defer cancel()
	n := h.longRequests()
	if n > 0 {
		h.log.Info("waiting for long requests before the handover", "count", n)
	}
	for ; n > 0 && ctx.Err() == nil; n = h.longRequests() {
		time.Sleep(lockPollInterval)
	}
}

// preload loads the organizations from a copy of the predecessor's store while the predecessor serves. It returns nil
// if that fails; the organizations are then loaded later.
func preload(data string, log *slog.Logger) *actors.Preloaded {
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
	r, err := ControlClient(data, storeCopyTimeout).Post(controlURL("lend"), "application/json",
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

// takeOver asks the predecessor to hand over. From then on new connections, and those that the predecessor hands over,
// are in the backlog that it returns.
func (s *Server) takeOver() (*park.Backlog, error) {
	c := s.config.Handover
	request := controlURL("yield")
	if c.Connections != nil {
		request += "?connections=1"
	}
	r, err := ControlClient(s.Data, successorTimeout).Post(request, "application/json", strings.NewReader("{}"))
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
		s.log.Warn("reading the answer of the predecessor failed", "err", err)
	case s.ticketKeys != nil:
		s.ticketKeys.Replace(answer.TicketKeys)
	}
	backlog, err := park.CollectBacklog(s.MaxConnections, s.listeners...)
	if err != nil {
		c.Connections.Close()
		return nil, err
	}
	backlog.ReceiveHandoff(c.Connections)
	return backlog, nil
}

// openStore opens the store of the data directory. A successor waits until its predecessor has closed it.
func (s *Server) openStore() (*snapshot.Store, error) {
	o := snapshot.Options{
		Log: s.log, Unsynced: s.NoSync, CompactionDelay: compactionDelay, AcceptLoss: s.AcceptDataLoss,
		Ballast: int64(s.Space.DiskBallast) << 20, Full: s.space.Full,
	}
	if s.node != nil {
		o.Kept = snapshot.FollowedKept
		return s.openCoreNode(o)
	}
	if !s.handover.isSuccessor() {
		return snapshot.Open(s.Data, o)
	}
	return openAfterPredecessor(func() (*snapshot.Store, error) { return snapshot.Open(s.Data, o) })
}

// openAfterPredecessor opens something that the predecessor still has open.
func openAfterPredecessor[T any](open func() (T, error)) (T, error) {
	for end := time.Now().Add(successorTimeout); ; {
		x, err := open()
		inUse := errors.Is(err, snapshot.ErrInUse) || errors.Is(err, syscall.EADDRINUSE)
		if !inUse || time.Now().After(end) {
			return x, err
		}
		time.Sleep(lockPollInterval)
	}
}
