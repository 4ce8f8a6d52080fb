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

	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/datadir"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/wire/peer"
)

// backupFolders are the folders and files of a data directory that a backup contains besides the store. The search
// index is rebuilt after a restore; the secret is left out on purpose. Files in a bucket are not in a backup: it has
// their place, and its rows have their hashes.
var backupFolders = []string{"uploads/content", "uploads/pictures", "uploads/exports", FilePlaceFile}

// BackupOptions are the options of a backup. They are also the body of the request at the control socket.
type BackupOptions struct {
	// Incomplete lets the backup of a core lack files that no core has given. Without it such a backup is refused.
	Incomplete bool
	// Only is the subdomain of the organization whose files are needed; nil: the files of all organizations are.
	Only *string
}

// backupWarningHeader is the header of an answer that names the missing parts of the backup.
const backupWarningHeader = "Parley-Note"

// WriteBackup writes a backup of a data directory to w. The server that runs there writes it while it serves; if no
// server runs, WriteBackup reads the directory itself. A core without a bucket first fetches the files that it lacks
// from the other cores. warning names missing parts of the backup.
func WriteBackup(data string, w io.Writer, o BackupOptions) (warning string, err error) {
	body, err := json.Marshal(o)
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
	lacking, err := lackingStopped(data, o.Only)
	if err != nil {
		return "", err
	}
	if lacking != "" && !o.Incomplete {
		return "", errLacking(lacking)
	}
	warning = strings.TrimSpace(warning + "\n" + lacking)
	store, err := snapshot.Open(data, snapshot.Options{})
	if err != nil {
		return "", datadir.StartError(data, err)
	}
	return warning, errors.Join(store.Backup(w, backupFolders...), store.Close())
}

// CheckStoppedData returns an error if a data directory, in which no server runs, has no organizations that could be
// read. warning says that newer changes may be missing.
func CheckStoppedData(data string) (warning string, err error) {
	if err := datadir.CheckVersion(data); err != nil {
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

// backupRefusal returns the reason why this server writes no backup, or a warning about missing parts of a backup. A
// core without a bucket fetches the files that it lacks.
func (o *operator) backupRefusal(r *http.Request) (warning string, refusal error) {
	var in BackupOptions
	if err := json.NewDecoder(io.LimitReader(r.Body, maxCommandBytes)).Decode(&in); err != nil {
		return "", err
	}
	if o.fetcher == nil {
		return "", nil
	}
	var only realm.ID
	if in.Only != nil {
		only, _, _ = o.orgs.RealmByName(*in.Only) // if it does not exist, the export says so
	}
	left, err := o.collectFiles(only)
	if err != nil {
		return "", fmt.Errorf("fetch the files of other cores: %w", err)
	}
	lacking := describeLacking(left)
	if lacking != "" && !in.Incomplete {
		return "", errLacking(lacking)
	}
	return strings.ReplaceAll(lacking, "\n", "; "), nil
}

// lackingStopped returns which files the backup of a core that is not running would lack; "": none, or it is no core.
// Files in a bucket are not part of a backup. subdomain is the organization whose files are needed; nil: all are.
func lackingStopped(data string, subdomain *string) (lacking string, err error) {
	place, err := ReadFilePlace(data)
	if err != nil || place.Files != "" || !cluster.Exists(data) {
		return "", err
	}
	store, err := snapshot.OpenReadOnly(data, snapshot.Options{})
	if err != nil {
		return "", datadir.StartError(data, err)
	}
	disk, only := snapshot.Disk{Store: store}, realm.ID(0)
	if subdomain != nil {
		have, err := FindOrganizations(disk)
		if err != nil {
			return "", errors.Join(err, store.Close())
		}
		only = have.BySubdomain[*subdomain]
	}
	list, _, err := findMissing(disk, files.OpenReadOnly(datadir.UploadsDir(data), nil), only, false)
	return describeLacking(list), errors.Join(err, store.Close())
}

// CheckStoppedCoreFiles returns an error that names the files of an organization that a core lacks. No server runs in
// the data directory. It returns nil for the data directory of a single server, whose files are nowhere else.
func CheckStoppedCoreFiles(data, subdomain string) error {
	lacking, err := lackingStopped(data, &subdomain)
	if err == nil && lacking != "" {
		err = errLacking(lacking)
	}
	return err
}

// handleBackup streams a backup. If it fails in the middle, it cuts the connection, so that the client does not mistake
// half a backup for a whole one; the reason is only in this server's log.
func handleBackup(o *operator, log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if o.edge != nil && o.core == nil {
			http.Error(w, errAtEdge(o.edge).Error(), http.StatusConflict)
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
		warning, err := o.backupRefusal(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.Header().Set("Content-Type", "application/x-tar")
		w.Header().Set(backupWarningHeader, warning)
		if err := o.store.Backup(w, backupFolders...); err != nil {
			log.Error("backup failed", "err", err)
			panic(http.ErrAbortHandler)
		}
	}
}
