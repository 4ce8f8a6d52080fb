package search

import "parley/actors/realm"

// An index that an older program wrote has texts of an older format. It answers searches as before, while the writer
// writes all texts again, in steps between other texts. Each step stores how far it came, in the same batch as its
// texts, so the next process continues there.

// upgradeBatches is how many batches of texts one step writes again. The writer rests after each step.
const upgradeBatches = 4

// upgrade does the next step for an index and reports whether there are more. It does nothing while texts wait to be
// indexed.
func (s *Service) upgrade(r *realmIndex) (more bool) {
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
