package replicated

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"parley/actors/realm"
	"parley/snapshot"
)

// A log entry is
//
//	format 1 | kind 1 | payload | CRC-32C of everything before 4
//
// The checksum detects damage in memory, in the stream between two nodes and in raft-wal, which does not verify entries
// that it reads.
const (
	entryFormat = 1
	entryHead   = 2
	entryTail   = 4
)

// Kinds of log entries.
const (
	kindOps        = 'o' // operations
	kindPart       = 'p' // a part of an entry that exceeds MaxEntryBytes
	kindCheckpoint = 'v' // a place where the verifier compares the logs of the nodes
)

const (
	// MaxEntryBytes is how many bytes of operations are put into one log entry, so that no entry keeps a link busy for
	// long. A larger operation becomes several entries.
	MaxEntryBytes = 1 << 20
	// maxParts limits the parts of an operation: snapshot.MaxEntry, and what its encoding adds.
	maxParts = snapshot.MaxEntry/MaxEntryBytes + 64
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errShort    = errors.New("it is too short")
	errChecksum = errors.New("its checksum does not match")
)

// encodeEntry returns a log entry.
func encodeEntry(kind byte, payload []byte) []byte {
	e := make([]byte, 0, entryHead+len(payload)+entryTail)
	e = append(e, entryFormat, kind)
	e = append(e, payload...)
	return binary.BigEndian.AppendUint32(e, crc32.Checksum(e, castagnoli))
}

// decodeEntry verifies a log entry and returns its content.
func decodeEntry(entry []byte) (kind byte, payload []byte, err error) {
	if len(entry) < entryHead+entryTail {
		return 0, nil, errShort
	}
	body, sum := entry[:len(entry)-entryTail], entry[len(entry)-entryTail:]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(sum) {
		return 0, nil, errChecksum
	}
	if body[0] != entryFormat {
		return 0, nil, fmt.Errorf("its format is %d; this program knows format %d", body[0], entryFormat)
	}
	return body[1], body[entryHead:], nil
}

// Kinds of operations.
const (
	opAppend = 'a'
	opClaim  = 'c'
	opMeta   = 'm'
	opImport = 'i'
	opOwn    = 'o'
)

// Flags of a body.
const (
	bodyErased  = 0
	bodyWritten = 1
)

// appendOp appends the encoding of an operation.
func appendOp(b []byte, op *snapshot.LogOp) []byte {
	if x := op.Import; x != nil {
		b = append(b, opImport, byte(x.Kind))
		for _, n := range []uint64{uint64(x.Realm), x.Epoch, uint64(x.Chunk), uint64(x.At), uint64(x.Chunks), x.Term} {
			b = binary.AppendUvarint(b, n)
		}
		return appendBytes(b, x.Rows)
	}
	if op.Own {
		return append(b, opOwn)
	}
	e := op.Entry
	if e == nil && op.Meta != "" {
		return appendBytes(appendBytes(append(b, opMeta), []byte(op.Meta)), op.Value)
	}
	if e == nil {
		b = append(b, opClaim)
		b = binary.AppendUvarint(b, uint64(op.Claim))
		return binary.AppendUvarint(b, op.Seen)
	}
	b = append(b, opAppend)
	for _, n := range []uint64{uint64(e.Realm), e.Epoch, uint64(e.After), uint64(e.Now), uint64(e.Level)} {
		b = binary.AppendUvarint(b, n)
	}
	b = append(b, op.Before[:]...)
	b = binary.AppendUvarint(b, uint64(len(e.Requests)))
	for _, r := range e.Requests {
		b = appendBytes(b, []byte(r.ID))
		b = binary.AppendUvarint(b, uint64(r.Seq))
	}
	b = binary.AppendUvarint(b, uint64(len(e.Facts)))
	for _, f := range e.Facts {
		b = appendBytes(b, f)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Bodies)))
	for _, p := range e.Bodies {
		b = appendBytes(b, p.Key)
		if p.Value == nil {
			b = append(b, bodyErased)
			continue
		}
		b = appendBytes(append(b, bodyWritten), p.Value)
	}
	return b
}

func appendBytes(b, s []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }

// reader takes values from the front of an encoding. After an error all values are empty.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) number() uint64 {
	n, width := binary.Uvarint(r.rest)
	if width <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[width:]
	return n
}

// take returns the next n bytes. The slice shares the memory of the encoding.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail()
		return nil
	}
	s := r.rest[:n:n]
	r.rest = r.rest[n:]
	return s
}

func (r *reader) bytes() []byte { return r.take(r.number()) }

// count returns the length of a list, each of whose elements has at least one byte.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) fail() {
	r.rest = nil
	if r.err == nil {
		r.err = errShort
	}
}

// decodeOps decodes the operations of an entry. They refer to the memory of the payload.
func decodeOps(payload []byte) (ops []snapshot.LogOp, err error) {
	r := reader{rest: payload}
	for len(r.rest) > 0 && r.err == nil {
		kind := r.take(1)[0]
		switch kind {
		case opClaim:
			ops = append(ops, snapshot.LogOp{Claim: r.realm(), Seen: r.number()})
		case opMeta:
			ops = append(ops, snapshot.LogOp{Meta: string(r.bytes()), Value: r.bytes()})
		case opAppend:
			ops = append(ops, r.append())
		case opImport:
			ops = append(ops, r.importStep())
		case opOwn:
			ops = append(ops, snapshot.LogOp{Own: true})
		default:
			return nil, fmt.Errorf("operation %q is unknown to this program", kind)
		}
	}
	return ops, r.err
}

func (r *reader) realm() realm.ID { return realm.ID(r.number32()) }

func (r *reader) seq() realm.Seq { return realm.Seq(r.number()) }

func (r *reader) number32() uint32 {
	n := r.number()
	if n > math.MaxUint32 {
		r.fail()
	}
	return uint32(n)
}

// importStep decodes a step of an import.
func (r *reader) importStep() snapshot.LogOp {
	x := &snapshot.ImportOp{}
	if kind := r.take(1); len(kind) == 1 {
		x.Kind = snapshot.ImportKind(kind[0])
	}
	x.Realm, x.Epoch, x.Chunk = r.realm(), r.number(), r.number32()
	x.At, x.Chunks, x.Term = r.seq(), r.number32(), r.number()
	x.Rows = r.bytes()
	return snapshot.LogOp{Import: x}
}

// append decodes an addition to a journal.
func (r *reader) append() (op snapshot.LogOp) {
	e := &snapshot.Entry{Realm: r.realm(), Epoch: r.number(), After: r.seq(), Now: int64(r.number())}
	level := r.number()
	if level > math.MaxUint16 {
		r.fail()
	}
	e.Level, op.Entry = uint16(level), e
	copy(op.Before[:], r.take(uint64(len(op.Before))))
	for range r.count() {
		e.Requests = append(e.Requests, realm.Request{ID: string(r.bytes()), Seq: r.seq()})
	}
	for range r.count() {
		e.Facts = append(e.Facts, r.bytes())
	}
	for range r.count() {
		p := snapshot.Put{Key: r.bytes()}
		if flag := r.take(1); len(flag) == 1 && flag[0] == bodyWritten {
			p.Value = r.bytes()
		}
		e.Bodies = append(e.Bodies, p)
	}
	return op
}

// packed is one log entry with the indexes of its operations.
type packed struct {
	data []byte
	ops  []int
}

// pack puts operations into as few log entries as possible, in their order. An operation that does not fit into one
// entry becomes several parts, which id distinguishes from those of other operations. limit is how many bytes fit into
// one entry.
func pack(ops []snapshot.LogOp, id uint64, limit int) (list []packed) {
	var payload []byte
	var inside []int
	flush := func() {
		if len(inside) > 0 {
			list = append(list, packed{encodeEntry(kindOps, payload), inside})
			payload, inside = payload[:0], nil
		}
	}
	for i := range ops {
		before := len(payload)
		payload = appendOp(payload, &ops[i])
		if len(payload) <= limit {
			inside = append(inside, i)
			continue
		}
		one := append([]byte{}, payload[before:]...)
		payload = payload[:before]
		flush()
		if len(one) <= limit {
			payload, inside = append(payload, one...), []int{i}
			continue
		}
		list = append(list, split(one, i, id+uint64(i), limit)...)
	}
	flush()
	return list
}

// split returns the parts of an operation. The last part has its result.
func split(op []byte, index int, id uint64, limit int) (list []packed) {
	n := (len(op) + limit - 1) / limit
	for k := range n {
		head := binary.AppendUvarint(nil, id)
		head = binary.AppendUvarint(head, uint64(k))
		head = binary.AppendUvarint(head, uint64(n))
		piece := op[k*limit : min(len(op), (k+1)*limit)]
		p := packed{data: encodeEntry(kindPart, append(head, piece...))}
		if k == n-1 {
			p.ops = []int{index}
		}
		list = append(list, p)
	}
	return list
}

// operationParts collects the parts of an operation. The parts of one operation follow each other in the log. If the
// leader has changed before the last part, the parts are dropped.
type operationParts struct {
	id    uint64
	next  uint64 // number of the part that must come next
	bytes []byte
}

// add adds a part. complete reports whether it is the last part of its operation. With the last part add returns the
// whole operation, or nil if an earlier part is not in the log because the leader has changed.
func (p *operationParts) add(payload []byte) (op []byte, complete bool, err error) {
	r := reader{rest: payload}
	id, k, n := r.number(), r.number(), r.number()
	if r.err != nil || k >= n || n > maxParts {
		return nil, false, errShort
	}
	if k == 0 {
		*p = operationParts{id: id}
	}
	last := k == n-1
	if id != p.id || k != p.next {
		*p = operationParts{}
		return nil, last, nil
	}
	p.bytes = append(p.bytes, r.rest...)
	p.next++
	if last {
		op = p.bytes
		*p = operationParts{}
	}
	return op, last, nil
}

// pending reports whether parts wait for the next one.
func (p *operationParts) pending() bool { return p.next > 0 }
