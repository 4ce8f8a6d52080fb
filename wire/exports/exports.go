package exports

import (
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/wire"
)

// MaxWaiting limits the data exports that wait; each organization may start five a week.
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

// Exporter writes data exports, one after the other: they are not urgent, and two at a time would slow each other down.
type Exporter struct {
	orgs Organizations
	site func(realm.ID) wire.Site
	file NewFile
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
	export int64
}

type job struct {
	realm  realm.ID
	export realm.Export
}

// Start starts an Exporter. It is an owner task: the owner of an organization writes its exports.
func Start(orgs Organizations, site func(realm.ID) wire.Site, f NewFile, log *slog.Logger) *Exporter {
	e := &Exporter{
		orgs:   orgs,
		site:   site,
		file:   f,
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
		x, err := e.orgs.View(id, realm.System, func(v realm.View) (any, error) { return v.Exports() })
		list, _ := x.([]realm.Export)
		if err != nil {
			e.log.Error("listing unfinished exports failed", "realm", id, "err", err)
		}
		for _, x := range list {
			if x.Pending() {
				e.Add(id, x)
			}
		}
	})
}

// End lets the next owner write the exports that wait: run skips them.
func (e *Exporter) End(realm.ID) {}

// Add queues an export and does not wait. If the queue is full, the export fails.
func (e *Exporter) Add(id realm.ID, x realm.Export) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queued[key{id, x.ID}] {
		return
	}
	full := !e.shares.Take(spaceOf(id), 1)
	if !full {
		select {
		case e.jobs <- job{id, x}:
			e.queued[key{id, x.ID}] = true
		default:
			full = true
			e.shares.Give(spaceOf(id), 1)
		}
	}
	if full {
		e.log.Error("too many exports are waiting", "realm", id, "export", x.ID)
		go e.finish(job{id, x}, true)
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
		delete(e.queued, key{j.realm, j.export.ID})
		e.shares.Give(spaceOf(j.realm), 1)
		e.mu.Unlock()
	}()
	if !e.orgs.Owns(j.realm) {
		return
	}
	err := e.write(j)
	select {
	case <-e.stop:
		return
	default:
	}
	if !e.orgs.Owns(j.realm) {
		return
	}
	if err != nil {
		e.log.Error("export failed", "realm", j.realm, "export", j.export.ID, "err", err)
	}
	e.finish(j, err != nil)
}

func (e *Exporter) finish(j job, failed bool) {
	if _, err := realm.Execute(e.orgs, j.realm, realm.System,
		realm.FinishExport{ID: j.export.ID, Failed: failed}); err != nil {
		e.log.Error("recording the end of an export failed", "realm", j.realm, "export", j.export.ID, "err", err)
	}
}

// write writes the file of an export. The file gets its name only when it is complete.
func (e *Exporter) write(j job) error {
	f, err := e.file(j.export.Name + ".jsonl.gz")
	if err != nil {
		return err
	}
	defer f.Close()
	z := gzip.NewWriter(cancelableWriter{f, e.stop})
	if err := wire.WriteExport(e.orgs, j.realm, e.site(j.realm), j.export, z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	return f.Commit()
}

// cancelableWriter fails once the server stops, so that a long export does not delay the stop.
type cancelableWriter struct {
	f    File
	stop chan struct{}
}

func (s cancelableWriter) Write(p []byte) (int, error) {
	select {
	case <-s.stop:
		return 0, fmt.Errorf("write export: the server is stopping")
	default:
		return s.f.Write(p)
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
