package swarm

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frames returns the bytes that write writes.
func frames(write func(*http2.Framer)) []byte {
	var b bytes.Buffer
	f := http2.NewFramer(&b, nil)
	f.AllowIllegalWrites = true
	write(f)
	return b.Bytes()
}

// fields returns a header block.
func fields(pairs ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(pairs); i += 2 {
		e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return b.Bytes()
}

// headers writes a header block that is complete.
func headers(f *http2.Framer, ends bool, pairs ...string) {
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields(pairs...), EndHeaders: true,
		EndStream: ends})
}

// A server that breaks the rules of HTTP/2 fails the request, and nothing else. One that uses them all gets its answer
// read, also if each byte arrives alone.
func TestFramesOfServers(t *testing.T) {
	settings := frames(func(f *http2.Framer) { f.WriteSettings() })
	for _, x := range []struct {
		name string
		sent []byte
		want error
	}{
		{"a good answer", frames(func(f *http2.Framer) {
			f.WritePing(false, [8]byte{1})
			headers(f, false, ":status", "103", "link", "</a>")
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields(":status", "200"), PadLength: 3,
				Priority: http2.PriorityParam{Weight: 1}})
			f.WriteContinuation(1, true, fields("a", "b"))
			f.WriteWindowUpdate(0, 1000)
			f.WriteDataPadded(1, false, []byte("go"), []byte{0, 0})
			f.WriteRawFrame(0x77, 0, 1, []byte("of a later version"))
			f.WriteData(1, false, []byte("od"))
			headers(f, true, "trailer", "x")
		}), nil},
		{"a frame that is too large", frames(func(f *http2.Framer) {
			f.WriteRawFrame(http2.FrameData, 0, 1,
				make([]byte, maxFrame+1))
		}), ErrAnswer},
		{"a body without a head", frames(func(f *http2.Framer) { f.WriteData(1, true, []byte("x")) }), ErrAnswer},
		{"a head without a status", frames(func(f *http2.Framer) { headers(f, true, "a", "b") }), ErrAnswer},
		{"a head of another stream", frames(func(f *http2.Framer) {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: fields(":status", "200"),
				EndHeaders: true})
		}), ErrAnswer},
		{"a promise", frames(func(f *http2.Framer) {
			f.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}), ErrAnswer},
		{"a head without an end", frames(func(f *http2.Framer) {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields(":status", "200")})
			for range maxHead/1000 + 1 {
				f.WriteContinuation(1, false, fields("a", string(make([]byte, 1000))))
			}
		}), ErrAnswer},
		{"another frame inside a head", frames(func(f *http2.Framer) {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields(":status", "200")})
			f.WriteData(1, true, nil)
		}), ErrAnswer},
		{"a head that does not decode", frames(func(f *http2.Framer) {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff}, EndHeaders: true})
		}), ErrAnswer},
		{"padding that is longer than the frame", frames(func(f *http2.Framer) {
			f.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersPadded|http2.FlagHeadersEndHeaders, 1, []byte{9, 0})
		}), ErrAnswer},
		{"a window that is too large", frames(func(f *http2.Framer) { f.WriteWindowUpdate(0, maxWindow) }), ErrAnswer},
		{"the end of the stream", frames(func(f *http2.Framer) { f.WriteRSTStream(1, http2.ErrCodeRefusedStream) }),
			ErrClosed},
		{"the end of the connection", frames(func(f *http2.Framer) { f.WriteGoAway(0, http2.ErrCodeNo, nil) }),
			ErrClosed},
		{"an answer and the end of the connection", frames(func(f *http2.Framer) {
			f.WriteGoAway(1, http2.ErrCodeNo, nil)
			headers(f, false, ":status", "200")
			f.WriteData(1, true, []byte("good"))
		}), nil},
	} {
		for _, piece := range []int{1 << 20, 1} {
			if piece == 1 && x.want != nil {
				continue
			}
			body, err := askHTTP2(t, slices.Concat(settings, x.sent), piece)
			if !errors.Is(err, x.want) || err == nil && body != "good" {
				t.Errorf("%s, %d bytes at a time: %v %q, want %v", x.name, piece, err, body, x.want)
			}
		}
	}
}

// A server that knows only HTTP/1.1 is no server for HTTP/2.
func TestServerWithoutHTTP2(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	config := srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	config.ServerName = "example.com"
	if _, err := ask(t, srv.Listener.Addr().String(), config); !errors.Is(err, ErrNoHTTP2) {
		t.Error(err)
	}
}

// askHTTP2 sends a request to a server that answers with bytes, in pieces.
func askHTTP2(t *testing.T, answer []byte, piece int) (string, error) {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	defer srv.Close()
	ended := make(chan struct{})
	srv.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(_ *http.Server, c *tls.Conn, _ http.Handler) {
			defer close(ended)
			for part := range slices.Chunk(answer, piece) {
				if _, err := c.Write(part); err != nil {
					return
				}
			}
			io.Copy(io.Discard, c)
		}}
	srv.TLS = &tls.Config{NextProtos: []string{"h2"}}
	srv.StartTLS()
	config := srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos, config.ServerName = []string{"h2"}, "example.com"
	body, err := ask(t, srv.Listener.Addr().String(), config)
	<-ended
	return body, err
}

// ask sends a request with a new loop, and closes its connection.
func ask(t *testing.T, address string, config *tls.Config) (body string, failed error) {
	t.Helper()
	l, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := NewPool(l, netip.MustParseAddrPort(address), nil, 1, "test/1")
	p.UseTLS(config)
	done := false
	p.Do(&Call{Method: "GET", Path: "/", Host: "h", Done: func(_ *Call, a *Answer) {
		done, failed, body = true, a.Err, string(a.Body)
	}})
	if err := l.RunFor(time.Minute, func() bool { return done }); err != nil || !done {
		t.Fatalf("no answer: %v", err)
	}
	return body, failed
}
