package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"parley/cmd/internal/cluster"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/wire/peer"
)

// backupFolders are the folders and files of a data directory that a backup contains besides the store. The search
// index is rebuilt after a restore; the secret is left out on purpose. Files in a bucket are not in a backup: it has
// their place, and its rows have their hashes.
var backupFolders = []string{"uploads/content", "uploads/pictures", "uploads/exports", FilePlaceFile}

// backupRequest is the body of a backup at the control socket.
type backupRequest struct {
	WithFiles  bool // refuse the backup at a core that has only a part of the files
	Incomplete bool // write the backup of a leader although files are missing
}

// backupWarningHeader is the header of an answer that names the missing parts of the backup.
const backupWarningHeader = "Parley-Note"

// WriteBackup writes a backup of a data directory to w. The server that runs there writes it while it serves; if no
// server runs, WriteBackup reads the directory itself. warning names missing parts of the backup; withFiles refuses a
// backup that may lack files. A backup that lacks files of a core that should have them all is refused, unless
// incomplete is set.
func WriteBackup(data string, w io.Writer, withFiles, incomplete bool) (warning string, err error) {
	body, err := json.Marshal(backupRequest{withFiles, incomplete})
	if err != nil {
		return "", err
	}
	r, err := ControlClient(data, 0).Post(controlURL("backup"), "application/json", bytes.NewReader(body))
	if err == nil {
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(r.Body, maxCommandBytes))
			return "", fmt.Errorf("backup: the server answered: %s", bytes.TrimSpace(text))
		}
		if _, err := io.Copy(w, r.Body); err != nil {
			return "", fmt.Errorf("backup: %w (if the server stopped the backup, its log has the reason)", err)
		}
		return r.Header.Get(backupWarningHeader), nil
	}
	if warning, err = CheckStoppedData(data); err != nil {
		return "", err
	}
	if cluster.Exists(data) {
		lacking, err := lackingStopped(data)
		if err != nil {
			return "", err
		}
		if lacking != "" && !incomplete {
			return "", errors.New(lacking + incompleteHint)
		}
		warning = strings.TrimSpace(warning + "\n" + lacking)
	}
	store, err := snapshot.Open(data, snapshot.Options{})
	if err != nil {
		return "", StartError(data, err)
	}
	return warning, errors.Join(store.Backup(w, backupFolders...), store.Close())
}

// CheckStoppedData returns an error if a data directory, in which no server runs, has no organizations that could be
// read. warning says that newer changes may be missing.
func CheckStoppedData(data string) (warning string, err error) {
	if err := CheckDataVersion(data); err != nil {
		return "", err
	}
	if cluster.Exists(data) {
		node, err := cluster.OpenDirectory(data)
		if err != nil {
			return "", err
		}
		if node.Role == peer.Edge {
			return "", fmt.Errorf("no server is running in %s, and an edge stores nothing: run the command at a core",
				data)
		}
		warning = "this core is not running, so it may lack the newest changes of the cluster: run the command at a " +
			"running core, if there is one"
	}
	if !snapshot.Exists(data) {
		return "", fmt.Errorf("%s is not the data directory of a server", data)
	}
	return warning, nil
}

// backupRefusal returns the reason why this node writes no backup, or a warning about missing parts of a backup.
func (o *operator) backupRefusal(r *http.Request) (warning string, refusal error) {
	var in backupRequest
	if err := json.NewDecoder(io.LimitReader(r.Body, maxCommandBytes)).Decode(&in); err != nil {
		return "", err
	}
	switch {
	case o.edge != nil && o.core == nil:
		return "", errAtEdge(o.edge)
	case o.core == nil || o.files.IsRemote():
		return "", nil
	}
	lacking, err := lackingFiles(snapshot.Disk{Store: o.store}, o.files)
	if err != nil {
		return "", err
	}
	if o.core.IsLeader() {
		if lacking != "" && (in.WithFiles || !in.Incomplete) {
			return "", errors.New(lacking + incompleteHint)
		}
		return strings.ReplaceAll(lacking, "\n", "; "), nil
	}
	warning = "this core has only the files that were uploaded while it was the leader, because the cluster has no " +
		"bucket for them; the leader is " + o.edge.Leader()
	if in.WithFiles {
		return "", errors.New(warning + ": run the command there")
	}
	if lacking != "" {
		warning += "; " + strings.ReplaceAll(lacking, "\n", "; ")
	}
	return warning, nil
}

// incompleteHint says what to do about a refused backup.
const incompleteHint = "\nCopy the missing files from the data directories of the other cores into this one, with the " +
	"same names below uploads. Or back up without them: parley backup --incomplete"

// lackingFiles returns which files the rows of all organizations refer to and a core does not have; "": none. They were
// uploaded while another core was the leader. It reads the state of one organization at a time, as a start does.
func lackingFiles(disk snapshot.Disk, store *files.Store) (lacking string, err error) {
	var list strings.Builder
	bad, err := CheckFiles(disk, store, false, &list)
	if err != nil || bad == 0 {
		return "", err
	}
	return fmt.Sprintf("the backup would lack %d files, which other cores may have:\n%s", bad,
		strings.TrimSpace(list.String())), nil
}

// lackingStopped is lackingFiles for the data directory of a core that is not running. Files in a bucket are not part of
// a backup.
func lackingStopped(data string) (lacking string, err error) {
	place, err := ReadFilePlace(data)
	if err != nil || place.Files != "" {
		return "", err
	}
	var list strings.Builder
	bad, err := CheckStoppedFiles(data, false, &list)
	if err != nil || bad == 0 {
		return "", err
	}
	return fmt.Sprintf("the backup would lack %d files, which other cores may have:\n%s", bad,
		strings.TrimSpace(list.String())), nil
}

// handleBackup streams a backup. If it fails in the middle, it cuts the connection, so that the client does not mistake
// half a backup for a whole one; the reason is only in this server's log.
func handleBackup(o *operator, log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		warning, err := o.backupRefusal(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		// Tables that Pebble replaces during a backup stay on the disk until its end.
		if err := o.checkSpace(0); err != nil {
			http.Error(
				w,
				"the disk of the data directory is almost full (disk-min-free): make space first, or stop the "+
					"server and back up then",
				http.StatusInsufficientStorage,
			)
			return
		}
		defer o.files.PauseRemoval()()
		w.Header().Set("Content-Type", "application/x-tar")
		w.Header().Set(backupWarningHeader, warning)
		if err := o.store.Backup(w, backupFolders...); err != nil {
			log.Error("backup failed", "err", err)
			panic(http.ErrAbortHandler)
		}
	}
}
