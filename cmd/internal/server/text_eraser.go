package server

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/datadir"
	"parley/snapshot"
	"parley/snapshot/search"
)

// eraserInterval is the time between two searches for erased texts. Compacting rewrites the rows of an organization, so
// it happens at most that often.
const eraserInterval = time.Hour

// erasingFile is the name of the file, in the data directory of a core, that lists the organizations whose erased data
// its disk still has, as a JSON list of ids. A core that is killed in the moment after the owner's TextsCompacted may
// not have written it; its store then has the bytes until it happens to compact them.
const erasingFile = "erasing"

// textEraser removes the bytes of purged messages, and of old texts that edit histories lost, from the disk. A deleted
// key stays in the store's files until they are compacted, and a backup would contain it. The owner of an organization
// records when it is done; then the other cores of a cluster remove the bytes from their disks.
type textEraser struct {
	disk      snapshot.Disk
	orgs      *actors.Server
	sweepSoon func() // removes the files of purged messages
	search    *search.Service
	log       *slog.Logger
	ctx       context.Context // canceled by Close
	cancel    context.CancelFunc
	done      chan struct{}

	mu     sync.Mutex
	copies map[realm.ID]bool // organizations of other owners whose erased data this disk has
	wake   chan struct{}     // capacity 1: copies has grown
	file   string            // of copies
}

func newTextEraser(
	data string, disk snapshot.Disk, orgs *actors.Server, sweepSoon func(), words *search.Service,
	log *slog.Logger,
) *textEraser {
	ctx, cancel := context.WithCancel(context.Background())
	e := &textEraser{disk: disk, orgs: orgs, sweepSoon: sweepSoon, search: words, log: log, ctx: ctx, cancel: cancel,
		done: make(chan struct{}), copies: map[realm.ID]bool{}, wake: make(chan struct{}, 1),
		file: filepath.Join(data, erasingFile)}
	e.loadCopies()
	orgs.OnErased(e.addCopy)
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
			e.eraseCopies() // those that failed
		case <-e.wake:
			e.eraseCopies()
		}
	}
}

// eraseAll removes the bytes of the erased texts of every organization.
func (e *textEraser) eraseAll() {
	for _, id := range slices.Sorted(maps.Values(e.orgs.Realms())) {
		if !e.orgs.Owns(id) {
			continue
		}
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
			err = e.eraseRow(id, p, false)
		}
	}
	return err
}

// eraseRow removes the bytes of the texts of one row; person says that it removes those of a person, too. If it is
// interrupted, the next call does it again.
func (e *textEraser) eraseRow(id realm.ID, p realm.ErasedTexts, person bool) error {
	// The rows on disk must not contain the messages any more, nor events that all clients have fetched, nor the
	// journal the facts before the purge.
	if err := e.orgs.Save(e.ctx); err != nil {
		return err
	}
	rows, _, err := e.disk.Bounds(id)
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
	_, err = execute(e.orgs, id, systemCaller, realm.RecordTextsCompacted{Row: p.Row, Upto: p.Seq,
		Person: person})
	return err
}

// loadCopies reads which copies the last process has not completed.
func (e *textEraser) loadCopies() {
	var list []realm.ID
	text, err := os.ReadFile(e.file)
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.log.Error("reading the list of erased data failed", "file", e.file, "err", err)
	}
	for _, id := range list {
		e.addCopy(id)
	}
}

// addCopy says that the owner of an organization has removed erased bytes from its disk, and this disk has a copy.
func (e *textEraser) addCopy(id realm.ID) {
	e.mu.Lock()
	e.copies[id] = true
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// eraseCopies removes the bytes of erased data from the copies of this disk.
func (e *textEraser) eraseCopies() {
	e.mu.Lock()
	list := slices.Sorted(maps.Keys(e.copies))
	clear(e.copies)
	e.mu.Unlock()
	if len(list) == 0 {
		return
	}
	err := e.saveCopies(list)
	for len(list) > 0 && err == nil {
		if err = e.eraseCopy(list[0]); err == nil {
			list = list[1:]
		}
	}
	if err == nil {
		err = e.saveCopies(nil)
	}
	if err == nil || e.ctx.Err() != nil { // the next process reads the list
		return
	}
	e.log.Error("removing the bytes of erased texts from this core failed", "realms", list, "err", err)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range list {
		e.copies[id] = true
	}
}

// eraseCopy removes the bytes of an organization's erased data from the disk of a core that does not own it.
func (e *textEraser) eraseCopy(id realm.ID) error {
	began := time.Now()
	err := e.orgs.Save(e.ctx)
	if err == nil {
		err = e.disk.EraseDeleted(e.ctx, id, math.MaxUint64, 0, realm.MaxMessageID-1)
	}
	if err == nil {
		err = e.search.Rewrite(e.ctx, id)
	}
	if err == nil {
		e.log.Info("bytes of erased texts removed from this core", "realm", id,
			"took", time.Since(began).Round(time.Millisecond).String())
	}
	return err
}

// saveCopies writes the file of the copies that have erased data.
func (e *textEraser) saveCopies(list []realm.ID) error {
	if len(list) > 0 {
		text, _ := json.Marshal(list)
		return datadir.ReplaceFile(e.file, string(text)+"\n")
	}
	if err := os.Remove(e.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Close stops the eraser. A compaction that is running is canceled.
func (e *textEraser) Close() {
	e.cancel()
	<-e.done
}
