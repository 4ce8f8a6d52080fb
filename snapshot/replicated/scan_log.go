package replicated

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// A segment of raft-wal (0.4.1) is
//
//	file header 32 | (entries | index of the offsets, in the last batch of a sealed segment | commit)...
//
// Each of them is a frame: kind 1, zeros 3, length or checksum 4, content, zeros up to a multiple of 8. A commit has no
// content, and the CRC-32C of everything since the commit before it. raft-wal verifies only the checksum of the last
// commit, to detect a write that a power loss has interrupted.
const (
	segmentHead = 32
	frameHead   = 8

	frameEntry  = 1
	frameIndex  = 2
	frameCommit = 3
)

// scanLog verifies all segments of a log that is not open, and returns the checksums of its entries. A log can have
// some 100 MB. Each segment is read into memory once: DefaultSegmentBytes, and at most one more batch of entries.
func scanLog(fs vfs.FS, dir string) (sums logSums, err error) {
	meta := &metaStore{fs: fs}
	state, err := meta.Load(dir)
	if err != nil {
		return sums, err
	}
	var data []byte
	for _, info := range state.Segments {
		path := fs.PathJoin(dir, segment.FileName(info))
		data, err = readFile(fs, path, data)
		if errors.Is(err, iofs.ErrNotExist) {
			continue // the last one of a log whose power was lost; otherwise raft-wal refuses to open the log
		}
		if err != nil {
			return sums, err
		}
		s := &segmentScan{info: info, sums: &sums, data: data, next: info.BaseIndex}
		if err := s.scan(); err != nil {
			return sums, fmt.Errorf("the replicated log is damaged: %s, %w; %s", path, err, rejoinAdvice)
		}
	}
	return sums, nil
}

// CheckLog verifies every checksum of the replicated log in a data directory, and that no file of it is missing. It
// changes nothing. It returns the number of entries; 0 without a log. The directory must not be in use.
func CheckLog(data string) (entries int, err error) {
	has, err := HasLog(data)
	if err != nil || !has {
		return 0, err
	}
	fs := vfs.Default
	dir := fs.PathJoin(data, subDir)
	sums, err := scanLog(fs, dir)
	if err != nil {
		return 0, err
	}
	state, err := (&metaStore{fs: fs}).Load(dir)
	if err != nil {
		return 0, err
	}
	for _, info := range state.Segments {
		if info.SealTime.IsZero() {
			continue // a power loss may leave the last file without entries
		}
		for i := info.MinIndex; i <= info.MaxIndex; i++ {
			if _, found := sums.get(i); !found {
				return 0, fmt.Errorf("the replicated log is damaged: entry %d of %s is missing; %s", i,
					fs.PathJoin(dir, segment.FileName(info)), rejoinAdvice)
			}
		}
	}
	if _, err := (&raftSnapshotStore{fs: fs, dir: dir}).read(); err != nil {
		return 0, fmt.Errorf("%w; %s", err, rejoinAdvice)
	}
	return len(sums.list), nil
}

// readFile reads a file into a buffer, or a larger one.
func readFile(fs vfs.FS, path string, buffer []byte) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return buffer, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return buffer, err
	}
	if size := int(info.Size()); size > cap(buffer) {
		buffer = make([]byte, size)
	} else {
		buffer = buffer[:size]
	}
	_, err = io.ReadFull(f, buffer)
	return buffer, err
}

// segmentScan verifies a segment from its begin to its end.
type segmentScan struct {
	info     types.SegmentInfo
	sums     *logSums
	data     []byte // the file
	next     uint64 // index of the first entry of the next batch
	validEnd int    // where the last valid batch ends
}

// scan returns an error if the segment is damaged. An interrupted write at the end of the last segment is not damage,
// because this node has not acknowledged its entries. Such a write leaves at most one commit with a wrong checksum, and
// no complete batch after it. A flipped bit in the last batch looks the same; openLog detects it if the store contains
// the entries.
func (s *segmentScan) scan() error {
	sealed := s.info.IndexStart > 0
	var bad error // of a commit with a wrong checksum
	for at, from := min(segmentHead, len(s.data)), 0; ; {
		entries, commit, complete := s.batch(at)
		if bad != nil && len(entries) > 0 {
			return bad // raft-wal would take over the entries of that commit
		}
		if !complete {
			break
		}
		if last := s.next + uint64(len(entries)) - 1; s.checksumMatches(from, commit) {
			s.addChecksums(entries)
			s.validEnd = commit + frameHead
		} else if bad = fmt.Errorf("entries %d to %d: %w", s.next, last, errChecksum); sealed {
			return bad
		}
		s.next += uint64(len(entries))
		at, from = commit+frameHead, commit+frameHead
		if sealed && at > int(s.info.IndexStart) {
			return nil
		}
	}
	if sealed || s.hasLaterBatch() {
		return fmt.Errorf("the data after entry %d, at byte %d, cannot be read", s.next-1, s.validEnd)
	}
	return nil
}

// batch returns the encoded entries from an offset to the next commit, and the offset of the commit. The batch is not
// complete if no commit follows.
func (s *segmentScan) batch(at int) (entries [][]byte, commit int, complete bool) {
	for at+frameHead <= len(s.data) {
		kind, number := s.data[at], int64(binary.LittleEndian.Uint32(s.data[at+4:]))
		if kind == frameCommit {
			return entries, at, true
		}
		content := at + frameHead
		if kind != frameEntry && kind != frameIndex || number > int64(len(s.data)-content) {
			break
		}
		if kind == frameEntry {
			entries = append(entries, s.data[content:content+int(number)])
		}
		at = content + (int(number)+frameHead-1)/frameHead*frameHead
	}
	return entries, at, false
}

// checksumMatches reports whether the checksum of a commit is that of the bytes from a place to it.
func (s *segmentScan) checksumMatches(from, commit int) bool {
	return crc32.Checksum(s.data[from:commit], castagnoli) == binary.LittleEndian.Uint32(s.data[commit+4:])
}

// hasLaterBatch reports whether there is a complete batch somewhere after the last valid one. If so, the bytes between
// them were complete once, too, because a node writes a batch only after the previous one is stored.
func (s *segmentScan) hasLaterBatch() bool {
	for at := s.validEnd; at+frameHead <= len(s.data); at += frameHead {
		if kind := s.data[at]; kind != frameEntry && kind != frameIndex {
			continue
		}
		if entries, commit, complete := s.batch(at); complete && len(entries) > 0 && s.checksumMatches(at, commit) {
			return true
		}
	}
	return false
}

// addChecksums adds the checksums of entries. Entries beyond the limits of the segment were deleted, and the next
// segment may have others at their indexes.
func (s *segmentScan) addChecksums(entries [][]byte) {
	for i, b := range entries {
		index := s.next + uint64(i)
		if index >= s.info.MinIndex && (s.info.MaxIndex == 0 || index <= s.info.MaxIndex) {
			s.sums.set(index, sumOfRecord(b))
		}
	}
}

// sumOfRecord returns the checksum of an encoded entry.
func sumOfRecord(b []byte) uint32 {
	var l raft.Log
	if err := (&wal.BinaryCodec{}).Decode(b, &l); err != nil {
		return 0 // reading the entry will return the error
	}
	return sumOf(&l)
}
