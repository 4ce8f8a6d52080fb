package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/wire/peer"
)

// A cluster without a bucket has each file at the core that was the leader when it was uploaded. The other cores fetch
// it over peer.FilesProtocol: GET /KIND?name=NAME, answered 200 with the file, 404 if this core does not have it, or
// 503 if it sends too many already. Only cores with a vote may ask; see protocolSenders. A new leader fetches the vectors
// of search by meaning in the same way, also in a cluster with a bucket.

const (
	// MaxServedFiles limits the files that a core sends to other cores at the same time. Each has a connection and
	// about 40 kB of buffers.
	MaxServedFiles = 16
	// MaxFileFetches limits the files that a core receives from other cores at the same time.
	MaxFileFetches = 8
	// fileStall is how long a file may be transferred without a byte.
	fileStall = 10 * time.Second
	// coreRetryInterval is how long no file is asked for at a core that could not be reached. A missing file would
	// otherwise take peer.DialTimeout, and a list of a thousand of them half an hour.
	coreRetryInterval = 5 * time.Second
	// fileBuffer is the number of bytes of a file that are sent between two checks of fileStall.
	fileBuffer = 64 << 10
)

// ServedFiles returns the number of files that are being sent to other cores.
func (c *Leader) ServedFiles() int64 { return c.servedFiles.Load() }

// StoredFile is an open file of this core.
type StoredFile interface {
	Size() int64 // in bytes
	Section(from, bytes int64) (io.ReadCloser, error)
	Close() error
}

// ErrNoCoreHas is the error for a file that no other core has.
var ErrNoCoreHas = errors.New("no other core has the file")

// CoresDownError is the error for a file that no core has, of those that can be reached.
type CoresDownError struct{ Cores []string }

func (e *CoresDownError) Error() string {
	return "cannot be reached now: core " + strings.Join(e.Cores, ", core ")
}

// serveFiles sends files to other cores until the listener closes.
func (c *Leader) serveFiles(l net.Listener) {
	server := &http.Server{
		ReadHeaderTimeout: peer.HandshakeTimeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    smallLimit,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := c.mayFetchFiles(r); err != nil {
				c.Log.Warn("file refused to another node", "err", err)
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
			defer c.servedFiles.Add(-1)
			if c.servedFiles.Add(1) > MaxServedFiles {
				http.Error(w, "this core sends too many files at the same time", http.StatusServiceUnavailable)
				return
			}
			c.sendFile(w, strings.TrimPrefix(r.URL.Path, "/"), r.URL.Query().Get("name"))
		}),
	}
	c.stopped.Go(func() {
		<-c.closed
		server.Close()
	})
	server.Serve(l)
}

type connKey struct{}

// mayFetchFiles returns an error if the node of a request may not get files. It is asked for each file, because a
// connection can be older than the removal of its node.
func (c *Leader) mayFetchFiles(r *http.Request) error {
	conn, ok := r.Context().Value(connKey{}).(net.Conn)
	if !ok {
		return errors.New("the connection has no certificate")
	}
	node, role, err := peer.NodeOf(conn)
	if err != nil {
		return err
	}
	return c.permitProtocol(node, role, peer.FilesProtocol)
}

// sendFile sends a file, or the reason why not.
func (c *Leader) sendFile(w http.ResponseWriter, kind, name string) {
	if c.OpenFile == nil {
		http.Error(w, "the files of this cluster are in a bucket", http.StatusNotFound)
		return
	}
	f, err := c.OpenFile(kind, name)
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "this core does not have the file", http.StatusNotFound)
		return
	}
	var part io.ReadCloser
	if err == nil {
		defer f.Close()
		part, err = f.Section(0, f.Size())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer part.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(f.Size(), 10))
	control := http.NewResponseController(w)
	buffer := make([]byte, fileBuffer)
	for {
		n, err := part.Read(buffer)
		control.SetWriteDeadline(time.Now().Add(fileStall))
		if _, werr := w.Write(buffer[:n]); werr != nil || errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			c.Log.Error("reading a file for another core failed", "kind", kind, "file", name, "err", err)
			panic(http.ErrAbortHandler) // the other core must not take the part for the file
		}
	}
}

// fileSources are the other cores for FetchFile.
type fileSources struct {
	id     *peer.Identity
	client *http.Client

	mu        sync.Mutex
	downUntil map[string]time.Time // cores that could not be reached
}

// newFileSources returns the sources of a core's files.
func newFileSources(d *Directory) (*fileSources, error) {
	id, err := d.Identity()
	if err != nil {
		return nil, err
	}
	s := &fileSources{id: id, downUntil: map[string]time.Time{}}
	s.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			node, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			for _, m := range d.ListMembers() {
				if m.Node == node && m.Role == peer.Core {
					ctx, cancel := context.WithTimeout(ctx, peer.DialTimeout)
					defer cancel()
					return id.DialNode(ctx, m.Address, node, peer.FilesProtocol)
				}
			}
			return nil, fmt.Errorf("node %s is not a core of the cluster", node)
		},
		MaxConnsPerHost:       MaxFileFetches,
		IdleConnTimeout:       30 * time.Second,
		ResponseHeaderTimeout: fileStall,
		DisableCompression:    true,
	}}
	return s, nil
}

// isDown reports whether a core could not be reached a moment ago.
func (s *fileSources) isDown(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.downUntil[node])
}

func (s *fileSources) setDown(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.downUntil[node] = time.Now().Add(coreRetryInterval)
}

// FetchFile gets a file from the first other core that has it, and calls save with its size in bytes and its content.
// It returns ErrNoCoreHas if all other cores say that they do not have it, a *CoresDownError if some could not be
// asked, and any error of save that is not caused by the connection.
func (c *Leader) FetchFile(ctx context.Context, kind, name string, save func(size int64, r io.Reader) error) error {
	var down []string
	for _, m := range c.Directory.ListMembers() {
		if m.Role != peer.Core || m.Node == c.Directory.Node {
			continue
		}
		if c.sources.isDown(m.Node) {
			down = append(down, m.Node)
			continue
		}
		found, err := c.sources.fetch(ctx, m.Node, kind, name, save)
		var broken *brokenTransfer
		switch {
		case errors.As(err, &broken):
			c.Log.Warn("fetching a file from another core failed", "node", m.Node, "file", name, "err", broken.err)
			if broken.down {
				c.sources.setDown(m.Node)
			}
			down = append(down, m.Node)
		case found || err != nil:
			return err
		}
	}
	if len(down) > 0 {
		slices.Sort(down)
		return &CoresDownError{down}
	}
	return ErrNoCoreHas
}

// brokenTransfer is the error of a core that could not be reached, or whose answer broke off.
type brokenTransfer struct {
	err  error
	down bool // it could not be reached
}

func (e *brokenTransfer) Error() string { return e.err.Error() }

// fetch gets a file from one core.
func (s *fileSources) fetch(
	ctx context.Context, node, kind, name string, save func(int64, io.Reader) error,
) (found bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	address := url.URL{Scheme: "http", Host: node, Path: "/" + kind, RawQuery: url.Values{"name": {name}}.Encode()}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return false, err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return false, &brokenTransfer{err, true}
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusNotFound:
		io.Copy(io.Discard, io.LimitReader(answer.Body, smallLimit)) // so that the connection can be used again
		return false, nil
	case answer.StatusCode != http.StatusOK || answer.ContentLength < 0:
		text, _ := io.ReadAll(io.LimitReader(answer.Body, smallLimit))
		err := fmt.Errorf("answered %s: %s", answer.Status, strings.TrimSpace(string(text)))
		return false, &brokenTransfer{err, false}
	}
	body := &stallReader{r: answer.Body, timer: time.AfterFunc(fileStall, cancel)}
	defer body.timer.Stop()
	err = save(answer.ContentLength, body)
	if err != nil && body.err != nil {
		return true, &brokenTransfer{body.err, false}
	}
	return true, err
}

// stallReader resets a timer with each part that it reads, and stores the error that ended it.
type stallReader struct {
	r     io.Reader
	timer *time.Timer
	err   error
}

func (s *stallReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.timer.Reset(fileStall)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
