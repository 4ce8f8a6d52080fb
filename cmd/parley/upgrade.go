package main

import (
	"context"
	"errors"
	"flag"
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
	"time"

	"parley/actors"
	"parley/snapshot"
	"parley/wire"
	"parley/wire/httpd/park"
)

// A restart nobody notices: on SIGHUP, or `parley upgrade`, a server starts the program file anew and hands it the
// listening sockets. The successor reads its configuration, asks its predecessor to lend it the store, and loads every
// organization from that copy, which takes as long as it takes: the predecessor serves. Only then it asks it to yield; if
// it never comes that far, the predecessor just goes on. From the lending on no rows are written, so that the journal has
// what the copy has not. A server that yields gives its waiting polls to the successor as they are, then stops: it
// finishes what is in flight, gives its other connections away too and lets go of the data directory, for which the
// successor waits, to play the facts that came since the copy. Whoever connects or asks meanwhile waits in the successor's
// room. Queues live in the data directory, so no client registers anew. Where the copy fails, or rows were written after
// it, the successor loads the organizations when the predecessor is gone, and those who ask wait longer.

// predecessorEnv tells a successor whom it succeeds, in its environment.
const predecessorEnv = "PARLEY_PREDECESSOR"

// Limits of a succession.
const (
	// successorTimeout is how long a successor waits for its predecessor to yield, and then for the data directory: longer
	// than either may take, with patience for requests in flight, for the last snapshot, and for mail on its way.
	successorTimeout = 5 * shutdownTimeout
	// longRequestTimeout is how long a server that is to yield goes on as before, so that the long bodies that come in are in.
	longRequestTimeout = 30 * time.Second
	// downloadTimeout is how long a server that has yielded lives on for those who still take their answers from it.
	downloadTimeout = 10 * time.Minute
	// closingDelay is how long a server that yields goes on with every answer ending its connection, if it has connections
	// that cannot be given to the successor (TLS): those in use are then gone before those at rest are closed.
	closingDelay = 300 * time.Millisecond
	// snapshotTimeout is how long a successor is kept waiting for a snapshot before this process stops. One that takes longer
	// goes on, and what follows waits for it.
	snapshotTimeout = 10 * time.Second
	// storeCopyTimeout is how long a successor waits for the store to be lent: for a snapshot, and for what is in memory to be
	// written out.
	storeCopyTimeout = snapshotTimeout + shutdownTimeout
	// preloadTimeout is how long a successor may read before rows are written again: then it reads in vain, and the
	// predecessorEnv starts no slower after a crash than at other times.
	preloadTimeout = 5 * time.Minute
	// lockPollInterval is between two looks at the directory's lock.
	lockPollInterval = 2 * time.Millisecond
	// upgradeTimeout is how long `parley runUpgrade` waits for the successor to serve.
	upgradeTimeout = 2 * time.Minute
)

// handover is what a server needs to be succeeded.
type handover struct {
	log            *slog.Logger
	listeners      []net.Listener
	program        string
	house          *actors.Server // before there is one, nobody can be succeeded
	store          *snapshot.Store
	longRequests   func() int    // requests under way whose bodies cannot go to the successor
	stopBackground func() error  // ends what is done beside the requests, which may take a while
	ready          chan struct{} // gets one value when the successor is ready to take over
	yielded        bool          // of the goroutine that serves

	mu           sync.Mutex
	copyExpiry   *time.Timer   // takes back what was lent to the heir; nil if nothing was
	successorPID int           // process id of a successor that has been started, 0 if there is none
	passage      *park.Handoff // for the connections; nil if the successor does not take any, and settled once it has asked
}

func newHandover(log *slog.Logger, listeners []net.Listener) (*handover, error) {
	// By its path, not what runs now: an upgrade has put another file there.
	program, err := os.Executable()
	return &handover{log: log, listeners: listeners, program: program, ready: make(chan struct{}, 1)}, err
}

// startSuccessor starts the successor and returns its process id.
func (s *handover) startSuccessor() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.successorPID != 0 {
		return 0, fmt.Errorf("process %d is taking over already", s.successorPID)
	}
	p, passage, err := park.StartSuccessor(s.program, os.Args, append(os.Environ(), predecessorEnv+"="+strconv.Itoa(os.Getpid())), s.listeners...)
	if err != nil {
		return 0, err
	}
	s.successorPID, s.passage = p.Pid, passage
	s.log.Info("successor started", "pid", p.Pid)
	go func() {
		state, err := p.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.successorPID = 0
		passage.Close()
		if s.copyExpiry != nil {
			s.copyExpiry.Stop()
			s.copyExpiry = nil
			s.resumeSnapshots()
			if err := s.store.RemoveCheckpoint(); err != nil {
				s.log.Warn("remove what was lent to the successor", "error", err)
			}
		}
		s.log.Error("the successor ended before it took over; this process goes on", "state", fmt.Sprint(state), "error", err)
	}()
	return p.Pid, nil
}

// resumeSnapshots lets rows be written again.
func (s *handover) resumeSnapshots() { s.house.Unfreeze() }

// handleCopyStore is the successor's request for a copy of the store, which it removes when it has read it. The answer comes
// when the copy is there, while this process goes on serving.
func (s *handover) handleCopyStore(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.successorPID == 0 || s.house == nil || s.copyExpiry != nil {
		http.Error(w, "no successor was started, or it has been here", http.StatusConflict)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), snapshotTimeout)
	defer cancel()
	err := s.house.Save(ctx) // the rows are new, and little is behind them
	if err == nil {
		err = s.house.Freeze(ctx)
	}
	if err == nil {
		err = s.store.CreateCheckpoint()
	}
	if err != nil {
		s.resumeSnapshots()
		s.log.Warn("lend the store to the successor", "error", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.copyExpiry = time.AfterFunc(preloadTimeout, s.resumeSnapshots)
	fmt.Fprintln(w, `{}`)
}

// handleYield is the successor's request; it is answered before this process begins to stop. One that takes connections
// says so: an older program would leave them in the passage.
func (s *handover) handleYield(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	heir := s.successorPID
	if s.passage != nil && r.URL.Query().Get("connections") == "" {
		s.passage.Close()
		s.passage = nil
	}
	s.mu.Unlock()
	if heir != 0 && s.house != nil {
		s.waitForLongRequests(r.Context())
		// While this process still serves: what it writes when it stops, everybody waits for. Nothing, if the store is lent.
		ctx, cancel := context.WithTimeout(r.Context(), snapshotTimeout)
		if err := s.house.Save(ctx); err != nil {
			s.log.Warn("snapshot before the successor takes over", "error", err)
		}
		cancel()
	}
	if heir == 0 {
		http.Error(w, "no successor was started", http.StatusConflict)
		return
	}
	if err := s.stopBackground(); err != nil {
		s.log.Warn("before the successor takes over", "error", err)
	}
	io.Copy(io.Discard, r.Body) // unsubscribed unread, it would make the end of the connection a reset, and the answer may be lost
	fmt.Fprintln(w, `{}`)
	if err := http.NewResponseController(w).Flush(); err != nil {
		s.log.Warn("answer the successor", "error", err)
	}
	select {
	case s.ready <- struct{}{}:
	default: // it has asked before
	}
}

// waitForLongRequests waits until no request is under way that a stopping server must see through: who asks then waits for it too, and it
// is cut off if it takes long.
func (s *handover) waitForLongRequests(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, longRequestTimeout)
	defer cancel()
	n := s.longRequests()
	if n > 0 {
		s.log.Info("before the successor takes over, long requests come to their end", "count", n)
	}
	for ; n > 0 && ctx.Err() == nil; n = s.longRequests() {
		time.Sleep(lockPollInterval)
	}
}

// listen takes the sockets this process was started with, from a service manager or a predecessor, or opens its own.
func (c *config) listen() ([]net.Listener, error) {
	listeners, err := park.InheritListeners()
	if err != nil || len(listeners) > 0 {
		return listeners, err
	}
	l, err := net.Listen("tcp", c.Listen)
	return []net.Listener{l}, err
}

// preload loads the organizations from a copy of the store, while the predecessor serves: nil if that cannot be done, and
// then they are loaded later.
func preload(data string, log *slog.Logger) *actors.Preloaded {
	began := time.Now()
	p, err := preloadCopy(data, log)
	if err != nil {
		log.Warn("nothing is loaded before the predecessor stops; those who ask will wait longer", "error", err)
		return nil
	}
	log.Info("preloaded", "took", time.Since(began).Round(time.Millisecond).String())
	return p
}

func preloadCopy(data string, log *slog.Logger) (p *actors.Preloaded, err error) {
	r, err := controlClient(data, storeCopyTimeout).Post("http://parley/lend", "application/json", strings.NewReader("{}"))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK { // also from a predecessor that does not know how
		why, _ := io.ReadAll(io.LimitReader(r.Body, 1<<10))
		return nil, fmt.Errorf("the predecessor does not lend its store: %s %s", r.Status, strings.TrimSpace(string(why)))
	}
	// Half of the machine at most: the predecessor has clients.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2)))
	store, err := snapshot.OpenCheckpoint(data, snapshot.Options{Log: log})
	if err != nil {
		return nil, err
	}
	p, err = actors.Preload(snapshot.Disk{Store: store}, time.Now())
	if err := store.CloseCheckpoint(); err != nil {
		log.Warn("remove what the predecessor lent", "error", err)
	}
	if err != nil {
		return nil, err
	}
	runtime.GC() // now, not when everybody waits
	return p, nil
}

// takeOver asks the predecessor to yield. From then on everybody who comes, and everybody who was there, is in the room.
func takeOver(c *config, listeners []net.Listener) (*park.Backlog, error) {
	pid := os.Getenv(predecessorEnv)
	os.Unsetenv(predecessorEnv)
	order, passage := "http://parley/yield", park.InheritHandoff()
	if passage != nil {
		order += "?connections=1"
	}
	r, err := controlClient(c.Data, successorTimeout).Post(order, "application/json", strings.NewReader("{}"))
	if err != nil {
		passage.Close()
		return nil, fmt.Errorf("ask process %s to yield: %w", pid, err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		passage.Close()
		return nil, fmt.Errorf("process %s does not yield: %s", pid, r.Status)
	}
	room, err := park.CollectBacklog(c.MaxConnections, listeners...)
	if err != nil {
		passage.Close()
		return nil, err
	}
	room.ReceiveHandoff(passage)
	return room, nil
}

// openStore opens the data directory; an heir waits until its predecessor has let go of it.
func openStore(dir string, heir, unsynced bool, log *slog.Logger) (*snapshot.Store, error) {
	o := snapshot.Options{Log: log, Unsynced: unsynced, CompactionDelay: mergeDelay}
	if !heir {
		return snapshot.Open(dir, o)
	}
	for end := time.Now().Add(successorTimeout); ; {
		store, err := snapshot.Open(dir, o)
		if !errors.Is(err, snapshot.ErrInUse) || time.Now().After(end) {
			return store, err
		}
		time.Sleep(lockPollInterval)
	}
}

// serverInfoCommand is the order that tells who serves, and whether somebody is about to take over.
func serverInfoCommand(o *operator, _ map[string]string) (any, error) {
	info := map[string]any{"pid": os.Getpid(), "version": wire.Version}
	if o.handover != nil {
		o.handover.mu.Lock()
		defer o.handover.mu.Unlock()
		info["successor"] = o.handover.successorPID != 0
	}
	return info, nil
}

// upgradeCommand is the order that starts the successor.
func upgradeCommand(o *operator, _ map[string]string) (any, error) {
	if o.handover == nil {
		return nil, errors.New("no server runs here")
	}
	pid, err := o.handover.startSuccessor()
	return map[string]any{"pid": pid}, err
}

// runUpgrade is `parley runUpgrade`: it returns when the successor serves.
func runUpgrade(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("upgrade", flag.ContinueOnError)
	data := fs.String("data", environmentOr("DATA", "./data"), "data directory of a running server")
	if err := fs.Parse(args); err != nil {
		return err
	}
	began := time.Now()
	answer, ran, err := runOnServer(*data, "upgrade", nil)
	if !ran {
		return fmt.Errorf("no server runs in %s", *data)
	}
	if err != nil {
		return err
	}
	for time.Since(began) < upgradeTimeout {
		info, ran, err := runOnServer(*data, "server-info", nil)
		if ran && err == nil && info["pid"] == answer["pid"] {
			fmt.Fprintf(out, "process %v, version %v, serves since %.2f s after the order\n", info["pid"], info["version"], time.Since(began).Seconds())
			return nil
		}
		if ran && err == nil && info["successor"] == false {
			return errors.New("the successor ended before it took over; the server's log says why, and it goes on")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("process %v did not take over within %v", answer["pid"], upgradeTimeout)
}

// notifySystemd tells the service manager how the process stands, if there is one that wants to know.
func notifySystemd(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if strings.HasPrefix(path, "@") {
		path = "\x00" + path[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return // it only wanted to know
	}
	defer c.Close()
	c.Write([]byte(state))
}
