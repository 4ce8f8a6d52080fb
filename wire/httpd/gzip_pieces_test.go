package httpd

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"weak"

	"parley/wire"
)

func randomPieces(r *rand.Rand, sizes ...int) (p wire.Fragments) {
	for _, n := range sizes {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abcdefgh"[r.IntN(8)]
		}
		p = append(p, wire.Fragment{JSON: b, Shared: true})
	}
	return p
}

// An assembled answer unpacks to its pieces, with the right checksum and length, in any order and number of uses.
func TestGzippedPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	all := randomPieces(r, 0, 1, 100, minChainBytes, 900, 1000, minPieceBytes-1, minPieceBytes, minPieceBytes+1,
		70_000, 3, 300_000)
	for _, between := range []string{objectSeparator, objectSeparator, objectSeparator, ",",
		strings.Repeat("own", maxChainGap/3+1)} {
		all = append(all, wire.Fragment{JSON: []byte(between)})
	}
	some := func(most int) (p wire.Fragments) {
		for range r.IntN(most) {
			p = append(p, all[r.IntN(len(all))])
		}
		return p
	}
	var runs wire.Fragments
	for range 8 {
		runs = append(runs, wire.Fragment{Run: wire.NewSharedFragments(some(8))})
	}
	all = append(all, runs...)
	for range 800 {
		p := some(12)
		z, err := gzip.NewReader(bytes.NewReader(bytes.Join(sharedPieces.gzipped(p, nil), nil)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, p.Bytes()) {
			t.Fatalf("%d bytes unpacked, want %d, or the bytes differ", len(got), p.Len())
		}
	}
}

func TestCombineCRC(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 100 {
		p := randomPieces(r, r.IntN(1000), r.IntN(5000))
		a, b := p[0].JSON, p[1].JSON
		if got, want := combineCRC(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), len(b)),
			crc32.ChecksumIEEE(append(a, b...)); got != want {
			t.Fatalf("%08x, want %08x", got, want)
		}
	}
}

// The compressed form of a piece is freed together with the piece.
func TestCompressedPiecesAreForgotten(t *testing.T) {
	p := newPieceCompressor()
	r := rand.New(rand.NewPCG(3, 3))
	kept := randomPieces(r, 5000)
	for range 50 {
		p.gzipped(randomPieces(r, 5000), nil)
	}
	p.gzipped(kept, nil)
	for range 1000 {
		runtime.GC()
		p.mu.Lock()
		n := len(p.pieces)
		p.mu.Unlock()
		if n == 1 {
			break
		}
		runtime.Gosched()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pieces) != 1 {
		t.Errorf("%d compressed pieces are cached, want only the one in use", len(p.pieces))
	}
	runtime.KeepAlive(kept)
}

// Short pieces of one kind compress well with each other, also across bytes that belong to one answer only.
func TestShortPiecesCompressTogether(t *testing.T) {
	var p wire.Fragments
	words := randomPieces(rand.New(rand.NewPCG(5, 5)), 800)[0].JSON
	for i := range 100 {
		if i > 0 {
			p = append(p, wire.Fragment{JSON: []byte(strings.Repeat("},{", 1+i%2))})
		}
		p = append(p, wire.Fragment{JSON: fmt.Appendf(nil, "%d%s", i, words), Shared: true})
	}
	n := 0
	for _, b := range sharedPieces.gzipped(p, nil) {
		n += len(b)
	}
	if n > 5000 {
		t.Errorf("%d bytes were compressed to %d", p.Len(), n)
	}
}

// The memory of compressed short pieces is bounded and counted correctly, even if every piece has ever new
// predecessors.
func TestChainedBytesAreBounded(t *testing.T) {
	p := newPieceCompressor()
	words := randomPieces(rand.New(rand.NewPCG(6, 6)), 1500)[0].JSON
	pieces := make([][]byte, 40)
	for i := range pieces {
		pieces[i] = fmt.Appendf(nil, "%d%s", i, words)
	}
	positions, most := 0, 0
	for gap := 0; positions < 3*maxChainPositions; gap++ {
		positions++
		for i, b := range pieces {
			before := pieces[(i+1)%len(pieces)]
			at := chainPosition{weak.Make(&before[0]), gap}
			if x := p.compressedAfter(before, at, "", b, weak.Make(&b[0])); x.size != len(b) {
				t.Fatalf("a piece has size %d, want %d", len(b), x.size)
			}
			most = max(most, p.chainedBytes)
		}
	}
	count := func() (n int) {
		for _, x := range p.pieces {
			if len(x.byPosition) > maxChainPositions {
				t.Errorf("a piece has %d compressed forms", len(x.byPosition))
			}
			for _, b := range x.byPosition {
				n += b.memory()
			}
		}
		return n
	}
	if n := count(); n != p.chainedBytes || n == 0 || most > maxChainPositions*len(pieces)*(200+chainOverhead) {
		t.Errorf("%d bytes are cached, %d counted, at most %d", n, p.chainedBytes, most)
	}
	p.chainedBytes += MaxChainedBytes // as if other pieces used the whole bound
	p.compressedAfter(pieces[1], chainPosition{weak.Make(&pieces[1][0]), 1000}, "", pieces[0],
		weak.Make(&pieces[0][0]))
	if n := count(); p.chainedBytes != MaxChainedBytes+n || n > 200+chainOverhead {
		t.Errorf("beyond the bound %d bytes are cached, %d counted", n, p.chainedBytes-MaxChainedBytes)
	}
	runtime.KeepAlive(pieces)
}

// BenchmarkRegisterAnswer compresses a large answer that shares nearly all bytes with others. From pieces, 4 MB take
// 1.6 instead of 50 ms of processor time, and 0.3 instead of 10 MB of memory.
//
//	go test ./wire/httpd -run XXX -bench RegisterAnswer
func BenchmarkRegisterAnswer(b *testing.B) {
	r := rand.New(rand.NewPCG(4, 4))
	sizes := make([]int, 200)
	for i := range sizes {
		sizes[i] = 20_000
	}
	p := append(randomPieces(r, sizes...), wire.Fragment{JSON: []byte(`,"queue_id":"x"}`)})
	b.Run("pieces", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			sharedPieces.gzipped(p, nil)
		}
	})
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			compress(nil, p.Bytes(), 1)
		}
	})
}
