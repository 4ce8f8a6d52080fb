package search

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"parley/actors/realm"
)

// catchUp indexes the next batch of pending texts of one organization and reports whether there are more.
func (s *Service) catchUp(r *realmIndex) (more bool) {
	if r.index == nil {
		s.mu.Lock()
		rest := r.failed != nil || !s.isDue(r)
		s.mu.Unlock()
		if rest {
			return false
		}
		if err := s.open(r); isFull(err) {
			return false // it is opened once there is space
		} else if err != nil {
			return s.recordResult(r, 0, err)
		}
	}
	if !s.mayWrite(r) {
		return false // the next batch, search or tick of the writer tries again
	}
	s.mu.Lock()
	compare, replay := r.needsCompare, r.canReplay
	texts, target := r.takeBatch(compare)
	r.needsCompare, r.canReplay = false, false
	r.writing = len(texts) > 0 || compare
	busy := r.writing
	s.mu.Unlock()
	if !busy {
		return false
	}
	var err error
	switch {
	case replay:
		if err = s.replayJournal(r, target); err == nil {
			err = s.writeTexts(r, target, texts)
			break
		}
		s.log.Info("journal does not reach back to the search index; comparing it with the texts",
			"realm", r.id, "err", err)
		fallthrough
	case compare:
		err = s.compareWithTexts(r, target)
		if err == nil {
			err = s.writeTexts(r, target, texts)
		}
	default:
		err = s.writeTexts(r, target, texts)
	}
	if err == nil {
		err = r.index.Warm()
	}
	return s.recordResult(r, target, err)
}

// isFull reports whether an error says that the disk is full.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// errStopped ends a comparison; the next start begins it again.
var errStopped = errors.New("stopped")

// recordResult records the number that an index has reached, or its failure. A failed index is not used again before
// the next start. It reports whether there is more to write.
func (s *Service) recordResult(r *realmIndex, at realm.Seq, err error) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		r.failed = err
		r.queue = nil
		if !errors.Is(err, errStopped) {
			s.log.Error("search index failed", "realm", r.id, "err", err)
		}
		close(r.advanced)
		r.advanced = make(chan struct{})
		return false
	}
	r.indexed, r.writing = at, false
	if more = len(r.queue) > 0 || r.needsCompare; !more {
		at = r.durable // the facts since then contained no text
	}
	r.advance(at)
	return more
}

// batch collects documents and writes them when there are enough.
type batch struct {
	realm *realmIndex
	seq   realm.Seq // the index's number until the last batch
	docs  []Doc
	bytes int
}

func (b *batch) add(d Doc) error {
	b.docs = append(b.docs, d)
	if b.bytes += len(d.Text); len(b.docs) < batchDocs && b.bytes < batchBytes {
		return nil
	}
	return b.flush(b.seq)
}

func (b *batch) flush(at realm.Seq) error {
	err := b.realm.index.Write(at, b.docs)
	b.docs, b.bytes = b.docs[:0], 0
	return err
}

// writeTexts indexes texts in the order in which they were written. Only the last write of each message counts.
func (s *Service) writeTexts(r *realmIndex, target realm.Seq, texts []pendingText) error {
	last := map[realm.MessageID]int{}
	for i, t := range texts {
		// Deleting an old version, when an edit history is shortened, does not concern the message's current text.
		if j, ok := last[t.Message]; !ok || t.Version >= texts[j].Version {
			last[t.Message] = i
		}
	}
	b := batch{realm: r, seq: r.indexed}
	for i, t := range texts {
		if last[t.Message] != i {
			continue
		}
		d := Doc{Ref: t.BodyRef, Deleted: t.deleted}
		if !d.Deleted {
			body, ok, err := r.readText(t.BodyRef)
			if err != nil {
				return err
			}
			if d.Deleted = !ok; ok { // else it was erased later, and that write is still pending
				d.Text = s.plain(body)
			}
		}
		if err := b.add(d); err != nil {
			return err
		}
	}
	return b.flush(target)
}

// replayJournal indexes the texts that the journal has after the index's number.
func (s *Service) replayJournal(r *realmIndex, target realm.Seq) error {
	refs := map[realm.MessageID]realm.BodyRef{}
	erased := map[realm.MessageID]bool{}
	err := s.disk.Tail(r.id, r.indexed, func(x realm.Record) error {
		if w, ok := x.Fact.(realm.TextWriter); ok && x.Seq <= target {
			for ref := range w.Bodies() {
				if old, ok := refs[ref.Message]; !ok || ref.Version >= old.Version {
					refs[ref.Message] = ref
				}
			}
		}
		if e, ok := x.Fact.(realm.TextEraser); ok && x.Seq <= target {
			for _, ref := range e.Erased() {
				if _, ok := refs[ref.Message]; !ok {
					refs[ref.Message] = ref
				}
				erased[ref.Message] = true
			}
		}
		if len(refs) > maxReplayedTexts {
			return fmt.Errorf("more than %d texts are missing", maxReplayedTexts)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b := batch{realm: r, seq: r.indexed}
	for _, ref := range refs {
		body, ok, err := r.readText(ref)
		if err != nil {
			return err
		}
		if !ok && !erased[ref.Message] {
			return fmt.Errorf("the text of message %d is missing", ref.Message)
		}
		d := Doc{Ref: ref, Deleted: !ok}
		if ok {
			d.Text = s.plain(body)
		}
		if err := b.add(d); err != nil {
			return err
		}
	}
	return b.flush(target)
}

// compareWithTexts makes the index equal to the texts on disk, whatever it contained before.
func (s *Service) compareWithTexts(r *realmIndex, target realm.Seq) error {
	have, err := r.index.Versions()
	if err != nil {
		return err
	}
	began, written := time.Now(), 0
	b := batch{realm: r, seq: r.indexed}
	var ref realm.BodyRef
	var text string
	known := false // the index has the newest version of ref.Message seen so far
	settle := func() error {
		if ref.Message == 0 {
			return nil
		}
		delete(have, ref.Message)
		if known {
			return nil
		}
		written++
		return b.add(Doc{Ref: ref, Text: text})
	}
	err = s.disk.EachText(r.id, func(next realm.BodyRef, body func() (realm.Body, error)) error {
		select {
		case <-s.stop:
			return errStopped
		default:
		}
		if next.Message != ref.Message {
			if err := settle(); err != nil {
				return err
			}
		}
		ref, text = next, ""
		version, ok := have[next.Message]
		if known = ok && version == next.Version; known {
			return nil
		}
		x, err := body()
		text = s.plain(x)
		return err
	})
	if err == nil {
		err = settle()
	}
	if err != nil {
		return err
	}
	for id := range have {
		if err := b.add(Doc{Ref: realm.BodyRef{Message: id}, Deleted: true}); err != nil {
			return err
		}
	}
	if err := b.flush(target); err != nil {
		return err
	}
	s.log.Info("search index compared with the texts",
		"realm", r.id, "written", written, "removed", len(have),
		"took", time.Since(began).Round(time.Millisecond).String())
	return nil
}

// Rebuild makes the index of an organization from its texts and returns the number of indexed messages. Nothing else
// may have the index open.
func Rebuild(
	dir string,
	disk Disk,
	plain func(realm.Body) string,
	log *slog.Logger,
	id realm.ID,
	last realm.Seq,
) (count int, err error) {
	s := &Service{dir: dir, disk: disk, plain: plain, log: log, stop: make(chan struct{})}
	if err := os.RemoveAll(s.path(id)); err != nil {
		return 0, err
	}
	x, err := Open(s.path(id))
	if err != nil {
		return 0, err
	}
	r := &realmIndex{id: id, index: x, advanced: make(chan struct{})}
	err = s.compareWithTexts(r, last)
	if err == nil {
		var v map[realm.MessageID]uint16
		v, err = x.Versions()
		count = len(v)
	}
	return count, errors.Join(err, x.Close())
}
