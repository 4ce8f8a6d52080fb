package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Role is the task of a node.
type Role string

// The roles of nodes.
const (
	Core Role = "core" // stores everything and owns the organizations
	Edge Role = "edge" // has replicas in memory and serves clients
)

// Check returns an error if there is no such role.
func (r Role) Check() error {
	if r != Core && r != Edge {
		return fmt.Errorf("the role must be %s or %s, not %q", Core, Edge, string(r))
	}
	return nil
}

// serverName is the name that certificates of a role have besides the id of the node.
func (r Role) serverName() string { return string(r) + ".parley" }

const (
	// MaxNodeID is how many characters the id of a node has at most.
	MaxNodeID = 40
	// certificateYears is how long certificates are valid. A node is removed by its id; certificates are not renewed.
	certificateYears = 20
	// certificateBackdate is how long before its creation a certificate is valid, so that nodes whose clocks differ can
	// connect: they then learn about the difference.
	certificateBackdate = 48 * time.Hour
)

// CheckNodeID returns an error if text cannot be the id of a node.
func CheckNodeID(text string) error {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	if text == "" {
		return errors.New("--node is required: an id for this node, of lower-case letters, digits and dashes")
	}
	if len(text) > MaxNodeID || strings.Trim(text, letters) != "" {
		return fmt.Errorf("--node: %q is not the id of a node: use lower-case letters, digits and dashes, at most %d "+
			"characters", text, MaxNodeID)
	}
	return nil
}

// Authority issues the certificates of a cluster.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns the authority of a new cluster.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t, err := template("Parley cluster")
	if err != nil {
		return nil, err
	}
	t.IsCA, t.BasicConstraintsValid, t.KeyUsage = true, true, x509.KeyUsageCertSign
	t.MaxPathLenZero = true
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	return &Authority{c, key}, err
}

// ReadAuthority returns the authority with a certificate and a key in PEM form.
func ReadAuthority(certificate, key []byte) (*Authority, error) {
	c, err := parseCertificate(certificate)
	if err != nil {
		return nil, err
	}
	k, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	return &Authority{c, k}, nil
}

// Certificate returns the certificate of the authority in PEM form.
func (a *Authority) Certificate() []byte { return encodeCertificate(a.certificate.Raw) }

// Key returns the key of the authority in PEM form.
func (a *Authority) Key() ([]byte, error) { return encodeKey(a.key) }

// Fingerprint returns the SHA-256 hash of the authority's certificate.
func (a *Authority) Fingerprint() [32]byte { return sha256.Sum256(a.certificate.Raw) }

// Issue returns a certificate, in PEM form, for the key of a signing request. The node id and the role are those of the
// arguments, whatever the request contains.
func (a *Authority) Issue(request []byte, node string, role Role) ([]byte, error) {
	if err := errors.Join(CheckNodeID(node), role.Check()); err != nil {
		return nil, err
	}
	r, err := x509.ParseCertificateRequest(request)
	if err != nil {
		return nil, fmt.Errorf("signing request: %w", err)
	}
	if err = r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("signing request: %w", err)
	}
	t, err := template(node)
	if err != nil {
		return nil, err
	}
	t.DNSNames = []string{node, role.serverName()}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, t, a.certificate, r.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return encodeCertificate(der), nil
}

// template returns a certificate with a random number and the usual validity.
func template(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-certificateBackdate),
		NotAfter:     now.AddDate(certificateYears, 0, 0),
	}, err
}

// NewKey returns the key of a new node in PEM form, and a signing request for it.
func NewKey() (key, request []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if request, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, k); err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(k)
	return key, request, err
}

// Identity is the certificate of a node, with which it connects to others and others connect to it.
type Identity struct {
	Node string
	Role Role

	certificate tls.Certificate
	roots       *x509.CertPool
	authority   *x509.Certificate
}

// ReadIdentity returns the identity of a node from PEM data: its certificate, its key, and the authority's certificate.
func ReadIdentity(certificate, key, authority []byte) (*Identity, error) {
	c, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the node: %w", err)
	}
	root, err := parseCertificate(authority)
	if err != nil {
		return nil, fmt.Errorf("certificate of the cluster: %w", err)
	}
	id := &Identity{certificate: c, roots: x509.NewCertPool(), authority: root}
	id.roots.AddCert(root)
	// The authority's certificate is sent along: a node that joins knows only its hash.
	id.certificate.Certificate = append(id.certificate.Certificate, root.Raw)
	if err := checkValidity(c.Leaf, time.Now()); err != nil {
		return nil, err
	}
	if _, err := c.Leaf.Verify(x509.VerifyOptions{Roots: id.roots,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return nil, fmt.Errorf("certificate of the node: %w", err)
	}
	id.Node, id.Role, err = nodeOf(c.Leaf)
	return id, err
}

// nodeOf returns the id and the role of the node that a certificate belongs to.
func nodeOf(c *x509.Certificate) (node string, role Role, err error) {
	if len(c.DNSNames) == 2 {
		node = c.DNSNames[0]
		for _, r := range []Role{Core, Edge} {
			if c.DNSNames[1] == r.serverName() {
				return node, r, CheckNodeID(node)
			}
		}
	}
	return "", "", fmt.Errorf("the certificate names no node: %q", c.DNSNames)
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(k *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

func parseCertificate(data []byte) (*x509.Certificate, error) {
	b, _ := pem.Decode(data)
	if b == nil {
		return nil, errors.New("no certificate in PEM form")
	}
	return x509.ParseCertificate(b.Bytes)
}

func parseKey(data []byte) (*ecdsa.PrivateKey, error) {
	b, _ := pem.Decode(data)
	if b == nil {
		return nil, errors.New("no key in PEM form")
	}
	k, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	if err != nil {
		return nil, err
	}
	e, ok := k.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot sign certificates here", k)
	}
	return e, nil
}
