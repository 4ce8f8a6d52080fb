package park

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// verdicts lists requests on which parsers disagree. For each it has the status of every answer on the
// connection, from this server, from net/http and from fasthttp alone; 0 means no answer. A second answer where
// the others give one would be a smuggled request. {GET} is replaced by another complete request.
var verdicts = []struct {
	name               string
	request            string
	park, nethttp, raw string // raw is fasthttp without the strict head check
}{
	{"plain", "GET / HTTP/1.1\r\nHost: x\r\n\r\n{GET}", "200 200", "200 200", "200 200"},
	{"length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc{GET}", "200 200", "200 200", "200 200"},
	{"chunked", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n{GET}",
		"200 200", "200 200", "200 200"},
	{"GET with a body", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc{GET}", "200 200", "200 200",
		"200 200"},
	{"HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", "200", "200", "200"},
	{"absolute target", "GET http://y/ HTTP/1.1\r\nHost: x\r\n\r\n", "200", "200", "200"},
	{"chunk extension", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n" +
		"{GET}", "200 200", "200 200", "200 200"},

	{"two framings", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"0\r\n\r\n{GET}", "400", "200 200", "200"},
	{"two lengths that differ",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc{GET}", "400", "400", "400"},
	{"two equal lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc{GET}",
		"400", "200 200", "400"},
	{"list of lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\nabc", "400", "400", "400"},
	{"signed length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nabc", "400", "400", "400"},
	{"empty length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \r\n\r\n", "400", "400", "400"},
	{"huge length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", "400", "400", "400"},
	{"chunked in HTTP/1.0", "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400", "200",
		"400"},
	{"chunked twice", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" +
		"\r\n0\r\n\r\n", "400", "501", "400"},
	{"identity coding", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n{GET}", "501", "501",
		"200 200"},
	{"gzip coding", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501", "501",
		"400"},
	{"coding with a vertical tab", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n",
		"400", "400", "400"},
	{"space before the colon", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\nabc", "400", "400", "400"},
	{"name with a space", "GET / HTTP/1.1\r\nHost: x\r\nA B: c\r\n\r\n", "400", "400", "200"},
	{"no colon", "GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n", "400", "400", "400"},
	{"folded line", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", "400", "200", "200"},
	{"first line folded", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", "400", "400", "400"},
	{"bare LF", "GET / HTTP/1.1\nHost: x\n\n", "400", "200", "400"},
	{"one bare LF", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", "400", "200", "200"},
	{"LF as the last line", "GET / HTTP/1.1\r\nHost: x\r\n\n{GET}", "400", "200 200", "200 200"},
	{"bare CR", "GET / HTTP/1.1\r\nHost: x\r\nA: b\rC: d\r\n\r\n", "400", "400", "400"},
	{"NUL", "GET / HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n", "400", "400", "400"},
	{"missing Host", "GET / HTTP/1.1\r\n\r\n", "400", "400", "400"},
	{"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "400", "200", "400"},
	{"two Hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", "400", "400", "400"},
	{"invalid Host", "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n", "400", "400", "400"},
	{"blank line first", "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "400", "400", "200"},
	{"two spaces", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "400", "400", "400"},
	{"space after the version", "GET / HTTP/1.1 \r\nHost: x\r\n\r\n", "400", "400", "400"},
	{"target without slash", "GET x HTTP/1.1\r\nHost: x\r\n\r\n", "400", "400", "400"},
	{"control character in the target", "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", "400", "400", "400"},
	{"CONNECT", "CONNECT y:1 HTTP/1.1\r\nHost: y:1\r\n\r\n", "400", "200", "200"},
	{"HTTP/0.9", "GET /\r\n", "0", "400", "400"},
	{"HTTP/1.2", "GET / HTTP/1.2\r\nHost: x\r\n\r\n", "505", "200", "200"},
	{"HTTP/2.0", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", "505", "505", "200"},
	{"lower-case version", "GET / http/1.1\r\nHost: x\r\n\r\n", "400", "400", "400"},
	{"TLS to a plain port", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400", "400", "400"},
	{"unknown expectation", "POST / HTTP/1.1\r\nHost: x\r\nExpect: miracle\r\nContent-Length: 1\r\n\r\na", "417",
		"417", "200"},
	{"gzip body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\na", "415", "200",
		"200"},

	{"chunk size with 0x", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
		"400", "400", "400"},
	{"chunk size with a space",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n{GET}", "400", "200 200",
		"200 200"},
	{"chunk size too long",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000001\r\na\r\n0\r\n\r\n", "400",
		"400", "400"},
	{"chunk with bare LF", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\na\n0\n\n", "400",
		"400", "400"},
	{"chunk longer than its size",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", "400", "400", "400"},
	{"LF in an extension", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;\na\r\n0\r\n\r\n",
		"400", "400", "400"},
	{"trailer", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: b\r\n\r\n{GET}",
		"400", "200 200", "200 200"},
	{"trailer with a length",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nContent-Length: 9\r\n\r\n" +
			"{GET}", "400", "200 200", "400"},
}

func TestVerdicts(t *testing.T) {
	log := newQuietLog()
	std := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), 400)
		}
	}))
	std.Config.ErrorLog = log
	std.Start()
	defer std.Close()

	rawLn, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	raw := &fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}, Logger: discardLog{}}
	go raw.Serve(rawLn)
	defer raw.Shutdown()

	servers := map[string]string{"net/http": std.Listener.Addr().String(), "fasthttp": rawLn.Addr().String()}
	for _, kind := range kinds[:2] {
		servers[kind] = serve(t, kind, Config{}).ln.Addr().String()
	}
	for _, v := range verdicts {
		t.Run(v.name, func(t *testing.T) {
			for server, want := range map[string]string{"epoll": v.park, "goroutine": v.park, "net/http": v.nethttp,
				"fasthttp": v.raw} {
				got, bodies := statuses(t, servers[server],
					strings.ReplaceAll(v.request, "{GET}", "GET /2 HTTP/1.1\r\nHost: x\r\n\r\n"))
				if got != want {
					t.Errorf("%s answers %q, the table says %q (after an upgrade of Go or fasthttp: does the head "+
						"check still hold?)", server, got, want)
				}
				if want == v.park && got >= "4" && server != "net/http" && server != "fasthttp" {
					var e struct{ Result, Msg, Code string }
					if err := json.Unmarshal([]byte(bodies), &e); err != nil || e.Result != "error" || e.Msg == "" ||
						e.Code != "BAD_REQUEST" {
						t.Errorf("%s: body %q: %v", server, bodies, err)
					}
				}
			}
		})
	}
}

// statuses sends a request, shuts down the sending side, and lists the status of each answer.
func statuses(t *testing.T, addr, request string) (list, bodies string) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(testTimeout))
	io.WriteString(c, request)
	c.(*net.TCPConn).CloseWrite()
	r := bufio.NewReader(c)
	var got []string
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			if !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF && !reset(err) {
				t.Errorf("%s: %v", addr, err)
			}
			break
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			break // an answer to CONNECT has no end
		}
		bodies += string(b)
		got = append(got, fmt.Sprint(resp.StatusCode))
	}
	if len(got) == 0 {
		return "0", ""
	}
	return strings.Join(got, " "), bodies
}

// FuzzFraming compares with net/http: it must read all requests that the head check accepts, with the same
// framing.
func FuzzFraming(f *testing.F) {
	for _, v := range verdicts {
		f.Add([]byte(strings.ReplaceAll(v.request, "{GET}", "GET /2 HTTP/1.1\r\nHost: x\r\n\r\n")))
	}
	cfg := Config{}
	cfg.setDefaults()
	f.Fuzz(func(t *testing.T, stream []byte) {
		ours := bodiesByHeadCheck(&cfg, stream)
		theirs := bodiesByNetHTTP(stream)
		if len(ours) > len(theirs) {
			t.Fatalf("the head check read %d requests, net/http %d, of %q", len(ours), len(theirs), stream)
		}
		for i, body := range ours {
			if body != theirs[i] {
				t.Fatalf("request %d: the head check read %q, net/http %q, of %q", i, body, theirs[i], stream)
			}
		}
	})
}

// bodiesByHeadCheck lists "METHOD target: framed bytes" of the complete requests at the start of a stream.
func bodiesByHeadCheck(cfg *Config, stream []byte) (list []string) {
	r := &request{buf: bytes.Clone(stream)}
	for {
		ok, ref := r.headComplete(cfg)
		if !ok || ref != nil || r.fault != nil || r.left > 0 || r.head.length < 0 && r.chunks.state != chunkDone {
			return list
		}
		framed := r.buf[r.offset : r.offset+r.ready]
		line, _, _ := strings.Cut(string(framed), " HTTP/")
		list = append(list, line+": "+string(fasthttpBody(framed)))
		r.offset += r.ready
		r.next()
	}
}

// fasthttpBody returns the body that fasthttp reads from one framed request. It must use all bytes.
func fasthttpBody(framed []byte) []byte {
	var req fasthttp.Request
	br := bufio.NewReaderSize(strings.NewReader(string(framed)), len(framed)+1)
	if err := req.Read(br); err != nil {
		return []byte("fasthttp refuses: " + err.Error())
	}
	if req.MayContinue() {
		if err := req.ContinueReadBody(br, 1<<30); err != nil {
			return []byte("fasthttp refuses: " + err.Error())
		}
	}
	if br.Buffered() > 0 {
		return []byte(fmt.Sprintf("fasthttp left %d bytes", br.Buffered()))
	}
	return req.Body()
}

func bodiesByNetHTTP(stream []byte) (list []string) {
	r := bufio.NewReader(strings.NewReader(string(stream)))
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return list
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return list
		}
		list = append(list, req.Method+" "+req.RequestURI+": "+string(body))
	}
}
