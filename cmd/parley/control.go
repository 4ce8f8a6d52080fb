package main

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

	"parley/actors"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/wire"
	"parley/wire/httpd"
)

// controlSocketName is where a running server takes the operator's commands: a socket in the data directory that only the
// directory's owner may open. A command works the same on a stopped server: then it opens the directory itself.
const controlSocketName = "control"

// maxCommandBytes is how large one command may be, in bytes.
const maxCommandBytes = 1 << 20

// operator is what commands need: the house, and how passwords are hashed.
type operator struct {
	house     *actors.Server
	sites     *siteTable
	passwords *httpd.Passwords
	store     *snapshot.Store

	handover *handover    // nil on a stopped server
	files    *files.Store // "
}

// operatorCommand is one command of the operator.
type operatorCommand func(o *operator, args map[string]string) (any, error)

// serveControl answers commands until the listener closes.
func serveControl(dir string, o *operator, log *slog.Logger) (func() error, error) {
	path := filepath.Join(dir, controlSocketName)
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
	mux.HandleFunc("POST /{order}", func(w http.ResponseWriter, r *http.Request) {
		var args map[string]string
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommandBytes)).Decode(&args)
		var answer any
		if err == nil {
			answer, err = o.run(r.PathValue("order"), args)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			answer = map[string]string{"error": err.Error()}
		}
		json.NewEncoder(w).Encode(answer)
	})
	mux.HandleFunc("POST /backup", serveBackup(o.store, o.files, log))
	mux.HandleFunc("POST /lend", o.handover.handleCopyStore)
	mux.HandleFunc("POST /yield", o.handover.handleYield)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("control socket", "error", err)
		}
	}()
	return s.Close, nil
}

func (o *operator) run(name string, args map[string]string) (any, error) {
	do, ok := operatorCommands[name]
	if !ok {
		return nil, fmt.Errorf("no command %q", name)
	}
	return do(o, args)
}

// runOnData carries out an order on the server that runs in a data directory, or on the directory itself if none does.
func runOnData(dir, name string, args map[string]string) (map[string]any, error) {
	if answer, ran, err := runOnServer(dir, name, args); ran {
		return answer, err
	}
	if _, err := os.Stat(dir); err != nil && name != "realm-create" {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	store, err := snapshot.Open(dir, snapshot.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	secret, err := readSecret(dir)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	c := defaults()
	sites := newSiteTable("http://" + c.Listen)
	house, err := actors.Open(snapshot.Disk{Store: store}, actors.Options{Protocol: wire.SessionProtocol{}, Renderer: &wire.Renderer{}, Secret: secret, Log: slog.New(slog.DiscardHandler), Site: sites.site})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	sites.house = house
	o := &operator{house: house, sites: sites, passwords: httpd.NewPasswords(), store: store}
	answer, err := o.run(name, args)
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err = errors.Join(err, house.Close(ctx), store.Close()); err != nil {
		return nil, err
	}
	return asMap(answer)
}

func asMap(v any) (m map[string]any, err error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return m, json.Unmarshal(data, &m)
}

// controlClient speaks to the server that runs in a data directory.
func controlClient(dir string, patience time.Duration) *http.Client {
	path := filepath.Join(dir, controlSocketName)
	return &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}}
}

// runOnServer sends an order to a running server; ran is false if there is none.
func runOnServer(dir, name string, args map[string]string) (answer map[string]any, ran bool, err error) {
	body, err := json.Marshal(args)
	if err != nil {
		return nil, true, err
	}
	r, err := controlClient(dir, time.Minute).Post("http://parley/"+name, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, false, nil
	}
	defer r.Body.Close()
	data, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return nil, true, err
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, true, fmt.Errorf("the server answered %q", data)
	}
	if r.StatusCode != 200 {
		return nil, true, fmt.Errorf("%v", answer["error"])
	}
	return answer, true, nil
}
