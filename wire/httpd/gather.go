package httpd

import (
	"io"
	"net"
	"sync"
)

// gatherBytes is how much of an answer in parts is written at once. Parts are mostly some hundred bytes, and fasthttp's own
// buffer holds 4 kB: of each system call the network's share costs more than copying what it carries.
const gatherBytes = 64 << 10

var gathers = sync.Pool{New: func() any { return new([gatherBytes]byte) }}

// gathered is a body in parts, which are written many at once.
type gathered struct{ net.Buffers }

// WriteTo overrides that of net.Buffers, which writes each part.
func (g *gathered) WriteTo(w io.Writer) (int64, error) {
	b := gathers.Get().(*[gatherBytes]byte)
	defer gathers.Put(b)
	done, n := int64(0), 0
	for _, part := range g.Buffers {
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
