package signon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"parley/wire/markdown/preview"
)

// Limits of requests to a provider. A person waits for the page, at most ten seconds.
const (
	// MaxStep is how long all requests of one step of a login may take together.
	MaxStep = 8 * time.Second
	// maxRequest is how long one request may take, so that one slow answer leaves time for a useful error.
	maxRequest = 6 * time.Second
	maxDial    = 3 * time.Second
	// maxAnswer limits the bytes of an answer, uncompressed. A set of 50 keys has about 100 kB.
	maxAnswer = 512 << 10
	maxHeader = 32 << 10
)

var (
	errTooLarge = errors.New("the answer of the login provider is larger than 512 KiB")
	errScheme   = errors.New("the login provider uses an address without encryption")
	errNetwork  = errors.New("the login provider uses an address in a network that is not allowed")
)

// newClient returns the HTTP client for a provider. It follows no redirects: none of the requests may have one, and a
// redirect would pass on secrets.
func newClient(c *Config) *http.Client {
	transport := func(allowed func(netip.Addr) bool) *http.Transport {
		dialer := &net.Dialer{Timeout: maxDial, Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !allowed(at.Addr()) {
				return fmt.Errorf("%w: %s", errNetwork, address)
			}
			return nil
		}}
		return &http.Transport{
			Proxy:                  nil, // a proxy would connect instead of us, without the check
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: c.roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    maxDial,
			ResponseHeaderTimeout:  maxRequest,
			MaxResponseHeaderBytes: maxHeader,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        time.Minute,
			ForceAttemptHTTP2:      true,
		}
	}
	g := &guard{encrypted: transport(func(ip netip.Addr) bool { return preview.Reachable(ip, c.networks) })}
	if c.AllowInsecure {
		g.plain = transport(func(ip netip.Addr) bool { return ip.Unmap().IsLoopback() })
	}
	return &http.Client{Transport: g, Timeout: maxRequest,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// guard sends requests to a provider and limits their answers.
type guard struct {
	encrypted, plain *http.Transport // plain is nil if everything must be encrypted
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	t := g.encrypted
	if r.URL.Scheme != "https" {
		if t = g.plain; t == nil || r.URL.Scheme != "http" {
			return nil, fmt.Errorf("%w: %s", errScheme, r.URL.Redacted())
		}
	}
	answer, err := t.RoundTrip(r)
	if err == nil {
		answer.Body = &limitedBody{answer.Body, maxAnswer}
	}
	return answer, err
}

// limitedBody is a body whose reader fails after a number of bytes.
type limitedBody struct {
	io.ReadCloser
	rest int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.rest <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.rest)])
	b.rest -= n
	return n, err
}

// Error is the failure of a login at a provider.
type Error struct {
	Reason string // for the page, in English
	Err    error  // for the log; it may contain text of the provider
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func fail(reason string, err error) error { return &Error{reason, err} }

// isCause reports whether an error has a cause. Libraries keep only the text of some causes.
func isCause(err, cause error) bool {
	return errors.Is(err, cause) || strings.Contains(err.Error(), cause.Error())
}

// requestError returns the Error of a request that failed.
func requestError(err error) error {
	var timeout net.Error
	switch {
	case isCause(err, errTooLarge):
		return fail("The login provider sent an answer that is too large.", err)
	case isCause(err, errScheme), isCause(err, errNetwork):
		return fail("The login provider uses an address that this server must not contact.", err)
	case isCause(err, context.DeadlineExceeded), strings.Contains(err.Error(), "Client.Timeout"),
		errors.As(err, &timeout) && timeout.Timeout():
		return fail("The login provider did not answer in time. Please try again later.", err)
	}
	return fail("The login provider cannot be reached, or sent a wrong answer. Please try again later.", err)
}
