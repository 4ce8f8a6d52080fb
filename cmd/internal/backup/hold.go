package backup

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"parley/cmd/internal/control"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot"
)

// maxHeldBytes limits the list of the files of a held backup, which is one line of JSON: 100,000 tables.
const maxHeldBytes = 16 << 20

// Held is the files of a backup, which stay on the disk until Release. If the server ends before, Lost is closed.
type Held struct {
	Files   []snapshot.BackupFile
	Warning string // names missing parts of the backup
	Lost    <-chan struct{}
	Release func() error
}

// heldAnswer is the first line of the server's answer. The answer ends when the server ends.
type heldAnswer struct {
	Files   []snapshot.BackupFile
	Warning string
}

// Hold returns the files of a backup of a data directory: of the server that runs there, or else of the directory
// itself. The files that users have uploaded are not removed until Release. They are not in the list.
func Hold(data string, o Options) (*Held, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	r, err := control.Client(data, 0).Post(control.URL("hold-backup"), "application/json", bytes.NewReader(body))
	if err != nil {
		return holdStopped(data, o)
	}
	if r.StatusCode != http.StatusOK {
		defer r.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(r.Body, control.MaxCommandBytes))
		return nil, fmt.Errorf("backup: the server answered: %s", bytes.TrimSpace(text))
	}
	lines := bufio.NewReader(r.Body)
	var answer heldAnswer
	err = json.NewDecoder(io.LimitReader(lines, maxHeldBytes)).Decode(&answer)
	if err != nil {
		r.Body.Close()
		return nil, fmt.Errorf("backup: the server ended: %w", err)
	}
	lost := make(chan struct{})
	go func() {
		io.Copy(io.Discard, lines)
		close(lost)
	}()
	return &Held{answer.Files, answer.Warning, lost, r.Body.Close}, nil
}

// holdStopped is Hold for a directory in which no server runs.
func holdStopped(data string, o Options) (*Held, error) {
	store, warning, err := openStopped(data, o)
	if err != nil {
		return nil, err
	}
	list, release, err := store.HoldBackup()
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &Held{list, warning, nil, func() error { return errors.Join(release(), store.Close()) }}, nil
}

// openStopped opens the store of a data directory in which no server runs, unless a backup of it would lack something.
func openStopped(data string, o Options) (store *snapshot.Store, warning string, err error) {
	if warning, err = CheckStopped(data); err != nil {
		return nil, "", err
	}
	lacking, err := lackingStopped(data, o.Only)
	if err != nil {
		return nil, "", err
	}
	if lacking != "" && !o.Incomplete {
		return nil, "", orgfiles.ErrLacking(lacking)
	}
	if store, err = snapshot.Open(data, snapshot.Options{}); err != nil {
		return nil, "", datadir.StartError(data, err)
	}
	return store, strings.TrimSpace(warning + "\n" + lacking), nil
}

// ServeHeld answers with the files of a backup, and holds them until the client closes the connection.
func (o *Source) ServeHeld(w http.ResponseWriter, r *http.Request) {
	if !o.mayWrite(w) {
		return
	}
	defer o.PauseRemoval()()
	in, warning, err := o.refusal(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	o.Store.KeepFacts(snapshot.KeptForBackups(in.Every))
	list, release, err := o.Store.HoldBackup()
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	defer func() {
		if err := release(); err != nil {
			o.Log.Error("the files of a backup were not removed", "err", err)
		}
	}()
	if err := json.NewEncoder(w).Encode(heldAnswer{list, warning}); err != nil {
		return
	}
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	<-r.Context().Done()
}
