package snapshot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/realm"
	"parley/snapshot/codec"
)

// recorder is a follower that collects the numbers of the facts it gets.
type recorder struct {
	after realm.Seq
	until realm.Seq
	done  chan error
}

// errReached ends a recorder at its last fact.
var errReached = errors.New("reached")

// startRecorder follows a realm until a fact, and checks that nothing is missing and nothing comes twice.
func startRecorder(d Disk, id realm.ID, after, until realm.Seq, pause func()) *recorder {
	r := &recorder{after: after, until: until, done: make(chan error, 1)}
	d.Follow(id, after, func(b realm.Batch) error {
		pause()
		if b.Realm != id || b.After != r.after || len(b.Facts) == 0 {
			return fmt.Errorf("a batch of %d facts follows fact %d, want %d", len(b.Facts), b.After, r.after)
		}
		for i, data := range b.Facts {
			n := b.After + realm.Seq(i) + 1
			f, err := codec.DecodeFact(data)
			if q, ok := f.(*realm.QueuesCaughtUp); err != nil || !ok || q.Through != n {
				return fmt.Errorf("fact %d is %+v, %v", n, f, err)
			}
			if b.Now != int64(1000+n/7) {
				return fmt.Errorf("fact %d has the clock reading %d", n, b.Now)
			}
		}
		if r.after = b.Last(); r.after >= r.until {
			return errReached
		}
		return nil
	}, func(err error) { r.done <- err })
	return r
}

func appendNumbered(t testing.TB, d Disk, epoch uint64, after realm.Seq, n int) realm.Seq {
	t.Helper()
	for range n {
		after++
		f := codec.EncodeFact(&realm.QueuesCaughtUp{Through: after})
		b := realm.Batch{Realm: 1, Epoch: epoch, After: after - 1, Now: int64(1000 + after/7), Facts: [][]byte{f}}
		if err := d.Append([]realm.Batch{b})[0]; err != nil {
			t.Fatal(err)
		}
	}
	return after
}

// Followers get every fact once and in order, wherever they begin, while facts are appended and put behind the rows. A
// follower that is slow reads them from the journal.
func TestFollow(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	s := openKept(t, vfs.NewMem(), Kept{Bytes: 1 << 20, Age: time.Hour})
	d := Disk{Store: s}
	mustClaim(t, s, 1)
	const total = 600
	var all []*recorder
	wait := make(chan struct{})
	last := realm.Seq(0)
	for last < total {
		after := realm.Seq(rng.IntN(int(last) + 1))
		slow := rng.IntN(3) == 0
		all = append(all, startRecorder(d, 1, after, total, func() {
			if slow {
				<-wait
			}
		}))
		last = appendNumbered(t, d, 1, last, min(1+rng.IntN(40), int(total-last)))
		if rng.IntN(3) == 0 {
			if err := d.WriteRows(1, 1, last-realm.Seq(rng.IntN(3)), nil); err != nil &&
				!errors.Is(err, realm.ErrMoved) {
				t.Fatal(err)
			}
		}
	}
	close(wait)
	for i, r := range all {
		if err := <-r.done; !errors.Is(err, errReached) {
			t.Errorf("follower %d: %v", i, err)
		}
	}
	mustClose(t, s)
}

// A follower whose facts are not kept is told so. Stopping a follower and closing the store end it.
func TestFollowEnds(t *testing.T) {
	s := openKept(t, vfs.NewMem(), Kept{Bytes: 1 << 20, Age: time.Minute})
	d := Disk{Store: s}
	mustClaim(t, s, 1)
	last := appendNumbered(t, d, 1, 0, 10)
	for range 2 {
		if err := d.WriteRows(1, 1, last, nil); err != nil {
			t.Fatal(err)
		}
		f := codec.EncodeFact(&realm.QueuesCaughtUp{Through: last + 1})
		b := realm.Batch{Realm: 1, Epoch: 1, After: last, Now: 5000, Facts: [][]byte{f}}
		if err := d.Append([]realm.Batch{b})[0]; err != nil {
			t.Fatal(err)
		}
		last++
	}
	if err := <-startRecorder(d, 1, 5, last, func() {}).done; !errors.Is(err, realm.ErrBehind) {
		t.Errorf("a follower that is too far behind ended with %v", err)
	}
	done := make(chan error, 2)
	ignore := func(realm.Batch) error { return nil }
	end := func(err error) { done <- err }
	stop := d.Follow(1, last, ignore, end)
	stop()
	stop()
	if err := <-done; !errors.Is(err, ErrFollowStopped) {
		t.Errorf("a stopped follower ended with %v", err)
	}
	d.Follow(1, last, ignore, end)
	mustClose(t, s)
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("closing the store ended a follower with %v", err)
	}
	if n := len(s.feeds.realm); n != 0 {
		t.Errorf("%d feeds are left", n)
	}
}

// The newest batches in memory have a limit, whatever the followers do.
func TestFeedIsBounded(t *testing.T) {
	var f feeds
	w := f.follow(1)
	fact := make([]byte, 100<<10)
	for n := range realm.Seq(100) {
		f.commit([]realm.Batch{{Realm: 1, After: n, Facts: [][]byte{fact}}}, []error{nil})
	}
	if x := f.realm[1]; x.bytes > FollowedBytes || len(x.batches) < FollowedBytes/len(fact)-1 {
		t.Errorf("%d batches of %d bytes", len(x.batches), x.bytes)
	}
	if _, current := f.after(1, 2); current {
		t.Error("a batch is in memory beyond the limit")
	}
	f.unfollow(1, w)
	if len(f.realm) != 0 {
		t.Error("a feed without followers is left")
	}
}

// EachRow returns the rows of one snapshot, also if the next one is written meanwhile.
func TestEachRow(t *testing.T) {
	s := openKept(t, vfs.NewMem(), Kept{})
	defer s.Close()
	d := Disk{Store: s}
	mustClaim(t, s, 1)
	last := appendNumbered(t, d, 1, 0, 2)
	row := func(key, value string) realm.EncodedRow {
		return realm.EncodedRow{Table: 3, Key: []byte(key), Value: []byte(value)}
	}
	if err := d.WriteRows(1, 1, 1, []realm.EncodedRow{row("a", "1"), row("b", "1")}); err != nil {
		t.Fatal(err)
	}
	var got []string
	at, err := d.EachRow(1, func(r realm.EncodedRow) error {
		if len(got) == 0 {
			if err := d.WriteRows(1, 1, last, []realm.EncodedRow{row("a", "2"), row("b", "2")}); err != nil {
				t.Error(err)
			}
		}
		got = append(got, fmt.Sprintf("%d %s=%s", r.Table, r.Key, r.Value))
		return nil
	})
	if err != nil || at != 1 || fmt.Sprint(got) != "[3 a=1 3 b=1]" {
		t.Errorf("rows at %d: %v, %v", at, got, err)
	}
}
