package imports

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

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/control"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/migration"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/wire"
)

// answerLine is one line of the answer to an import at the control socket. The last line has the reports, or the digest
// of an organization that parley export has written, or the error.
type answerLine struct {
	Progress *migration.Progress `json:"progress,omitempty"`
	Reports  []*migration.Report `json:"reports,omitempty"`
	Digest   string              `json:"digest,omitempty"`
	Error    string              `json:"error,omitempty"`
}

// Run imports the organizations of another chat server's archive: into the server that runs in a data directory, or
// into the directory itself if no server runs there.
func Run(dir string, o migration.Options) (reports []*migration.Report, err error) {
	if o.File, err = filepath.Abs(o.File); err != nil {
		return nil, err
	}
	if _, err := os.Stat(o.File); err != nil {
		return nil, err
	}
	if err := wire.CheckSubdomain(o.Realm); err != nil {
		return nil, err
	}
	if o.DryRun {
		return migration.Run(context.Background(), withDefaults(o, dir, nil), migration.Target{})
	}
	in := request{Format: o.Format, File: o.File, Realm: o.Realm, Team: o.Team, Threads: o.Threads,
		Token: o.Token, Files: o.Files, Memory: o.Memory, Restart: o.Restart}
	if l, ran, err := send(dir, in, o.Progress); ran {
		return l.Reports, err
	}
	if err := datadir.CheckVersion(dir); err != nil {
		return nil, err
	}
	if _, err := cluster.OpenStopped(dir); err != nil {
		return nil, err
	}
	store, err := snapshot.Open(dir, snapshot.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, datadir.StartError(dir, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	secret, err := datadir.LoadSecret(dir)
	if err != nil {
		return nil, err
	}
	uploads, end, err := orgfiles.Open(dir, false)
	if err != nil {
		return nil, err
	}
	defer end()
	disk := snapshot.Disk{Store: store}
	return migration.Run(context.Background(), withDefaults(o, dir, secret), migration.Target{
		Disk: disk, Files: uploads,
		Reserve: func(subdomain string, wanted realm.ID) (realm.ID, error) {
			return reserveStopped(disk, subdomain, wanted)
		}})
}

// withDefaults returns the options with the values that only the server has.
func withDefaults(o migration.Options, dir string, secret []byte) migration.Options {
	o.Dir, o.Secret, o.Now = dir, secret, time.Now
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
			return 0, migration.ErrTaken(subdomain, id)
		}
	}
	if wanted != 0 {
		return wanted, nil
	}
	return last + 1, nil
}

// send sends an import to the server that runs in a data directory, and returns the last line of the answer.
// ran is false if no server runs there.
func send(dir string, in request, progress func(migration.Progress)) (l answerLine, ran bool, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return l, true, err
	}
	r, err := control.Client(dir, 0).Post(control.URL("import"), "application/json", bytes.NewReader(body))
	if err != nil {
		return l, false, nil
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, control.MaxAnswerBytes)
	for lines.Scan() {
		l = answerLine{}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return l, true, fmt.Errorf("the server answered %q", lines.Bytes())
		}
		switch {
		case l.Progress != nil && progress != nil:
			progress(*l.Progress)
		case l.Error != "":
			return l, true, errors.New(l.Error)
		case l.Reports != nil, l.Digest != "":
			return l, true, nil
		}
	}
	err = errors.New("the server stopped during the import; run the same command again to continue it")
	if in.Format == migration.OwnFormat {
		err = errors.New("the server stopped during the import: check with parley realm list whether it is complete, " +
			"and otherwise run the same command again")
	}
	return answerLine{}, true, errors.Join(lines.Err(), err)
}

// request is the body of an import at the control socket.
type request struct {
	Format, File, Realm, Team string
	Threads                   bool
	Token, Files              string
	Memory                    int64
	Restart                   bool
	NewKeys                   bool // see OwnImport
}

// Server is a running server that imports organizations.
type Server struct {
	Data     string // data directory
	Orgs     *actors.Server
	Site     func(subdomain string) wire.Site
	Store    *snapshot.Store
	Files    *files.Store
	Leader   *cluster.Leader   // nil: a single node, or an edge
	Follower *cluster.Follower // of an edge, or the link of a core to the leader; nil: a single node
	Log      *slog.Logger

	running sync.Mutex // held during an import: each has a memory limit of its own, so they run one after the other
}

// target returns the place of an import into this server, or into its cluster.
func (o *Server) target(ctx context.Context) migration.Target {
	if o.Leader != nil {
		d := newClusterDisk(&cluster.Importer{Ctx: ctx, Leader: o.Leader, Follower: o.Follower})
		return migration.Target{Disk: d, Files: o.importFiles(), Reserve: d.reserve}
	}
	return migration.Target{Disk: snapshot.Disk{Store: o.Store}, Files: o.Files, Reserve: o.Orgs.ReserveRealm,
		Serve: o.Orgs.ServeImported}
}

// ServeHTTP runs an import while the server serves its other organizations. It streams the progress, then the
// reports. If the client disconnects, the import stops. An import from another chat server can be continued.
func (o *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in request
	answer := json.NewEncoder(w)
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, control.MaxCommandBytes)).Decode(&in); err != nil {
		answer.Encode(answerLine{Error: err.Error()})
		return
	}
	if o.Follower != nil && o.Leader == nil {
		answer.Encode(answerLine{Error: control.ErrAtEdge(o.Follower.Leader()).Error()})
		return
	}
	if !o.running.TryLock() {
		answer.Encode(answerLine{Error: "another import is running"})
		return
	}
	defer o.running.Unlock()
	secret, err := datadir.LoadSecret(o.Data)
	if err != nil {
		answer.Encode(answerLine{Error: err.Error()})
		return
	}
	began := time.Now()
	progress := func(p migration.Progress) {
		answer.Encode(answerLine{Progress: &p})
		http.NewResponseController(w).Flush()
	}
	var line answerLine
	if in.Format == migration.OwnFormat {
		line.Digest, err = o.importOwn(r.Context(), in, secret, progress)
	} else {
		options := migration.Options{Format: in.Format, File: in.File, Realm: in.Realm, Team: in.Team,
			Threads: in.Threads, Token: in.Token, Files: in.Files, Memory: in.Memory, Restart: in.Restart,
			Site: o.Site, Progress: progress}
		line.Reports, err = migration.Run(r.Context(), withDefaults(options, o.Data, secret),
			o.target(r.Context()))
	}
	if err != nil {
		line.Error = err.Error()
		o.Log.Error("import failed", "format", in.Format, "err", err)
	} else {
		o.Log.Info("import complete", "format", in.Format, "took", time.Since(began).Round(time.Second).String())
	}
	answer.Encode(line)
}
