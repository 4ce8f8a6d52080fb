package httpd

import (
	"errors"
	"io"
	"sync"
)

// writeBufferBytes is the size of the writes for a body in parts, or for a file. Most parts have a few hundred
// bytes, and fasthttp's own buffer holds 4 kB: the network's share of a system call costs more than copying its
// bytes.
const writeBufferBytes = 64 << 10

var writeBuffers = sync.Pool{New: func() any { return new([writeBufferBytes]byte) }}

// partsBody is a response body in parts. WriteTo combines them into few large writes. fasthttp closes the body
// after writing it, and Close returns it to the pool.
type partsBody struct{ parts [][]byte }

var partsBodies = sync.Pool{New: func() any { return new(partsBody) }}

// maxPooledParts is the largest capacity with which a slice of parts is returned to the pool.
const maxPooledParts = 4096

// Read always fails: fasthttp calls WriteTo instead.
func (p *partsBody) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Close drops the parts and returns p to the pool.
func (p *partsBody) Close() error {
	if cap(p.parts) <= maxPooledParts {
		clear(p.parts)
		p.parts = p.parts[:0]
		partsBodies.Put(p)
	}
	return nil
}

// WriteTo writes the parts to w in blocks of writeBufferBytes. It stops at the first error.
func (p *partsBody) WriteTo(w io.Writer) (int64, error) {
	b := writeBuffers.Get().(*[writeBufferBytes]byte)
	defer writeBuffers.Put(b)
	done, n := int64(0), 0
	for _, part := range p.parts {
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
