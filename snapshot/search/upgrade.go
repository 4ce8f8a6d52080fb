package search

import (
	"context"

	"parley/actors/realm"
)

// An index that an older program wrote has texts of an older format. It answers searches as before, while the writer
// writes all texts again, in steps between other texts. Each step stores how far it came, in the same batch as its
// texts, so the next process continues there.

// upgradeBatches is how many batches of texts one step writes again. The writer rests after each step.
const upgradeBatches = 4

// Rewrite writes all texts of an organization's index again, and waits until that is done or ctx ends. Then no file has
// the words of deleted texts: the library drops a segment without messages, while one with some would keep the words
// until it is merged. Searches continue meanwhile. Once begun, it continues after ctx has ended, and after a restart.
func (s *Service) Rewrite(ctx context.Context, id realm.ID) error {
	s.mu.Lock()
	r := s.realms[id]
	if r == nil {
		s.mu.Unlock()
		return nil // this node does not index it
	}
	if r.failed != nil {
		s.mu.Unlock()
		return r.failed
	}
	if r.rewritten == nil {
		r.rewritten, r.rewriteAsked = make(chan struct{}), true
	}
	done := r.rewritten
	s.mu.Unlock()
	s.signal()
	select {
	case <-done:
		return nil
	case <-s.stop:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// beginRewrite gives an index an older format if Rewrite asks for it.
func (s *Service) beginRewrite(r *realmIndex) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.rewriteAsked && r.index != nil {
		r.rewriteAsked = false
		r.index.format, r.index.rewritten = textFormat-1, 0
	}
}

// endRewrite lets Rewrite return, unless it has asked for another one.
func (s *Service) endRewrite(r *realmIndex) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.rewritten != nil && !r.rewriteAsked {
		close(r.rewritten)
		r.rewritten = nil
	}
}

// upgrade does the next step for an index and reports whether there are more. It does nothing while texts wait to be
// indexed.
func (s *Service) upgrade(r *realmIndex) (more bool) {
	s.beginRewrite(r)
	if r.index == nil || r.index.format == textFormat {
		return false
	}
	s.mu.Lock()
	busy := r.failed != nil || r.needsCompare || len(r.queue) > 0
	s.mu.Unlock()
	if busy {
		return false
	}
	for range upgradeBatches {
		select {
		case <-s.stop:
			return false
		default:
		}
		if err := s.upgradeBatch(r); err != nil {
			s.recordResult(r, r.indexed, err)
			return false
		}
		if r.index.format == textFormat {
			s.log.Info("search index has the present format", "realm", r.id)
			s.endRewrite(r)
			return false
		}
	}
	return true
}

// upgradeBatch writes the next texts again. A text on disk may be newer than the index: it is written once more when
// its turn comes.
func (s *Service) upgradeBatch(r *realmIndex) error {
	var docs []Doc
	bytes, last, done := 0, r.index.rewritten, true
	err := s.disk.NewestTexts(r.id, last, func(ref realm.BodyRef, body realm.Body) (bool, error) {
		d := Doc{Ref: ref, Text: s.plain(body)}
		docs = append(docs, d)
		bytes += len(d.Text)
		last, done = ref.Message, len(docs) < batchDocs && bytes < batchBytes
		return done, nil
	})
	if err != nil {
		return err
	}
	if r.index.rewritten = last; done {
		r.index.format, r.index.rewritten = textFormat, 0
	}
	return r.index.Write(r.indexed, docs)
}
