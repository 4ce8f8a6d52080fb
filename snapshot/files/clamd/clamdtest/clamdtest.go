// Package clamdtest imitates ClamAV's daemon for tests, as its manual describes the command INSTREAM.
package clamdtest

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
)

// Start starts a daemon. It answers a complete file with the result of answer, such as "stream: OK\x00", and a file of
// more than limit bytes with an error. It returns its address and a function that ends it.
func Start(t testing.TB, limit int, answer func(file []byte) string) (address string, end func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	end = func() { l.Close() }
	t.Cleanup(end)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c, limit, answer)
		}
	}()
	return l.Addr().String(), end
}

// serve answers one command.
func serve(c net.Conn, limit int, answer func(file []byte) string) {
	defer c.Close()
	command := make([]byte, len("zINSTREAM\x00"))
	if _, err := io.ReadFull(c, command); err != nil || string(command) != "zINSTREAM\x00" {
		return
	}
	var file []byte
	for {
		var n uint32
		if binary.Read(c, binary.BigEndian, &n) != nil {
			return
		}
		if n == 0 {
			break
		}
		if len(file)+int(n) > limit {
			io.WriteString(c, "INSTREAM size limit exceeded. ERROR\x00")
			return
		}
		chunk := make([]byte, n)
		if _, err := io.ReadFull(c, chunk); err != nil {
			return
		}
		file = append(file, chunk...)
	}
	io.WriteString(c, answer(file))
}
