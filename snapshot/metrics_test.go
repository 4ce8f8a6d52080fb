package snapshot

import (
	"testing"
	"time"
)

func TestMetrics(t *testing.T) {
	s := OpenMemory()
	defer s.Close()
	before := s.Metrics()
	mustClaim(t, s, 1)
	mustClaim(t, s, 2)
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, Facts: facts("a", "b")}, Entry{Realm: 2, Epoch: 1, Facts: facts("c")})
	m := s.Metrics()
	if n := m.Commits - before.Commits; n != 3 {
		t.Errorf("%d commits for two claims and one append", n)
	}
	if m.Facts != 3 || m.Journal[1] != 2*(recordHead+1) || m.Journal[2] != recordHead+1 {
		t.Errorf("facts %d, journal %v", m.Facts, m.Journal)
	}
	if m.Median <= 0 || m.P99 < m.Median || m.Slowest < m.P99 || m.Total < m.Slowest || m.Disk == 0 {
		t.Errorf("%+v", m)
	}
	if err := s.Snapshot(1, 1, 1, yieldRows()); err != nil {
		t.Fatal(err)
	}
	if m := s.Metrics(); m.Journal[1] != recordHead+1 {
		t.Errorf("journal after a snapshot of half of it: %v", m.Journal)
	}
}

func TestLatencyBuckets(t *testing.T) {
	last := -1
	for us := time.Duration(0); us < 1<<22; us += 1 + us/50 {
		b := bucketOf(us * time.Microsecond)
		if b < last || bucketEnd(b) <= us*time.Microsecond || b > 0 && bucketEnd(b-1) > us*time.Microsecond {
			t.Fatalf("%d µs is in bucket %d, which ends at %v, the one before at %v",
				us, b, bucketEnd(b), bucketEnd(b-1))
		}
		last = b
	}
}
