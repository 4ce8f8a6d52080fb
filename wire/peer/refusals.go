package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrRefused says that the other node refuses the link, and would do so again.
	ErrRefused = errors.New("the other node refuses this one")
	// ErrOtherCluster says that the nodes do not trust each other's certificates.
	ErrOtherCluster = errors.New("the nodes belong to different clusters")
	// ErrVersion says that the nodes speak different versions of the messages on links.
	ErrVersion = errors.New("different versions of the messages between nodes")
)

// CheckVersion returns an error, an ErrVersion, if another node speaks another version of the messages on links.
func CheckVersion(other int) error {
	if other == Version {
		return nil
	}
	return fmt.Errorf("%w: the other node speaks version %d, this one version %d; run the same release on both",
		ErrVersion, other, Version)
}

// explain returns the error of a TLS handshake with the reason for it and a remedy, as far as they are known. address
// is that of the other node.
func explain(err error, address string) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var alert tls.AlertError
	text := err.Error()
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("connect to %s: %w: its certificate was issued by another cluster; check the address, or "+
			"join this cluster with a new token and an empty data directory", address, ErrOtherCluster)
	case errors.As(err, &name) && name.Host == Core.serverName():
		return fmt.Errorf("connect to %s: the node there is not a core: check the address", address)
	case errors.As(err, &name):
		return fmt.Errorf("connect to %s: the node there is not node %s: check the address", address, name.Host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("connect to %s: %w", address, checkValidity(invalid.Cert, time.Now()))
	case errors.As(err, &alert), strings.Contains(text, "remote error: tls"):
		return fmt.Errorf("connect to %s: %w: it does not accept the certificate of this node (%v); check the clocks, "+
			"or join its cluster with a new token and an empty data directory", address, ErrOtherCluster, err)
	}
	return fmt.Errorf("connect to %s: %w", address, err)
}

// checkValidity returns an error if a certificate is not valid at a time. Certificates are valid from two days before
// their creation, so it is the clock of a machine that is wrong.
func checkValidity(c *x509.Certificate, now time.Time) error {
	if c == nil || !now.Before(c.NotBefore) && !now.After(c.NotAfter) {
		return nil
	}
	return fmt.Errorf("the clock of this machine shows %s, but the certificate is valid from %s to %s: set the clock, "+
		"for example with NTP", now.UTC().Format(time.RFC3339), c.NotBefore.UTC().Format(time.RFC3339),
		c.NotAfter.UTC().Format(time.RFC3339))
}
