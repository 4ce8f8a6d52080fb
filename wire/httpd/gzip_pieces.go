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

// Large answers consist mostly of pieces that they share with other answers (wire.Fragments). Each piece is
// compressed once. A piece that is compressed by itself and ends on a whole byte can be placed anywhere in a
// deflate stream: nothing in it refers to earlier bytes. So a compressed answer is assembled from pieces, like
// the plain one.

// A short piece alone has little repetition, but it resembles the piece of its kind before it: one channel is
// like the next. So a short piece is compressed with the previous short shared piece as its dictionary, at a
// certain distance. It may refer to bytes of that piece, but not to the bytes in between, which differ from
// answer to answer.

// minPieceBytes is the size from which a piece is compressed by itself. A shared piece of minChainBytes up to
// that is compressed with its predecessor as the dictionary.
const (
	minPieceBytes = 2 << 10
	minChainBytes = 200
)

// maxChainGap is the largest number of bytes between two chained pieces. The bytes in between are zeros while the
// second piece is compressed: they take time, and deflate looks back 32 kB only.
const maxChainGap = 4 << 10

// maxChainPositions is the number of compressed forms stored for one short piece, each for another predecessor or
// distance. When there are more, because users see different channels, all forms of the piece are dropped. So a
// piece of 1 kB takes a few kilobytes.
const maxChainPositions = 64

// MaxChainedBytes bounds the memory of all compressed forms of short pieces. Without it, ten thousand channels of
// which every user sees others would take a hundred megabytes. Beyond the bound all forms are dropped and
// compressed again.
const MaxChainedBytes = 32 << 20

// chainOverhead is the approximate memory of one compressed form of a short piece, beside its bytes.
const chainOverhead = 192

// minCompressedGap is the size from which the bytes between shared pieces are compressed. For fewer bytes, the
// Huffman tables would take about as much as they save. Gaps below 1/maxGapShare of the plain answer are not
// compressed either, because that would hardly make the answer smaller.
const (
	minCompressedGap = 400
	maxGapShare      = 512
)

// compressedPiece is the compressed form of a piece.
type compressedPiece struct {
	bytes []byte // deflate blocks that end on a whole byte, none of them the last
	sum   uint32 // CRC-32 of the plain bytes
	size  int    // number of plain bytes
	// effect of size zero bytes on a CRC; set on the second use, together with the better compression
	zeroShift *bitMatrix

	byPosition map[chainPosition]*compressedPiece // of a short piece: its compressed forms
}

// chainPosition is the predecessor of a short piece and the distance to it in bytes. The zero value means: no
// predecessor.
type chainPosition struct {
	before weak.Pointer[byte]
	gap    int
}

// pieceCompressor caches compressed pieces. An entry lives as long as its plain piece. So the cache is small
// compared with the memory of the pieces, plus at most MaxChainedBytes for short pieces. It is safe for
// concurrent use.
type pieceCompressor struct {
	mu           sync.Mutex
	pieces       map[weak.Pointer[byte]]*compressedPiece
	chainedBytes int // bytes of all compressed forms in byPosition
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

// remember stores x as the compressed form of a piece. p.mu is held.
func (p *pieceCompressor) remember(key weak.Pointer[byte], piece []byte, x *compressedPiece) {
	if old, ok := p.pieces[key]; !ok {
		runtime.AddCleanup(&piece[0], p.forget, key)
	} else {
		p.dropPositions(old)
	}
	p.pieces[key] = x
}

// compressedAfter returns the compressed form of a short piece at a position, with the separator lead before it. before
// is the plain predecessor, nil if there is none.
func (p *pieceCompressor) compressedAfter(before []byte, at chainPosition, lead string, piece []byte,
	key weak.Pointer[byte]) *compressedPiece {
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
	if before != nil { // zeros fill the gap: JSON has no zero bytes to match
		before = append(append(make([]byte, 0, len(before)+at.gap), before...), make([]byte, at.gap)...)
	}
	out = compress(before, append([]byte(lead), piece...), flate.BestCompression)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pieces[key] != x { // replaced or dropped in the meantime
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

// dropPositions drops all compressed forms of a short piece. p.mu is held.
func (p *pieceCompressor) dropPositions(x *compressedPiece) {
	for _, b := range x.byPosition {
		p.chainedBytes -= b.memory()
	}
	clear(x.byPosition)
}

func (x *compressedPiece) memory() int { return len(x.bytes) + chainOverhead }

// ChainedBytes returns the memory of all compressed forms of short pieces.
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

// flateWriters pools writers by level: each has some hundred kilobytes of tables.
var flateWriters = map[int]*sync.Pool{flate.BestSpeed: {}, flate.DefaultCompression: {}, flate.BestCompression: {}}

// compress returns the compressed form of b, which may refer to bytes of before.
func compress(before, b []byte, level int) *compressedPiece {
	var out bytes.Buffer
	w, _ := flateWriters[level].Get().(*flate.Writer)
	if w == nil {
		w, _ = flate.NewWriter(&out, level) // it fails for unknown levels only
	} else {
		w.Reset(&out)
	}
	if before != nil {
		w.Write(before)
		w.Flush() // the buffer returns no errors
	}
	from := out.Len()
	w.Write(b)
	w.Flush()
	flateWriters[level].Put(w)
	return &compressedPiece{bytes: bytes.Clone(out.Bytes()[from:]), sum: crc32.ChecksumIEEE(b), size: len(b)}
}

// storedBlock returns b as a block without compression (RFC 1951, 3.2.4), which begins and ends on a whole byte.
func storedBlock(b []byte) *compressedPiece {
	out := make([]byte, 0, len(b)+5)
	out = append(out, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(b)))
	out = binary.LittleEndian.AppendUint16(out, ^uint16(len(b)))
	return &compressedPiece{bytes: append(out, b...), sum: crc32.ChecksumIEEE(b), size: len(b)}
}

// storedComma is the separator between most pieces.
var storedComma = storedBlock([]byte(","))

var (
	gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff} // RFC 1952: deflate, no name, no time, unknown system
	lastBlock  = []byte{3, 0}                                  // RFC 1951: an empty last block
)

// objectSeparator is the text between two objects of a list.
const objectSeparator = "},{"

// gzipped appends the gzip form of pieces to out, in parts.
func (p *pieceCompressor) gzipped(pieces wire.Fragments, out [][]byte) [][]byte {
	all := gzipAssembly{parts: append(out, gzipHeader)}
	p.assemble(&all, pieces, max(minCompressedGap, pieces.Len()/maxGapShare))
	tail := append([]byte{}, lastBlock...)
	tail = binary.LittleEndian.AppendUint32(tail, all.sum)
	return append(all.parts, binary.LittleEndian.AppendUint32(tail, uint32(all.size)))
}

// compressedRun returns the compressed form of all pieces of a run. It is stored in the run as soon as every
// piece has its final compression.
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

// gzipAssembly is a sequence of compressed pieces with their checksum and plain size.
type gzipAssembly struct {
	parts       [][]byte
	sum         uint32
	size        int
	provisional bool // some piece was compressed quickly, on its first use
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

// assemble adds pieces to an assembly. Gaps of at least minGap bytes are compressed as well.
func (p *pieceCompressor) assemble(all *gzipAssembly, pieces wire.Fragments, minGap int) {
	var gapBytes []byte // collected since the last shared piece
	addGap := func() {
		switch {
		case len(gapBytes) == 0:
		case string(gapBytes) == ",":
			all.add(storedComma)
		case len(gapBytes) < minGap:
			all.add(storedBlock(gapBytes))
		default:
			all.add(compress(nil, gapBytes, flate.BestSpeed))
		}
		gapBytes = gapBytes[:0]
	}
	var before []byte
	var at chainPosition
	for _, x := range pieces {
		switch {
		case x.Run != nil:
			addGap()
			all.add(p.compressedRun(x.Run))
			before, at = nil, chainPosition{}
		case !x.Shared || len(x.JSON) < minChainBytes:
			gapBytes = append(gapBytes, x.JSON...)
		case len(x.JSON) < minPieceBytes:
			gap, lead := len(gapBytes), ""
			switch {
			case before != nil && string(gapBytes) == objectSeparator:
				gap, lead, gapBytes = 0, objectSeparator, gapBytes[:0]
			case gap > maxChainGap:
				before, at = nil, chainPosition{}
			}
			if before != nil {
				at.gap = gap
			}
			addGap()
			key := weak.Make(&x.JSON[0])
			all.add(p.compressedAfter(before, at, lead, x.JSON, key))
			before, at = x.JSON, chainPosition{before: key}
		default:
			addGap()
			y := p.compressed(x.JSON)
			all.add(y)
			all.provisional = all.provisional || y.zeroShift == nil
			before, at = nil, chainPosition{}
		}
	}
	addGap()
}

// combineCRC returns the CRC-32 of two texts in sequence, from their sums and the length of the second. CRC is
// linear: zero bytes after the first text multiply its sum by a power of a bit matrix. The powers of two are
// precomputed.
func combineCRC(first, second uint32, length int) uint32 {
	for k := 0; length > 0; k, length = k+1, length>>1 {
		if length&1 != 0 {
			first = zeroShiftPowers[k].multiply(first)
		}
	}
	return first ^ second
}

// zeroShiftOf returns the matrix that has the effect of length zero bytes on a sum.
func zeroShiftOf(length int) *bitMatrix {
	m := new(bitMatrix)
	for i := range m {
		m[i] = combineCRC(1<<i, 0, length)
	}
	return m
}

var shortZeroShifts [minPieceBytes]atomic.Pointer[bitMatrix]

// shortZeroShift returns a cached zeroShiftOf for lengths below minPieceBytes.
func shortZeroShift(length int) *bitMatrix {
	m := shortZeroShifts[length].Load()
	if m == nil {
		m = zeroShiftOf(length)
		shortZeroShifts[length].Store(m)
	}
	return m
}

// bitMatrix is a matrix of 32 columns with 32 bits each.
type bitMatrix [32]uint32

// multiply has no branches, because the set bits of a checksum are unpredictable.
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

// zeroShiftPowers[k] has the effect of 2^k zero bytes on a sum.
var zeroShiftPowers = func() (out [48]bitMatrix) {
	var m bitMatrix // one zero bit: a shift, and the polynomial if a one is shifted out
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
