package migration

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/wire/imports"
	"parley/wire/imports/mattermost"
	"parley/wire/imports/rocketchat"
	"parley/wire/imports/slack"
	"parley/wire/imports/teams"
	"parley/wire/imports/zulip"
)

// formats are the formats that can be imported, by their names on the command line.
var formats = map[string]func(fs.FS, imports.Options) ([]imports.Source, error){
	"mattermost": mattermost.Open,
	"rocketchat": rocketchat.Open,
	"slack":      slack.Open,
	"teams":      teams.Open,
	"zulip":      zulip.Open,
}

// Formats returns the names of the formats.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// DefaultMemory is the default of Options.Memory, in bytes.
const DefaultMemory = 256 << 20

// Options describe one import.
type Options struct {
	Format, File string
	Realm        string // subdomain
	Team         string
	Threads      bool
	Token        string
	Files        string // folder of downloaded files; "": none
	Memory       int64  // bytes; 0: DefaultMemory
	DryRun       bool
	Restart      bool // discard the data of an interrupted import

	Dir    string // data directory
	Secret []byte
	Site   func(subdomain string) realm.Site
	Now    func() time.Time
	// Progress is called about once a second. It may be nil.
	Progress func(Progress)

	writes    func()            // called before each write, by tests
	transport http.RoundTripper // of tests; nil: the usual one
}

// Progress is how far an import is.
type Progress struct {
	Organization string `json:"organization"`
	Step         string `json:"step"`
	Done         int64  `json:"done"`
	Total        int64  `json:"total"` // 0: unknown
	Left         int64  `json:"seconds_left"`
}

// Disk is the part of snapshot.Disk that an import needs. In a cluster its writes go through the replicated log.
type Disk interface {
	Bounds(id realm.ID) (rows, last realm.Seq, err error)
	Claim(id realm.ID, seen uint64) (realm.Claimed, error)
	ClearEmptyRealm(id realm.ID) error
	TextWriter(id realm.ID, epoch uint64) (add func(realm.BodyRef, *realm.Body) error, flush func() error)
	EncodeRow(table uint16, key, row any) realm.EncodedRow
	ImportRows(id realm.ID, epoch uint64, at snapshot.Seq, rows func(yield func(snapshot.Row) error) error) error
}

// Files is the part of files.Store that an import needs.
type Files interface {
	Save(space string, r io.Reader, limit int64) (files.Saved, error)
	SaveAvatar(r io.Reader, limit int64) (string, error)
	SaveLogo(r io.Reader, limit int64) (string, error)
	Release(hash string, used func() (bool, error)) error
}

// Target is the server or data directory into which an organization is imported.
type Target struct {
	Disk  Disk
	Files Files
	// Reserve returns the number for an organization with a subdomain, or an error if the subdomain is in use. wanted
	// is the number that an interrupted import has used; 0: none.
	Reserve func(subdomain string, wanted realm.ID) (realm.ID, error)
	// Serve makes an imported organization visible to users. nil: nothing is served.
	Serve func(subdomain string, id realm.ID) error
}

// workState is the content of the state file of an interrupted import.
type workState struct {
	Format   string
	File     string
	Size     int64
	Modified int64
	Options  string
	Realm    realm.ID
}

// Run imports the organizations of an archive, one after the other. It returns the reports of those that are complete.
func Run(ctx context.Context, o Options, to Target) (reports []*Report, err error) {
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	open := formats[o.Format]
	if open == nil {
		return nil, fmt.Errorf("the format must be one of %s, not %q", strings.Join(Formats(), ", "), o.Format)
	}
	work := filepath.Join(o.Dir, "imports", workName(o))
	if o.DryRun {
		if work, err = os.MkdirTemp("", "parley-import-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(work)
		if to.Files, err = openDryRunFiles(filepath.Join(work, "files")); err != nil {
			return nil, err
		}
	}
	discarded := map[string]realm.ID{}
	if o.Restart {
		if discarded, err = discard(work); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		// A bug in a parser of archives must not end a running server.
		if p := recover(); p != nil {
			err = fmt.Errorf("import %s: the archive cannot be read: %v", o.File, p)
		}
	}()
	a, err := OpenArchive(o.File, work)
	if err != nil {
		return nil, errors.Join(err, discardUnstarted(work))
	}
	defer a.Close()
	sources, err := open(a, o.formatOptions(a.Main, work))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("import %s: %w", o.File, err), discardUnstarted(work))
	}
	for _, s := range sources {
		name := o.Realm
		if s.Suffix() != "" {
			name = joinSubdomain(o.Realm, s.Suffix())
		}
		dir := filepath.Join(work, "org-"+name)
		r, stored, err := runOne(ctx, o, to, &readSource{s, a}, name, dir, discarded[filepath.Base(dir)])
		if err != nil {
			if !stored { // a refused archive leaves nothing
				err = errors.Join(err, os.RemoveAll(work))
			}
			return reports, fmt.Errorf("import %s: %w", o.File, err)
		}
		reports = append(reports, r)
	}
	return reports, os.RemoveAll(work)
}

// readSource is a source of an archive. Its reading also counts the files that the archive leaves out.
type readSource struct {
	imports.Source
	archive *Archive
}

func (s *readSource) Read(sink imports.Sink) error {
	if s.archive.faults != nil {
		s.archive.faults.Report(sink)
	}
	return s.Source.Read(sink)
}

// discard removes the folder of an interrupted import. It returns the realm numbers of its organizations, by the names
// of their folders.
func discard(work string) (map[string]realm.ID, error) {
	numbers := map[string]realm.ID{}
	started, err := filepath.Glob(filepath.Join(work, "org-*", stateFile))
	if err != nil {
		return nil, err
	}
	for _, file := range started {
		var old workState
		if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &old) == nil {
			numbers[filepath.Base(filepath.Dir(file))] = old.Realm
		}
	}
	return numbers, os.RemoveAll(work)
}

// discardUnstarted removes the folder of a refused archive, unless an interrupted import uses it.
func discardUnstarted(work string) error {
	if started, _ := filepath.Glob(filepath.Join(work, "org-*", stateFile)); len(started) > 0 {
		return nil
	}
	return os.RemoveAll(work)
}

// workName returns the name of the folder of an import: the same for the same command.
func workName(o Options) string {
	h := sha256.Sum256([]byte(o.Format + "\x00" + o.Realm))
	return hex.EncodeToString(h[:8])
}

// joinSubdomain returns the subdomain of one of several organizations of an archive.
func joinSubdomain(name, suffix string) string {
	var b []byte
	for _, c := range []byte(suffix) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b = append(b, c)
		case c >= 'A' && c <= 'Z':
			b = append(b, c+'a'-'A')
		default:
			b = append(b, '-')
		}
	}
	return name + "-" + string(b)
}

func (o Options) formatOptions(main, work string) imports.Options {
	f := imports.Options{Team: o.Team, Threads: o.Threads, Token: o.Token, Main: main,
		Sorter:    func() imports.Sorter { return newSorter(work, o.Memory/8) },
		Temporary: func() (*os.File, error) { return unlinkedFile(work) }}
	f.Host, _, _ = strings.Cut(o.Site(o.Realm).Host, ":")
	if info, err := os.Stat(o.File); err == nil && info.Mode().IsRegular() {
		f.Packed = info.Size()
	}
	if o.Token != "" {
		transport := o.transport
		if transport == nil {
			transport = http.DefaultTransport
		}
		f.Fetch = fetcher(transport, fetchHosts[o.Format])
	}
	if o.Files != "" {
		f.FilesIn = func(name string) (io.ReadCloser, error) {
			root, err := os.OpenRoot(o.Files)
			if err != nil {
				return nil, err
			}
			defer root.Close()
			return regularFiles{root.FS()}.Open(name)
		}
	}
	return f
}

// runOne imports one organization. stored says that texts are on disk, so that the import can be continued after an
// error. discarded is the number of the import that was dropped with Options.Restart; 0: none.
func runOne(
	ctx context.Context, o Options, to Target, s imports.Source, name, work string, discarded realm.ID,
) (_ *Report, stored bool, err error) {
	x := &importer{ctx: ctx, o: o, to: to, source: s, subdomain: name, work: work, began: o.Now(), writes: o.writes}
	defer x.close()
	if err := x.open(discarded); err != nil {
		return nil, x.report != nil && x.report.Resumed, err
	}
	if x.finished {
		return x.report, true, x.serve()
	}
	for _, step := range []func() error{func() error { return s.Read(x) }, x.begin, x.importMessages} {
		if err := step(); err != nil {
			return nil, x.report.Resumed || x.nextID > 1, err
		}
	}
	x.finishReport()
	if o.DryRun {
		return x.report, false, nil
	}
	if err := x.commit(); err != nil {
		return nil, true, err
	}
	return x.report, true, x.serve()
}

const (
	stateFile  = "state.json"
	reportFile = "report.json"
	logFile    = "log"
	rowsFile   = "rows"
)

// open prepares the folder and the realm number of the organization. It continues an interrupted import of the same
// file. It uses the number of a discarded import again and deletes everything that is stored under it.
func (x *importer) open(discarded realm.ID) error {
	if err := os.MkdirAll(x.work, 0o700); err != nil {
		return err
	}
	x.counts = newCounter()
	x.report = &Report{Organization: x.subdomain, DryRun: x.o.DryRun, PerChannel: map[string]int{},
		PerAuthor: map[string]int{}, PerThread: map[string]int{}, PerEmoji: map[string]int{}, PerFile: map[string]int{}}
	x.messages = newSorter(x.work, x.o.Memory/4)
	if x.o.DryRun {
		x.id = 1
		return x.openWork()
	}
	info, err := os.Stat(x.o.File)
	if err != nil {
		return err
	}
	state := workState{Format: x.o.Format, File: x.o.File, Size: info.Size(), Modified: info.ModTime().UnixNano(),
		Options: fmt.Sprint(x.o.Team, x.o.Threads, x.o.Files)}
	var old workState
	data, err := os.ReadFile(filepath.Join(x.work, stateFile))
	if err == nil {
		err = json.Unmarshal(data, &old)
		state.Realm = old.Realm
		if err == nil && state != old {
			return fmt.Errorf("an import of %s into %q was interrupted; run it again, or discard it with --restart",
				old.File, x.subdomain)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	wanted := cmp.Or(state.Realm, discarded)
	if wanted != 0 {
		_, last, err := x.to.Disk.Bounds(wanted)
		switch {
		case err != nil:
			return err
		case last != 0 && state.Realm != 0:
			return x.openFinished(state.Realm)
		case last != 0:
			wanted = 0
		}
	}
	if x.id, err = x.to.Reserve(x.subdomain, wanted); err != nil {
		return err
	}
	x.report.Resumed = x.id == state.Realm
	claimed, err := x.to.Disk.Claim(x.id, realm.AnyEpoch)
	if err != nil {
		return err
	}
	x.epoch = claimed.Epoch
	if !x.report.Resumed {
		if err := x.to.Disk.ClearEmptyRealm(x.id); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(x.work, logFile)); err != nil {
			return err
		}
	}
	state.Realm = x.id
	if data, err = json.Marshal(state); err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(x.work, stateFile), data); err != nil {
		return err
	}
	return x.openWork()
}

// openFinished loads the report of an import whose rows are already on disk.
func (x *importer) openFinished(id realm.ID) error {
	x.id, x.finished = id, true
	data, err := os.ReadFile(filepath.Join(x.work, reportFile))
	if err != nil {
		return err
	}
	x.report = &Report{}
	return json.Unmarshal(data, x.report)
}

func (x *importer) openWork() (err error) {
	x.site = x.o.Site(x.subdomain)
	if x.rows, err = os.Create(filepath.Join(x.work, rowsFile)); err != nil {
		return err
	}
	if x.log, err = openLog(filepath.Join(x.work, logFile)); err != nil {
		return err
	}
	if !x.o.DryRun {
		x.addText, x.flushTexts = x.to.Disk.TextWriter(x.id, x.epoch)
	}
	return nil
}

// serve makes the organization visible, unless an earlier process has done so.
func (x *importer) serve() error {
	if x.to.Serve == nil {
		return nil
	}
	return x.to.Serve(x.subdomain, x.id)
}

// writeSynced writes a file atomically and syncs it.
func writeSynced(file string, data []byte) error {
	f, err := os.OpenFile(file+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// random returns characters that cannot be guessed without the server's secret, and that are the same for the same
// import.
func (x *importer) random(purpose string, length int) string {
	h := hmac.New(sha256.New, x.o.Secret)
	h.Write([]byte("import " + strconv.Itoa(int(x.id)) + " " + x.subdomain + " " + purpose))
	return hex.EncodeToString(h.Sum(nil))[:length]
}
