package erase

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

	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/search"
)

// interval is the time between two searches for erased texts. Compacting rewrites the rows of an organization, so
// it happens at most that often.
const interval = time.Hour

// erasingFile is the name of the file, in the data directory of a core, that lists the organizations whose erased data
// its disk still has, as a JSON list of ids. A core that is killed in the moment after the owner's TextsCompacted may
// not have written it; its store then has the bytes until it happens to compact them.
const erasingFile = "erasing"

// Organizations have texts that were erased.
type Organizations interface {
	realm.Turns
	realm.Views
	// Realms returns the organizations by subdomain.
	Realms() map[string]realm.ID
	// Owns reports whether this node owns an organization.
	Owns(realm.ID) bool
	// IsAsleep reports whether an organization is not in memory. Then it has no erased texts on disk.
	IsAsleep(realm.ID) bool
	// Save writes the rows of all organizations to the disk.
	Save(context.Context) error
	// OnErased sets the function that is called when the owner of an organization, which is another node, has removed
	// bytes.
	OnErased(func(realm.ID))
}

// Eraser removes the bytes of erased texts in the background.
type Eraser struct {
	disk      snapshot.Disk
	orgs      Organizations
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

// Start starts an eraser. sweepSoon removes the files of purged messages, without waiting.
func Start(
	data string, disk snapshot.Disk, orgs Organizations, sweepSoon func(), words *search.Service,
	log *slog.Logger,
) *Eraser {
	ctx, cancel := context.WithCancel(context.Background())
	e := &Eraser{disk: disk, orgs: orgs, sweepSoon: sweepSoon, search: words, log: log, ctx: ctx, cancel: cancel,
		done: make(chan struct{}), copies: map[realm.ID]bool{}, wake: make(chan struct{}, 1),
		file: filepath.Join(data, erasingFile)}
	e.loadCopies()
	orgs.OnErased(e.addCopy)
	go e.run()
	return e
}

func (e *Eraser) run() {
	defer close(e.done)
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-t.C:
			e.EraseAll()
			e.eraseCopies() // those that failed
		case <-e.wake:
			e.eraseCopies()
		}
	}
}

// EraseAll removes the bytes of the erased texts of every organization.
func (e *Eraser) EraseAll() {
	for _, id := range slices.Sorted(maps.Values(e.orgs.Realms())) {
		if !e.orgs.Owns(id) || e.orgs.IsAsleep(id) {
			continue
		}
		if err := e.erase(id); err != nil && e.ctx.Err() == nil {
			e.log.Error("removing the bytes of erased texts failed", "realm", id, "err", err)
		}
	}
}

// erase removes the bytes of one organization's erased texts, if that is due.
func (e *Eraser) erase(id realm.ID) error {
	var due []realm.ErasedTexts
	_, err := e.orgs.View(id, realm.System, func(v realm.View) (any, error) {
		due = v.ErasedTexts()
		return nil, nil
	})
	for _, p := range due {
		if err == nil {
			var erased bool
			if erased, err = Row(e.ctx, e.disk, e.orgs, id, p, false, e.log); erased {
				e.sweepSoon()
			}
		}
	}
	return err
}

// Row removes the bytes of the texts of one row, or of all that a person had. It reports false if the rows on disk are
// too old for that, because snapshots are stopped during an upgrade. If it is interrupted, the next call does it again.
func Row(ctx context.Context, disk snapshot.Disk, orgs Organizations, id realm.ID, p realm.ErasedTexts, person bool,
	log *slog.Logger) (erased bool, err error) {
	// The rows on disk must not contain the messages any more, nor events that all clients have fetched, nor the
	// journal the facts before the purge.
	if err := orgs.Save(ctx); err != nil {
		return false, err
	}
	rows, _, err := disk.Bounds(id)
	if err != nil || rows < p.Seq {
		return false, err
	}
	began := time.Now()
	if err := disk.EraseDeleted(ctx, id, p.Seq, p.From, p.To); err != nil {
		return false, err
	}
	log.Info("bytes of erased texts removed", "realm", id, "messages", p.Messages,
		"took", time.Since(began).Round(time.Millisecond).String())
	_, err = realm.Execute(orgs, id, realm.System, realm.RecordTextsCompacted{Row: p.Row, Upto: p.Seq, Person: person})
	return true, err
}

// loadCopies reads which copies the last process has not completed.
func (e *Eraser) loadCopies() {
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
func (e *Eraser) addCopy(id realm.ID) {
	e.mu.Lock()
	e.copies[id] = true
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// eraseCopies removes the bytes of erased data from the copies of this disk.
func (e *Eraser) eraseCopies() {
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
func (e *Eraser) eraseCopy(id realm.ID) error {
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
func (e *Eraser) saveCopies(list []realm.ID) error {
	if len(list) > 0 {
		text, _ := json.Marshal(list)
		return replaceFile(e.file, text)
	}
	if err := os.Remove(e.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Close stops the eraser. A compaction that is running is canceled.
func (e *Eraser) Close() {
	e.cancel()
	<-e.done
}

// replaceFile writes a small file. A reader finds the old or the new content. It does not sync.
func replaceFile(path string, text []byte) error {
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
