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

// packFrom is the smallest piece, in bytes, that is compressed by itself; a shared one below it goes behind another from
// chainFrom bytes on.
const (
	packFrom  = 2 << 10
	chainFrom = 200
)

// maxGap is how many bytes may be between two short pieces that go together. What is between is zeros while the second one
// is compressed: they take time, and deflate looks back 32 kB only.
const maxGap = 4 << 10

// maxBehind is behind how many pieces, or how far behind them, a short one is remembered. Should there be more, because
// everybody sees other channels, it begins anew. A piece of a kilobyte is remembered in a few kilobytes by that.
const maxBehind = 64

// MaxChained is how many bytes all that is remembered of short pieces may take: of ten thousand channels of which everybody
// sees others, maxBehind each would take a hundred megabytes. Beyond it all of it is forgotten, and compressed again.
const MaxChained = 32 << 20

// chainedCost is about what a short piece takes in memory at one spot beside its bytes.
const chainedCost = 192

// storeBelow is the size in bytes below which what stands between pieces is not compressed: the tables that say how it is
// would take about what they save, and have to be made. Nor is what is less than one in littleOf of the plain answer, which
// would make it hardly smaller.
const (
	storeBelow = 400
	littleOf   = 512
)

// packed is a piece in compressed form.
type packed struct {
	bytes []byte     // deflate blocks, none of them the last, ending on a whole byte
	sum   uint32     // CRC-32 of what it was
	size  int        // and its length
	zeros *bitMatrix // what so many bytes of zero do to a sum; set when it came a second time and was compressed with care

	behind map[spot]*packed // of a short piece: how it looks there
}

// spot is where a short piece stands: behind which other, and how far; the zero spot is alone.
type spot struct {
	piece weak.Pointer[byte]
	gap   int
}

// packer remembers compressed pieces for as long as somebody has the pieces themselves: a small part of what is in memory
// anyway, and MaxChained bytes of short ones at most.
type packer struct {
	mu      sync.Mutex
	known   map[weak.Pointer[byte]]*packed
	chained int // bytes of what stands in known behind others
}

func newPacker() *packer { return &packer{known: map[weak.Pointer[byte]]*packed{}} }

var packers = newPacker()

func (p *packer) pack(piece []byte) *packed {
	key := weak.Make(&piece[0])
	p.mu.Lock()
	x := p.known[key]
	p.mu.Unlock()
	switch {
	case x == nil || x.size != len(piece):
		x = compress(nil, piece, flate.BestSpeed)
	case x.zeros == nil:
		x = compress(nil, piece, flate.DefaultCompression)
		x.zeros = zerosOf(x.size)
	default:
		return x
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.know(key, piece, x)
	return x
}

// know remembers what a piece was made to; mu is held.
func (p *packer) know(key weak.Pointer[byte], piece []byte, x *packed) {
	if old, ok := p.known[key]; !ok {
		runtime.AddCleanup(&piece[0], p.forget, key)
	} else {
		p.unchain(old)
	}
	p.known[key] = x
}

// chain is a short piece, with lead in front of it, at a spot behind another one, if before is not nil.
func (p *packer) chain(before []byte, at spot, lead string, piece []byte, key weak.Pointer[byte]) *packed {
	p.mu.Lock()
	x := p.known[key]
	if x == nil || x.behind == nil {
		x = &packed{behind: map[spot]*packed{}}
		p.know(key, piece, x)
	}
	out := x.behind[at]
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
	if p.known[key] != x { // made anew, or forgotten
		return out
	}
	if len(x.behind) >= maxBehind {
		p.unchain(x)
	}
	if p.chained >= MaxChained {
		for _, x := range p.known {
			p.unchain(x)
		}
	}
	if old := x.behind[at]; old != nil {
		p.chained -= old.cost()
	}
	x.behind[at] = out
	p.chained += out.cost()
	return out
}

// unchain forgets how a short piece looks behind others; mu is held.
func (p *packer) unchain(x *packed) {
	for _, b := range x.behind {
		p.chained -= b.cost()
	}
	clear(x.behind)
}

func (x *packed) cost() int { return len(x.bytes) + chainedCost }

// Chained is how many bytes short pieces take that are compressed behind others.
func (s *Server) Chained() int64 {
	packers.mu.Lock()
	defer packers.mu.Unlock()
	return int64(packers.chained)
}

func (p *packer) forget(key weak.Pointer[byte]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.known[key]; x != nil {
		p.unchain(x)
	}
	delete(p.known, key)
}

// writers are reused by level: each has some hundred kilobytes of tables.
var writers = map[int]*sync.Pool{flate.BestSpeed: {}, flate.DefaultCompression: {}, flate.BestCompression: {}}

// compress makes b, which may refer to what is before it, smaller.
func compress(before, b []byte, level int) *packed {
	var out bytes.Buffer
	w, _ := writers[level].Get().(*flate.Writer)
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
	writers[level].Put(w)
	return &packed{bytes: bytes.Clone(out.Bytes()[from:]), sum: crc32.ChecksumIEEE(b), size: len(b)}
}

// store is a short text in a block that is not compressed (RFC 1951, 3.2.4): it begins and ends on a whole byte.
func store(b []byte) *packed {
	out := make([]byte, 0, len(b)+5)
	out = append(out, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(b)))
	out = binary.LittleEndian.AppendUint16(out, ^uint16(len(b)))
	return &packed{bytes: append(out, b...), sum: crc32.ChecksumIEEE(b), size: len(b)}
}

// packedComma is what is between most pieces.
var packedComma = store([]byte(","))

var (
	gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff} // RFC 1952: deflate, no name, no time, any system
	gzipLast = []byte{3, 0}                                  // RFC 1951: an empty last block
)

// objects is what is between two objects of a list.
const objects = "},{"

// gzipped is the pieces' gzip form, in parts, which it puts into out.
func (p *packer) gzipped(pieces wire.Pieces, out [][]byte) [][]byte {
	all := assembly{parts: append(out, gzipHead)}
	p.assemble(&all, pieces, max(storeBelow, pieces.Len()/littleOf))
	tail := append([]byte{}, gzipLast...)
	tail = binary.LittleEndian.AppendUint32(tail, all.sum)
	return append(all.parts, binary.LittleEndian.AppendUint32(tail, uint32(all.size)))
}

// run is a run's pieces as one. It is remembered as soon as each of them is compressed with care.
func (p *packer) run(r *wire.Run) *packed {
	if x, ok := r.Made.Load().(*packed); ok {
		return x
	}
	var all assembly
	p.assemble(&all, r.Pieces, storeBelow)
	x := &packed{bytes: bytes.Join(all.parts, nil), sum: all.sum, size: all.size}
	if !all.hasty {
		x.zeros = zerosOf(x.size)
		r.Made.Store(x)
	}
	return x
}

// assembly is compressed pieces, one behind the other.
type assembly struct {
	parts [][]byte
	sum   uint32
	size  int
	hasty bool // some were compressed for the first time
}

func (a *assembly) add(x *packed) {
	a.parts = append(a.parts, x.bytes)
	switch {
	case x.zeros != nil:
		a.sum = x.zeros.times(a.sum) ^ x.sum
	case x.size < packFrom:
		a.sum = shortZeros(x.size).times(a.sum) ^ x.sum
	default:
		a.sum = joinSums(a.sum, x.sum, x.size)
	}
	a.size += x.size
}

// assemble adds pieces to an assembly; of what is between those that are compressed by themselves, what has little bytes
// is compressed, too.
func (p *packer) assemble(all *assembly, pieces wire.Pieces, little int) {
	var small []byte
	between := func() {
		switch {
		case len(small) == 0:
		case string(small) == ",":
			all.add(packedComma)
		case len(small) < little:
			all.add(store(small))
		default:
			all.add(compress(nil, small, flate.BestSpeed))
		}
		small = small[:0]
	}
	var before []byte
	var at spot
	for _, x := range pieces {
		switch {
		case x.Run != nil:
			between()
			all.add(p.run(x.Run))
			before, at = nil, spot{}
		case !x.Shared || len(x.JSON) < chainFrom:
			small = append(small, x.JSON...)
		case len(x.JSON) < packFrom:
			gap, lead := len(small), ""
			switch {
			case before != nil && string(small) == objects:
				gap, lead, small = 0, objects, small[:0]
			case gap > maxGap:
				before, at = nil, spot{}
			}
			if before != nil {
				at.gap = gap
			}
			between()
			key := weak.Make(&x.JSON[0])
			all.add(p.chain(before, at, lead, x.JSON, key))
			before, at = x.JSON, spot{piece: key}
		default:
			between()
			y := p.pack(x.JSON)
			all.add(y)
			all.hasty = all.hasty || y.zeros == nil
			before, at = nil, spot{}
		}
	}
	between()
}

// joinSums is the CRC-32 of two texts one after the other, from the sums of each and the length of the second. A CRC is
// linear: so many zero bytes behind the first text multiply its sum by a power of a matrix over bits, whose squares
// are made in advance.
func joinSums(first, second uint32, length int) uint32 {
	for k := 0; length > 0; k, length = k+1, length>>1 {
		if length&1 != 0 {
			first = zeroBytes[k].times(first)
		}
	}
	return first ^ second
}

// zerosOf is what length bytes of zero do to a sum, as one matrix.
func zerosOf(length int) *bitMatrix {
	m := new(bitMatrix)
	for i := range m {
		m[i] = joinSums(1<<i, 0, length)
	}
	return m
}

var zerosShort [packFrom]atomic.Pointer[bitMatrix]

// shortZeros is zerosOf a length below packFrom, remembered.
func shortZeros(length int) *bitMatrix {
	m := zerosShort[length].Load()
	if m == nil {
		m = zerosOf(length)
		zerosShort[length].Store(m)
	}
	return m
}

// bitMatrix is 32 columns of 32 bits.
type bitMatrix [32]uint32

// times has no branches: which bits are set cannot be foretold.
func (m *bitMatrix) times(v uint32) (out uint32) {
	for i := range m {
		out ^= m[i] & -(v >> i & 1)
	}
	return out
}

func (m *bitMatrix) square() (out bitMatrix) {
	for i := range m {
		out[i] = m.times(m[i])
	}
	return out
}

// zeroBytes[k] does to a sum what 2^k bytes of zero do.
var zeroBytes = func() (out [48]bitMatrix) {
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
