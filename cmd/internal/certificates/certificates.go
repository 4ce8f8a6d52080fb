package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// Settings are the settings of TLS.
type Settings struct {
	TLSCert       string
	TLSKey        string
	ACME          string
	ACMEEmail     string
	ACMEDirectory string
}

// Load returns the TLS configuration of the server's listeners, or nil if the server does not speak TLS itself. data is
// the data directory.
func (s *Settings) Load(data string) (*tls.Config, error) {
	if s.ACME != "" {
		return s.acmeTLS(data), nil
	}
	if s.TLSCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// acmeTLS returns a configuration that gets certificates by ACME (RFC 8555) for the names of tls-acme. A certificate is
// requested at the first connection for its name and renewed thirty days before it expires. The authority connects to
// the server's own TLS port (TLS-ALPN-01, RFC 8737), so no other port is needed, but from outside that port must be
// 443. Keys and certificates are stored in the data directory, where a successor finds them.
func (s *Settings) acmeTLS(data string) *tls.Config {
	m := &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		Cache:      autocert.DirCache(filepath.Join(data, "acme")),
		HostPolicy: s.checkACMEHost,
		Email:      s.ACMEEmail,
		Client:     &acme.Client{DirectoryURL: s.ACMEDirectory, UserAgent: "parley"},
	}
	return &tls.Config{
		GetCertificate: m.GetCertificate,
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1", acme.ALPNProto},
	}
}

// checkACMEHost rejects names that are not in tls-acme: a client can ask for any name.
func (s *Settings) checkACMEHost(_ context.Context, host string) error {
	for name := range strings.SplitSeq(s.ACME, ",") {
		if strings.EqualFold(strings.TrimSpace(name), host) {
			return nil
		}
	}
	return fmt.Errorf("no certificate for %q: the name is not in tls-acme", host)
}

// Check rejects settings of certificates that contradict each other.
func (s *Settings) Check() error {
	switch {
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return errors.New("tls-cert and tls-key must be set together")
	case s.ACME == "":
		return nil
	case s.TLSCert != "":
		return errors.New("tls-acme and tls-cert exclude each other: with tls-acme the server gets the certificates " +
			"itself")
	case strings.Contains(s.ACME, "*"):
		return errors.New("tls-acme does not support names with *; list every subdomain")
	}
	return nil
}
