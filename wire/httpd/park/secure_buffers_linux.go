package park

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// A tls.Conn keeps the buffers of its handshake as long as it lives: half of what a parked connection with TLS takes.
// crypto/tls has no way to release them, so they are found by their names. If a later version of Go has other fields,
// nothing is released; TestHandshakeBuffersAreReleased then fails.
var handshakeBuffers = findBuffers("rawInput", "hand")

// findBuffers returns the offsets of fields of tls.Conn that are a bytes.Buffer.
func findBuffers(names ...string) (offsets []uintptr) {
	for _, name := range names {
		if f, ok := reflect.TypeFor[tls.Conn]().FieldByName(name); ok && f.Type == reflect.TypeFor[bytes.Buffer]() {
			offsets = append(offsets, f.Offset)
		}
	}
	return offsets
}

// releaseBuffers releases the empty buffers of a connection that nothing else uses at the moment.
func releaseBuffers(c *tls.Conn) {
	for _, at := range handshakeBuffers {
		if b := (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(c), at)); b.Len() == 0 {
			*b = bytes.Buffer{}
		}
	}
}
