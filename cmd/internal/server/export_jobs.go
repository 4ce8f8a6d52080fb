package server

import (
	"compress/gzip"
	"fmt"
	"log/slog"
	"sync"

	"parley/actors"
	"parley/actors/admission"
	"parley/actors/realm"
	"parley/snapshot/files"
	"parley/wire"
)

// maxWaitingExports limits the data exports that wait; each organization may start five a week.
const maxWaitingExports = 1000

// exporter writes data exports, one after the other: they are not urgent, and two at a time would slow each other down.
type exporter struct {
	orgs  *actors.Server
	sites *siteTable
	files *files.Store
	log   *slog.Logger
	jobs  chan exportJob
	stop  chan struct{}
	done  chan struct{}

	listing sync.WaitGroup // goroutines that Begin has started
	mu      sync.Mutex
	shares  *admission.Shares  // of maxWaitingExports
	queued  map[exportKey]bool // exports in jobs, and the one that is being written
}

type exportKey struct {
	realm  realm.ID
	export int64
}

type exportJob struct {
	realm  realm.ID
	export realm.Export
}

// newExporter starts an exporter. It is an owner task: the owner of an organization writes its exports.
func newExporter(orgs *actors.Server, sites *siteTable, f *files.Store, log *slog.Logger) *exporter {
	e := &exporter{
		orgs:   orgs,
		sites:  sites,
		files:  f,
		log:    log,
		jobs:   make(chan exportJob, maxWaitingExports),
		shares: admission.NewShares(maxWaitingExports, orgs.HasSeveralRealms),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
		queued: map[exportKey]bool{},
	}
	go e.run()
	return e
}

// Begin queues the exports that the last owner of an organization did not finish.
func (e *exporter) Begin(id realm.ID) {
	e.listing.Go(func() {
		x, err := e.orgs.View(id, systemCaller, func(v realm.View) (any, error) { return v.Exports() })
		list, _ := x.([]realm.Export)
		if err != nil {
			e.log.Error("listing unfinished exports failed", "realm", id, "err", err)
		}
		for _, x := range list {
			if x.Pending() {
				e.add(id, x)
			}
		}
	})
}

// End lets the next owner write the exports that wait: run skips them.
func (e *exporter) End(realm.ID) {}

// add queues an export and does not wait. If the queue is full, the export fails.
func (e *exporter) add(id realm.ID, x realm.Export) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queued[exportKey{id, x.ID}] {
		return
	}
	full := !e.shares.Take(organizationName(id), 1)
	if !full {
		select {
		case e.jobs <- exportJob{id, x}:
			e.queued[exportKey{id, x.ID}] = true
		default:
			full = true
			e.shares.Give(organizationName(id), 1)
		}
	}
	if full {
		e.log.Error("too many exports are waiting", "realm", id, "export", x.ID)
		go e.finish(exportJob{id, x}, true)
	}
}

func (e *exporter) run() {
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
func (e *exporter) runJob(j exportJob) {
	defer func() {
		e.mu.Lock()
		delete(e.queued, exportKey{j.realm, j.export.ID})
		e.shares.Give(organizationName(j.realm), 1)
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

func (e *exporter) finish(j exportJob, failed bool) {
	if _, err := execute(e.orgs, j.realm, systemCaller,
		realm.FinishExport{ID: j.export.ID, Failed: failed}); err != nil {
		e.log.Error("recording the end of an export failed", "realm", j.realm, "export", j.export.ID, "err", err)
	}
}

// write writes the file of an export. The file gets its name only when it is complete.
func (e *exporter) write(j exportJob) error {
	f, err := e.files.NewExport(j.export.Name + ".jsonl.gz")
	if err != nil {
		return err
	}
	defer f.Close()
	z := gzip.NewWriter(cancelableWriter{f, e.stop})
	if err := wire.WriteExport(e.orgs, j.realm, e.sites.byID(j.realm), j.export, z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	return f.Commit()
}

// cancelableWriter fails once the server stops, so that a long export does not delay the stop.
type cancelableWriter struct {
	f    *files.Export
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

// Close stops the exporter after the current write.
func (e *exporter) Close() {
	close(e.stop)
	e.listing.Wait()
	<-e.done
}
