package search

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/actors/realm/ids"
)

// fakeDisk has texts in memory and a journal whose beginning may have been replaced by rows.
type fakeDisk struct {
	mu      sync.Mutex
	texts   map[realm.BodyRef]string
	journal []realm.Fact // the first has number from+1
	from    realm.Seq
	scans   int
}

func (d *fakeDisk) Tail(_ realm.ID, after realm.Seq, fn func(realm.Record) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if after < d.from {
		return errors.New("facts are in the rows")
	}
	for i, f := range d.journal[after-d.from:] {
		if err := fn(realm.Record{Inputs: realm.Inputs{Seq: after + realm.Seq(i) + 1}, Fact: f}); err != nil {
			return err
		}
	}
	return nil
}

func (d *fakeDisk) readText(ref realm.BodyRef) (realm.Body, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, ok := d.texts[ref]
	return realm.Body{Text: text}, ok, nil
}

func (d *fakeDisk) NewestTexts(
	id realm.ID, after realm.MessageID, fn func(realm.BodyRef, realm.Body) (bool, error),
) error {
	newest := map[realm.MessageID]realm.BodyRef{}
	var order []realm.MessageID
	err := d.EachText(id, func(ref realm.BodyRef, _ func() (realm.Body, error)) error {
		if newest[ref.Message].Message == 0 {
			order = append(order, ref.Message)
		}
		newest[ref.Message] = ref
		return nil
	})
	d.scans--
	for _, m := range order {
		if m <= after {
			continue
		}
		if more, err := fn(newest[m], realm.Body{Text: d.texts[newest[m]]}); err != nil || !more {
			return err
		}
	}
	return err
}

func (d *fakeDisk) EachText(_ realm.ID, fn func(realm.BodyRef, func() (realm.Body, error)) error) error {
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

// send stores a message and its fact, and returns the text writes of the commit.
func (d *fakeDisk) send(id realm.MessageID, text string) []realm.TextWrite {
	d.mu.Lock()
	defer d.mu.Unlock()
	ref := realm.BodyRef{Message: id}
	d.texts[ref] = text
	d.journal = append(d.journal, &realm.MessageSent{ID: id})
	return []realm.TextWrite{{Ref: ref, Body: &realm.Body{Text: text}}}
}

// edit replaces the text of a message.
func (d *fakeDisk) edit(id realm.MessageID, version uint16, text string) []realm.TextWrite {
	d.mu.Lock()
	defer d.mu.Unlock()
	ref := realm.BodyRef{Message: id, Version: version}
	d.texts[ref] = text
	d.journal = append(d.journal, &realm.Ticked{})
	return []realm.TextWrite{{Ref: ref, Body: &realm.Body{Text: text}}}
}

// erase deletes the text of a message.
func (d *fakeDisk) erase(id realm.MessageID) []realm.TextWrite {
	d.mu.Lock()
	defer d.mu.Unlock()
	ref := realm.BodyRef{Message: id}
	delete(d.texts, ref)
	d.journal = append(d.journal, &realm.Ticked{})
	return []realm.TextWrite{{Ref: ref}}
}

func (d *fakeDisk) last() realm.Seq { return d.from + realm.Seq(len(d.journal)) }

func openTestService(t *testing.T, dir string, d *fakeDisk) *Service {
	l := OpenService(dir, d, func(b realm.Body) string { return b.Text }, slog.New(slog.DiscardHandler))
	l.Attach(1, d.last(), d.from, d.readText)
	return l
}

func expectHits(t *testing.T, l *Service, upto realm.Seq, words string, want ...int64) {
	t.Helper()
	hits, _, ready, err := l.Find(1, upto, words, noTopics)
	if err != nil || !ready || len(hits) != 1 {
		t.Fatalf("%q: %v, ready %v, %v", words, hits, ready, err)
	}
	if got := ids.IDs[int64](hits[0].Messages); !slices.Equal(got, append([]int64{}, want...)) {
		t.Fatalf("%q finds %v, want %v", words, got, want)
	}
}

func TestFindWaitsForTheReader(t *testing.T) {
	d := &fakeDisk{texts: map[realm.BodyRef]string{}}
	l := openTestService(t, t.TempDir(), d)
	defer l.Close()
	for id := realm.MessageID(1); id <= 50; id++ {
		l.Feed(1, realm.Seq(id), d.send(id, fmt.Sprintf("common w%d", id)))
		expectHits(t, l, realm.Seq(id), fmt.Sprintf("w%d", id), int64(id))
	}
	l.Feed(1, 51, d.edit(3, 1, "changed"))
	l.Feed(1, 52, d.erase(4))
	l.Feed(1, 53, nil)
	expectHits(t, l, 53, "changed", 3)
	expectHits(t, l, 53, "w3")
	expectHits(t, l, 53, "w4")
}

// While the disk is almost full no index is made, and while it is full nothing is indexed: a search then finds the
// texts that are indexed already. With space again, everything is found.
func TestLimitSpace(t *testing.T) {
	dir := t.TempDir()
	d := &fakeDisk{texts: map[realm.BodyRef]string{}}
	d.send(1, "old")
	var low, full atomic.Bool
	low.Store(true)
	l := OpenService(dir, d, func(b realm.Body) string { return b.Text }, slog.New(slog.DiscardHandler))
	defer l.Close()
	l.LimitSpace(low.Load, full.Load)
	l.Attach(1, d.last(), d.from, d.readText)
	if r, err := l.wait(1, 1, time.After(200*time.Millisecond)); r != nil || err != nil || d.scans > 0 {
		t.Errorf("an index was made on an almost full disk: %v, %v, %d scans", r, err, d.scans)
	}
	low.Store(false)
	l.Feed(1, 2, d.send(2, "new"))
	expectHits(t, l, 2, "old", 1)
	expectHits(t, l, 2, "new", 2)
	low.Store(true) // does not concern texts that arrive
	l.Feed(1, 3, d.send(3, "newer"))
	expectHits(t, l, 3, "newer", 3)
	full.Store(true)
	l.Feed(1, 4, d.send(4, "newest"))
	expectHits(t, l, 4, "newer", 3)
	expectHits(t, l, 4, "newest")
	full.Store(false)
	low.Store(false)
	expectHits(t, l, 4, "newest", 4)
}

func TestServiceCatchesUp(t *testing.T) {
	dir := t.TempDir()
	d := &fakeDisk{texts: map[realm.BodyRef]string{}}
	l := openTestService(t, dir, d)
	for id := realm.MessageID(1); id <= 5; id++ {
		l.Feed(1, realm.Seq(id), d.send(id, "apple"))
	}
	expectHits(t, l, 5, "apple", 1, 2, 3, 4, 5)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	d.send(6, "apple") // while the service is closed
	l = openTestService(t, dir, d)
	expectHits(t, l, 6, "apple", 1, 2, 3, 4, 5, 6)
	if d.scans != 0 {
		t.Errorf("compared with the texts %d times though the journal has the facts", d.scans)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	d.send(7, "apple")
	delete(d.texts, realm.BodyRef{Message: 2})
	d.texts[realm.BodyRef{Message: 3, Version: 1}] = "plum"
	d.from, d.journal = 7, nil // the rows have replaced the journal
	l = openTestService(t, dir, d)
	expectHits(t, l, 7, "apple", 1, 4, 5, 6, 7)
	expectHits(t, l, 7, "plum", 3)
	if d.scans != 1 {
		t.Errorf("compared with the texts %d times, want once", d.scans)
	}
	l.Close()
}

// A queue that grows too long is dropped, and all texts are found nevertheless.
func TestQueueIsBounded(t *testing.T) {
	d := &fakeDisk{texts: map[realm.BodyRef]string{}}
	l := openTestService(t, t.TempDir(), d)
	defer l.Close()
	var many []realm.TextWrite
	for id := realm.MessageID(1); id <= 300; id++ {
		many = append(many, d.send(id, "apple")...)
	}
	for len(many) <= MaxQueued {
		many = append(many, many...)
	}
	l.Feed(1, d.last(), many)
	l.mu.Lock()
	if n := len(l.realms[1].queue); n > MaxQueued {
		t.Errorf("%d texts wait, more than %d", n, MaxQueued)
	}
	l.mu.Unlock()
	want := make([]int64, 300)
	for i := range want {
		want[i] = int64(i + 1)
	}
	expectHits(t, l, d.last(), "apple", want...)
}

// A batch that is large enough is indexed without a search, and does not wait for gatherTime.
func TestEnoughTextsAreIndexed(t *testing.T) {
	d := &fakeDisk{texts: map[realm.BodyRef]string{}}
	l := openTestService(t, t.TempDir(), d)
	defer l.Close()
	l.Feed(1, 1, d.send(1, "first"))
	expectHits(t, l, 1, "first", 1) // ends the pause after the start
	began := time.Now()
	for id := realm.MessageID(2); id <= gatherTexts+1; id++ {
		l.Feed(1, realm.Seq(id), d.send(id, "later"))
	}
	for ; l.Queued() > 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > gatherTime*3/4 {
			t.Fatalf("%d texts still wait after %v", l.Queued(), time.Since(began))
		}
	}
}

// A text is read when it is indexed. A text that was erased before is not found, and each search finds everything that
// was written before it.
func TestTextsAreReadWhenIndexed(t *testing.T) {
	d := &fakeDisk{texts: map[realm.BodyRef]string{}}
	l := openTestService(t, t.TempDir(), d)
	defer l.Close()
	feed := func(texts []realm.TextWrite) { l.Feed(1, d.last(), texts) }
	feed(d.send(1, "apple"))
	expectHits(t, l, d.last(), "apple", 1)
	var fill []realm.TextWrite
	one := d.send(2, "pear")
	for range 20_000 {
		fill = append(fill, one...)
	}
	feed(fill)
	for id := realm.MessageID(3); id <= 5; id++ {
		feed(d.send(id, "apple"))
	}
	feed(d.erase(4))
	expectHits(t, l, d.last(), "apple", 1, 3, 5)
	expectHits(t, l, d.last(), "pear", 2)
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.realms[1].queue); n != 0 {
		t.Errorf("%d texts were not indexed", n)
	}
}

// An index of an older format answers searches, and all its texts are written again, also if the process ends in
// between. Later texts have the present format.
func TestIndexIsUpgraded(t *testing.T) {
	const messages = 3 * batchDocs * upgradeBatches / 2
	dir := t.TempDir()
	d := &fakeDisk{texts: map[realm.BodyRef]string{}}
	start := func(hidden string) *Service {
		plain := func(b realm.Body) string { return strings.Replace(b.Text, "hidden", hidden, 1) }
		l := OpenService(dir, d, plain, slog.New(slog.DiscardHandler))
		l.Attach(1, d.last(), d.from, d.readText)
		return l
	}
	l := start("hidden")
	var all []int64
	for id := realm.MessageID(1); id <= messages; id++ {
		l.Feed(1, realm.Seq(id), d.send(id, "apple hidden"))
		all = append(all, int64(id))
	}
	expectHits(t, l, messages, "hidden", all...)
	l.Stop()
	x := l.realms[1].index
	x.format = 1
	if err := x.Write(messages, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	l = start("")
	expectHits(t, l, messages, "apple", all...)
	l.Stop()
	x = l.realms[1].index
	if x.format != 1 {
		t.Fatal("the first search waited for the upgrade")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	d.send(messages+1, "apple hidden")
	l = start("")
	defer l.Close()
	edited := d.edit(1, 1, "plum")
	l.Feed(1, d.last(), edited)
	erased := d.erase(2)
	l.Feed(1, d.last(), erased)
	expectHits(t, l, d.last(), "plum", 1)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		l.signal()
		r, err := l.realms[1].index.index.Reader()
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.GetInternal(formatKey)
		r.Close()
		if err == nil && len(v) == 8 && v[3] == textFormat {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the index was not upgraded", v, err)
		}
	}
	expectHits(t, l, d.last(), "hidden")
	expectHits(t, l, d.last(), "apple", append(all[2:], messages+1)...)
	if d.scans != 0 {
		t.Errorf("compared with the texts %d times", d.scans)
	}
}

// hasTerm reports whether any segment of the index has a term, also one of deleted messages only.
func hasTerm(t *testing.T, x *Index, term string) (found bool) {
	t.Helper()
	err := x.read(func(parts []segmentView) error {
		for _, p := range parts {
			found = found || strings.Contains(string(p.terms), "\n"+term+"\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The words of deleted messages stay in the files of their segments, together with other messages. After Rewrite no
// segment has them, the files from before are gone, and searches find the other messages. A service without the
// organization has nothing to do.
func TestRewriteForgetsDeletedWords(t *testing.T) {
	d, dir := &fakeDisk{texts: map[realm.BodyRef]string{}}, t.TempDir()
	l := openTestService(t, dir, d)
	for id := realm.MessageID(1); id <= 20; id++ {
		l.Feed(1, d.last()+1, d.send(id, fmt.Sprintf("common word%d", id)))
	}
	l.Feed(1, d.last()+1, d.send(21, "common zebra"))
	expectHits(t, l, d.last(), "zebra", 21)
	x := l.realms[1].index
	l.Feed(1, d.last()+1, d.erase(21))
	expectHits(t, l, d.last(), "zebra")
	if !hasTerm(t, x, "zebra") {
		t.Fatal("the deleted word is in no segment: this test would prove nothing")
	}
	if err := l.Rewrite(t.Context(), 2); err != nil {
		t.Errorf("an organization that is not indexed: %v", err)
	}
	for range 2 { // it can be repeated
		if err := l.Rewrite(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if hasTerm(t, x, "zebra") {
			t.Error("a segment has the deleted word")
		}
	}
	expectHits(t, l, d.last(), "word7", 7)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	x, err := Open(l.path(1))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if hasTerm(t, x, "zebra") || x.format != textFormat {
		t.Errorf("after a restart a segment has the deleted word, or the format is %d", x.format)
	}
}
