package meaning

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
)

var (
	errAway    = errors.New("the service does not answer")
	errRefused = errors.New("the service refuses")
)

// stage is a Service whose organization, service and clock the test sets.
type stage struct {
	t     *testing.T
	s     *Service
	now   time.Time
	texts map[realm.MessageID]string
	edits map[realm.MessageID]uint16

	agreed, owned, full bool
	fail                error  // of the service
	refused             string // a text with this word is refused
	sent                []string
	dims                int
}

const org realm.ID = 7

func newStage(t *testing.T) *stage {
	x := &stage{t: t, now: time.Unix(1_700_000_000, 0), texts: map[realm.MessageID]string{},
		edits: map[realm.MessageID]uint16{}, agreed: true, owned: true, dims: 3}
	x.open(Options{Dir: t.TempDir(), Name: "a model"})
	return x
}

func (x *stage) open(o Options) {
	x.t.Helper()
	o.Plain = func(b realm.Body) string { return b.Text }
	o.NoWrites = func() bool { return x.full }
	if o.Several == nil {
		o.Several = func() bool { return false }
	}
	o.Now = func() time.Time { return x.now }
	o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := Open(o)
	if err != nil {
		x.t.Fatal(err)
	}
	s.source, s.model = x, x // not started: the test runs the rounds
	x.s = s
	x.t.Cleanup(s.Close)
	s.Attach(org, x.text)
}

// reopen is a restart, with other options.
func (x *stage) reopen(change func(*Options)) {
	x.t.Helper()
	o := x.s.o
	x.s.Close()
	change(&o)
	x.open(o)
}

func (x *stage) text(ref realm.BodyRef) (realm.Body, bool, error) {
	text, ok := x.texts[ref.Message]
	return realm.Body{Text: text}, ok && x.edits[ref.Message] == ref.Version, nil
}

func (x *stage) Agreed(realm.ID) (agreed, owned bool, err error) { return x.agreed, x.owned, nil }

func (x *stage) TextsBefore(
	_ realm.ID, before realm.MessageID, _ int,
) (out []realm.BodyRef, _ realm.MessageID, _ error) {
	for id := range x.texts {
		if id < before {
			out = append(out, realm.BodyRef{Message: id, Version: x.edits[id]})
		}
	}
	slices.SortFunc(out, func(a, b realm.BodyRef) int { return int(b.Message - a.Message) })
	return out, 1, nil
}

// Embed counts three words.
func (x *stage) Embed(
	_ context.Context, _ realm.ID, texts []string, dims int,
) (out [][]float32, tokens int64, err error) {
	if x.fail != nil {
		return nil, 0, x.fail
	}
	for _, text := range texts {
		if x.refused != "" && strings.Contains(text, x.refused) {
			return nil, 0, errRefused
		}
	}
	if dims != 0 && dims != x.dims {
		return nil, 0, errAway
	}
	for _, text := range texts {
		v := make([]float32, x.dims)
		for i, word := range []string{"soup", "crash", "e"} {
			v[i] = float32(strings.Count(text, word))
		}
		out, tokens = append(out, v), tokens+10
		x.sent = append(x.sent, text)
	}
	return out, tokens, nil
}

func (x *stage) IsRefusal(err error) bool { return errors.Is(err, errRefused) }

// settle runs rounds, as after a change, until nothing waits. It returns how many texts the service got.
func (x *stage) settle() int {
	x.t.Helper()
	x.sent = nil
	x.s.Feed(org, true)
	for range 200 {
		x.now = x.now.Add(compareInterval)
		x.s.round()
		if o := x.s.all[org]; !o.changed && len(o.todo) == 0 {
			break
		}
	}
	return len(x.sent)
}

// expect compares the messages with a vector, nearest to soup first.
func (x *stage) expect(want ...realm.MessageID) {
	x.t.Helper()
	query := make([]float32, x.dims)
	query[0] = 2
	list, _, err := x.s.Nearest(org, query)
	got := []realm.MessageID{}
	for _, n := range list {
		got = append(got, n.Text.Message)
	}
	if err != nil || !slices.Equal(got, want) {
		x.t.Errorf("the nearest are %v, %v, want %v", got, err, want)
	}
}

// The nearest messages come first. An edited text gets another vector, a deleted one loses it on the disk too. A
// message without words has none.
func TestNearestFollowsTexts(t *testing.T) {
	x := newStage(t)
	x.texts = map[realm.MessageID]string{1: "soup soup", 2: "the crash", 3: "see soup", 4: "…!"}
	if n := x.settle(); n != 3 {
		t.Errorf("the service got %d texts, want 3", n)
	}
	x.expect(1, 3, 2)
	if n := x.settle(); n != 0 {
		t.Errorf("without a change the service got %d texts", n)
	}
	x.texts[1], x.edits[1] = "eee crash", 1
	if n := x.settle(); n != 1 {
		t.Errorf("after an edit the service got %d texts, want 1", n)
	}
	x.expect(3, 2, 1)
	delete(x.texts, 3)
	x.settle()
	x.expect(2, 1)
	x.texts[5] = "soup"
	x.settle()
	x.expect(5, 2, 1) // in the place of the deleted one
	file, err := os.ReadFile(FileOf(x.s.o.Dir, org))
	if err != nil || len(file) != vectorsAt+3*3*4 {
		t.Errorf("the file has %d bytes, %v", len(file), err)
	}
	delete(x.texts, 5)
	x.settle()
	file, _ = os.ReadFile(FileOf(x.s.o.Dir, org))
	zeros := 0
	for i := vectorsAt; i < len(file); i += 12 {
		if string(file[i:i+12]) == strings.Repeat("\x00", 12) {
			zeros++
		}
	}
	if zeros != 1 {
		t.Errorf("%d vectors are zeros, want that of the deleted message", zeros)
	}
}

// After a restart and after a sleep nothing is sent again, except to another model.
func TestVectorsLastOverRestart(t *testing.T) {
	x := newStage(t)
	x.texts = map[realm.MessageID]string{1: "soup", 2: "crash"}
	x.settle()
	x.reopen(func(*Options) {})
	x.expect(1, 2) // before the first comparison too
	if n := x.settle(); n != 0 {
		t.Errorf("after a restart the service got %d texts", n)
	}
	x.s.Detach(org)
	x.s.Attach(org, x.text)
	if n := x.settle(); n != 0 {
		t.Errorf("after a sleep the service got %d texts", n)
	}
	x.reopen(func(o *Options) { o.Name = "another model" })
	x.dims = 5
	if n := x.settle(); n != 2 {
		t.Errorf("another model got %d texts, want 2", n)
	}
	x.expect(1, 2)
}

// Without consent the file is deleted, and nothing is sent. A node that is not the owner erases, but sends nothing.
func TestConsent(t *testing.T) {
	x := newStage(t)
	x.texts = map[realm.MessageID]string{1: "soup", 2: "crash"}
	x.agreed = false
	if n := x.settle(); n != 0 {
		t.Errorf("without consent the service got %d texts", n)
	}
	x.agreed = true
	x.settle()
	x.owned = false
	x.texts[3] = "soup"
	delete(x.texts, 1)
	if n := x.settle(); n != 0 {
		t.Errorf("a node that is not the owner sent %d texts", n)
	}
	x.expect(2)
	x.agreed = false
	x.settle()
	if _, err := os.Stat(FileOf(x.s.o.Dir, org)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without consent there is a file: %v", err)
	}
	x.expect()
	x.agreed, x.owned = true, true
	if n := x.settle(); n != 2 {
		t.Errorf("after new consent the service got %d texts, want 2", n)
	}
}

// Only the newest messages have vectors.
func TestNewestMessages(t *testing.T) {
	x := newStage(t)
	x.reopen(func(o *Options) { o.Messages = 3 })
	for id := realm.MessageID(1); id <= 5; id++ {
		x.texts[id] = strings.Repeat("soup ", int(id))
	}
	x.settle()
	x.expect(5, 4, 3)
	x.texts[6] = "crash"
	x.settle()
	x.expect(5, 4, 6)
}

// A service that fails is asked again later, one that refuses a text gets the others alone, and one whose vectors have
// no direction changes nothing.
func TestFailures(t *testing.T) {
	x := newStage(t)
	x.texts = map[realm.MessageID]string{1: "soup", 2: "crash", 3: "see soup"}
	x.fail = errAway
	x.s.round()
	x.now = x.now.Add(time.Second)
	failures := x.s.failures.Load()
	x.s.round()
	if failures != 1 || x.s.failures.Load() != 1 {
		t.Errorf("%d requests failed, then %d: the service is not left alone", failures, x.s.failures.Load())
	}
	x.fail, x.refused = nil, "crash"
	x.settle()
	x.expect(1, 3)
	x.refused = ""
	if n := x.settle(); n != 0 {
		t.Errorf("a text that was refused is sent again")
	}
	x.texts[4] = "zzz" // a vector of zeros
	x.settle()
	x.expect(1, 3)
	delete(x.texts, 4)
	x.full = true
	x.texts[5] = "soup soup"
	x.settle()
	x.expect(1, 3)
	x.full = false
	x.settle()
	x.expect(5, 1, 3)
}

// The tokens of a day are bounded, also over a restart; on the next day the other messages follow.
func TestDayTokens(t *testing.T) {
	x := newStage(t)
	x.reopen(func(o *Options) { o.DayTokens = 22 })
	x.texts = map[realm.MessageID]string{1: "soup", 2: "crash"}
	x.settle()
	x.texts[3] = "see soup and more soup" // the estimate is above the rest
	for range 2 {
		if n := x.settle(); n != 0 {
			t.Errorf("beyond the tokens of a day the service got %d texts", n)
		}
		x.reopen(func(*Options) {})
	}
	x.now = x.now.Add(24 * time.Hour)
	if n := x.settle(); n != 1 {
		t.Errorf("on the next day the service got %d texts, want 1", n)
	}
}

// A damaged vector is not found, and is made again. A file that is none of ours is replaced.
func TestDamage(t *testing.T) {
	x := newStage(t)
	x.texts = map[realm.MessageID]string{1: "soup", 2: "crash"}
	x.settle()
	path := FileOf(x.s.o.Dir, org)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file[vectorsAt+2] ^= 1 // of the first vector: that of message 2
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	x.expect(1)
	if n := x.settle(); n != 1 {
		t.Errorf("the service got %d texts, want that of the damaged vector", n)
	}
	x.expect(1, 2)
	file[vectorsAt+2] ^= 1
	for _, bad := range []int{0, 3, 60, 95, len(file) - 5} {
		x.reopen(func(*Options) {
			if err := os.WriteFile(path, file[:bad], 0o600); err != nil {
				t.Fatal(err)
			}
		})
		x.settle()
		x.expect(1, 2)
	}
}

// Of several organizations, each has at most half of the searches.
func TestSearchesAreShared(t *testing.T) {
	x := newStage(t)
	x.texts = map[realm.MessageID]string{1: "soup"}
	several := false
	x.reopen(func(o *Options) { o.Several = func() bool { return several } })
	x.settle()
	for range maxSearches - 1 {
		x.s.searches.Enter("7")
	}
	x.expect(1)
	several = true
	if _, _, err := x.s.Nearest(org, []float32{1, 0, 0}); err != ErrBusy {
		t.Errorf("beyond half of the searches: %v", err)
	}
	if x.s.searches.Enter("8") == nil {
		t.Error("another organization gets no place")
	}
}

// Long texts are cut, and texts without letters get no vector.
func TestShorten(t *testing.T) {
	for text, want := range map[string]string{" a\n": "a", ":-)": "", "": "", "\xff7": "7",
		strings.Repeat("ä", maxText+1): strings.Repeat("ä", maxText)} {
		if got := shorten(text); got != want {
			t.Errorf("%.20q becomes %.20q, want %.20q", text, got, want)
		}
	}
}

// BenchmarkNearest measures a search among the vectors of an organization, from the cache of the operating system.
func BenchmarkNearest(b *testing.B) {
	for _, size := range []struct{ messages, dims int }{{10_000, 384}, {50_000, 384}, {50_000, 1536}} {
		b.Run(fmt.Sprintf("messages=%d/dims=%d", size.messages, size.dims), func(b *testing.B) {
			x, err := openIndex(b.TempDir()+"/1", "m", size.dims)
			if err != nil {
				b.Fatal(err)
			}
			defer x.file.Close()
			v := make([]float32, size.dims)
			for i := range size.messages {
				for k := range v {
					v[k] = float32((i*31+k*17)%101) - 50
				}
				normalize(v)
				ref := []realm.BodyRef{{Message: realm.MessageID(i + 1)}}
				if err := x.put(ref, [][]float32{v}); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(size.messages) * x.vectorSize())
			for b.Loop() {
				list, _, err := x.nearest(v, func() bool { return false })
				if err != nil || len(list) != size.messages {
					b.Fatal(len(list), err)
				}
			}
		})
	}
}

// An organization whose texts are all refused, which one user can achieve, does not keep the others from their vectors.
// A service that refuses the texts of several organizations is left alone.
func TestRefusedOrganizationWaitsAlone(t *testing.T) {
	const other = org + 1
	x := newStage(t)
	x.texts = map[realm.MessageID]string{1: "soup bad", 2: "crash bad"}
	x.s.Feed(org, true)
	x.refused = "bad"
	x.s.round()
	x.s.Attach(other, func(ref realm.BodyRef) (realm.Body, bool, error) {
		return realm.Body{Text: "soup"}, true, nil
	})
	x.s.round()
	if n, err := x.s.Dimensions(other); err != nil || n == 0 {
		t.Errorf("the other organization has no vectors: %d, %v", n, err)
	}
	if n, err := x.s.Dimensions(org); err != nil || n != 0 {
		t.Errorf("refused texts have vectors: %d, %v", n, err)
	}
	x.edits[1], x.edits[2] = 1, 1 // other texts, which are refused too
	x.s.Detach(other)
	x.s.Attach(other, x.text)
	x.s.Feed(org, true)
	failures := x.s.failures.Load()
	x.now = x.now.Add(maxWait)
	x.s.round()
	if x.s.failures.Load() == failures {
		t.Error("a service that refuses the texts of all organizations is not left alone")
	}
}
