package search

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	scorchseg "github.com/blevesearch/scorch_segment_api/v2"

	"parley/actors/realm"
	"parley/actors/realm/ids"
)

// segment is what searches need of one immutable segment of the index: the message of each document, and the sorted
// terms. The terms are one text, so that one scan finds a fragment.
type segment struct {
	messages    []uint32
	terms       []byte   // each after a newline, and a newline at the end
	termOffsets []uint32 // the position of each term's newline
	maxMessage  uint32   // the largest of messages
}

// Find returns, for each word of a query, exactly the messages that contain it. For each phrase it returns all messages
// that may contain it, and possibly more. All is set if the index cannot narrow a phrase down.
func (x *Index) Find(q Query) (words, phrases []Candidates, err error) {
	err = x.read(func(parts []segmentView) error {
		for _, w := range q.Words {
			known := map[string]bool{}
			s, err := messagesOf(parts, func(p segmentView) (docSet, error) { return p.docsWithStem(w, known) })
			if err != nil {
				return err
			}
			words = append(words, Candidates{Messages: s})
		}
		for _, f := range q.Phrases {
			found, err := phraseCandidates(parts, f)
			if err != nil {
				return err
			}
			phrases = append(phrases, found)
		}
		return nil
	})
	return words, phrases, err
}

// Candidates are the messages that may match a word or phrase.
type Candidates struct {
	Messages ids.Set
	All      bool // every message is a candidate
}

// segmentView is a segment in one state of the index.
type segmentView struct {
	*segment
	seg     scorchseg.Segment
	deleted *roaring.Bitmap
}

// read calls fn with the segments of the index's current state.
func (x *Index) read(fn func([]segmentView) error) error {
	r, err := x.index.Reader()
	if err != nil {
		return fmt.Errorf("read search index: %w", err)
	}
	defer r.Close()
	snapshot, ok := r.(*scorch.IndexSnapshot)
	if !ok {
		return fmt.Errorf("read search index: unknown snapshot type %T", r)
	}
	x.mu.Lock()
	parts, err := x.prepare(snapshot)
	x.mu.Unlock()
	if err != nil {
		return fmt.Errorf("read search index: %w", err)
	}
	if err := fn(parts); err != nil {
		return fmt.Errorf("read search index: %w", err)
	}
	return nil
}

// EachStoredTerm calls fn with every term in the files, also those that only deleted messages have. A term can come
// several times.
func (x *Index) EachStoredTerm(fn func(term []byte)) error {
	return x.read(func(parts []segmentView) error {
		for _, p := range parts {
			for i := range p.termOffsets {
				fn(p.term(i))
			}
		}
		return nil
	})
}

// Warm prepares the segments for the next search.
func (x *Index) Warm() error { return x.read(func([]segmentView) error { return nil }) }

// prepare loads the messages and terms of new segments, and drops segments that were merged. x.mu is held.
func (x *Index) prepare(snapshot *scorch.IndexSnapshot) ([]segmentView, error) {
	var parts []segmentView
	live := map[uint64]*segment{}
	for _, s := range snapshot.Segments() {
		p := segmentView{segment: x.segments[s.Id()], seg: s.Segment(), deleted: s.Deleted()}
		if p.segment == nil {
			var err error
			if p.segment, err = loadSegment(p.seg); err != nil {
				return nil, err
			}
		}
		live[s.Id()] = p.segment
		parts = append(parts, p)
	}
	x.segments = live
	return parts, nil
}

func loadSegment(seg scorchseg.Segment) (*segment, error) {
	s := &segment{messages: make([]uint32, seg.Count())}
	for i := range s.messages {
		id, err := seg.DocID(uint64(i))
		if err != nil {
			return nil, err
		}
		if len(id) != 4 {
			return nil, fmt.Errorf("document id of %d bytes", len(id))
		}
		s.messages[i] = binary.BigEndian.Uint32(id)
		s.maxMessage = max(s.maxMessage, s.messages[i])
	}
	dict, err := seg.Dictionary(fieldText)
	if err != nil {
		return nil, err
	}
	it := dict.AutomatonIterator(nil, nil, nil)
	for {
		e, err := it.Next()
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		s.termOffsets = append(s.termOffsets, uint32(len(s.terms)))
		s.terms = append(append(s.terms, '\n'), e.Term...)
	}
	s.terms = append(s.terms, '\n')
	return s, nil
}

func (s *segment) term(i int) []byte {
	end := len(s.terms) - 1
	if i+1 < len(s.termOffsets) {
		end = int(s.termOffsets[i+1])
	}
	return s.terms[s.termOffsets[i]+1 : end]
}

// termsWithPrefix returns the range of the sorted terms that begin with a prefix.
func (s *segment) termsWithPrefix(prefix string) (from, to int) {
	from = sort.Search(len(s.termOffsets), func(i int) bool { return string(s.term(i)) >= prefix })
	to = from + sort.Search(len(s.termOffsets)-from,
		func(i int) bool { return !bytes.HasPrefix(s.term(from+i), []byte(prefix)) })
	return from, to
}

// docSet is a set of a segment's documents, one bit each. A search merges very many lists; bits are the fastest way.
type docSet []uint64

func (d docSet) add(doc uint32) { d[doc/64] |= 1 << (doc % 64) }

func (d docSet) count() (n int) {
	for _, w := range d {
		n += bits.OnesCount64(w)
	}
	return n
}

func (d docSet) each(fn func(doc uint32)) {
	for i, w := range d {
		for ; w != 0; w &= w - 1 {
			fn(uint32(i*64 + bits.TrailingZeros64(w)))
		}
	}
}

// postings returns the documents with any of the terms in one field.
func (p segmentView) postings(field string, terms [][]byte) (docSet, error) {
	dict, err := p.seg.Dictionary(field)
	if err != nil {
		return nil, err
	}
	found := make(docSet, len(p.messages)/64+1)
	buf := make([]uint32, 1024)
	var list scorchseg.PostingsList
	var it scorchseg.PostingsIterator
	for _, t := range terms {
		if list, err = dict.PostingsList(t, p.deleted, list); err != nil {
			return nil, err
		}
		it = list.Iterator(false, false, false, it)
		fast, ok := it.(scorchseg.OptimizablePostingsIterator)
		if !ok {
			return nil, fmt.Errorf("unknown postings type %T", it)
		}
		if doc, one := fast.DocNum1Hit(); one {
			found.add(uint32(doc))
		} else if b := fast.ActualBitmap(); b != nil {
			for many := b.ManyIterator(); ; {
				n := many.NextMany(buf)
				if n == 0 {
					break
				}
				for _, d := range buf[:n] {
					found.add(d)
				}
			}
		}
	}
	return found, nil
}

// docsWithStem returns the documents that contain a word with the stem. Most words are in many segments; known caches,
// for each word, whether it has the stem.
func (p segmentView) docsWithStem(want string, known map[string]bool) (docSet, error) {
	var terms [][]byte
	from, to := p.termsWithPrefix(stemPrefix(want))
	for i := from; i < to; i++ {
		t := p.term(i)
		has, ok := known[string(t)]
		if !ok {
			has = string(t) == want || stem(string(t)) == want
			known[string(t)] = has
		}
		if has {
			terms = append(terms, t)
		}
	}
	for _, w := range irregular[want] {
		terms = append(terms, []byte(w))
	}
	return p.postings(fieldText, terms)
}

// Limits of fragments. A shorter fragment, or one that more terms contain, hardly narrows a search down and is skipped.
const (
	minFragment = 3
	maxTerms    = 2000
)

// phraseCandidates returns the messages that may contain a phrase: they have the phrase's whole words, and words that
// may contain its first and last fragment.
func phraseCandidates(parts []segmentView, text string) (Candidates, error) {
	type fragment struct {
		token        string
		begins, ends bool
	}
	var fragments []fragment
	tokens(text, func(t string, begins, ends bool) {
		if begins && ends || len(t) >= minFragment {
			fragments = append(fragments, fragment{t, begins, ends})
		}
	})
	if len(fragments) == 0 {
		return Candidates{All: true}, nil
	}
	any := false
	s, err := messagesOf(parts, func(p segmentView) (docSet, error) {
		var all docSet
		for _, f := range fragments {
			terms, ok := p.termsContaining(f.token, f.begins, f.ends)
			if !ok {
				continue
			}
			b, err := p.postings(fieldText, terms)
			if err != nil {
				return nil, err
			}
			if all == nil {
				all = b
				continue
			}
			for i := range all {
				all[i] &= b[i]
			}
		}
		any = any || all == nil
		return all, nil
	})
	if any {
		return Candidates{All: true}, err
	}
	return Candidates{Messages: s}, err
}

// termsContaining returns the terms that may contain a fragment: as a whole word, at the beginning, at the end, or
// anywhere. ok is false if there are more than maxTerms.
func (p segmentView) termsContaining(token string, begins, ends bool) (terms [][]byte, ok bool) {
	if begins {
		from, to := p.termsWithPrefix(token)
		if ends && from < to { // a term equal to the token is the first
			to = from + 1
			if len(p.term(from)) > len(token) {
				to = from
			}
		}
		for i := from; i < to && i < from+maxTerms; i++ {
			terms = append(terms, p.term(i))
		}
		return terms, to-from <= maxTerms
	}
	key := []byte(token)
	if ends {
		key = append(key, '\n')
	}
	for from := 0; ; {
		i := bytes.Index(p.terms[from:], key)
		if i < 0 {
			return terms, true
		}
		if len(terms) == maxTerms {
			return nil, false
		}
		i += from
		n := sort.Search(len(p.termOffsets), func(n int) bool { return int(p.termOffsets[n]) >= i }) - 1
		t := p.term(n)
		terms = append(terms, t)
		from = int(p.termOffsets[n]) + 1 + len(t) // the next term's newline
	}
}

// messagesOf returns the messages of the documents that fn finds in each segment.
func messagesOf(parts []segmentView, fn func(segmentView) (docSet, error)) (ids.Set, error) {
	found, n, last := make([]docSet, len(parts)), 0, uint32(0)
	for i, p := range parts {
		var err error
		if found[i], err = fn(p); err != nil {
			return ids.Set{}, err
		}
		if found[i] != nil {
			n, last = n+found[i].count(), max(last, p.maxMessage)
		}
	}
	each := func(fn func(id uint32)) {
		for i, p := range parts {
			found[i].each(func(d uint32) { fn(p.messages[d]) })
		}
	}
	// Documents are not in the order of their messages, and inserting an earlier message into a bitmap moves later
	// ones.
	if n > int(last)/1024 {
		messages := make(docSet, last/64+1)
		each(messages.add)
		return ids.SetFromBitmap(roaring.FromDense(messages, false)), nil
	}
	idList := make([]uint32, 0, n)
	each(func(id uint32) { idList = append(idList, id) })
	slices.Sort(idList)
	return ids.SetFromBitmap(roaring.BitmapOf(idList...)), nil
}

// Versions returns the version of each message's text in the index.
func (x *Index) Versions() (map[realm.MessageID]uint16, error) {
	out := map[realm.MessageID]uint16{}
	err := x.read(func(parts []segmentView) error {
		for _, p := range parts {
			dict, err := p.seg.Dictionary(fieldVersion)
			if err != nil {
				return err
			}
			for it := dict.AutomatonIterator(nil, nil, nil); ; {
				e, err := it.Next()
				if err != nil {
					return err
				}
				if e == nil {
					break
				}
				docs, err := p.postings(fieldVersion, [][]byte{[]byte(e.Term)})
				if err != nil {
					return err
				}
				version := binary.BigEndian.Uint16([]byte(e.Term))
				docs.each(func(d uint32) { out[realm.MessageID(p.messages[d])] = version })
			}
		}
		return nil
	})
	return out, err
}
