package snapshot

import (
	"math/bits"
	"sync"
	"time"
)

// Metrics are the work of a store since it was opened, and its sizes.
type Metrics struct {
	Commits uint64        // synced batches
	Facts   uint64        // records in them
	Bytes   uint64        // of all batches
	Total   time.Duration // time spent in commits
	Slowest time.Duration
	Median  time.Duration // of the commits, with an error of at most an eighth
	P99     time.Duration
	Within  map[float64]uint64 // number of commits by upper bound in seconds

	// Journal is the size in bytes of each realm's facts after its last snapshot, as far as this process has read or
	// written them.
	Journal map[RealmID]int64

	Disk     uint64 // bytes of the store's files
	Log      uint64 // bytes to replay after a crash
	MemTable uint64
	Cache    int64
}

// Metrics returns the current metrics.
func (s *Store) Metrics() Metrics {
	m := Metrics{Facts: s.facts.Load(), Bytes: s.writtenBytes.Load(), Journal: map[RealmID]int64{}}
	s.latency.fillMetrics(&m)
	s.mu.Lock()
	for id, st := range s.realms {
		if st.epoch > 0 {
			m.Journal[id] = st.journalBytes
		}
	}
	s.mu.Unlock()
	if s.Err() != nil || s.acquireReader() != nil {
		return m
	}
	defer s.readers.Done()
	p := s.db.Metrics()
	m.Disk, m.Log, m.MemTable, m.Cache = p.DiskSpaceUsage(), p.WAL.Size, p.MemTable.Size, p.BlockCache.Size
	return m
}

// Bounds of Metrics.Within; the values between double. Disks do not sync faster than the first. For longer times than
// the last, the distribution does not help to find the cause.
const (
	minReportedLatency = 64 * time.Microsecond
	maxReportedLatency = 2 * time.Second
)

// latency is a histogram in microseconds, with eight buckets for each power of two.
type latency struct {
	mu      sync.Mutex
	count   uint64
	total   time.Duration
	slowest time.Duration
	buckets [8 * 32]uint64
}

func bucketOf(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0))
	if us < 8 {
		return int(us)
	}
	power := bits.Len64(us) - 4 // us>>power is 8 to 15
	return min(power*8+int(us>>power), 8*32-1)
}

// bucketEnd returns the upper bound of a bucket.
func bucketEnd(bucket int) time.Duration {
	if bucket < 8 {
		return time.Duration(bucket+1) * time.Microsecond
	}
	power := bucket/8 - 1
	return time.Duration(bucket-power*8+1) << power * time.Microsecond
}

func (l *latency) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	l.total += d
	l.slowest = max(l.slowest, d)
	l.buckets[bucketOf(d)]++
}

func (l *latency) fillMetrics(m *Metrics) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.Commits, m.Total, m.Slowest = l.count, l.total, l.slowest
	m.Median, m.P99 = l.quantile(50), l.quantile(99)
	m.Within = map[float64]uint64{}
	var seen uint64
	for i, n := range l.buckets {
		seen += n
		if end := bucketEnd(i); i%8 == 7 && minReportedLatency <= end && end <= maxReportedLatency {
			m.Within[end.Seconds()] = seen
		}
	}
}

func (l *latency) quantile(percent uint64) time.Duration {
	var seen uint64
	for i, n := range l.buckets {
		if seen += n; n > 0 && seen*100 >= l.count*percent {
			return min(bucketEnd(i), l.slowest)
		}
	}
	return 0
}
