package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// attackedServer is a running server under attack, with a well-behaved user.
type attackedServer struct {
	t         *testing.T
	p         *program
	at, debug string // host:port
	friend    *account
	secure    bool
}

// The server under attack has short timeouts, so that the tests see them end.
const (
	hostileWriteTimeout = 2 * time.Second
	// memoryTolerance is the variation of a server's memory without an attack, in bytes; most of it is garbage.
	memoryTolerance = 48 << 20
	// friendTimeout is the time limit for a request of the well-behaved user. The attackers use the same processors.
	friendTimeout = 5 * time.Second
)

// attackerCount returns the number of connections of an attack that only needs connections; ATTACKERS=10000 for the
// long form.
func attackerCount(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("ATTACKERS"))
	if err != nil {
		n = 1500
	}
	if testing.Short() {
		n = 300
	}
	return n
}

// hostileReadTimeout is the server's read-timeout: long enough for all attackers to be connected at once.
func hostileReadTimeout(attackers int) time.Duration {
	return max(2*time.Second, time.Duration(attackers)*time.Millisecond)
}

// attack is one way to use a server's resources.
type attack struct {
	name string
	// conns is the number of connections; answer is the status of the first answer on each: 0 if the connection ends
	// without an answer, -1 if there is no answer yet.
	conns, answer int
	// send returns the bytes that connection i sends; nil sends nothing.
	send func(i int) string
	// drip is sent again on every connection each 50 ms.
	drip      string
	readsLate bool // reads nothing until the usage has been measured
	// Limits for each connection: bytes of memory, goroutines.
	bytes, goroutines float64
	bound             string // the bound that limits the usage
	// ends: the server closes all connections within its timeouts. allOpen: until then all are open at the same time.
	ends, allOpen bool
}

func TestHostileClients(t *testing.T) {
	t.Parallel() // it waits for the server's limits of time
	n := attackerCount(t)
	bomb := func() string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(make([]byte, 64<<20))
		w.Close()
		return b.String()
	}()
	post := func(kind, body string) string {
		return "POST /api/v1/messages/render HTTP/1.1\r\nHost: x\r\nContent-Type: " + kind + "\r\nContent-Length: " +
			strconv.Itoa(len(body)) + "\r\n\r\n" + body
	}
	const form = "application/x-www-form-urlencoded"
	parts := "--b\r\n" + strings.Repeat("Content-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b\r\n", 15000) +
		"--b--\r\n"
	small := min(n, 100)
	attacks := func(auth string) []attack {
		with := func(method, path, body string) string {
			return method + " " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: " + auth + "\r\nContent-Type: " +
				form + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
		}
		return []attack{
			{name: "sends nothing", conns: n, answer: 0, bytes: 2 << 10, bound: "ReadTimeout; a connection at rest",
				ends: true, allOpen: true},
			{name: "half a request line", conns: n, answer: 408, send: func(int) string { return "GET /api/v1/mess" },
				bytes: 6 << 10, bound: "ReadTimeout; firstReadAhead", ends: true, allOpen: true},
			{name: "slowloris", conns: n, answer: 408,
				send: func(int) string { return "GET / HTTP/1.1\r\nHost: x\r\n" }, drip: "a: b\r\n", bytes: 6 << 10,
				bound: "ReadTimeout; firstReadAhead", ends: true, allOpen: true},
			{name: "head without end", conns: small, answer: 431,
				send:  func(int) string { return "GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 60<<10) },
				bytes: 64 << 10, bound: "header_bytes", ends: true},
			{name: "3,000 header lines", conns: small, answer: 302, // to the login page
				send: func(int) string {
					return "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("a:b\r\n", 3000) +
						"\r\n"
				}, bytes: 256 << 10, bound: "header_bytes"},
			{name: "query of 40 kB", conns: small, answer: 431, send: func(int) string {
				return "GET /api/v1/messages?a=" + strings.Repeat("a", 40<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n"
			}, bytes: 64 << 10, bound: "header_bytes", ends: true},
			{name: "2,000 parameters in the query", conns: small, answer: 400, send: func(int) string {
				return "GET /api/v1/messages?" + strings.Repeat("a&", 2000) + "a HTTP/1.1\r\nHost: x\r\n\r\n"
			}, bytes: 64 << 10, bound: "parameters"},
			{name: "500,000 parameters", conns: small, answer: 400,
				send: func(int) string { return post(form, strings.Repeat("a&", 500_000)) }, bytes: 3 << 20,
				bound: "parameters, body_bytes"},
			{name: "15,000 multipart parts", conns: small, answer: 400,
				send: func(int) string { return post("multipart/form-data; boundary=b", parts) }, bytes: 6 << 20,
				bound: "mime/multipart's parts, body_bytes"},
			{name: "body larger than allowed", conns: small, answer: 413, send: func(int) string {
				return "POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n" +
					strings.Repeat("x", 100_000)
			}, bytes: 64 << 10, bound: "body_bytes", ends: true},
			{name: "gzip bomb", conns: small, answer: 415, send: func(int) string {
				return "POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: " +
					strconv.Itoa(len(bomb)) + "\r\n\r\n" + bomb
			}, bytes: 64 << 10, bound: "encoded bodies are refused", ends: true},
			{name: "half a body", conns: n, answer: 408, send: func(int) string {
				return "POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx"
			}, bytes: 24 << 10, goroutines: 1, bound: "slow_clients (the others get 503); ReadTimeout", ends: true},
			{name: "megabytes announced", conns: n, answer: 408, send: func(int) string {
				return "POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx"
			}, bytes: float64(512<<20) / float64(n), goroutines: 1, bound: "total_body_bytes (the others get 503)",
				ends: true},
			{name: "a byte a chunk", conns: small, answer: 400, send: func(int) string {
				return "POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: " + auth + "\r\nContent-Type: " +
					form + "\r\nTransfer-Encoding: chunked\r\n\r\n" +
					strings.Repeat("1;"+strings.Repeat("e", 100)+"\r\na\r\n", 2000) + "0\r\n\r\n"
			}, bytes: 512 << 10, bound: "maxChunkExtension, body_bytes"},
			{name: "JSON 200,000 deep", conns: small, answer: 400, send: func(int) string {
				return with("POST", "/api/v1/messages/flags", "op=add&flag=read&messages="+strings.Repeat("[", 200_000))
			}, bytes: 2 << 20, bound: "json_depth"},
			{name: "JSON of 450,000 values", conns: small, answer: 400, send: func(int) string {
				return with("POST", "/api/v1/messages/flags",
					"op=add&flag=read&messages=["+strings.Repeat("1,", 450_000)+"1]")
			}, bytes: 12 << 20, goroutines: 1,
				bound: "heavy_requests of json_values, some 60 MB each, four times that before it is collected, and " +
					"a hundred bodies of 0.9 MB that wait for it, read and taken apart: total_body_bytes"},
			{name: "thousands of requests at once", conns: 10, answer: 200,
				send:      func(int) string { return strings.Repeat("GET /health HTTP/1.1\r\nHost: x\r\n\r\n", 5000) },
				readsLate: true, bytes: 1 << 20, goroutines: 1, bound: "one request at a time; WriteTimeout"},
			{name: "large answers that are not read", conns: min(n, 300), answer: -1, send: func(int) string {
				return strings.Repeat("GET /api/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", 40)
			}, readsLate: true, bytes: 2 << 20, goroutines: 1, bound: "slow_clients; WriteTimeout, MinRate"},
		}
	}
	for _, secure := range []bool{false, true} {
		g := startAttacked(t, secure, n)
		list := attacks(g.friend.auth())
		if secure {
			list = []attack{
				{name: "no handshake", conns: n, answer: 0, bytes: 16 << 10, goroutines: 1,
					bound: "ReadTimeout; a goroutine", ends: true, allOpen: true},
				{name: "half a handshake", conns: n, answer: 0,
					send: func(int) string { return "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" }, bytes: 16 << 10,
					goroutines: 1, bound: "ReadTimeout; a goroutine", ends: true, allOpen: true},
				{name: "a record of 16 kB without end", conns: small, answer: 0,
					send: func(int) string {
						return "\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03" +
							strings.Repeat("x", 16000)
					}, bytes: 64 << 10, goroutines: 1, bound: "ReadTimeout; a goroutine", ends: true},
			}
		}
		for _, a := range list {
			t.Run(a.name, func(t *testing.T) { g.run(t, &a) })
		}
	}
}

func (p *account) auth() string {
	r, _ := http.NewRequest("GET", "http://x/", nil)
	r.SetBasicAuth(p.email, p.key)
	return r.Header.Get("Authorization")
}

func startAttacked(t *testing.T, secure bool, attackers int) *attackedServer {
	g := &attackedServer{t: t, debug: freeAddress(t), secure: secure}
	args := []string{"--debug-listen", g.debug, "--read-timeout", hostileReadTimeout(attackers).String(),
		"--write-timeout", hostileWriteTimeout.String()}
	if secure {
		cert, key := selfSigned(t, t.TempDir(), "localhost")
		args = append(args, "--tls-cert", cert, "--tls-key", key)
	}
	g.p = demo(t, filepath.Join(t.TempDir(), "data"), args...)
	at := g.p.serving()
	g.at = strings.TrimPrefix(at, "http://")
	if !secure {
		g.friend = demoAccount(t, at, "ann@example.org")
	} else {
		g.friend = &account{url: "https://" + g.at}
	}
	return g
}

// resourceUsage is the memory, goroutines and connections of a server.
type resourceUsage struct{ memory, goroutines, open float64 }

func (g *attackedServer) cost(t *testing.T) (c resourceUsage) {
	r, err := http.Get("http://" + g.debug + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		x, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "go_goroutines":
			c.goroutines = x
		case "parley_http_connections":
			c.open = x
		}
	}
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", g.p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, _ := strconv.ParseFloat(strings.Fields(string(statm))[1], 64)
	c.memory = pages * float64(os.Getpagesize())
	return c
}

func (g *attackedServer) measureFriend(t *testing.T) time.Duration {
	began := time.Now()
	client := &http.Client{Timeout: friendTimeout,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	var err error
	if g.secure {
		_, err = g.friend.callWith(client, "GET", "server_settings", nil)
	} else {
		_, err = g.friend.callWith(client, "POST", "messages",
			url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"siege"}, "content": {"x"}})
	}
	if err != nil {
		t.Errorf("the well-behaved user during the attack: %v", err)
	}
	return time.Since(began)
}

func (g *attackedServer) run(t *testing.T, a *attack) {
	before := g.cost(t)
	conns := make([]net.Conn, 0, a.conns)
	dialer := net.Dialer{Timeout: binaryTimeout}
	var talking sync.WaitGroup
	began := time.Now()
	for i := range a.conns {
		c, err := dialer.Dial("tcp", g.at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if a.readsLate {
			c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		conns = append(conns, c)
		if a.send != nil {
			text := a.send(i)
			talking.Add(1)
			go func() {
				defer talking.Done()
				c.SetWriteDeadline(time.Now().Add(binaryTimeout))
				io.WriteString(c, text) // fails where the server closes the connection
			}()
		}
	}
	if !a.readsLate {
		talking.Wait()
	}
	stop := make(chan struct{})
	if a.drip != "" {
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
				}
				for _, c := range conns {
					io.WriteString(c, a.drip)
				}
			}
		}()
	}
	inTime := time.Since(began) < hostileReadTimeout(a.conns)/2
	var most resourceUsage
	slowest := time.Duration(0)
	for range 3 {
		slowest = max(slowest, g.measureFriend(t))
		now := g.cost(t)
		most = resourceUsage{max(most.memory, now.memory), max(most.goroutines, now.goroutines),
			max(most.open, now.open)}
	}
	answers := map[int]int{}
	if a.answer >= 0 {
		var mu sync.Mutex
		var hearing sync.WaitGroup
		for _, c := range conns {
			hearing.Add(1)
			go func() {
				defer hearing.Done()
				c.SetReadDeadline(time.Now().Add(binaryTimeout))
				status := 0
				if r, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
					status = r.StatusCode
				} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
					status = -1
				}
				mu.Lock()
				answers[status]++
				mu.Unlock()
			}()
		}
		hearing.Wait()
	}
	close(stop)
	each := func(n, was float64) float64 { return max(0, n-was) / float64(a.conns) }
	memory, goroutines := each(most.memory, before.memory), each(most.goroutines, before.goroutines)
	t.Logf("%d connections: %.1f kB and %.2f goroutines each (bound %.1f kB, %.0f: %s); at most %.0f open; answers "+
		"%v; a well-behaved request took %v",
		a.conns, memory/1024, goroutines, a.bytes/1024, a.goroutines, a.bound, most.open, answers,
		slowest.Round(time.Millisecond))
	if a.allOpen && inTime && most.open < float64(a.conns) {
		t.Errorf("%.0f of %d connections were open at once", most.open, a.conns)
	}
	if total, may := most.memory-before.memory, a.bytes*float64(a.conns)+memoryTolerance; total > may {
		t.Errorf("the attack took %.1f MB of memory; %s allows %.1f", total/(1<<20), a.bound, may/(1<<20))
	}
	if more, may := most.goroutines-before.goroutines, a.goroutines*float64(a.conns)+200; more > may {
		t.Errorf("the attack took %.0f goroutines; %s allows %.0f", more, a.bound, may)
	}
	for status, n := range answers {
		if status != a.answer && status != 503 && !(status == 0 && a.ends) {
			t.Errorf("%d connections were answered %d, not %d", n, status, a.answer)
		}
	}
	if a.answer > 0 && answers[a.answer] == 0 {
		t.Errorf("no connection was answered %d: %v", a.answer, answers)
	}
	if !a.ends {
		for _, c := range conns {
			c.Close()
		}
	}
	for end := time.Now().Add(binaryTimeout); ; time.Sleep(20 * time.Millisecond) {
		now := g.cost(t)
		if now.open <= before.open+2 && now.goroutines <= before.goroutines+20 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%.0f connections and %.0f goroutines are left", now.open-before.open,
				now.goroutines-before.goroutines)
		}
	}
}
