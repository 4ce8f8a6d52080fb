package search

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"parley/actors/realm"
)

// catchUp indexes the next texts that wait for one organization, and reports whether there are more.
func (l *Service) catchUp(s *realmIndex) (more bool) {
	if s.index == nil {
		l.mu.Lock()
		failed := s.failed != nil
		l.mu.Unlock()
		if failed {
			return false
		}
		if err := l.open(s); err != nil {
			return l.recordResult(s, 0, err)
		}
	}
	l.mu.Lock()
	behind, tail := s.needsCompare, s.canReplay
	texts, target := s.takeBatch(behind)
	s.needsCompare, s.canReplay = false, false
	s.writing = len(texts) > 0 || behind
	busy := s.writing
	l.mu.Unlock()
	if !busy {
		return false
	}
	var err error
	switch {
	case tail:
		if err = l.replayJournal(s, target); err == nil {
			err = l.writeTexts(s, target, texts)
			break
		}
		l.log.Info("the journal does not reach back to the search index; comparing with the texts",
			"realm", s.id, "reason", err)
		fallthrough
	case behind:
		err = l.compareWithTexts(s, target)
		if err == nil {
			err = l.writeTexts(s, target, texts)
		}
	default:
		err = l.writeTexts(s, target, texts)
	}
	if err == nil {
		err = s.index.Warm()
	}
	return l.recordResult(s, target, err)
}

// errStopped ends a comparison that the next start begins anew.
var errStopped = errors.New("stopped")

// recordResult says how far an index is, or that it failed: then it is left as it is until the next start. It reports whether
// there is more to write.
func (l *Service) recordResult(s *realmIndex, at realm.Seq, err error) (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		s.failed = err
		s.queue = nil
		if !errors.Is(err, errStopped) {
			l.log.Error("search index", "realm", s.id, "error", err)
		}
		close(s.advanced)
		s.advanced = make(chan struct{})
		return false
	}
	s.indexed, s.writing = at, false
	if more = len(s.queue) > 0 || s.needsCompare; !more {
		at = s.durable // what came since was no text
	}
	s.advance(at)
	return more
}

// batch gathers documents and writes them when there are enough.
type batch struct {
	realm *realmIndex
	seq   realm.Seq // the number while more is to come
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

// writeTexts indexes texts in the order they were written: only the last word on each message counts.
func (l *Service) writeTexts(s *realmIndex, target realm.Seq, texts []pendingText) error {
	last := map[realm.MessageID]int{}
	for i, t := range texts {
		// The erasure of an old version, an edit history cut short, says nothing about the message.
		if j, ok := last[t.Message]; !ok || t.Version >= texts[j].Version {
			last[t.Message] = i
		}
	}
	b := batch{realm: s, seq: s.indexed}
	for i, t := range texts {
		if last[t.Message] != i {
			continue
		}
		d := Doc{Ref: t.BodyRef, Deleted: t.deleted}
		if !d.Deleted {
			body, ok, err := s.readText(t.BodyRef)
			if err != nil {
				return err
			}
			if d.Deleted = !ok; ok { // else it has been erased since, which is still to come
				d.Text = l.plain(body)
			}
		}
		if err := b.add(d); err != nil {
			return err
		}
	}
	return b.flush(target)
}

// replayJournal brings an index up to a number from the journal.
func (l *Service) replayJournal(s *realmIndex, target realm.Seq) error {
	refs := map[realm.MessageID]realm.BodyRef{}
	gone := map[realm.MessageID]bool{}
	err := l.disk.Tail(s.id, s.indexed, func(seq realm.Seq, f realm.Fact) error {
		if w, ok := f.(realm.TextWriter); ok && seq <= target {
			for ref := range w.Bodies() {
				if old, ok := refs[ref.Message]; !ok || ref.Version >= old.Version {
					refs[ref.Message] = ref
				}
			}
		}
		if e, ok := f.(realm.TextEraser); ok && seq <= target {
			for _, ref := range e.Erased() {
				if _, ok := refs[ref.Message]; !ok {
					refs[ref.Message] = ref
				}
				gone[ref.Message] = true
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
	b := batch{realm: s, seq: s.indexed}
	for _, ref := range refs {
		body, ok, err := s.readText(ref)
		if err != nil {
			return err
		}
		if !ok && !gone[ref.Message] {
			return fmt.Errorf("the text of message %d is missing", ref.Message)
		}
		d := Doc{Ref: ref, Deleted: !ok}
		if ok {
			d.Text = l.plain(body)
		}
		if err := b.add(d); err != nil {
			return err
		}
	}
	return b.flush(target)
}

// compareWithTexts makes an index what the texts on disk say, whatever it was.
func (l *Service) compareWithTexts(s *realmIndex, target realm.Seq) error {
	have, err := s.index.Versions()
	if err != nil {
		return err
	}
	began, written := time.Now(), 0
	b := batch{realm: s, seq: s.indexed}
	var ref realm.BodyRef
	var text string
	known := false // the newest version seen of ref.Message is the one indexed
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
	err = l.disk.EachText(s.id, func(next realm.BodyRef, body func() (realm.Body, error)) error {
		select {
		case <-l.stop:
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
		text = l.plain(x)
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
	l.log.Info("search index compared with the texts",
		"realm", s.id, "written", written, "removed", len(have),
		"took", time.Since(began).Round(time.Millisecond).String())
	return nil
}

// Rebuild makes the index of an organization anew; nobody else may have it open.
func Rebuild(
	dir string,
	disk Disk,
	plain func(realm.Body) string,
	log *slog.Logger,
	id realm.ID,
	last realm.Seq,
) (count int, err error) {
	l := &Service{dir: dir, disk: disk, plain: plain, log: log, stop: make(chan struct{})}
	if err := os.RemoveAll(l.path(id)); err != nil {
		return 0, err
	}
	x, err := Open(l.path(id))
	if err != nil {
		return 0, err
	}
	s := &realmIndex{id: id, index: x, advanced: make(chan struct{})}
	err = l.compareWithTexts(s, last)
	if err == nil {
		var v map[realm.MessageID]uint16
		v, err = x.Versions()
		count = len(v)
	}
	return count, errors.Join(err, x.Close())
}
