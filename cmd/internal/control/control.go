package control

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
	"time"
)

// SocketName is the name of a running server's control socket, which takes the operator's commands. It is in the
// data directory, and only the owner of the directory can open it. A command does the same on a stopped server: it then
// opens the directory itself.
const SocketName = "control"

// MaxCommandBytes limits the body of one command.
const MaxCommandBytes = 1 << 20

// MaxAnswerBytes limits the answer to one command.
const MaxAnswerBytes = 64 << 20

// Serve opens the control socket of a data directory and lets mux answer requests, until the returned function closes
// it.
func Serve(dir string, mux http.Handler, log *slog.Logger) (stop func() error, err error) {
	path := filepath.Join(dir, SocketName)
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
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("control socket failed", "err", err)
		}
	}()
	return s.Close, nil
}

// Client returns an HTTP client that is connected to the control socket of a data directory. The host name in
// its requests is ignored. A timeout of 0 means none.
func Client(dir string, timeout time.Duration) *http.Client {
	path := filepath.Join(dir, SocketName)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return &http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
}

// URL returns the URL of a request to the control socket.
func URL(request string) string { return "http://parley/" + request }

// commandTimeout is how long Send waits for an answer.
const commandTimeout = time.Minute

// Send sends a command to the server that runs in a data directory; ran is false if no server runs there. A server that
// does not answer may have executed the command.
func Send(dir, name string, args map[string]string) (answer map[string]any, ran bool, err error) {
	body, err := json.Marshal(args)
	if err != nil {
		return nil, true, err
	}
	r, err := Client(dir, commandTimeout).Post(URL(name), "application/json", bytes.NewReader(body))
	if e := (*net.OpError)(nil); errors.As(err, &e) && e.Op == "dial" {
		return nil, false, nil
	}
	if err != nil {
		return nil, true,
			fmt.Errorf("the server did not answer; it may have executed the command, or does so still: %w", err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(io.LimitReader(r.Body, MaxAnswerBytes))
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

// ErrAtEdge is the answer to imports, exports and backups at an edge, which has no disk.
func ErrAtEdge(leader string) error {
	return fmt.Errorf("an edge stores nothing: run the command at a core; the leader is %s", leader)
}
