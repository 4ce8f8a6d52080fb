package bench

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// maxSettings bounds the answer to GET /server_settings, in bytes. That of a large server has some 10 kB.
	maxSettings = 1 << 20
	// maxCAFile bounds the file of --ca, in bytes. The roots of a whole system have some 250 kB.
	maxCAFile = 4 << 20
	// settingsLimit is the time within which a target must answer the first request.
	settingsLimit = 10 * time.Second
	// lookupLimit is the time within which the name of a target must be resolved.
	lookupLimit = 10 * time.Second
	// handshakeSessions is the number of TLS sessions that all connections of a run share, so that a connection that
	// opens again resumes one.
	handshakeSessions = 64
)

// loadThisServer is the flag without which only servers on this machine get load.
const loadThisServer = "--i-may-load-this-server"

// checkPermission returns an error if the target is not on this machine and the user did not confirm that they may
// load it.
func (s *server) checkPermission(confirmed bool) error {
	if confirmed || s.addr.Addr().IsLoopback() {
		return nil
	}
	return fmt.Errorf("target %s is not on this machine: a load test can make a server slow for its users; "+
		"repeat the command with %s if you may do that", s.addr, loadThisServer)
}

// resolve sets the address, the Host header and, for https, the TLS configuration of a target. ca holds the
// roots to trust instead of those of the system, in PEM form, or is empty.
func (s *server) resolve(target string, ca []byte) error {
	u, err := url.Parse(target)
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("target %q must be http://HOST[:PORT] or https://HOST[:PORT]", target)
	}
	if u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("target %q must be the root of a server, without user, path and query", u.Redacted())
	}
	if u.Scheme == "http" && len(ca) > 0 {
		return fmt.Errorf("--ca is for targets with https://, but the target is %s", target)
	}
	port := map[string]uint16{"http": 80, "https": 443}[u.Scheme]
	if u.Port() != "" {
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("target %q: port must be between 1 and 65535", target)
		}
		port = uint16(n)
	}
	if u.Scheme == "https" {
		if s.tls, err = clientTLS(u.Hostname(), ca); err != nil {
			return err
		}
	}
	ip, err := lookUp(u.Hostname())
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	s.addr, s.host = netip.AddrPortFrom(ip, port), u.Host
	return nil
}

// lookUp returns the address of a host: an IPv4 address if it has one.
func lookUp(host string) (netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap(), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupLimit)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.Is4() {
			return ip, nil
		}
	}
	return ips[0], nil
}

// loadTLS returns the TLS configuration of the load's connections, which choose the version of HTTP. It returns nil for
// plain HTTP.
func (s *server) loadTLS(http2 bool) *tls.Config {
	if s.tls == nil || !http2 {
		return s.tls
	}
	if s.tls2 == nil {
		s.tls2 = s.tls.Clone()
		s.tls2.NextProtos = []string{"h2", "http/1.1"}
	}
	return s.tls2
}

// clientTLS returns the TLS configuration for a server. The requests use HTTP/1.1.
func clientTLS(host string, ca []byte) (*tls.Config, error) {
	c := &tls.Config{ServerName: host, NextProtos: []string{"http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(handshakeSessions)}
	if len(ca) == 0 {
		return c, nil
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(ca) {
		return nil, errors.New("--ca: the file contains no certificate in PEM form")
	}
	return c, nil
}

// readBounded reads a file of at most limit bytes.
func readBounded(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", file, limit)
	}
	return b, err
}

// scheme returns the beginning of the server's URLs.
func (s *server) scheme() string {
	if s.tls != nil {
		return "https://"
	}
	return "http://"
}

// fetchSettings reads the version and feature level from /server_settings. If the target is no server of the protocol,
// the error describes its answer.
func (s *server) fetchSettings() error {
	req, err := http.NewRequest("GET", s.scheme()+s.addr.String()+"/api/v1/server_settings", nil)
	if err != nil {
		return err
	}
	req.Host = s.host
	req.Header.Set("User-Agent", agent)
	c := http.Client{
		Timeout:   settingsLimit,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: s.tls, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(to *http.Request, _ []*http.Request) error {
			return fmt.Errorf("redirects to %s: give that address as the target", to.URL.Redacted())
		},
	}
	resp, err := c.Do(req)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err // without the URL, which names the address instead of the host
		}
		return fmt.Errorf("GET /api/v1/server_settings of %s%s: %w", s.scheme(), s.host, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxSettings+1))
	switch {
	case err != nil:
		return fmt.Errorf("GET /api/v1/server_settings of %s%s: %w", s.scheme(), s.host, err)
	case len(b) > maxSettings:
		err = fmt.Errorf("the answer is longer than %d bytes", maxSettings)
	case resp.StatusCode != 200:
		err = fmt.Errorf("status %d", resp.StatusCode)
	default:
		err = s.readSettings(b)
	}
	if err != nil {
		return fmt.Errorf("%s%s is not a server of the Zulip protocol: GET /api/v1/server_settings: %w", s.scheme(),
			s.host, err)
	}
	return nil
}

func (s *server) readSettings(b []byte) error {
	var v struct {
		Version string `json:"zulip_version"`
		Level   *int   `json:"zulip_feature_level"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("the answer is not the expected JSON: %w", err)
	}
	if v.Level == nil {
		return errors.New("the answer has no zulip_feature_level")
	}
	s.version, s.featureLevel = v.Version, *v.Level
	return nil
}
