package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"parley/snapshot"
)

// backupFolders are the folders and files of a data directory that a backup contains besides the store. The search
// index is rebuilt after a restore; the secret is left out on purpose. Files in a bucket are not in a backup: it has
// their place, and its rows have their hashes.
var backupFolders = []string{"uploads/content", "uploads/pictures", "uploads/exports", FilePlaceFile}

// WriteBackup writes a backup of a data directory to w. It asks the server that runs there, which serves meanwhile, or
// reads the directory itself if no server runs.
func WriteBackup(data string, w io.Writer) error {
	r, err := ControlClient(data, 0).Post(controlURL("backup"), "application/json", strings.NewReader("{}"))
	if err == nil {
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(r.Body, maxCommandBytes))
			return fmt.Errorf("backup: the server answered %s", text)
		}
		if _, err := io.Copy(w, r.Body); err != nil {
			return fmt.Errorf("backup: %w (if the server stopped the backup, its log has the reason)", err)
		}
		return nil
	}
	if err := CheckDataVersion(data); err != nil {
		return err
	}
	store, err := snapshot.Open(data, snapshot.Options{})
	if err != nil {
		return StartError(data, err)
	}
	return errors.Join(store.Backup(w, backupFolders...), store.Close())
}

// handleBackup streams a backup. If it fails in the middle, it cuts the connection, so that the client does not mistake
// half a backup for a whole one; the reason is only in this server's log.
func handleBackup(o *operator, log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// A backup keeps the tables that Pebble replaces meanwhile.
		if err := o.roomFor(0); err != nil {
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
		if err := o.store.Backup(w, backupFolders...); err != nil {
			log.Error("backup failed", "err", err)
			panic(http.ErrAbortHandler)
		}
	}
}
