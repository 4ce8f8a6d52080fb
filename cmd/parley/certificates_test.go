package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// acmeServer is a certificate authority with the parts of RFC 8555 and RFC 8737 that one name needs. It does not check
// signatures. It does check that the client controls the name, by connecting to the server at dial.
type acmeServer struct {
	t    *testing.T
	dial func() string
	*httptest.Server
	key  *ecdsa.PrivateKey
	cert *x509.Certificate

	mu     sync.Mutex
	name   string
	valid  bool
	chain  []byte
	orders int
	faults []string
}

func newACMEServer(t *testing.T) *acmeServer {
	a := &acmeServer{t: t}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test Root"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour * 24 * 365),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, root, root, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *acmeServer) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a *acmeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Replay-Nonce", fmt.Sprint(time.Now().UnixNano()))
	var jws struct{ Protected, Payload string }
	body, _ := io.ReadAll(r.Body)
	json.Unmarshal(body, &jws)
	head, _ := base64.RawURLEncoding.DecodeString(jws.Protected)
	payload, _ := base64.RawURLEncoding.DecodeString(jws.Payload)
	say := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(v)
	}
	state := map[bool]string{false: "pending", true: "ready"}[a.valid]
	order := map[string]any{"status": state, "authorizations": []string{a.URL + "/authz"},
		"finalize": a.URL + "/finalize"}
	if a.chain != nil {
		order["status"], order["certificate"] = "valid", a.URL+"/certificate"
	}
	switch r.URL.Path {
	case "/directory":
		say(200, map[string]any{"newNonce": a.URL + "/nonce", "newAccount": a.URL + "/account",
			"newOrder": a.URL + "/order", "revokeCert": a.URL + "/revoke", "keyChange": a.URL + "/key"})
	case "/nonce":
	case "/account":
		var h struct{ JWK json.RawMessage }
		json.Unmarshal(head, &h)
		w.Header().Set("Location", a.URL+"/account/1")
		say(201, map[string]any{"status": "valid"})
	case "/order":
		var o struct{ Identifiers []struct{ Value string } }
		json.Unmarshal(payload, &o)
		a.name, a.valid, a.chain = o.Identifiers[0].Value, false, nil
		a.orders++
		w.Header().Set("Location", a.URL+"/orders/1")
		say(201, map[string]any{"status": "pending", "authorizations": []string{a.URL + "/authz"},
			"finalize": a.URL + "/finalize"})
	case "/orders/1":
		say(200, order)
	case "/authz":
		status := map[bool]string{false: "pending", true: "valid"}[a.valid]
		say(200, map[string]any{"status": status, "identifier": map[string]string{"type": "dns", "value": a.name},
			"challenges": []any{map[string]any{"type": "tls-alpn-01", "url": a.URL + "/challenge", "token": "token",
				"status": status}}})
	case "/challenge":
		if fault := a.challenge(); fault != "" {
			a.faults = append(a.faults, fault)
		} else {
			a.valid = true
		}
		say(200, map[string]any{"type": "tls-alpn-01", "url": a.URL + "/challenge", "token": "token",
			"status": "valid"})
	case "/finalize":
		var f struct{ CSR string }
		json.Unmarshal(payload, &f)
		der, _ := base64.RawURLEncoding.DecodeString(f.CSR)
		csr, err := x509.ParseCertificateRequest(der)
		if err != nil || !a.valid {
			say(403, map[string]any{"type": "urn:ietf:params:acme:error:orderNotReady"})
			return
		}
		leaf := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: csr.Subject,
			DNSNames: csr.DNSNames, NotBefore: time.Now().Add(-time.Hour),
			NotAfter: time.Now().Add(90 * 24 * time.Hour),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		signed, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, csr.PublicKey, a.key)
		if err != nil {
			a.faults = append(a.faults, err.Error())
		}
		a.chain = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
		order["status"], order["certificate"] = "valid", a.URL+"/certificate"
		w.Header().Set("Location", a.URL+"/orders/1")
		say(200, order)
	case "/certificate":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		w.Write(a.chain)
	default:
		say(404, nil)
	}
}

// challenge connects to the server and returns an error text if the server does not prove that it controls the name.
func (a *acmeServer) challenge() string {
	c, err := tls.Dial("tcp", a.dial(), &tls.Config{ServerName: a.name, NextProtos: []string{"acme-tls/1"},
		InsecureSkipVerify: true})
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	s := c.ConnectionState()
	leaf := s.PeerCertificates[0]
	if s.NegotiatedProtocol != "acme-tls/1" || len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != a.name {
		return fmt.Sprintf("protocol %q, certificate for %v", s.NegotiatedProtocol, leaf.DNSNames)
	}
	for _, x := range leaf.Extensions {
		if x.Id.String() == "1.3.6.1.5.5.7.1.31" && x.Critical && len(x.Value) == sha256.Size+2 {
			return ""
		}
	}
	return "the certificate does not contain the proof"
}

func secureGet(at, name string, roots *x509.CertPool) (string, *x509.Certificate, error) {
	client := &http.Client{Timeout: binaryTimeout,
		Transport: &http.Transport{DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name}}}
	r, err := client.Get("https://" + at + "/health")
	if err != nil {
		return "", nil, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if hsts := r.Header.Get("Strict-Transport-Security"); err == nil && hsts != "max-age=15768000" {
		err = fmt.Errorf("an answer over TLS has Strict-Transport-Security %q", hsts)
	}
	return string(b), r.TLS.PeerCertificates[0], err
}

// A server gets a certificate for its public name by itself, keeps it after a restart, and requests none for other
// names.
func TestCertificateByACME(t *testing.T) {
	a := newACMEServer(t)
	data := filepath.Join(t.TempDir(), "data")
	args := []string{"--tls-acme", "chat.example.org, team.chat.example.org", "--tls-acme-email", "ops@example.org",
		"--tls-acme-directory", a.URL + "/directory"}
	p := demo(t, data, args...)
	at := strings.TrimPrefix(p.serving(), "http://")
	a.dial = func() string { return at }
	for range 2 {
		body, leaf, err := secureGet(at, "chat.example.org", a.roots())
		if err != nil || !strings.Contains(body, "success") {
			t.Fatalf("%q, %v; faults: %v", body, err, a.faults)
		}
		if err := leaf.VerifyHostname("chat.example.org"); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := secureGet(at, "other.example.org", a.roots()); err == nil {
		t.Error("the server has a certificate for a name that is not in tls-acme")
	}
	if a.orders != 1 || len(a.faults) > 0 {
		t.Errorf("%d orders, faults %v", a.orders, a.faults)
	}
	p.stop()
	p = demo(t, data, args...)
	at = strings.TrimPrefix(p.serving(), "http://")
	if _, _, err := secureGet(at, "chat.example.org", a.roots()); err != nil || a.orders != 1 {
		t.Errorf("after a restart: %v, %d orders", err, a.orders)
	}
	if info, err := os.Stat(filepath.Join(data, "acme")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of keys is %v, %v", info, err)
	}
	for _, bad := range [][]string{{"--tls-acme", "*.example.org"},
		{"--tls-acme", "a.example.org", "--tls-cert", "x", "--tls-key", "y"}} {
		if out, code := runParley(append([]string{"serve", "--data", t.TempDir()}, bad...)...); code == 0 ||
			!strings.Contains(out, "tls-acme") {
			t.Errorf("%v: code %d, %s", bad, code, out)
		}
	}
}

// New certificate files are used after SIGHUP, and no request fails.
func TestCertificateFilesAreReloaded(t *testing.T) {
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	cert, key := selfSigned(t, dir, "old.example.org")
	p := demo(t, data, "--tls-cert", cert, "--tls-key", key)
	at := strings.TrimPrefix(p.serving(), "http://")
	trust := func() *x509.CertPool {
		text, err := os.ReadFile(cert)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(text)
		return pool
	}
	if _, _, err := secureGet(at, "old.example.org", trust()); err != nil {
		t.Fatal(err)
	}
	selfSigned(t, dir, "new.example.org")
	p.cmd.Process.Signal(syscall.SIGHUP)
	p.succeeded()
	t.Cleanup(func() { endSuccessor(t, data) })
	if _, leaf, err := secureGet(at, "new.example.org", trust()); err != nil || leaf.DNSNames[0] != "new.example.org" {
		t.Errorf("%v, %v", leaf, err)
	}
}

// selfSigned writes a certificate for a name and its key to a directory.
func selfSigned(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		DNSNames:  []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeFile(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	return cert, key
}
