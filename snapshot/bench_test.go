package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// openOnDisk opens a store with the server's options in the real file system. TMPDIR selects the disk.
func openOnDisk(b *testing.B, dir string) *Store {
	b.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkAppend makes facts of 300 bytes durable, each in its own entry as from one turn, with many entries in a
// commit.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := openOnDisk(b, b.TempDir())
			defer s.Close()
			if _, err := s.Claim(1, AnyEpoch); err != nil {
				b.Fatal(err)
			}
			fact := make([]byte, 300)
			entries := make([]Entry, size)
			last := Seq(0)
			b.ReportAllocs()
			for b.Loop() {
				for i := range entries {
					entries[i] = Entry{Realm: 1, Epoch: 1, After: last, Facts: [][]byte{fact}}
					last++
				}
				for _, err := range s.Append(entries) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(last)/b.Elapsed().Seconds(), "facts/s")
			m := s.Metrics()
			b.ReportMetric(float64(m.Median.Microseconds()), "p50-µs")
			b.ReportMetric(float64(m.P99.Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkAppendPaced commits 4 KB two thousand times a second. It measures a commit when the disk is not the
// bottleneck, while memtables are flushed. Run it with -benchtime 20000x, so that some are.
func BenchmarkAppendPaced(b *testing.B) {
	s := openOnDisk(b, b.TempDir())
	defer s.Close()
	if _, err := s.Claim(1, AnyEpoch); err != nil {
		b.Fatal(err)
	}
	fact := make([]byte, 4<<10)
	last, next := Seq(0), time.Now()
	for b.Loop() {
		next = next.Add(500 * time.Microsecond)
		time.Sleep(time.Until(next))
		if err := s.Append([]Entry{{Realm: 1, Epoch: 1, After: last, Facts: [][]byte{fact}}})[0]; err != nil {
			b.Fatal(err)
		}
		last++
	}
	m := s.Metrics()
	b.ReportMetric(float64(m.Median.Microseconds()), "p50-µs")
	b.ReportMetric(float64(m.P99.Microseconds()), "p99-µs")
	b.ReportMetric(float64(m.Slowest.Microseconds()), "longest-µs")
}

// BenchmarkOpenAndTail opens a directory with 100,000 facts of 300 bytes after the rows and reads all of them.
func BenchmarkOpenAndTail(b *testing.B) {
	const n = 100_000
	for _, crashed := range []bool{false, true} {
		b.Run(fmt.Sprintf("crashed=%v", crashed), func(b *testing.B) {
			dir := b.TempDir()
			s := openOnDisk(b, dir)
			s.Claim(1, AnyEpoch)
			all := make([][]byte, n)
			for i := range all {
				all[i] = make([]byte, 300)
			}
			for i := 0; i < n; i += 1000 {
				e := Entry{Realm: 1, Epoch: 1, After: Seq(i), Facts: all[i : i+1000]}
				if err := s.Append([]Entry{e})[0]; err != nil {
					b.Fatal(err)
				}
			}
			if crashed {
				// Copying the files of an open store has the effect of kill -9.
				copied := b.TempDir()
				if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				dir = copied
			} else if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if crashed {
					// Opening flushes the log into tables, so each iteration needs its own copy.
					b.StopTimer()
					again := b.TempDir()
					if err := os.CopyFS(again, os.DirFS(dir)); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
					openAndTail(b, again, n)
					continue
				}
				openAndTail(b, dir, n)
			}
		})
	}
}

func openAndTail(b *testing.B, dir string, want int) {
	b.Helper()
	s := openOnDisk(b, dir)
	got := 0
	if err := s.Tail(1, 0, func(Record) error { got++; return nil }); err != nil || got != want {
		b.Fatal(got, err)
	}
	b.StopTimer()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
}

// BenchmarkSnapshot writes 100,000 rows of 100 bytes, like the first snapshot of a realm with that many messages.
func BenchmarkSnapshot(b *testing.B) {
	const n = 100_000
	s := openOnDisk(b, b.TempDir())
	defer s.Close()
	if _, err := s.Claim(1, AnyEpoch); err != nil {
		b.Fatal(err)
	}
	if err := s.Append([]Entry{{Realm: 1, Epoch: 1, Facts: [][]byte{{1}}}})[0]; err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		err := s.Snapshot(1, 1, 1, func(yield func(Row) error) error {
			var key [8]byte
			for i := range n {
				binary.BigEndian.PutUint64(key[:], uint64(i))
				binary.BigEndian.PutUint64(value, uint64(i))
				if err := yield(Row{Table: 1, Key: key[:], Value: value}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(s.Metrics().Slowest.Microseconds()), "longest-stop-µs")
}

// BenchmarkRows reads 100,000 rows of 100 bytes, like a server that starts.
func BenchmarkRows(b *testing.B) {
	const n = 100_000
	s := openOnDisk(b, b.TempDir())
	defer s.Close()
	s.Claim(1, AnyEpoch)
	value := make([]byte, 100)
	err := s.Snapshot(1, 1, 0, func(yield func(Row) error) error {
		for i := range n {
			if err := yield(Row{Table: 1, Key: fmt.Appendf(nil, "%08d", i), Value: value}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		got := 0
		if err := s.Rows(1, func(Row) error { got++; return nil }); err != nil || got != n {
			b.Fatal(got, err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkBody(b *testing.B) {
	const n = 100_000
	dir := b.TempDir()
	s := openOnDisk(b, dir)
	s.Claim(1, AnyEpoch)
	for i := 0; i < n; i += 1000 {
		var puts []Put
		for j := i; j < i+1000; j++ {
			puts = append(puts, Put{fmt.Appendf(nil, "%08d", j*7919%n), make([]byte, 500)})
		}
		e := Entry{Realm: 1, Epoch: 1, After: Seq(i / 1000), Facts: [][]byte{{1}}, Bodies: puts}
		if err := s.Append([]Entry{e})[0]; err != nil {
			b.Fatal(err)
		}
	}
	s.Close() // so that the bodies are in tables
	s = openOnDisk(b, dir)
	defer s.Close()
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i = (i + 12_347) % n
		if _, found, err := s.Body(1, fmt.Appendf(nil, "%08d", i)); !found || err != nil {
			b.Fatal(found, err)
		}
	}
}

// BenchmarkSnapshotsTogether writes snapshots of 200 of 10,000 realms at the same time, as many as fall asleep at one
// tick.
func BenchmarkSnapshotsTogether(b *testing.B) {
	const realms, together = 10_000, 200
	s := openOnDisk(b, b.TempDir())
	defer s.Close()
	var entries []Entry
	for id := range RealmID(realms) {
		if _, err := s.Claim(id+1, AnyEpoch); err != nil {
			b.Fatal(err)
		}
		entries = append(entries, Entry{Realm: id + 1, Epoch: 1, Facts: [][]byte{{1}}})
	}
	if err := errors.Join(s.Append(entries)...); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var all sync.WaitGroup
		for id := range RealmID(together) {
			all.Go(func() {
				err := s.Snapshot(id+1, 1, 1, func(yield func(Row) error) error {
					return yield(Row{Table: 1, Key: []byte{1}, Value: []byte{1}})
				})
				if err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
	}
	b.ReportMetric(float64(together)*float64(b.N)/b.Elapsed().Seconds(), "snapshots/s")
}
