package server

import (
	"compress/gzip"
	"fmt"
	"log/slog"

	"parley/actors"
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
}

type exportJob struct {
	realm  realm.ID
	export realm.Export
}

// newExporter starts an exporter. It begins again with the exports that a former process did not finish.
func newExporter(orgs *actors.Server, sites *siteTable, f *files.Store, log *slog.Logger) *exporter {
	e := &exporter{
		orgs:  orgs,
		sites: sites,
		files: f,
		log:   log,
		jobs:  make(chan exportJob, maxWaitingExports),
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	for _, id := range orgs.Realms() {
		x, err := orgs.View(id, systemCaller, func(v realm.View) (any, error) { return v.Exports() })
		list, _ := x.([]realm.Export)
		if err != nil {
			log.Error("listing unfinished exports failed", "realm", id, "err", err)
		}
		for _, x := range list {
			if x.Pending() {
				e.add(id, x)
			}
		}
	}
	go e.run()
	return e
}

// add queues an export and does not wait. If the queue is full, the export fails.
func (e *exporter) add(id realm.ID, x realm.Export) {
	select {
	case e.jobs <- exportJob{id, x}:
	default:
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
			err := e.write(j)
			select {
			case <-e.stop: // the server stops: the next process writes this export again
				return
			default:
			}
			if err != nil {
				e.log.Error("export failed", "realm", j.realm, "export", j.export.ID, "err", err)
			}
			e.finish(j, err != nil)
		}
	}
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
	<-e.done
}
