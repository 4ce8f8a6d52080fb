package main

import (
	"compress/gzip"
	"fmt"
	"log/slog"

	"parley/actors"
	"parley/actors/realm"
	"parley/snapshot/files"
	"parley/wire"
)

// maxWaitingExports is how many data exports may wait for their turn; each organization may start five a week.
const maxWaitingExports = 1000

// exporter writes data exports, one after the other: they are not urgent, and two would only slow each other.
type exporter struct {
	house *actors.Server
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

// newExporter begins with what a former process left unfinished: those exports start anew.
func newExporter(house *actors.Server, sites *siteTable, kept *files.Store, log *slog.Logger) *exporter {
	e := &exporter{house: house, sites: sites, files: kept, log: log, jobs: make(chan exportJob, maxWaitingExports), stop: make(chan struct{}), done: make(chan struct{})}
	for _, id := range house.Realms() {
		x, err := house.View(id, systemCaller, func(v realm.View) (any, error) { return v.Exports() })
		list, _ := x.([]realm.Export)
		if err != nil {
			log.Error("look for unfinished exports", "realm", id, "error", err)
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

// add takes an export to write, without waiting; one too many fails.
func (e *exporter) add(id realm.ID, x realm.Export) {
	select {
	case e.jobs <- exportJob{id, x}:
	default:
		e.log.Error("too many exports wait", "realm", id, "export", x.ID)
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
			case <-e.stop: // the house is closing: the next process starts this export anew
				return
			default:
			}
			if err != nil {
				e.log.Error("export failed", "realm", j.realm, "export", j.export.ID, "error", err)
			}
			e.finish(j, err != nil)
		}
	}
}

func (e *exporter) finish(j exportJob, failed bool) {
	if _, err := execute(e.house, j.realm, systemCaller, realm.FinishExport{ID: j.export.ID, Failed: failed}); err != nil {
		e.log.Error("end an export", "realm", j.realm, "export", j.export.ID, "error", err)
	}
}

// writeFile makes an export's file, which appears only when it is whole.
func (e *exporter) write(j exportJob) error {
	f, err := e.files.NewExport(j.export.Name + ".jsonl.gz")
	if err != nil {
		return err
	}
	defer f.Close()
	z := gzip.NewWriter(cancelableWriter{f, e.stop})
	if err := wire.WriteExport(e.house, j.realm, e.sites.byID(j.realm), j.export.Kind, z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	return f.Commit()
}

// cancelableWriter ends a long writing when the server stops.
type cancelableWriter struct {
	f    *files.Export
	stop chan struct{}
}

func (s cancelableWriter) Write(p []byte) (int, error) {
	select {
	case <-s.stop:
		return 0, fmt.Errorf("write export: the server stops")
	default:
		return s.f.Write(p)
	}
}

// Close ends the work between two writes.
func (e *exporter) Close() {
	close(e.stop)
	<-e.done
}
