package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"math"
	"math/bits"
	"path"

	"github.com/cockroachdb/pebble/v2"
)

// A journal record is
//
//	format 1 | checksum 8 | hash of the record before 16 | payload
//
// The payload of format 1 is the fact. That of format 2 begins with the inputs with which the fact is applied:
//
//	clock reading, rule level, length of the request id (varints) | request id | fact
//
// One SHA-256 over realm, number, hash before and payload gives both: its first 16 bytes are the record's hash in the
// chain, the next 8 its checksum. Two journals with the same hash at number n have the same facts up to n, even if
// someone tried to forge them: replicas and backups can be compared by one hash. A faster hash would not ensure that.
// 16 bytes are enough, and with the processor's SHA instructions a fact of 300 bytes takes under half a microsecond.
const (
	recordFormat1 = 1
	recordFormat2 = 2
	checkLen      = 8
	chainLen      = 16
	recordHead    = 1 + checkLen + chainLen
	maxInputsLen  = binary.MaxVarintLen64 + 2*binary.MaxVarintLen16
)

type chain [chainLen]byte

type hasher struct {
	sha  hash.Hash
	head [1 + 4 + 8 + chainLen]byte
	sum  [sha256.Size]byte
}

// hash returns the hash and the checksum of one record. A hasher must be used by one goroutine only.
func (h *hasher) hash(
	format byte, realm RealmID, n Seq, before chain, payload []byte,
) (this chain, check [checkLen]byte) {
	if h.sha == nil {
		h.sha = sha256.New()
	}
	h.sha.Reset()
	h.head[0] = format
	binary.BigEndian.PutUint32(h.head[1:], uint32(realm))
	binary.BigEndian.PutUint64(h.head[5:], uint64(n))
	copy(h.head[13:], before[:])
	h.sha.Write(h.head[:])
	h.sha.Write(payload)
	h.sha.Sum(h.sum[:0])
	copy(this[:], h.sum[:])
	copy(check[:], h.sum[chainLen:])
	return this, check
}

// format returns the format of a record: format 1 if it has only a fact.
func (r *Record) format() byte {
	if r.Now == 0 && r.Level == 0 && r.Request == "" {
		return recordFormat1
	}
	return recordFormat2
}

// size returns how many bytes the record has.
func (r *Record) size() int {
	if r.format() == recordFormat1 {
		return recordHead + len(r.Fact)
	}
	return recordHead + varintLen(uint64(r.Now)) + varintLen(uint64(r.Level)) + varintLen(uint64(len(r.Request))) +
		len(r.Request) + len(r.Fact)
}

// varintLen returns how many bytes AppendUvarint appends.
func varintLen(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }

// put writes a record into dst, which has its size, and returns the record's hash.
func (h *hasher) put(dst []byte, realm RealmID, before chain, r *Record) chain {
	dst[0] = r.format()
	copy(dst[1+checkLen:], before[:])
	payload := dst[recordHead:recordHead]
	if dst[0] == recordFormat2 {
		payload = binary.AppendUvarint(payload, uint64(r.Now))
		payload = binary.AppendUvarint(payload, uint64(r.Level))
		payload = binary.AppendUvarint(payload, uint64(len(r.Request)))
		payload = append(payload, r.Request...)
	}
	payload = append(payload, r.Fact...)
	this, check := h.hash(dst[0], realm, r.Seq, before, payload)
	copy(dst[1:], check[:])
	return this
}

var (
	errChecksum = errors.New("checksum mismatch")
	errShort    = errors.New("too short")
)

// get verifies the checksum of a record and decodes it. The caller compares before with the hash of the previous
// record.
func (h *hasher) get(value []byte, realm RealmID, n Seq) (r Record, before, this chain, err error) {
	if len(value) < recordHead {
		return r, before, this, errShort
	}
	format, payload := value[0], value[recordHead:]
	if format != recordFormat1 && format != recordFormat2 {
		return r, before, this, fmt.Errorf("unknown record format %d", format)
	}
	copy(before[:], value[1+checkLen:])
	this, check := h.hash(format, realm, n, before, payload)
	if string(check[:]) != string(value[1:1+checkLen]) {
		return r, before, this, errChecksum
	}
	r.Seq, r.Fact = n, payload
	if format == recordFormat2 {
		err = r.takeInputs()
	}
	return r, before, this, err
}

// takeInputs decodes the inputs at the beginning of the payload of format 2, which is in r.Fact.
func (r *Record) takeInputs() error {
	var inputs [3]uint64
	for i := range inputs {
		n, width := binary.Uvarint(r.Fact)
		if width <= 0 {
			return errShort
		}
		inputs[i], r.Fact = n, r.Fact[width:]
	}
	if inputs[1] > math.MaxUint16 || inputs[2] > uint64(len(r.Fact)) {
		return errShort
	}
	r.Now, r.Level = int64(inputs[0]), uint16(inputs[1])
	r.Request, r.Fact = string(r.Fact[:inputs[2]]), r.Fact[inputs[2]:]
	return nil
}

// Any other value is
//
//	format 1 | CRC-32C of key and bytes 4 | bytes
//
// The checksum detects a value under the wrong key, and errors between Pebble and this package. Pebble has checksums of
// its own for its blocks.
const (
	valueFormat = 1
	valueHead   = 5
	numberLen   = valueHead + 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func valueCheck(key, value []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, value)
}

// setChecksum sets the head of dst; the value after the head must be in place.
func setChecksum(dst, key []byte) {
	dst[0] = valueFormat
	binary.BigEndian.PutUint32(dst[1:], valueCheck(key, dst[valueHead:]))
}

func verifyValue(key, stored []byte) ([]byte, error) {
	if len(stored) < valueHead {
		return nil, errShort
	}
	if stored[0] != valueFormat {
		return nil, fmt.Errorf("unknown value format %d", stored[0])
	}
	if binary.BigEndian.Uint32(stored[1:]) != valueCheck(key, stored[valueHead:]) {
		return nil, errChecksum
	}
	return stored[valueHead:], nil
}

func setValue(b *pebble.Batch, key, value []byte) error {
	op := b.SetDeferred(len(key), valueHead+len(value))
	copy(op.Key, key)
	copy(op.Value[valueHead:], value)
	setChecksum(op.Value, key)
	return op.Finish()
}

func putNumber(dst, key []byte, n uint64) {
	binary.BigEndian.PutUint64(dst[valueHead:], n)
	setChecksum(dst, key)
}

func setNumber(b *pebble.Batch, key []byte, n uint64) error {
	var v [8]byte
	binary.BigEndian.PutUint64(v[:], n)
	return setValue(b, key, v[:])
}

// snapshotState is the state of a realm's last snapshot.
type snapshotState struct {
	seq          Seq    // the rows contain every fact up to here
	hash         chain  // of the record at seq; the first record in the journal follows it
	stagedChunks uint32 // chunks that are not applied to the rows yet
	snapshots    uint64 // number of snapshots so far
}

const snapshotStateLen = 8 + chainLen + 4 + 8

func (st snapshotState) encode() []byte {
	v := make([]byte, 0, snapshotStateLen)
	v = binary.BigEndian.AppendUint64(v, uint64(st.seq))
	v = append(v, st.hash[:]...)
	v = binary.BigEndian.AppendUint32(v, st.stagedChunks)
	return binary.BigEndian.AppendUint64(v, st.snapshots)
}

func decodeSnapshotState(v []byte) (st snapshotState, err error) {
	if len(v) != snapshotStateLen {
		return st, fmt.Errorf("%d bytes instead of %d", len(v), snapshotStateLen)
	}
	st.seq = Seq(binary.BigEndian.Uint64(v))
	copy(st.hash[:], v[8:])
	st.stagedChunks = binary.BigEndian.Uint32(v[8+chainLen:])
	st.snapshots = binary.BigEndian.Uint64(v[12+chainLen:])
	return st, nil
}

// DamageError reports that stored data differs from the data as written.
type DamageError struct {
	Realm RealmID
	Seq   Seq    // of a journal record, else 0
	Key   []byte // as stored
	Where string // the file, if known
	Why   string
	Dir   string
	Cause error // Pebble's error, if any
}

func (e *DamageError) Error() string {
	place := "data directory damaged"
	why := e.Why
	switch {
	case e.Seq != 0:
		place = fmt.Sprintf("journal damaged: realm %d, number %d", e.Realm, e.Seq)
		why = fmt.Sprintf("%s (record follows %d)", why, e.Seq-1)
	case e.Key != nil:
		_, _, what := describeKey(e.Key)
		place = fmt.Sprintf("%s: realm %d, %s", place, e.Realm, what)
	case e.Realm != processRealm:
		place = fmt.Sprintf("journal damaged: realm %d", e.Realm)
	}
	if e.Where != "" {
		place += ", in " + e.Where
	}
	return fmt.Sprintf("%s: %s; run parley log check %s", place, why, e.Dir)
}

func (e *DamageError) Unwrap() error { return e.Cause }

// damaged returns the error of a damaged value, after Options.Damaged.
func (s *Store) damaged(key []byte, why string) *DamageError { return s.damagedBy(key, why, nil) }

// damagedBy is like damaged. With a cause of Pebble the error names the file that Pebble has read.
func (s *Store) damagedBy(key []byte, why string, cause error) *DamageError {
	realm, n, _ := describeKey(key)
	where := tableFileIn(cause)
	if where == "" {
		where = s.tableFilesOf(key)
	}
	return s.foundDamage(&DamageError{
		Realm: realm, Seq: n, Key: append([]byte(nil), key...), Why: why, Where: where, Dir: s.dir, Cause: cause,
	})
}

// foundDamage calls Options.Damaged.
func (s *Store) foundDamage(d *DamageError) *DamageError {
	if s.o.Damaged != nil {
		s.o.Damaged(d)
	}
	return d
}

// tableFileIn returns the file in which Pebble found corruption; "" if the error does not name it.
func tableFileIn(err error) string {
	if i := pebble.ExtractDataCorruptionInfo(err); i != nil {
		return subDir + "/" + path.Base(i.Path)
	}
	return ""
}

// tableFilesOf names the table files that may contain a key.
func (s *Store) tableFilesOf(key []byte) string {
	levels, err := s.db.SSTables(pebble.WithKeyRangeFilter(key, append(append([]byte(nil), key...), 0)))
	if err != nil {
		return ""
	}
	where := ""
	for level, tables := range levels {
		for _, t := range tables {
			if where != "" {
				where += " or "
			}
			where += fmt.Sprintf("%s/%s.sst (level %d)", subDir, t.FileNum, level)
		}
	}
	if where == "" {
		return "the write-ahead log"
	}
	return where
}

// corruptionText returns the text of Pebble's error without the note that carries the name of the file.
func corruptionText(err error) string {
	if i := pebble.ExtractDataCorruptionInfo(err); i != nil {
		return i.Details.Error()
	}
	return err.Error()
}

// pebbleError returns a DamageError if Pebble found corruption, after Options.Damaged, and else a wrapped error.
func (s *Store) pebbleError(doing string, err error) error {
	err = s.wrapPebble(doing, err)
	if d, is := err.(*DamageError); is {
		return s.foundDamage(d)
	}
	return err
}

// wrapPebble is pebbleError without Options.Damaged.
func (s *Store) wrapPebble(doing string, err error) error {
	if err == nil {
		return nil
	}
	if pebble.IsCorruptionError(err) {
		return &DamageError{Why: corruptionText(err), Where: tableFileIn(err), Dir: s.dir, Cause: err}
	}
	return fmt.Errorf("%s: %w", doing, err)
}
