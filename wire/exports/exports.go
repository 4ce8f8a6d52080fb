package exports

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/wire"
)

// MaxWaiting limits the data exports that wait; each organization may start five a week, and each user three a day.
const MaxWaiting = 1000

// Organizations have the exports.
type Organizations interface {
	wire.Server
	// Owns reports whether this node owns an organization.
	Owns(realm.ID) bool
	HasSeveralRealms() bool
}

// File is the file of an export. It gets its name with Commit; Close removes it unless that has happened.
type File interface {
	io.WriteCloser
	Commit() error
}

// NewFile makes a file that gets a name.
type NewFile func(name string) (File, error)

// OpenFile opens a stored file of an organization, see Source.
type OpenFile func(id realm.ID, kind, name string) (Stored, error)

// Exporter writes data exports, one after the other: they are not urgent, and two at a time would slow each other down.
type Exporter struct {
	orgs Organizations
	site func(realm.ID) wire.Site
	file NewFile
	open OpenFile
	log  *slog.Logger
	jobs chan job
	stop chan struct{}
	done chan struct{}

	listing sync.WaitGroup // goroutines that Begin has started
	mu      sync.Mutex
	shares  *admission.Shares // of MaxWaiting
	queued  map[key]bool      // exports in jobs, and the one that is being written
}

type key struct {
	realm  realm.ID
	export int64 // numbers of both kinds of exports differ
}

// job is an export of an organization, or with user one of the data of a user.
type job struct {
	realm  realm.ID
	export realm.Export
	user   realm.UserID
	own    realm.OwnExport
}

func (j *job) id() int64 { return cmp.Or(j.own.ID, j.export.ID) }

func (j *job) key() key { return key{j.realm, j.id()} }

// Start starts an Exporter. It is an owner task: the owner of an organization writes its exports.
func Start(orgs Organizations, site func(realm.ID) wire.Site, f NewFile, open OpenFile, log *slog.Logger) *Exporter {
	e := &Exporter{
		orgs:   orgs,
		site:   site,
		file:   f,
		open:   open,
		log:    log,
		jobs:   make(chan job, MaxWaiting),
		shares: admission.NewShares(MaxWaiting, orgs.HasSeveralRealms),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
		queued: map[key]bool{},
	}
	go e.run()
	return e
}

// Begin queues the exports that the last owner of an organization did not finish.
func (e *Exporter) Begin(id realm.ID) {
	e.listing.Go(func() {
		_, err := e.orgs.View(id, realm.System, func(v realm.View) (any, error) {
			list, err := v.Exports()
			for _, x := range list {
				if x.Pending() {
					e.Add(id, x)
				}
			}
			for _, x := range v.PendingOwnExports() {
				e.AddOwn(id, x.User, x.Export)
			}
			return nil, err
		})
		if err != nil {
			e.log.Error("listing unfinished exports failed", "realm", id, "err", err)
		}
	})
}

// End lets the next owner write the exports that wait: run skips them.
func (e *Exporter) End(realm.ID) {}

// Add queues an export of an organization and does not wait. If the queue is full, the export fails.
func (e *Exporter) Add(id realm.ID, x realm.Export) { e.add(job{realm: id, export: x}) }

// AddOwn queues an export of the data of a user in the same way.
func (e *Exporter) AddOwn(id realm.ID, u realm.UserID, x realm.OwnExport) {
	e.add(job{realm: id, user: u, own: x})
}

func (e *Exporter) add(j job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queued[j.key()] {
		return
	}
	full := !e.shares.Take(spaceOf(j.realm), 1)
	if !full {
		select {
		case e.jobs <- j:
			e.queued[j.key()] = true
		default:
			full = true
			e.shares.Give(spaceOf(j.realm), 1)
		}
	}
	if full {
		e.log.Error("too many exports are waiting", "realm", j.realm, "export", j.id())
		go e.finish(j, 0, true)
	}
}

func (e *Exporter) run() {
	defer close(e.done)
	for {
		select {
		case <-e.stop:
			return
		case j := <-e.jobs:
			e.runJob(j)
		}
	}
}

// runJob writes one export and records its end. An export of an organization that has another owner now, or that was
// interrupted by the end of the process, is written by the next owner.
func (e *Exporter) runJob(j job) {
	defer func() {
		e.mu.Lock()
		delete(e.queued, j.key())
		e.shares.Give(spaceOf(j.realm), 1)
		e.mu.Unlock()
	}()
	if !e.orgs.Owns(j.realm) {
		return
	}
	size, err := e.write(j)
	select {
	case <-e.stop:
		return
	default:
	}
	if !e.orgs.Owns(j.realm) {
		return
	}
	if err != nil {
		e.log.Error("export failed", "realm", j.realm, "export", j.id(), "err", err)
	}
	e.finish(j, size, err != nil)
}

func (e *Exporter) finish(j job, size int64, failed bool) {
	var err error
	if j.user != 0 {
		_, err = realm.Execute(e.orgs, j.realm, realm.System,
			realm.FinishOwnExport{User: j.user, ID: j.own.ID, Bytes: size, Failed: failed})
	} else {
		_, err = realm.Execute(e.orgs, j.realm, realm.System, realm.FinishExport{ID: j.export.ID, Failed: failed})
	}
	if err != nil {
		e.log.Error("recording the end of an export failed", "realm", j.realm, "export", j.id(), "err", err)
	}
}

// write writes the file of an export and returns its size in bytes. The file gets its name only when it is complete.
func (e *Exporter) write(j job) (size int64, err error) {
	f, err := e.file(realm.ExportFile(cmp.Or(j.own.Name, j.export.Name)))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	to := &exportWriter{to: f, stop: e.stop}
	if j.user != 0 {
		_, err = WritePerson(e.sourceOf(j), j.user, to)
	} else {
		z := gzip.NewWriter(to)
		if err = wire.WriteExport(e.orgs, j.realm, e.site(j.realm), j.export, z); err == nil {
			err = z.Close()
		}
	}
	if err != nil {
		return 0, fmt.Errorf("write export: %w", err)
	}
	return to.size, f.Commit()
}

// sourceOf returns the organization of an export of own data. Each view checks that its user still has the right to it.
func (e *Exporter) sourceOf(j job) Source {
	return Source{
		View: func(read func(realm.View) error) error {
			_, err := e.orgs.View(j.realm, realm.System, func(v realm.View) (any, error) {
				if err := v.MayContinueOwnExport(j.user); err != nil {
					return nil, err
				}
				return nil, read(v)
			})
			return err
		},
		Text: func(ref realm.BodyRef) (realm.Body, bool, error) { return e.orgs.Text(j.realm, ref) },
		Open: func(kind, name string) (Stored, error) { return e.open(j.realm, kind, name) },
	}
}

// exportWriter counts bytes. It fails once the server stops, so that a long export does not delay the stop.
type exportWriter struct {
	to   io.Writer
	stop chan struct{}
	size int64
}

func (w *exportWriter) Write(p []byte) (int, error) {
	select {
	case <-w.stop:
		return 0, errors.New("the server is stopping")
	default:
		n, err := w.to.Write(p)
		w.size += int64(n)
		return n, err
	}
}

// Close stops the Exporter after the current write.
func (e *Exporter) Close() {
	close(e.stop)
	e.listing.Wait()
	<-e.done
}

// spaceOf returns the name of an organization in the shares.
func spaceOf(id realm.ID) string { return strconv.Itoa(int(id)) }

// Waiting returns the number of exports that wait.
func (e *Exporter) Waiting() int64 { return int64(len(e.jobs)) }
