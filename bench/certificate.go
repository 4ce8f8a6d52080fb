package bench

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificate is a certificate for 127.0.0.1, and the configuration of clients that trust it alone.
type certificate struct {
	certFile, keyFile string
	client            *tls.Config
}

// createCertificate makes a certificate that is valid for a day and writes its files to dir.
func createCertificate(dir string) (certificate, error) {
	c := certificate{certFile: filepath.Join(dir, "cert.pem"), keyFile: filepath.Join(dir, "key.pem")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	now := time.Now()
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(0, 0, 1),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		return c, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return c, err
	}
	write := func(file, kind string, b []byte) error {
		return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600)
	}
	if err := errors.Join(write(c.certFile, "CERTIFICATE", cert), write(c.keyFile, "PRIVATE KEY", secret)); err != nil {
		return c, err
	}
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		return c, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	c.client = &tls.Config{
		RootCAs:            roots,
		ServerName:         "127.0.0.1",
		ClientSessionCache: tls.NewLRUClientSessionCache(64),
	}
	return c, nil
}
