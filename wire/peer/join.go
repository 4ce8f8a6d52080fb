package peer

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

const (
	// tokenPrefix begins a token; the rest is a tokenContent as JSON in base64.
	tokenPrefix = "parley1."
	// maxJoinBytes limits the messages of JoinProtocol.
	maxJoinBytes = 64 << 10
	// JoinTimeout limits the exchange of a token for a certificate.
	JoinTimeout = 10 * time.Second
	// joinAgainAfter is the time between two tries while the cores elect a leader.
	joinAgainAfter = 200 * time.Millisecond
	// TokenLifetime is how long a token is valid.
	TokenLifetime = time.Hour
	// maxJoins limits the requests to join that are being read or answered, and maxJoinsPerAddress those of one
	// address. If there are more, the oldest connection that has sent no request is closed.
	maxJoins           = 64
	maxJoinsPerAddress = 8
)

// Token lets one node join a cluster once.
type Token struct {
	Addresses   []string // of cores, as host:port
	Fingerprint [32]byte // of the cluster's authority
	Secret      string
}

// NewSecret returns the secret of a new token.
func NewSecret() string { return rand.Text() }

type tokenContent struct {
	Addresses   []string `json:"a"`
	Fingerprint []byte   `json:"f"`
	Secret      string   `json:"s"`
}

// String returns the token as an operator copies it, in one line.
func (t Token) String() string {
	data, _ := json.Marshal(tokenContent{t.Addresses, t.Fingerprint[:], t.Secret}) // cannot fail
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(data)
}

// errNoToken is the error of a text that is no token.
var errNoToken = errors.New("this is no token of a cluster: parley cluster token, at a core, prints one")

// ParseToken reads a token.
func ParseToken(text string) (t Token, err error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	if !ok {
		return t, errNoToken
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return t, errNoToken
	}
	var c tokenContent
	if err = json.Unmarshal(data, &c); err != nil || len(c.Fingerprint) != len(t.Fingerprint) ||
		len(c.Addresses) == 0 || c.Secret == "" {
		return t, errNoToken
	}
	return Token{c.Addresses, [32]byte(c.Fingerprint), c.Secret}, nil
}

// JoinRequest is sent by a node that joins.
type JoinRequest struct {
	Secret  string
	Node    string
	Address string // where the node listens; "" if it does not
	Version int    // of the messages on links
	Clock   int64  // of the node, Unix milliseconds
	Request []byte // certificate signing request
	Level   uint16 `json:",omitempty"` // newest rule level that the program knows; 0: realm.FirstLevel
}

// JoinAnswer is the answer to a JoinRequest. If Error is not empty, the node has not joined.
type JoinAnswer struct {
	Error       string `json:",omitempty"`
	Certificate []byte // PEM
	Authority   []byte // PEM
	Role        Role
	Addresses   []string // of the cores

	Elsewhere bool `json:",omitempty"` // another core must be asked: this one is not the leader

	// For a new core.
	AuthorityKey []byte `json:",omitempty"` // PEM
	Secret       []byte `json:",omitempty"` // of the servers
	Members      []byte `json:",omitempty"` // JSON
	Development  bool   `json:",omitempty"` // the cluster has the development login
	Files        string `json:",omitempty"` // the bucket of the files; "": they are in the leader's data directory
}

// Join exchanges a token for a certificate. An error says whether another try can succeed.
func Join(ctx context.Context, t Token, r JoinRequest) (a JoinAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, JoinTimeout)
	defer cancel()
	for again := true; again; {
		again = false
		for _, address := range t.Addresses {
			if a, err = join(ctx, address, t.Fingerprint, r); err == nil && !a.Elsewhere {
				again = false
				break
			}
			again = again || err == nil // a leader is being elected
		}
		if again {
			select {
			case <-time.After(joinAgainAfter):
			case <-ctx.Done():
				again = false
			}
		}
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

func join(ctx context.Context, address string, fingerprint [32]byte, r JoinRequest) (a JoinAnswer, err error) {
	d := tls.Dialer{Config: &tls.Config{
		MinVersion:         tls.VersionTLS13,
		NextProtos:         []string{JoinProtocol},
		InsecureSkipVerify: true, // VerifyConnection does it: only the hash of the authority is known
		VerifyConnection:   func(s tls.ConnectionState) error { return verifyCore(s, fingerprint) },
	}}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return a, explain(err, address)
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	c.SetDeadline(deadline)
	if err = json.NewEncoder(c).Encode(r); err == nil {
		err = json.NewDecoder(io.LimitReader(c, maxJoinBytes)).Decode(&a)
	}
	if err != nil {
		err = fmt.Errorf("join at %s: %w", address, err)
	}
	return a, err
}

// verifyCore checks that a connection leads to a core of the cluster whose authority has a hash.
func verifyCore(s tls.ConnectionState, fingerprint [32]byte) error {
	for _, c := range s.PeerCertificates {
		if sha256.Sum256(c.Raw) != fingerprint {
			continue
		}
		roots := x509.NewCertPool()
		roots.AddCert(c)
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: Core.serverName()})
		return err
	}
	return fmt.Errorf("%w: the node there is not one of the token's cluster; print a new token at a core of the "+
		"cluster to join", ErrOtherCluster)
}

// ServeJoins answers requests to join until the listener closes. admit returns the answer to one request.
func ServeJoins(l net.Listener, admit func(JoinRequest) JoinAnswer) {
	waiting := places{max: maxJoins, perAddress: maxJoinsPerAddress}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		p := waiting.enter(c)
		go func() {
			defer func() { waiting.leave(p); c.Close() }()
			c.SetDeadline(time.Now().Add(HelloTimeout)) // the request is sent at once
			var r JoinRequest
			if json.NewDecoder(io.LimitReader(c, maxJoinBytes)).Decode(&r) != nil {
				return
			}
			waiting.greet(p)
			c.SetDeadline(time.Now().Add(JoinTimeout))
			json.NewEncoder(c).Encode(admit(r))
		}()
	}
}
