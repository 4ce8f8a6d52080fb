package meaning

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"testing"
	"time"

	"parley/actors/realm"
)

// lenders are two nodes: the organization moves from the first to the second one.
type lenders struct {
	old, new *stage
	down     bool // the first node cannot be reached
	fetched  int
}

func newLenders(t *testing.T) *lenders {
	x := &lenders{old: newStage(t), new: newStage(t)}
	x.old.s.started.Store(true) // it serves files; the test runs its rounds
	close(x.old.s.stopped)
	for id := range realm.MessageID(loanFrom + 20) {
		x.old.texts[id+1] = fmt.Sprint("soup ", id)
		x.new.texts[id+1] = x.old.texts[id+1]
	}
	x.old.settle()
	x.new.reopen(func(o *Options) {
		o.Fetch = func(_ context.Context, id realm.ID, save func(int64, io.Reader) error) error {
			if x.fetched++; x.down {
				return errAway
			}
			f, err := x.old.s.OpenFile(strconv.Itoa(int(id)))
			if err != nil {
				return err
			}
			defer f.Close()
			r, err := f.Section(0, f.Size())
			if err != nil {
				return err
			}
			return save(f.Size(), r)
		}
	})
	return x
}

// all returns the messages of the new node in the order in which they are found.
func (x *lenders) found(t *testing.T) int {
	t.Helper()
	list, complete, err := x.new.s.Nearest(org, []float32{1, 0, 0})
	if err != nil || !complete {
		t.Errorf("%d messages, complete %t, %v", len(list), complete, err)
	}
	return len(list)
}

// A new owner uses the vectors of another node for the texts that are still the same, and asks the service only for the
// others. It asks the other node once.
func TestNewOwnerBorrowsVectors(t *testing.T) {
	x := newLenders(t)
	x.old.dims, x.new.dims = 3, 3
	x.new.texts[7], x.new.edits[7] = "an edited soup", 1
	x.new.texts[1000] = "a new soup"
	delete(x.new.texts, 8)
	if n := x.new.settle(); n != 2 {
		t.Errorf("the service got %d texts, want the new one and the edited one", n)
	}
	if n := x.found(t); n != len(x.new.texts) {
		t.Errorf("%d of %d messages are found", n, len(x.new.texts))
	}
	for id := range realm.MessageID(loanFrom + 20) {
		x.new.texts[2000+id] = "more soup"
	}
	if n := x.new.settle(); n != loanFrom+20 || x.fetched != 1 {
		t.Errorf("the service got %d texts, the other node was asked %d times", n, x.fetched)
	}
	if x.new.opened().usage.Tokens <= x.old.opened().usage.Tokens {
		t.Error("the tokens of the node before do not count for the day")
	}
	if parts, _ := os.ReadDir(x.new.s.o.Dir); len(parts) != 1 {
		t.Errorf("the folder has %v", parts)
	}
}

func (x *stage) opened() *index { return x.s.all[org].opened() }

// Nothing is borrowed if the owners have withdrawn their consent at the other node, if it has another model, or if the
// vectors are damaged.
func TestNothingElseIsBorrowed(t *testing.T) {
	for name, spoil := range map[string]func(*lenders){
		"consent": func(x *lenders) { x.old.agreed = false },
		"model":   func(x *lenders) { x.new.reopen(func(o *Options) { o.Name = "another model" }) },
		"damage": func(x *lenders) {
			f, _ := os.OpenFile(FileOf(x.old.s.o.Dir, org), os.O_WRONLY, 0)
			defer f.Close()
			info, _ := f.Stat()
			f.WriteAt(make([]byte, info.Size()-vectorsAt), vectorsAt)
		},
		"garbage": func(x *lenders) { os.WriteFile(FileOf(x.old.s.o.Dir, org), []byte("garbage"), 0o600) },
	} {
		x := newLenders(t)
		spoil(x)
		if n := x.new.settle(); n != len(x.new.texts) || x.fetched == 0 {
			t.Errorf("%s: the service got %d of %d texts, the other node was asked %d times", name, n, len(x.new.texts),
				x.fetched)
		}
		x.found(t)
	}
	x := newLenders(t)
	for _, name := range []string{"", "-7", "7/../7", "999", "7" + partSuffix} {
		if _, err := x.old.s.OpenFile(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file %q: %v", name, err)
		}
	}
}

// While the other node cannot be reached, the service is not asked for what that one has: at most for loanWait.
func TestNewOwnerWaitsForLender(t *testing.T) {
	x := newLenders(t)
	x.down = true
	begun := x.new.now
	if n := x.new.settle(); n == 0 || x.new.now.Sub(begun) < loanWait {
		t.Errorf("the service got %d texts after %s", n, x.new.now.Sub(begun))
	}
	x = newLenders(t)
	x.down = true
	x.new.s.Feed(org, true)
	for range 5 {
		x.new.now = x.new.now.Add(compareInterval)
		x.new.s.round()
	}
	x.down = false
	if n := x.new.settle(); n != 0 {
		t.Errorf("after the other node is back, the service got %d texts", n)
	}
	x.found(t)
}

// A node that has lost the organization asks again when it owns it again. Few texts are not worth a file.
func TestLoanOfEachOwnership(t *testing.T) {
	x := newLenders(t)
	x.new.settle()
	x.new.owned = false
	x.new.settle()
	for id := range realm.MessageID(loanFrom) {
		x.old.texts[3000+id] = "soup of the other owner"
		x.new.texts[3000+id] = "soup of the other owner"
	}
	x.old.settle()
	x.new.owned = true
	if n := x.new.settle(); n != 0 || x.fetched != 2 {
		t.Errorf("the service got %d texts, the other node was asked %d times", n, x.fetched)
	}
	x.new.owned = false
	x.new.settle()
	x.new.texts[5000] = "one soup"
	x.new.owned = true
	if n := x.new.settle(); n != 1 || x.fetched != 2 {
		t.Errorf("of one text, the service got %d, the other node was asked %d times", n, x.fetched)
	}
}

// A search is not complete from the moment at which a text is written, before the next comparison too.
func TestCompleteIsExact(t *testing.T) {
	x := newStage(t)
	x.texts[1] = "soup"
	x.settle()
	complete := func() bool {
		_, complete, err := x.s.Nearest(org, []float32{1, 0, 0})
		if err != nil {
			t.Fatal(err)
		}
		return complete
	}
	if !complete() {
		t.Error("nothing waits, but the search is not complete")
	}
	x.s.Feed(org, false)
	if !complete() {
		t.Error("a reaction makes the search incomplete")
	}
	x.texts[2] = "more soup"
	x.s.Feed(org, true)
	if complete() {
		t.Error("the search is complete without the new message")
	}
	x.now = x.now.Add(time.Second) // too early for a comparison
	x.s.round()
	if complete() {
		t.Error("the search is complete after a round without a comparison")
	}
	x.settle()
	if !complete() {
		t.Error("nothing waits any more, but the search is not complete")
	}
}
