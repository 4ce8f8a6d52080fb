package httpd

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"sync"
	"weak"

	"github.com/klauspost/compress/flate"

	"parley/wire"
)

// A large answer is mostly pieces that other answers have, too (wire.Pieces). Each of them is compressed once: a piece
// that was compressed by itself and ends on a whole byte may stand anywhere in a deflate stream, since nothing in it
// refers to what is before it. So the compressed answer is put together from pieces like the plain one.

// packFrom is the smallest piece, in bytes, that is worth remembering in compressed form.
const packFrom = 2 << 10

// storeBelow is the size in bytes below which what stands between pieces is not compressed: the tables that say how it is
// would take about what they save, and have to be made.
const storeBelow = 400

// packed is a piece in compressed form.
type packed struct {
	bytes []byte     // deflate blocks, none of them the last, ending on a whole byte
	sum   uint32     // CRC-32 of what it was
	size  int        // and its length
	zeros *bitMatrix // what so many bytes of zero do to a sum; set when it came a second time and was compressed with care
}

// packer remembers compressed pieces for as long as somebody has the pieces themselves, so it holds a small part of what
// is in memory anyway.
type packer struct {
	mu    sync.Mutex
	known map[weak.Pointer[byte]]*packed
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
		x = compress(piece, flate.BestSpeed)
	case x.zeros == nil:
		x = compress(piece, flate.DefaultCompression)
		x.zeros = zerosOf(x.size)
	default:
		return x
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.known[key]; !ok {
		runtime.AddCleanup(&piece[0], p.forget, key)
	}
	p.known[key] = x
	return x
}

func (p *packer) forget(key weak.Pointer[byte]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, key)
}

// writers are reused by level: each has some hundred kilobytes of tables.
var writers = map[int]*sync.Pool{flate.BestSpeed: {}, flate.DefaultCompression: {}}

func compress(b []byte, level int) *packed {
	var out bytes.Buffer
	w, _ := writers[level].Get().(*flate.Writer)
	if w == nil {
		w, _ = flate.NewWriter(&out, level) // it only fails for levels that there are not
	} else {
		w.Reset(&out)
	}
	w.Write(b)
	w.Flush() // to a buffer: there is no error
	writers[level].Put(w)
	return &packed{bytes: out.Bytes(), sum: crc32.ChecksumIEEE(b), size: len(b)}
}

// store is a short text in a block that is not compressed (RFC 1951, 3.2.4): it begins and ends on a whole byte.
func store(b []byte) *packed {
	out := make([]byte, 0, len(b)+5)
	out = append(out, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(b)))
	out = binary.LittleEndian.AppendUint16(out, ^uint16(len(b)))
	return &packed{bytes: append(out, b...), sum: crc32.ChecksumIEEE(b), size: len(b)}
}

var (
	gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff} // RFC 1952: deflate, no name, no time, any system
	gzipLast = []byte{3, 0}                                  // RFC 1951: an empty last block
)

// gzipped is the pieces' gzip form, in pieces.
func (p *packer) gzipped(pieces wire.Pieces) wire.Pieces {
	out := wire.Pieces{gzipHead}
	sum, size := uint32(0), 0
	add := func(x *packed) {
		out = append(out, x.bytes)
		if x.zeros != nil {
			sum = x.zeros.times(sum) ^ x.sum
		} else {
			sum = joinSums(sum, x.sum, x.size)
		}
		size += x.size
	}
	var small []byte
	between := func() {
		switch {
		case len(small) == 0:
		case len(small) < storeBelow:
			add(store(small))
		default:
			add(compress(small, flate.BestSpeed))
		}
		small = small[:0]
	}
	for _, piece := range pieces {
		if len(piece) < packFrom {
			small = append(small, piece...)
			continue
		}
		between()
		add(p.pack(piece))
	}
	between()
	tail := append([]byte{}, gzipLast...)
	tail = binary.LittleEndian.AppendUint32(tail, sum)
	return append(out, binary.LittleEndian.AppendUint32(tail, uint32(size)))
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

// bitMatrix is 32 columns of 32 bits.
type bitMatrix [32]uint32

func (m *bitMatrix) times(v uint32) (out uint32) {
	for i := 0; v != 0; i, v = i+1, v>>1 {
		if v&1 != 0 {
			out ^= m[i]
		}
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
