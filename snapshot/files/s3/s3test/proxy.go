package s3test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Proxy passes requests on to a server. A test can stop a request before or after the server handles it.
type Proxy struct {
	server *Server
	front  *httptest.Server

	mu    sync.Mutex
	holds map[holdPoint]chan *Held
}

// holdPoint is a moment in the handling of a request.
type holdPoint struct {
	method   string
	answered bool // the server has handled the request, but its client has not got the answer
}

// Held is a request that the proxy has stopped.
type Held struct {
	Path string
	// Release lets the request continue. It may be called several times.
	Release func()
}

// Proxy starts a proxy in front of the server. It ends with the test.
func (s *Server) Proxy(t testing.TB) *Proxy {
	t.Helper()
	p := &Proxy{server: s, holds: map[holdPoint]chan *Held{}}
	pass := &httputil.ReverseProxy{
		// The host stays as the client has signed it.
		Rewrite: func(r *httputil.ProxyRequest) {
			host := r.In.Host
			r.SetURL(&url.URL{Scheme: "http", Host: s.address})
			r.Out.Host = host
		},
		// A server of a test that is killed in the middle of a request breaks it off.
		ErrorLog: log.New(io.Discard, "", 0),
		ModifyResponse: func(r *http.Response) error {
			p.stop(r.Request, true)
			return nil
		},
	}
	p.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.stop(r, false)
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		p.mu.Lock()
		p.holds = nil
		p.mu.Unlock()
		p.front.CloseClientConnections()
		p.front.Close()
	})
	return p
}

// URL returns the place of a folder in the bucket behind the proxy, as the setting files has it.
func (p *Proxy) URL(folder string) string {
	return strings.Replace(p.server.URL(folder), p.server.address, p.front.Listener.Addr().String(), 1)
}

// HoldBefore makes the proxy stop the next request with a method before the server gets it. The request is sent to the
// channel.
func (p *Proxy) HoldBefore(method string) <-chan *Held { return p.hold(holdPoint{method, false}) }

// HoldAnswer makes the proxy stop the answer of the server to the next request with a method.
func (p *Proxy) HoldAnswer(method string) <-chan *Held { return p.hold(holdPoint{method, true}) }

func (p *Proxy) hold(at holdPoint) <-chan *Held {
	c := make(chan *Held, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds[at] = c
	return c
}

// stop waits if the test wants to hold the request here. It returns also when the client of the request is gone.
func (p *Proxy) stop(r *http.Request, answered bool) {
	at := holdPoint{r.Method, answered}
	p.mu.Lock()
	c := p.holds[at]
	delete(p.holds, at)
	p.mu.Unlock()
	if c == nil {
		return
	}
	released := make(chan struct{})
	c <- &Held{r.URL.Path, sync.OnceFunc(func() { close(released) })}
	select {
	case <-released:
	case <-r.Context().Done():
	}
}
