package migration

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"parley/actors/realm"
	"parley/snapshot/codec"
)

// progressLog is the log of the texts and files that an import has stored. A record is written after its text or file
// is on disk.
type progressLog struct {
	f       *os.File
	w       *bufio.Writer
	r       *bufio.Reader // the records of an earlier run; nil: all are read
	pending []byte        // records of texts that are not on disk yet
}

// logRecord is one record: a stored file, or the rendered text of one message.
type logRecord struct {
	Address string // of a file
	File    savedFile

	Message  realm.MessageID
	Content  realm.ContentInfo
	Rendered string // kind of the difference to the exported HTML; "": none
	Compared bool
}

// savedFile is a stored file. Missing says that the archive does not have it.
type savedFile struct {
	Missing       bool
	Hash          string
	Size          int64
	Type          string
	Width, Height int
	Animated      bool
}

// openLog opens a log. Its complete records are read by next, and later records replace the incomplete one at the end.
func openLog(file string) (*progressLog, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	end, err := validLength(f)
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the log of the import: %w", err), f.Close())
	}
	l := &progressLog{f: f, w: bufio.NewWriterSize(f, 256<<10)}
	if end > 0 {
		l.r = bufio.NewReaderSize(f, 256<<10)
	}
	return l, nil
}

const maxLogRecord = 16 << 20

// validLength returns where the last complete record ends.
func validLength(f *os.File) (end int64, err error) {
	r := bufio.NewReaderSize(f, 256<<10)
	for {
		n, err := readLogRecord(r, nil)
		if err != nil {
			return end, nil //nolint:nilerr // the rest was cut off by the crash
		}
		end += int64(n)
	}
}

// readLogRecord reads one record, and decodes it unless into is nil. It returns its length with the head.
func readLogRecord(r *bufio.Reader, into *logRecord) (int, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxLogRecord {
		return 0, errItem
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, err
	}
	if crc32.ChecksumIEEE(data) != binary.BigEndian.Uint32(head[4:]) {
		return 0, errItem
	}
	if into != nil {
		if err := codec.Decoder(data)(into); err != nil {
			return 0, err
		}
	}
	return int(n) + len(head), nil
}

// next returns the next record of the earlier run, or false after the last one.
func (l *progressLog) next() (r logRecord, ok bool, err error) {
	if l.r == nil {
		return r, false, nil
	}
	_, err = readLogRecord(l.r, &r)
	if errors.Is(err, io.EOF) {
		l.r = nil
		_, err = l.f.Seek(0, io.SeekEnd)
		return r, false, err
	}
	return r, err == nil, err
}

// add adds a record. It is written by the next flush.
func (l *progressLog) add(r *logRecord) {
	data := codec.EncodeRow(r)
	l.pending = binary.BigEndian.AppendUint32(l.pending, uint32(len(data)))
	l.pending = binary.BigEndian.AppendUint32(l.pending, crc32.ChecksumIEEE(data))
	l.pending = append(l.pending, data...)
}

// flush writes the pending records. Their texts and files must be on disk.
func (l *progressLog) flush() error {
	if l.r != nil {
		return nil // records of the earlier run are still being read
	}
	l.w.Write(l.pending)
	l.pending = l.pending[:0]
	return l.w.Flush()
}

func (l *progressLog) close() error { return l.f.Close() }
