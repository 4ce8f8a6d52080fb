package replicated

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

// rejoinAdvice tells the operator what to do with a node whose copy is damaged.
const rejoinAdvice = "remove this data directory and join the cluster again"

// checkedLog is the log of a node. It verifies every entry that it reads, because raft-wal (0.4.1) does not: a leader
// would send a damaged entry to the other nodes, and a damaged term would make them delete their own entries. It holds
// a checksum of every entry in memory, 4 bytes each. The checksum is computed when the entry is written, or at a start,
// from a segment whose own checksums were verified (see scanLog). So the format on disk is that of raft-wal.
type checkedLog struct {
	*wal.WAL
	dir    string
	log    *slog.Logger
	failed *failure
	space  *diskFullRetrier
	leads  func() bool

	mu   sync.RWMutex // also held while entries are read or deleted, so that both agree
	sums logSums
}

// openCheckedLog opens or creates the log in a directory.
func openCheckedLog(
	fs vfs.FS, dir string, segmentBytes int, log *slog.Logger, failed *failure, space *diskFullRetrier,
) (*checkedLog, error) {
	sums, err := scanLog(fs, dir)
	if err != nil {
		return nil, err
	}
	w, err := openWAL(fs, dir, segmentBytes, failed, space)
	if errors.Is(err, wal.ErrCorrupt) {
		err = fmt.Errorf("%w; %s", err, rejoinAdvice)
	}
	if err != nil {
		return nil, fmt.Errorf("open the replicated log in %s: %w", dir, err)
	}
	c := &checkedLog{WAL: w, dir: dir, log: log, failed: failed, space: space, sums: sums,
		leads: func() bool { return false }}
	first, err := w.FirstIndex()
	last, err2 := w.LastIndex()
	if err = errors.Join(err, err2); err == nil && !c.sums.trim(first, last) {
		err = fmt.Errorf("the replicated log in %s has entries %d to %d, but not all of them could be verified; %s",
			dir, first, last, rejoinAdvice)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return c, nil
}

// read reads and verifies an entry.
func (c *checkedLog) read(index uint64, l *raft.Log) (err error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	defer func() {
		if p := recover(); p != nil { // raft-wal panics if some lengths are damaged
			err = c.damaged(index, fmt.Errorf("it cannot be decoded: %v", p))
		}
	}()
	err = c.WAL.GetLog(index, l)
	switch want, stored := c.sums.get(index); {
	case errors.Is(err, raft.ErrLogNotFound), errors.Is(err, wal.ErrClosed):
		return err
	case err != nil:
		return c.damaged(index, err)
	case !stored: // StoreLogs has not returned yet
		return raft.ErrLogNotFound
	case sumOf(l) != want:
		return c.damaged(index, errChecksum)
	}
	return nil
}

func (c *checkedLog) damaged(index uint64, why error) error {
	return fmt.Errorf("log entry %d in %s is damaged: %w; %s", index, c.dir, why, rejoinAdvice)
}

// GetLog reads an entry for Raft. A damaged entry fails the node. Raft then receives an empty entry instead of an
// error, because after an error it would panic and hide the reason. A failed node neither applies nor sends the empty
// entry.
func (c *checkedLog) GetLog(index uint64, l *raft.Log) error {
	err := c.read(index, l)
	if err == nil || errors.Is(err, raft.ErrLogNotFound) || errors.Is(err, wal.ErrClosed) {
		return err
	}
	c.failed.fail(err)
	*l = raft.Log{Index: index, Type: raft.LogCommand}
	return nil
}

func (c *checkedLog) StoreLog(l *raft.Log) error { return c.StoreLogs([]*raft.Log{l}) }

// StoreLogs stores entries. It rejects all of them if one was damaged on its way from another node.
func (c *checkedLog) StoreLogs(logs []*raft.Log) error {
	if err := c.failed.get(); err != nil {
		return err
	}
	sums := make([]uint32, len(logs))
	for i, l := range logs {
		if l.Type == raft.LogCommand {
			if _, _, err := decodeEntry(l.Data); err != nil {
				err = fmt.Errorf("log entry %d (term %d) is not stored: it has arrived damaged: %w", l.Index, l.Term,
					err)
				c.log.Error("a damaged log entry was refused", "err", err)
				return err
			}
		}
		sums[i] = sumOf(l)
	}
	if c.space.rejects(logs) && !c.leads() {
		return errDiskFull
	}
	if err := c.WAL.StoreLogs(logs); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, l := range logs {
		c.sums.set(l.Index, sums[i])
	}
	return nil
}

// DeleteRange deletes the first or the last entries.
func (c *checkedLog) DeleteRange(from, to uint64) error {
	if err := c.failed.get(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.WAL.DeleteRange(from, to); err != nil {
		return err
	}
	first, err := c.WAL.FirstIndex()
	last, err2 := c.WAL.LastIndex()
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	c.sums.trim(first, last)
	return nil
}

// sumOf returns the checksum of all parts of an entry, except the time zone in which it was appended.
func sumOf(l *raft.Log) uint32 {
	var head [48]byte
	for i, n := range [...]uint64{l.Index, l.Term, uint64(l.Type), uint64(len(l.Data)),
		uint64(l.AppendedAt.Unix()), uint64(l.AppendedAt.Nanosecond())} {
		binary.BigEndian.PutUint64(head[i*8:], n)
	}
	sum := crc32.Checksum(head[:], castagnoli)
	return crc32.Update(crc32.Update(sum, castagnoli, l.Data), castagnoli, l.Extensions)
}

// logSums has the checksums of successive entries.
type logSums struct {
	first uint64 // index of the first one
	list  []uint32
}

func (s *logSums) get(index uint64) (sum uint32, found bool) {
	if index < s.first || index-s.first >= uint64(len(s.list)) {
		return 0, false
	}
	return s.list[index-s.first], true
}

// set sets the checksum of an entry: the one after the last, or an existing one, which removes all checksums after it.
func (s *logSums) set(index uint64, sum uint32) {
	if index < s.first || index-s.first > uint64(len(s.list)) {
		s.list = nil // the log starts again after the backup of another node
	}
	if len(s.list) == 0 {
		s.first = index
	}
	s.list = append(s.list[:index-s.first], sum)
}

// trim removes the checksums of all entries except first to last. It reports whether it has a checksum of each of
// these.
func (s *logSums) trim(first, last uint64) (complete bool) {
	if last == 0 {
		*s = logSums{}
		return true
	}
	end := s.first + uint64(len(s.list))
	if first < s.first || last >= end {
		return false
	}
	s.list = append([]uint32(nil), s.list[first-s.first:last+1-s.first]...) // releases the memory of the others
	s.first = first
	return true
}
