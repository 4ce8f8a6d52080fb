package httpd

import (
	"errors"
	"io"
	"sync"
)

// writeBufferBytes is how much of an answer in parts, or of a file, is written at once. Parts are mostly some hundred bytes, and
// fasthttp's own buffer holds 4 kB: of each system call the network's share costs more than copying what it carries.
const writeBufferBytes = 64 << 10

var writeBuffers = sync.Pool{New: func() any { return new([writeBufferBytes]byte) }}

// partsBody is a body in parts, which are written many at once. It is used again when fasthttp has closed it.
type partsBody struct{ parts [][]byte }

var partsBodies = sync.Pool{New: func() any { return new(partsBody) }}

// maxPooledParts is how many parts may be kept for the next body.
const maxPooledParts = 4096

// Read is not called, since there is WriteTo.
func (g *partsBody) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Close forgets the parts.
func (g *partsBody) Close() error {
	if cap(g.parts) <= maxPooledParts {
		clear(g.parts)
		g.parts = g.parts[:0]
		partsBodies.Put(g)
	}
	return nil
}

// WriteTo writes them.
func (g *partsBody) WriteTo(w io.Writer) (int64, error) {
	b := writeBuffers.Get().(*[writeBufferBytes]byte)
	defer writeBuffers.Put(b)
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
