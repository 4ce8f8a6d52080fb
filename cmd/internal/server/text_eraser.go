package server

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/snapshot"
)

// eraserInterval is the time between two searches for erased texts. Compacting rewrites the rows of an organization, so
// it happens at most that often.
const eraserInterval = time.Hour

// textEraser removes the bytes of purged messages, and of old texts that edit histories lost, from the disk. A deleted
// key stays in the store's files until they are compacted, and a backup would contain it.
type textEraser struct {
	disk      snapshot.Disk
	orgs      *actors.Server
	sweepSoon func() // removes the files of purged messages
	log       *slog.Logger
	ctx       context.Context // canceled by Close
	cancel    context.CancelFunc
	done      chan struct{}
}

func newTextEraser(disk snapshot.Disk, orgs *actors.Server, sweepSoon func(), log *slog.Logger) *textEraser {
	ctx, cancel := context.WithCancel(context.Background())
	e := &textEraser{disk: disk, orgs: orgs, sweepSoon: sweepSoon, log: log, ctx: ctx, cancel: cancel,
		done: make(chan struct{})}
	go e.run()
	return e
}

func (e *textEraser) run() {
	defer close(e.done)
	t := time.NewTicker(eraserInterval)
	defer t.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-t.C:
			e.eraseAll()
		}
	}
}

// eraseAll removes the bytes of the erased texts of every organization.
func (e *textEraser) eraseAll() {
	for _, id := range slices.Sorted(maps.Values(e.orgs.Realms())) {
		if err := e.erase(id); err != nil && e.ctx.Err() == nil {
			e.log.Error("removing the bytes of erased texts failed", "realm", id, "err", err)
		}
	}
}

// erase removes the bytes of one organization's erased texts, if that is due.
func (e *textEraser) erase(id realm.ID) error {
	var due []realm.ErasedTexts
	_, err := e.orgs.View(id, systemCaller, func(v realm.View) (any, error) {
		due = v.ErasedTexts()
		return nil, nil
	})
	for _, p := range due {
		if err == nil {
			err = e.eraseRow(id, p)
		}
	}
	return err
}

// eraseRow removes the bytes of the texts of one row. If it is interrupted, the next call does it again.
func (e *textEraser) eraseRow(id realm.ID, p realm.ErasedTexts) error {
	// The rows on disk must not contain the messages any more, nor the journal the facts before the purge.
	rows, _, err := e.disk.Bounds(id)
	if err == nil && rows < p.Seq {
		if err = e.orgs.Save(e.ctx); err == nil {
			rows, _, err = e.disk.Bounds(id)
		}
	}
	if err != nil || rows < p.Seq {
		return err // without an error, snapshots are stopped during an upgrade
	}
	began := time.Now()
	if err := e.disk.EraseDeleted(e.ctx, id, p.Seq, p.From, p.To); err != nil {
		return err
	}
	e.log.Info("bytes of erased texts removed", "realm", id, "messages", p.Messages,
		"took", time.Since(began).Round(time.Millisecond).String())
	e.sweepSoon()
	_, err = execute(e.orgs, id, systemCaller, realm.RecordTextsCompacted{Row: p.Row, Upto: p.Seq})
	return err
}

// Close stops the eraser. A compaction that is running is canceled.
func (e *textEraser) Close() {
	e.cancel()
	<-e.done
}
