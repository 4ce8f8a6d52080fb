package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/control"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/migration"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/wire/peer"
)

// folders are the folders and files of a data directory that a backup contains besides the store. The search
// index is rebuilt after a restore; the secret is left out on purpose. Files in a bucket are not in a backup: it has
// their place, and its rows have their hashes.
var folders = []string{"uploads/content", "uploads/pictures", "uploads/exports", orgfiles.PlaceFile}

// Options are the options of a backup. They are also the body of the request at the control socket.
type Options struct {
	// Incomplete lets the backup of a core lack files that no core has given. Without it such a backup is refused.
	Incomplete bool
	// Every is the interval of backups to a bucket; 0: this is a single one.
	Every time.Duration
	// Only is the subdomain of the organization whose files are needed; nil: the files of all organizations are.
	Only *string
}

// warningHeader is the header of an answer that names the missing parts of the backup.
const warningHeader = "Parley-Note"

// Write writes a backup of a data directory to w. The server that runs there writes it while it serves; if no
// server runs, Write reads the directory itself. A core without a bucket first fetches the files that it lacks
// from the other cores. warning names missing parts of the backup.
func Write(data string, w io.Writer, o Options) (warning string, err error) {
	body, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	r, err := control.Client(data, 0).Post(control.URL("backup"), "application/json", bytes.NewReader(body))
	if err == nil {
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(r.Body, control.MaxCommandBytes))
			return "", fmt.Errorf("backup: the server answered: %s", bytes.TrimSpace(text))
		}
		if _, err := io.Copy(w, r.Body); err != nil {
			return "", fmt.Errorf("backup: %w (if the server stopped the backup, its log has the reason)", err)
		}
		return r.Header.Get(warningHeader), nil
	}
	store, warning, err := openStopped(data, o)
	if err != nil {
		return "", err
	}
	return warning, errors.Join(store.Backup(w, folders...), store.Close())
}

// CheckStopped returns an error if a data directory, in which no server runs, has no organizations that could be
// read. warning says that newer changes may be missing.
func CheckStopped(data string) (warning string, err error) {
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

// Source is a running server whose backup is written.
type Source struct {
	Store *snapshot.Store
	Files *orgfiles.Fetcher // fetches files from other cores; nil: all files are here, or in a bucket
	// RealmByName finds an organization by its subdomain.
	RealmByName func(subdomain string) (realm.ID, realm.Site, bool)
	// PauseRemoval lets no file be removed until the function that it returns is called.
	PauseRemoval func() func()
	CheckSpace   func(bytes int64) error
	// Leader returns the node of the leader, at an edge; nil: the server has a store.
	Leader func() string
	Log    *slog.Logger
}

// refusal returns the reason why this server writes no backup, or a warning about missing parts of a backup. A core
// without a bucket fetches the files that it lacks.
func (o *Source) refusal(r *http.Request) (in Options, warning string, refusal error) {
	if err := json.NewDecoder(io.LimitReader(r.Body, control.MaxCommandBytes)).Decode(&in); err != nil {
		return in, "", err
	}
	if o.Files == nil {
		return in, "", nil
	}
	var only realm.ID
	if in.Only != nil {
		only, _, _ = o.RealmByName(*in.Only) // if it does not exist, the export says so
	}
	left, err := o.Files.CollectAll(snapshot.Disk{Store: o.Store}, only)
	if err != nil {
		return in, "", fmt.Errorf("fetch the files of other cores: %w", err)
	}
	lacking := orgfiles.DescribeLacking(left)
	if lacking != "" && !in.Incomplete {
		return in, "", orgfiles.ErrLacking(lacking)
	}
	return in, strings.ReplaceAll(lacking, "\n", "; "), nil
}

// lackingStopped returns which files the backup of a core that is not running would lack; "": none, or it is no core.
// Files in a bucket are not part of a backup. subdomain is the organization whose files are needed; nil: all are.
func lackingStopped(data string, subdomain *string) (lacking string, err error) {
	place, err := orgfiles.ReadPlace(data)
	if err != nil || place.Files != "" || !cluster.Exists(data) {
		return "", err
	}
	store, err := snapshot.OpenReadOnly(data, snapshot.Options{})
	if err != nil {
		return "", datadir.StartError(data, err)
	}
	disk, only := snapshot.Disk{Store: store}, realm.ID(0)
	if subdomain != nil {
		have, err := migration.FindOrganizations(disk)
		if err != nil {
			return "", errors.Join(err, store.Close())
		}
		only = have.BySubdomain[*subdomain]
	}
	list, _, err := orgfiles.FindMissing(disk, files.OpenReadOnly(datadir.UploadsDir(data), nil), only, false)
	return orgfiles.DescribeLacking(list), errors.Join(err, store.Close())
}

// CheckStoppedFiles returns an error that names the files of an organization that a core lacks. No server runs in
// the data directory. It returns nil for the data directory of a single server, whose files are nowhere else.
func CheckStoppedFiles(data, subdomain string) error {
	lacking, err := lackingStopped(data, &subdomain)
	if err == nil && lacking != "" {
		err = orgfiles.ErrLacking(lacking)
	}
	return err
}

// ServeHTTP streams a backup. If it fails in the middle, it cuts the connection, so that the client does not mistake
// half a backup for a whole one; the reason is only in this server's log.
func (o *Source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !o.mayWrite(w) {
		return
	}
	defer o.PauseRemoval()()
	_, warning, err := o.refusal(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set(warningHeader, warning)
	if err := o.Store.Backup(w, folders...); err != nil {
		o.Log.Error("backup failed", "err", err)
		panic(http.ErrAbortHandler)
	}
}

// mayWrite reports whether this node can write a backup now, or else answers why not.
func (o *Source) mayWrite(w http.ResponseWriter) bool {
	if o.Leader != nil {
		http.Error(w, control.ErrAtEdge(o.Leader()).Error(), http.StatusConflict)
		return false
	}
	// Tables that Pebble replaces during a backup stay on the disk until its end.
	if err := o.CheckSpace(0); err != nil {
		http.Error(
			w,
			"the disk of the data directory is almost full (disk-min-free): make space first, or stop the "+
				"server and back up then",
			http.StatusInsufficientStorage,
		)
		return false
	}
	return true
}
