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

// segment is what searching needs of one piece of the index, which never changes: the message behind each document, and
// the terms in order, as one text so that a fragment is found by one scan.
type segment struct {
	messages    []uint32
	terms       []byte   // each behind a newline, and one newline at the end
	termOffsets []uint32 // where each term's newline is
	maxMessage  uint32   // of the ids
}

// Find is, for each word of a query, the messages whose text has it: exactly those. For a phrase it is all messages that
// can have it, and maybe more; any is set where a phrase says nothing the index could answer.
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

// Candidates is candidates.
type Candidates struct {
	Messages ids.Set
	All      bool // every message is one
}

// segmentView is one segment as it stands in one state of the index.
type segmentView struct {
	*segment
	seg     scorchseg.Segment
	deleted *roaring.Bitmap
}

// read opens the index as it stands and prepares its segments.
func (x *Index) read(fn func([]segmentView) error) error {
	r, err := x.index.Reader()
	if err != nil {
		return fmt.Errorf("read search index: %w", err)
	}
	defer r.Close()
	snapshot, ok := r.(*scorch.IndexSnapshot)
	if !ok {
		return fmt.Errorf("read search index: the library hands out a %T", r)
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

// Warm prepares what the next search needs.
func (x *Index) Warm() error { return x.read(func([]segmentView) error { return nil }) }

// prepare reads the ids and terms of segments that are new and forgets those that were merged away. x.mu is held.
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
			return nil, fmt.Errorf("a document is named by %d bytes", len(id))
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

// termsWithPrefix is the terms that begin with a prefix: a stretch of the order.
func (s *segment) termsWithPrefix(prefix string) (from, to int) {
	from = sort.Search(len(s.termOffsets), func(i int) bool { return string(s.term(i)) >= prefix })
	to = from + sort.Search(
		len(s.termOffsets)-from,
		func(i int) bool { return !bytes.HasPrefix(s.term(from+i), []byte(prefix)) },
	)
	return from, to
}

// docSet is some of a segment's documents: a bit for each. Searches put very many lists together; that is how it is quickest.
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

// postings is the documents of one field that have any of the terms.
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
			return nil, fmt.Errorf("the library's postings are %T", it)
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

// docsWithStem is the documents with a word of that docsWithStem. Most words are in many segments: known is which of them have it.
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

// A fragment that is shorter (bytes), or that more terms have, narrows hardly anything down and is not looked up.
const (
	minFragment = 3
	maxTerms    = 2000
)

// phraseCandidates is what can have a phraseCandidates: the words that stand whole in it, and words that its ends may be cut from.
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

// termsContaining is the terms of which a fragment may be a part: whole, as beginning, as end, or anywhere. It reports false when
// they are too many to be worth it.
func (p segmentView) termsContaining(token string, begins, ends bool) (terms [][]byte, ok bool) {
	if begins {
		from, to := p.termsWithPrefix(token)
		if ends && from < to { // the word itself would be the first of them
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

// messagesOf is the messages behind the documents that fn finds in each segment.
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
	// Documents are in no order of their messages, and to put each into its place in a bitmap moves many others.
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

// Versions is which version of each message's text is in the index.
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
