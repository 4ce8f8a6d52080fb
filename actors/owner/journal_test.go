package owner

import (
	"bytes"
	"math"
	"testing"
	"time"

	"parley/actors/mailbox"
	"parley/actors/realm"
	"parley/snapshot"
)

// durableRuntime is a runtime that only collects the messages of the journal actor to the realms.
type durableRuntime struct {
	mailbox.Runtime
	durable map[mailbox.Address]realm.Seq
}

func (r *durableRuntime) Send(to mailbox.Address, message any) {
	if m, ok := message.(Durable); ok {
		r.durable[to] = m.Seq
	}
}

// recordingJournal is a disk that notes each commit.
type recordingJournal struct {
	Disk
	commits [][]realm.Batch
}

func (d *recordingJournal) Append(batches []realm.Batch) []error {
	var list []realm.Batch
	d.commits = append(d.commits, append(list, batches...))
	return make([]error, len(batches))
}

// journalWriter gives the journal actor the turns of one realm.
type journalWriter struct {
	realm realm.ID
	epoch uint64
	last  realm.Seq
	pid   mailbox.Address
}

func (w *journalWriter) write(j *Journal, facts ...[]byte) {
	j.add(&Append{Batch: realm.Batch{Realm: w.realm, Epoch: w.epoch, After: w.last, Facts: facts}, From: w.pid})
	w.last += realm.Seq(len(facts))
}

// A realm with very much to write does not delay the facts of another one: these are in the next commit, which has no
// more than maxCommitBytes. The facts of each realm stay in their order, and none is left.
func TestRealmsShareCommits(t *testing.T) {
	disk, runtime := &recordingJournal{}, &durableRuntime{durable: map[mailbox.Address]realm.Seq{}}
	j := &Journal{Env: &Env{Disk: disk, Runtime: runtime}}
	busy, quiet := journalWriter{realm: 1, pid: mailbox.NewAddress("writer")}, journalWriter{realm: 2,
		pid: mailbox.NewAddress("writer")}
	const turns, size = 1000, 10_000
	for range turns {
		busy.write(j, bytes.Repeat([]byte{1}, size))
	}
	quiet.write(j, []byte{2})
	quiet.write(j, []byte{2})
	j.commit()
	if runtime.durable[quiet.pid] != 2 {
		t.Error("the facts of the quiet realm are not in the first commit")
	}
	for len(j.turns) > 0 {
		j.commit()
	}
	if runtime.durable[busy.pid] != turns {
		t.Errorf("%d facts of %d are on disk", runtime.durable[busy.pid], turns)
	}
	last := map[realm.ID]realm.Seq{}
	for i, c := range disk.commits {
		written := 0
		for _, b := range c {
			if b.After != last[b.Realm] {
				t.Fatalf("commit %d has the facts after %d of realm %d, want %d", i, b.After, b.Realm, last[b.Realm])
			}
			last[b.Realm] = b.Last()
			for _, f := range b.Facts {
				written += len(f)
			}
		}
		if written > maxCommitBytes+size {
			t.Errorf("commit %d has %d bytes", i, written)
		}
	}
	if n := len(disk.commits); n < turns*size/maxCommitBytes || n > turns*size/maxCommitBytes+2 {
		t.Errorf("%d commits of %d bytes", n, turns*size)
	}
}

// BenchmarkCommitBesideABusyRealm measures how long one fact of a realm waits for the disk while another one has 8 MB
// to write: with commits of everything that waits, and with commits in which the realms take turns.
func BenchmarkCommitBesideABusyRealm(b *testing.B) {
	for _, c := range []struct {
		name string
		most int
	}{{"everything", math.MaxInt}, {"turns", 0}} {
		b.Run(c.name, func(b *testing.B) {
			store, err := snapshot.Open(b.TempDir(), snapshot.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			disk := snapshot.Disk{Store: store}
			runtime := &durableRuntime{durable: map[mailbox.Address]realm.Seq{}}
			j := &Journal{Env: &Env{Disk: disk, Runtime: runtime}, most: c.most}
			writers := []*journalWriter{{realm: 1, pid: mailbox.NewAddress("writer")}, {realm: 2,
				pid: mailbox.NewAddress("writer")}}
			for _, w := range writers {
				claimed, err := disk.Claim(w.realm, realm.AnyEpoch)
				if err != nil {
					b.Fatal(err)
				}
				w.epoch = claimed.Epoch
			}
			fact := bytes.Repeat([]byte("some text "), 800)
			var waited, whole time.Duration
			for b.Loop() {
				for range 1000 {
					writers[0].write(j, fact)
				}
				writers[1].write(j, fact[:500])
				began := time.Now()
				for runtime.durable[writers[1].pid] < writers[1].last {
					j.commit()
				}
				waited += time.Since(began)
				for len(j.turns) > 0 {
					j.commit()
				}
				whole += time.Since(began)
			}
			b.ReportMetric(float64(waited.Microseconds())/float64(b.N), "wait-us")
			b.ReportMetric(float64(whole.Microseconds())/float64(b.N), "all-us")
		})
	}
}
