package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/moving"
	"parley/snapshot"
)

// importLine is one line of the answer to an import at the control socket. Exactly one field is set.
type importLine struct {
	Progress *moving.Progress `json:"progress,omitempty"`
	Reports  []*moving.Report `json:"reports,omitempty"`
	Error    string           `json:"error,omitempty"`
}

// Import imports the organizations of another chat server's archive: into the server that runs in a data directory, or
// into the directory itself if no server runs there.
func Import(dir string, o moving.Options) (reports []*moving.Report, err error) {
	if o.File, err = filepath.Abs(o.File); err != nil {
		return nil, err
	}
	if _, err := os.Stat(o.File); err != nil {
		return nil, err
	}
	if err := CheckSubdomain(o.Realm); err != nil {
		return nil, err
	}
	if o.DryRun {
		return moving.Run(context.Background(), importDefaults(o, dir, nil), moving.Target{})
	}
	if reports, ran, err := remoteImport(dir, o); ran {
		return reports, err
	}
	if err := CheckDataVersion(dir); err != nil {
		return nil, err
	}
	if _, err := openStoppedNode(dir); err != nil {
		return nil, err
	}
	store, err := snapshot.Open(dir, snapshot.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, StartError(dir, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	secret, err := LoadSecret(dir)
	if err != nil {
		return nil, err
	}
	uploads, end, err := OpenFiles(dir, false)
	if err != nil {
		return nil, err
	}
	defer end()
	disk := snapshot.Disk{Store: store}
	return moving.Run(context.Background(), importDefaults(o, dir, secret), moving.Target{Disk: disk, Files: uploads,
		Reserve: func(subdomain string, wanted realm.ID) (realm.ID, error) {
			return reserveStopped(disk, subdomain, wanted)
		}})
}

// importDefaults fills in the options that the server knows.
func importDefaults(o moving.Options, dir string, secret []byte) moving.Options {
	o.Dir, o.Secret, o.Now = dir, secret, time.Now
	if o.Site == nil {
		o.Site = newSiteTable("http://" + DefaultSettings().Listen).site
	}
	return o
}

// reserveStopped returns the number for an organization in the directory of a stopped server.
func reserveStopped(disk snapshot.Disk, subdomain string, wanted realm.ID) (realm.ID, error) {
	ids, err := disk.Realms()
	if err != nil {
		return 0, err
	}
	last := realm.ID(0)
	for _, id := range ids {
		last = max(last, id)
		if id == wanted {
			continue
		}
		name, founded, err := disk.Subdomain(id)
		if err != nil {
			return 0, err
		}
		if founded && name == subdomain {
			return 0, fmt.Errorf("organization %q exists already, as number %d; choose another name with --realm",
				subdomain, id)
		}
	}
	if wanted != 0 {
		return wanted, nil
	}
	return last + 1, nil
}

// remoteImport sends an import to the server that runs in a data directory; ran is false if no server runs there.
func remoteImport(dir string, o moving.Options) (reports []*moving.Report, ran bool, err error) {
	body, err := json.Marshal(importRequest{o.Format, o.File, o.Realm, o.Team, o.Threads, o.Token, o.Files, o.Memory,
		o.Restart})
	if err != nil {
		return nil, true, err
	}
	r, err := ControlClient(dir, 0).Post(controlURL("import"), "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, false, nil
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, maxCommandAnswerBytes)
	for lines.Scan() {
		var l importLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, true, fmt.Errorf("the server answered %q", lines.Bytes())
		}
		switch {
		case l.Progress != nil && o.Progress != nil:
			o.Progress(*l.Progress)
		case l.Error != "":
			return l.Reports, true, errors.New(l.Error)
		case l.Reports != nil:
			return l.Reports, true, nil
		}
	}
	return nil, true, errors.Join(lines.Err(),
		errors.New("the server stopped during the import; run the same command again to continue it"))
}

// importRequest is the body of an import at the control socket.
type importRequest struct {
	Format, File, Realm, Team string
	Threads                   bool
	Token, Files              string
	Memory                    int64
	Restart                   bool
}

// CheckStoppedImport returns an error if the export of an organization cannot be added to the data directory of a
// stopped server, because it is one of a cluster: what is written there is not in the replicated log.
func CheckStoppedImport(dir string) error {
	if cluster.Exists(dir) {
		return errors.New("an exported organization can be added to a single server only, but this is a node of a " +
			"cluster: make the last core a single server with parley cluster dissolve, import, and join new cores")
	}
	return nil
}

// errImportAtEdge is the answer to imports at an edge, which has no disk.
var errImportAtEdge = errors.New("this is an edge, which stores nothing: give the command at a core")

// importTarget returns the place of an import into this server, or into its cluster.
func (o *operator) importTarget(ctx context.Context) moving.Target {
	if o.core != nil {
		var store moving.Files = o.files
		if !o.files.IsRemote() {
			store = leaderFiles{o.files, o.core}
		}
		return clusterTarget(&cluster.Importer{Ctx: ctx, Core: o.core, Edge: o.edge}, store)
	}
	return moving.Target{Disk: snapshot.Disk{Store: o.store}, Files: o.files, Reserve: o.orgs.ReserveRealm,
		Serve: o.orgs.ServeImported}
}

// oneImport lets one import run at a time: each has a memory limit of its own.
var oneImport sync.Mutex

// handleImport runs an import while the server serves its other organizations. It streams the progress, then the
// reports. If the client goes away, the import stops; it can be continued.
func (o *operator) handleImport(dir string, log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in importRequest
		answer := json.NewEncoder(w)
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommandBytes)).Decode(&in); err != nil {
			answer.Encode(importLine{Error: err.Error()})
			return
		}
		if o.edge != nil && o.core == nil {
			answer.Encode(importLine{Error: errImportAtEdge.Error()})
			return
		}
		if !oneImport.TryLock() {
			answer.Encode(importLine{Error: "another import is running"})
			return
		}
		defer oneImport.Unlock()
		secret, err := LoadSecret(dir)
		if err != nil {
			answer.Encode(importLine{Error: err.Error()})
			return
		}
		began := time.Now()
		options := moving.Options{Format: in.Format, File: in.File, Realm: in.Realm, Team: in.Team, Threads: in.Threads,
			Token: in.Token, Files: in.Files, Memory: in.Memory, Restart: in.Restart, Site: o.sites.site,
			Progress: func(p moving.Progress) {
				answer.Encode(importLine{Progress: &p})
				http.NewResponseController(w).Flush()
			}}
		reports, err := moving.Run(r.Context(), importDefaults(options, dir, secret), o.importTarget(r.Context()))
		line := importLine{Reports: reports}
		if err != nil {
			line.Error = err.Error()
			log.Error("import failed", "format", in.Format, "err", err)
		} else {
			log.Info("import complete", "format", in.Format, "took", time.Since(began).Round(time.Second).String())
		}
		answer.Encode(line)
	}
}
