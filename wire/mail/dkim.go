package mail

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/wneessen/go-mail"
)

// DKIMKey signs outgoing email for a domain (RFC 6376).
type DKIMKey struct {
	Domain   string // of the sender
	Selector string
	key      crypto.Signer
}

// signedFields are the header fields that signatures cover. Those of one-click unsubscription must be (RFC 8058).
var signedFields = []string{"From", "To", "Subject", "Date", "Message-ID", "Reply-To", "MIME-Version", "Content-Type",
	"Auto-Submitted", "List-Unsubscribe", "List-Unsubscribe-Post"}

// minRSABits is the shortest RSA key that receivers accept (RFC 8301).
const minRSABits = 1024

// LoadDKIMKey reads a private key, RSA or Ed25519, from a PEM file.
func LoadDKIMKey(path, selector, domain string) (*DKIMKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("dkim-key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("dkim-key: %s is no PEM file; openssl genpkey -algorithm rsa makes a key", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		if parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
			return nil, fmt.Errorf("dkim-key: %s has no private key of RSA or Ed25519", path)
		}
	}
	k := &DKIMKey{Domain: domain, Selector: selector}
	switch key := parsed.(type) {
	case *rsa.PrivateKey:
		if key.N.BitLen() < minRSABits {
			return nil, fmt.Errorf("dkim-key: %s has %d bits, at least %d are needed", path, key.N.BitLen(), minRSABits)
		}
		k.key = key
	case ed25519.PrivateKey:
		k.key = key
	default:
		return nil, fmt.Errorf("dkim-key: %s must be a key of RSA or Ed25519", path)
	}
	if selector == "" || domain == "" || strings.ContainsAny(selector+domain, " ;\"") {
		return nil, fmt.Errorf("dkim-selector %q and the domain %q of smtp-from must be names", selector, domain)
	}
	return k, nil
}

// Record returns the name and the text of the DNS record with which receivers check the signatures.
func (k *DKIMKey) Record() (name, text string) {
	kind, public := "ed25519", []byte(nil)
	switch p := k.key.Public().(type) {
	case ed25519.PublicKey:
		public = p
	case *rsa.PublicKey:
		kind = "rsa"
		var err error
		if public, err = x509.MarshalPKIXPublicKey(p); err != nil {
			panic("BUG: encode a public key: " + err.Error())
		}
	}
	return k.Selector + "._domainkey." + k.Domain,
		"v=DKIM1; k=" + kind + "; p=" + base64.StdEncoding.EncodeToString(public)
}

// sign adds the signature of a complete email.
func (k *DKIMKey) sign(m *mail.Msg) error {
	var plain, signed bytes.Buffer
	if _, err := m.WriteTo(&plain); err != nil {
		return err
	}
	err := dkim.Sign(&signed, &plain, &dkim.SignOptions{Domain: k.Domain, Selector: k.Selector, Signer: k.key,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
		HeaderKeys: signedFields})
	if err != nil {
		return err
	}
	// the field is the first one, with its folded lines
	_, rest, ok := strings.Cut(signed.String(), ":")
	if !ok || !strings.HasPrefix(signed.String(), dkimField+":") {
		return errors.New("the signature is not the first field")
	}
	var value []string
	for i, line := range strings.SplitAfter(rest, "\r\n") {
		if i > 0 && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			break
		}
		value = append(value, line)
	}
	m.SetGenHeaderPreformatted(dkimField, strings.TrimSpace(strings.Join(value, "")))
	return nil
}

const dkimField = "DKIM-Signature"
