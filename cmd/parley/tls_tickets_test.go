package main

import (
	"bufio"
	"crypto/tls"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// A client that connects again after an upgrade, and after a second one, resumes its TLS session. After a restart it
// does not: the keys of session tickets are in the memory of the process only.
func TestSessionsAreResumedAfterUpgrades(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	cert, key := selfSigned(t, t.TempDir(), "localhost")
	args := []string{"--tls-cert", cert, "--tls-key", key}
	p := demo(t, data, args...)
	at := strings.TrimPrefix(p.serving(), "http://")
	clients := map[string]*tls.Config{}
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		clients[name] = &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", MaxVersion: version,
			ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	}
	connect := func(when string, resumes bool) {
		t.Helper()
		for name, c := range clients {
			conn, err := tls.Dial("tcp", at, c)
			if err != nil {
				t.Fatalf("%s, %s: %v", when, name, err)
			}
			// The answer comes after the ticket.
			conn.Write([]byte("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
			if r, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || r.StatusCode != 200 {
				t.Errorf("%s, %s: %v", when, name, err)
			}
			if did := conn.ConnectionState().DidResume; did != resumes {
				t.Errorf("%s, %s: the session is resumed: %t", when, name, did)
			}
			conn.Close()
		}
	}
	connect("the first connection", false)
	connect("the second one", true)
	for _, when := range []string{"after an upgrade", "after a second upgrade"} {
		if out, code := runParley("upgrade", "--data", data); code != 0 {
			t.Fatalf("upgrade: %s", out)
		}
		connect(when, true)
	}
	endSuccessor(t, data)
	p = startProgram(t, parleyCommand(append([]string{"serve", "--data", data, "--listen", at, "--demo"}, args...)...))
	p.serving()
	connect("after a restart", false)
}
