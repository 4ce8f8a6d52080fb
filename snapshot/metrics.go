package snapshot

import (
	"math/bits"
	"slices"
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
	Median  time.Duration // of the commits, to the next power of two of a microsecond
	P99     time.Duration

	Journal map[uint32]int64 // bytes of each realm's facts behind its last snapshot, as far as tailed or appended

	Disk     uint64 // bytes of the store's files
	Log      uint64 // bytes to replay after a crash
	MemTable uint64
	Cache    int64
}

// Metrics reads the meters.
func (s *Store) Metrics() Metrics {
	m := Metrics{Facts: s.facts.Load(), Bytes: s.writtenByte.Load(), Journal: map[uint32]int64{}}
	s.latency.read(&m)
	s.mu.Lock()
	for id, st := range s.realms {
		if st.epoch > 0 {
			m.Journal[id] = st.journal
		}
	}
	s.mu.Unlock()
	if s.Err() != nil || s.read() != nil {
		return m
	}
	defer s.readers.Done()
	p := s.db.Metrics()
	m.Disk, m.Log, m.MemTable, m.Cache = p.DiskSpaceUsage(), p.WAL.Size, p.MemTable.Size, p.BlockCache.Size
	return m
}

// latency is a histogram with one bucket for each power of two of a microsecond.
type latency struct {
	mu      sync.Mutex
	count   uint64
	total   time.Duration
	slowest time.Duration
	buckets [40]uint64
}

func (l *latency) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	l.total += d
	l.slowest = max(l.slowest, d)
	l.buckets[min(bits.Len64(uint64(d.Microseconds())), len(l.buckets)-1)]++
}

func (l *latency) read(m *Metrics) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.Commits, m.Total, m.Slowest = l.count, l.total, l.slowest
	m.Median, m.P99 = l.quantile(50), l.quantile(99)
}

func (l *latency) quantile(percent uint64) time.Duration {
	var seen uint64
	for i, n := range l.buckets {
		if seen += n; n > 0 && seen*100 >= l.count*percent {
			return min(time.Duration(1<<i)*time.Microsecond, l.slowest)
		}
	}
	return 0
}

func sortIDs(ids []uint32) { slices.Sort(ids) }
