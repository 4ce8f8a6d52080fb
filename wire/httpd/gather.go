package httpd

import (
	"errors"
	"io"
	"sync"
)

// gatherBytes is how much of an answer in parts, or of a file, is written at once. Parts are mostly some hundred bytes, and
// fasthttp's own buffer holds 4 kB: of each system call the network's share costs more than copying what it carries.
const gatherBytes = 64 << 10

var gathers = sync.Pool{New: func() any { return new([gatherBytes]byte) }}

// gathered is a body in parts, which are written many at once. It is used again when fasthttp has closed it.
type gathered struct{ parts [][]byte }

var gatherings = sync.Pool{New: func() any { return new(gathered) }}

// maxGathered is how many parts may be kept for the next body.
const maxGathered = 4096

// Read is not called, since there is WriteTo.
func (g *gathered) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Close forgets the parts.
func (g *gathered) Close() error {
	if cap(g.parts) <= maxGathered {
		clear(g.parts)
		g.parts = g.parts[:0]
		gatherings.Put(g)
	}
	return nil
}

// WriteTo writes them.
func (g *gathered) WriteTo(w io.Writer) (int64, error) {
	b := gathers.Get().(*[gatherBytes]byte)
	defer gathers.Put(b)
	done, n := int64(0), 0
	for _, part := range g.parts {
		for len(part) > 0 {
			k := copy(b[n:], part)
			n, part = n+k, part[k:]
			if n == len(b) {
				if _, err := w.Write(b[:]); err != nil {
					return done, err
				}
				done, n = done+int64(n), 0
			}
		}
	}
	if n == 0 {
		return done, nil
	}
	n, err := w.Write(b[:n])
	return done + int64(n), err
}
