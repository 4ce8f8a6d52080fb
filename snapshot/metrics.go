package snapshot

import (
	"math/bits"
	"sync"
	"time"
)

// Metrics tells what the store has done since it was opened, and how large it is.
type Metrics struct {
	Commits uint64        // synced batches
	Facts   uint64        // records in them
	Bytes   uint64        // of all batches
	Total   time.Duration // spent in commits
	Slowest time.Duration
	Median  time.Duration // of the commits, to an eighth
	P99     time.Duration
	Within  map[float64]uint64 // how many commits took at most so many seconds

	Journal map[uint32]int64 // bytes of each realm's facts behind its last snapshot, as far as tailed or appended

	Disk     uint64 // bytes of the store's files
	Log      uint64 // bytes to replay after a crash
	MemTable uint64
	Cache    int64
}

// Metrics reads the meters.
func (s *Store) Metrics() Metrics {
	m := Metrics{Facts: s.facts.Load(), Bytes: s.writtenBytes.Load(), Journal: map[uint32]int64{}}
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

// Metrics tell how many commits took up to these times, and each doubling between: no disk syncs faster, and whoever waits
// longer looks for the reason elsewhere.
const (
	minReportedLatency = 64 * time.Microsecond
	maxReportedLatency = 2 * time.Second
)

// latency is a histogram of microseconds with eight buckets for each doubling.
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

// bucketEnd is where a bucket ends.
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
