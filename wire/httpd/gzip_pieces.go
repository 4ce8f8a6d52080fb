package httpd

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/klauspost/compress/flate"

	"parley/wire"
)

// A large answer is mostly pieces that other answers have, too (wire.Pieces). Each of them is compressed once: a piece
// that was compressed by itself and ends on a whole byte may stand anywhere in a deflate stream, since nothing in it
// refers to what is before it. So the compressed answer is put together from pieces like the plain one.

// A short piece by itself has little to repeat, but much in common with one of its kind: the channel before it. So what is
// remembered of it is how it looks behind the short shared piece before it, so many bytes further on: it may refer to what is
// in that one, and to nothing between them.

// minPieceBytes is the smallest piece, in bytes, that is compressed by itself; a shared one below it goes behind another from
// minChainBytes bytes on.
const (
	minPieceBytes = 2 << 10
	minChainBytes = 200
)

// maxChainGap is how many bytes may be between two short pieces that go together. What is between is zeros while the second one
// is compressed: they take time, and deflate looks back 32 kB only.
const maxChainGap = 4 << 10

// maxChainPositions is behind how many pieces, or how far behind them, a short one is remembered. Should there be more, because
// everybody sees other channels, it begins anew. A piece of a kilobyte is remembered in a few kilobytes by that.
const maxChainPositions = 64

// MaxChainedBytes is how many bytes all that is remembered of short pieces may take: of ten thousand channels of which everybody
// sees others, maxChainPositions each would take a hundred megabytes. Beyond it all of it is forgotten, and compressed again.
const MaxChainedBytes = 32 << 20

// chainOverhead is about what a short piece takes in memory at one spot beside its bytes.
const chainOverhead = 192

// minCompressedGap is the size in bytes below which what stands between pieces is not compressed: the tables that say how it is
// would take about what they save, and have to be made. Nor is what is less than one in maxGapShare of the plain answer, which
// would make it hardly smaller.
const (
	minCompressedGap = 400
	maxGapShare      = 512
)

// compressedPiece is a piece in compressed form.
type compressedPiece struct {
	bytes     []byte     // deflate blocks, none of them the last, ending on a whole byte
	sum       uint32     // CRC-32 of what it was
	size      int        // and its length
	zeroShift *bitMatrix // what so many bytes of zero do to a sum; set when it came a second time and was compressed with care

	byPosition map[chainPosition]*compressedPiece // of a short piece: how it looks there
}

// chainPosition is where a short piece stands: behind which other, and how far; the zero chainPosition is alone.
type chainPosition struct {
	before weak.Pointer[byte]
	gap    int
}

// pieceCompressor remembers compressed pieces for as long as somebody has the pieces themselves: a small part of what is in memory
// anyway, and MaxChainedBytes bytes of short ones at most.
type pieceCompressor struct {
	mu           sync.Mutex
	pieces       map[weak.Pointer[byte]]*compressedPiece
	chainedBytes int // bytes of what stands in known behind others
}

func newPieceCompressor() *pieceCompressor {
	return &pieceCompressor{pieces: map[weak.Pointer[byte]]*compressedPiece{}}
}

var sharedPieces = newPieceCompressor()

func (p *pieceCompressor) compressed(piece []byte) *compressedPiece {
	key := weak.Make(&piece[0])
	p.mu.Lock()
	x := p.pieces[key]
	p.mu.Unlock()
	switch {
	case x == nil || x.size != len(piece):
		x = compress(nil, piece, flate.BestSpeed)
	case x.zeroShift == nil:
		x = compress(nil, piece, flate.DefaultCompression)
		x.zeroShift = zeroShiftOf(x.size)
	default:
		return x
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remember(key, piece, x)
	return x
}

// remember remembers what a piece was made to; mu is held.
func (p *pieceCompressor) remember(key weak.Pointer[byte], piece []byte, x *compressedPiece) {
	if old, ok := p.pieces[key]; !ok {
		runtime.AddCleanup(&piece[0], p.forget, key)
	} else {
		p.dropPositions(old)
	}
	p.pieces[key] = x
}

// compressedBehind is a short piece, with lead in front of it, at a spot behind another one, if before is not nil.
func (p *pieceCompressor) compressedBehind(before []byte, at chainPosition, lead string, piece []byte, key weak.Pointer[byte]) *compressedPiece {
	p.mu.Lock()
	x := p.pieces[key]
	if x == nil || x.byPosition == nil {
		x = &compressedPiece{byPosition: map[chainPosition]*compressedPiece{}}
		p.remember(key, piece, x)
	}
	out := x.byPosition[at]
	p.mu.Unlock()
	if out != nil && out.size == len(lead)+len(piece) {
		return out
	}
	if before != nil { // what is between is zeros, which no JSON has
		before = append(append(make([]byte, 0, len(before)+at.gap), before...), make([]byte, at.gap)...)
	}
	out = compress(before, append([]byte(lead), piece...), flate.BestCompression)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pieces[key] != x { // made anew, or forgotten
		return out
	}
	if len(x.byPosition) >= maxChainPositions {
		p.dropPositions(x)
	}
	if p.chainedBytes >= MaxChainedBytes {
		for _, x := range p.pieces {
			p.dropPositions(x)
		}
	}
	if old := x.byPosition[at]; old != nil {
		p.chainedBytes -= old.memory()
	}
	x.byPosition[at] = out
	p.chainedBytes += out.memory()
	return out
}

// dropPositions forgets how a short piece looks behind others; mu is held.
func (p *pieceCompressor) dropPositions(x *compressedPiece) {
	for _, b := range x.byPosition {
		p.chainedBytes -= b.memory()
	}
	clear(x.byPosition)
}

func (x *compressedPiece) memory() int { return len(x.bytes) + chainOverhead }

// ChainedBytes is how many bytes short pieces take that are compressed behind others.
func (s *Server) ChainedBytes() int64 {
	sharedPieces.mu.Lock()
	defer sharedPieces.mu.Unlock()
	return int64(sharedPieces.chainedBytes)
}

func (p *pieceCompressor) forget(key weak.Pointer[byte]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.pieces[key]; x != nil {
		p.dropPositions(x)
	}
	delete(p.pieces, key)
}

// flateWriters are reused by level: each has some hundred kilobytes of tables.
var flateWriters = map[int]*sync.Pool{flate.BestSpeed: {}, flate.DefaultCompression: {}, flate.BestCompression: {}}

// compress makes b, which may refer to what is before it, smaller.
func compress(before, b []byte, level int) *compressedPiece {
	var out bytes.Buffer
	w, _ := flateWriters[level].Get().(*flate.Writer)
	if w == nil {
		w, _ = flate.NewWriter(&out, level) // it only fails for levels that there are not
	} else {
		w.Reset(&out)
	}
	if before != nil {
		w.Write(before)
		w.Flush() // to a buffer: there is no error
	}
	from := out.Len()
	w.Write(b)
	w.Flush()
	flateWriters[level].Put(w)
	return &compressedPiece{bytes: bytes.Clone(out.Bytes()[from:]), sum: crc32.ChecksumIEEE(b), size: len(b)}
}

// store is a short text in a block that is not compressed (RFC 1951, 3.2.4): it begins and ends on a whole byte.
func store(b []byte) *compressedPiece {
	out := make([]byte, 0, len(b)+5)
	out = append(out, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(b)))
	out = binary.LittleEndian.AppendUint16(out, ^uint16(len(b)))
	return &compressedPiece{bytes: append(out, b...), sum: crc32.ChecksumIEEE(b), size: len(b)}
}

// storedComma is what is between most pieces.
var storedComma = store([]byte(","))

var (
	gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff} // RFC 1952: deflate, no name, no time, any system
	lastBlock  = []byte{3, 0}                                  // RFC 1951: an empty last block
)

// objectSeparator is what is between two objectSeparator of a list.
const objectSeparator = "},{"

// gzipped is the pieces' gzip form, in parts, which it puts into out.
func (p *pieceCompressor) gzipped(pieces wire.Fragments, out [][]byte) [][]byte {
	all := gzipAssembly{parts: append(out, gzipHeader)}
	p.assemble(&all, pieces, max(minCompressedGap, pieces.Len()/maxGapShare))
	tail := append([]byte{}, lastBlock...)
	tail = binary.LittleEndian.AppendUint32(tail, all.sum)
	return append(all.parts, binary.LittleEndian.AppendUint32(tail, uint32(all.size)))
}

// compressedRun is a compressedRun's pieces as one. It is remembered as soon as each of them is compressed with care.
func (p *pieceCompressor) compressedRun(r *wire.SharedFragments) *compressedPiece {
	if x, ok := r.Derived.Load().(*compressedPiece); ok {
		return x
	}
	var all gzipAssembly
	p.assemble(&all, r.Fragments, minCompressedGap)
	x := &compressedPiece{bytes: bytes.Join(all.parts, nil), sum: all.sum, size: all.size}
	if !all.provisional {
		x.zeroShift = zeroShiftOf(x.size)
		r.Derived.Store(x)
	}
	return x
}

// gzipAssembly is compressed pieces, one behind the other.
type gzipAssembly struct {
	parts       [][]byte
	sum         uint32
	size        int
	provisional bool // some were compressed for the first time
}

func (a *gzipAssembly) add(x *compressedPiece) {
	a.parts = append(a.parts, x.bytes)
	switch {
	case x.zeroShift != nil:
		a.sum = x.zeroShift.multiply(a.sum) ^ x.sum
	case x.size < minPieceBytes:
		a.sum = shortZeroShift(x.size).multiply(a.sum) ^ x.sum
	default:
		a.sum = combineCRC(a.sum, x.sum, x.size)
	}
	a.size += x.size
}

// assemble adds pieces to an assembly; of what is between those that are compressed by themselves, what has little bytes
// is compressed, too.
func (p *pieceCompressor) assemble(all *gzipAssembly, pieces wire.Fragments, little int) {
	var small []byte
	between := func() {
		switch {
		case len(small) == 0:
		case string(small) == ",":
			all.add(storedComma)
		case len(small) < little:
			all.add(store(small))
		default:
			all.add(compress(nil, small, flate.BestSpeed))
		}
		small = small[:0]
	}
	var before []byte
	var at chainPosition
	for _, x := range pieces {
		switch {
		case x.Run != nil:
			between()
			all.add(p.compressedRun(x.Run))
			before, at = nil, chainPosition{}
		case !x.Shared || len(x.JSON) < minChainBytes:
			small = append(small, x.JSON...)
		case len(x.JSON) < minPieceBytes:
			gap, lead := len(small), ""
			switch {
			case before != nil && string(small) == objectSeparator:
				gap, lead, small = 0, objectSeparator, small[:0]
			case gap > maxChainGap:
				before, at = nil, chainPosition{}
			}
			if before != nil {
				at.gap = gap
			}
			between()
			key := weak.Make(&x.JSON[0])
			all.add(p.compressedBehind(before, at, lead, x.JSON, key))
			before, at = x.JSON, chainPosition{before: key}
		default:
			between()
			y := p.compressed(x.JSON)
			all.add(y)
			all.provisional = all.provisional || y.zeroShift == nil
			before, at = nil, chainPosition{}
		}
	}
	between()
}

// combineCRC is the CRC-32 of two texts one after the other, from the sums of each and the length of the second. A CRC is
// linear: so many zero bytes behind the first text multiply its sum by a power of a matrix over bits, whose squares
// are made in advance.
func combineCRC(first, second uint32, length int) uint32 {
	for k := 0; length > 0; k, length = k+1, length>>1 {
		if length&1 != 0 {
			first = zeroShiftPowers[k].multiply(first)
		}
	}
	return first ^ second
}

// zeroShiftOf is what length bytes of zero do to a sum, as one matrix.
func zeroShiftOf(length int) *bitMatrix {
	m := new(bitMatrix)
	for i := range m {
		m[i] = combineCRC(1<<i, 0, length)
	}
	return m
}

var shortZeroShifts [minPieceBytes]atomic.Pointer[bitMatrix]

// shortZeroShift is zeroShiftOf a length below minPieceBytes, remembered.
func shortZeroShift(length int) *bitMatrix {
	m := shortZeroShifts[length].Load()
	if m == nil {
		m = zeroShiftOf(length)
		shortZeroShifts[length].Store(m)
	}
	return m
}

// bitMatrix is 32 columns of 32 bits.
type bitMatrix [32]uint32

// multiply has no branches: which bits are set cannot be foretold.
func (m *bitMatrix) multiply(v uint32) (out uint32) {
	for i := range m {
		out ^= m[i] & -(v >> i & 1)
	}
	return out
}

func (m *bitMatrix) square() (out bitMatrix) {
	for i := range m {
		out[i] = m.multiply(m[i])
	}
	return out
}

// zeroShiftPowers[k] does to a sum what 2^k bytes of zero do.
var zeroShiftPowers = func() (out [48]bitMatrix) {
	var m bitMatrix // one bit of zero: a shift, and the polynomial if a one falls out
	m[0] = crc32.IEEE
	for i := 1; i < 32; i++ {
		m[i] = 1 << (i - 1)
	}
	for range 3 { // 2, 4, 8 bits
		m = m.square()
	}
	for k := range out {
		out[k] = m
		m = m.square()
	}
	return out
}()
