package main

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

// acmeTLS gets certificates by ACME (RFC 8555) for the names of tls-acme, when they are first asked for, and renews
// them thirty days before they end. The authority looks at our own TLS port (TLS-ALPN-01, RFC 8737), so nothing else
// needs to be open, but that port must be 443 as the world sees it. Keys and certificates are kept below the data
// directory; a successor finds them there.
func (c *config) acmeTLS() *tls.Config {
	m := &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		Cache:      autocert.DirCache(filepath.Join(c.Data, "acme")),
		HostPolicy: c.acmeHost,
		Email:      c.ACMEEmail,
		Client:     &acme.Client{DirectoryURL: c.ACMEDirectory, UserAgent: "parley"},
	}
	return &tls.Config{GetCertificate: m.GetCertificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1", acme.ALPNProto}}
}

// acmeHost refuses names we were not told: anybody may ask for anything.
func (c *config) acmeHost(_ context.Context, host string) error {
	for name := range strings.SplitSeq(c.ACME, ",") {
		if strings.EqualFold(strings.TrimSpace(name), host) {
			return nil
		}
	}
	return fmt.Errorf("no certificate for %q: not among tls-acme", host)
}

// checkACME finds what is wrong with the settings of certificates.
func (c *config) checkACME() error {
	switch {
	case c.ACME == "":
		return nil
	case c.TLSCert != "":
		return errors.New("tls-acme gets certificates itself: it does not go with tls-cert")
	case strings.Contains(c.ACME, "*"):
		return errors.New("tls-acme: names with * need another way than TLS-ALPN; list the subdomains")
	}
	return nil
}
