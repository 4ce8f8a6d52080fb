package search

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"parley/actors/realm"
)

// shelfDisk is texts in memory, and a journal that may have been taken over by rows.
type shelfDisk struct {
	mu      sync.Mutex
	texts   map[realm.BodyRef]string
	journal []realm.Fact // the first is number from+1
	from    realm.Seq
	scans   int
}

func (d *shelfDisk) Tail(_ realm.ID, after realm.Seq, fn func(realm.Seq, realm.Fact) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if after < d.from {
		return errors.New("taken over by rows")
	}
	for i, f := range d.journal[after-d.from:] {
		if err := fn(after+realm.Seq(i)+1, f); err != nil {
			return err
		}
	}
	return nil
}

func (d *shelfDisk) text(ref realm.BodyRef) (realm.Body, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, ok := d.texts[ref]
	return realm.Body{Text: text}, ok, nil
}

func (d *shelfDisk) EachText(_ realm.ID, fn func(realm.BodyRef, func() (realm.Body, error)) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scans++
	var refs []realm.BodyRef
	for ref := range d.texts {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b realm.BodyRef) int {
		if a.Message != b.Message {
			return int(a.Message - b.Message)
		}
		return int(a.Version) - int(b.Version)
	})
	for _, ref := range refs {
		if err := fn(ref, func() (realm.Body, error) { return realm.Body{Text: d.texts[ref]}, nil }); err != nil {
			return err
		}
	}
	return nil
}

// sent puts a message on the disk and into the journal, and returns what the commit wrote.
func (d *shelfDisk) sent(id realm.MessageID, text string) []realm.TextWrite {
	d.mu.Lock()
	defer d.mu.Unlock()
	ref := realm.BodyRef{Message: id}
	d.texts[ref] = text
	d.journal = append(d.journal, &realm.MessageSent{ID: id})
	return []realm.TextWrite{{Ref: ref, Body: &realm.Body{Text: text}}}
}

// edited gives a message another text.
func (d *shelfDisk) edited(id realm.MessageID, version uint16, text string) []realm.TextWrite {
	d.mu.Lock()
	defer d.mu.Unlock()
	ref := realm.BodyRef{Message: id, Version: version}
	d.texts[ref] = text
	d.journal = append(d.journal, &realm.Ticked{})
	return []realm.TextWrite{{Ref: ref, Body: &realm.Body{Text: text}}}
}

// erased takes a message's text away.
func (d *shelfDisk) erased(id realm.MessageID) []realm.TextWrite {
	d.mu.Lock()
	defer d.mu.Unlock()
	ref := realm.BodyRef{Message: id}
	delete(d.texts, ref)
	d.journal = append(d.journal, &realm.Ticked{})
	return []realm.TextWrite{{Ref: ref}}
}

func (d *shelfDisk) last() realm.Seq { return d.from + realm.Seq(len(d.journal)) }

func library(t *testing.T, dir string, d *shelfDisk) *Library {
	l := OpenLibrary(dir, d, func(b realm.Body) string { return b.Text }, slog.New(slog.DiscardHandler))
	l.Attach(1, d.last(), d.from, d.text)
	return l
}

func finds(t *testing.T, l *Library, upto realm.Seq, words string, want ...int64) {
	t.Helper()
	hits, _, ready, err := l.Find(1, upto, words, func(realm.TopicID) ([]realm.TopicName, error) { return nil, nil })
	if err != nil || !ready || len(hits) != 1 {
		t.Fatalf("%q: %v, ready %v, %v", words, hits, ready, err)
	}
	if got := realm.IDs[int64](hits[0].Messages); !slices.Equal(got, append([]int64{}, want...)) {
		t.Fatalf("%q finds %v, want %v", words, got, want)
	}
}

func TestLibraryIsAsNewAsTheSearcher(t *testing.T) {
	d := &shelfDisk{texts: map[realm.BodyRef]string{}}
	l := library(t, t.TempDir(), d)
	defer l.Close()
	for id := realm.MessageID(1); id <= 50; id++ {
		l.Feed(1, realm.Seq(id), d.sent(id, fmt.Sprintf("common w%d", id)))
		finds(t, l, realm.Seq(id), fmt.Sprintf("w%d", id), int64(id))
	}
	l.Feed(1, 51, d.edited(3, 1, "changed"))
	l.Feed(1, 52, d.erased(4))
	l.Feed(1, 53, nil)
	finds(t, l, 53, "changed", 3)
	finds(t, l, 53, "w3")
	finds(t, l, 53, "w4")
}

func TestLibraryCatchesUp(t *testing.T) {
	dir := t.TempDir()
	d := &shelfDisk{texts: map[realm.BodyRef]string{}}
	l := library(t, dir, d)
	for id := realm.MessageID(1); id <= 5; id++ {
		l.Feed(1, realm.Seq(id), d.sent(id, "apple"))
	}
	finds(t, l, 5, "apple", 1, 2, 3, 4, 5)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	d.sent(6, "apple") // while nobody was there
	l = library(t, dir, d)
	finds(t, l, 6, "apple", 1, 2, 3, 4, 5, 6)
	if d.scans != 0 {
		t.Errorf("read every text %d times though the journal reaches back", d.scans)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	d.sent(7, "apple")
	delete(d.texts, realm.BodyRef{Message: 2})
	d.texts[realm.BodyRef{Message: 3, Version: 1}] = "plum"
	d.from, d.journal = 7, nil // rows have taken over
	l = library(t, dir, d)
	finds(t, l, 7, "apple", 1, 4, 5, 6, 7)
	finds(t, l, 7, "plum", 3)
	if d.scans != 1 {
		t.Errorf("compared with the texts %d times, want once", d.scans)
	}
	l.Close()
}

// A queue that grows too long is dropped, and nothing is lost by it.
func TestLibraryQueueIsBounded(t *testing.T) {
	d := &shelfDisk{texts: map[realm.BodyRef]string{}}
	l := library(t, t.TempDir(), d)
	defer l.Close()
	var many []realm.TextWrite
	for id := realm.MessageID(1); id <= 300; id++ {
		many = append(many, d.sent(id, "apple")...)
	}
	for len(many) <= MaxQueued {
		many = append(many, many...)
	}
	l.Feed(1, d.last(), many)
	l.mu.Lock()
	if n := len(l.shelves[1].queue); n > MaxQueued {
		t.Errorf("%d texts wait, more than %d", n, MaxQueued)
	}
	l.mu.Unlock()
	want := make([]int64, 300)
	for i := range want {
		want[i] = int64(i + 1)
	}
	finds(t, l, d.last(), "apple", want...)
}

// Texts are read when their turn comes; what was erased in the meantime is not found, and each search finds all that was
// there before it.
func TestLibraryReadsLate(t *testing.T) {
	d := &shelfDisk{texts: map[realm.BodyRef]string{}}
	l := library(t, t.TempDir(), d)
	defer l.Close()
	feed := func(texts []realm.TextWrite) { l.Feed(1, d.last(), texts) }
	feed(d.sent(1, "apple"))
	finds(t, l, d.last(), "apple", 1)
	var fill []realm.TextWrite
	one := d.sent(2, "pear")
	for range 20_000 {
		fill = append(fill, one...)
	}
	feed(fill)
	for id := realm.MessageID(3); id <= 5; id++ {
		feed(d.sent(id, "apple"))
	}
	feed(d.erased(4))
	finds(t, l, d.last(), "apple", 1, 3, 5)
	finds(t, l, d.last(), "pear", 2)
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.shelves[1].queue); n != 0 {
		t.Errorf("%d texts wait for nobody", n)
	}
}
