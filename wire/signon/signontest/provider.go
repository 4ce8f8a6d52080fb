// Package signontest is an OpenID Connect provider for tests, written from the specification: OpenID Connect Core and
// Discovery 1.0, RFC 6749, 7636 and 9207. It refuses everything that a client must not send, and it can be told to lie.
package signontest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Person is the user that is logged in at the provider.
type Person struct {
	Subject, Email, Name string
	Verified             any // the claim email_verified; nil: there is none
}

// Lies are changes of the provider's answers. Each is nil or is called with an answer that is right.
type Lies struct {
	Metadata func(map[string]any)
	Keys     func([]map[string]any) []map[string]any
	Redirect func(url.Values) // the query of the redirect to the client
	Header   func(map[string]any)
	Claims   func(map[string]any)
	Token    func(signed string) string // the ID token
	UserInfo func(map[string]any)
	// Serve answers a request itself and returns true, or returns false.
	Serve func(http.ResponseWriter, *http.Request) bool
}

// Provider is a running provider. Its fields may be changed between two logins.
type Provider struct {
	URL          string
	ClientID     string
	ClientSecret string
	// Method is the only way in which clients may authenticate: client_secret_basic or client_secret_post; "": both.
	Method string

	mu     sync.Mutex
	person Person
	lies   Lies
	keys   []signingKey // the newest is last
	codes  map[string]grant
	tokens map[string]Person
	asked  map[string]int // requests by path
	wrong  []string       // faults of the client
}

type signingKey struct {
	id  string
	key *rsa.PrivateKey
}

// grant is a code that was not exchanged yet.
type grant struct{ redirect, nonce, challenge string }

// New starts a provider that ends with the test.
func New(t testing.TB) *Provider {
	p := &Provider{ClientID: "parley", ClientSecret: "a secret: with % and +", codes: map[string]grant{},
		tokens: map[string]Person{}, asked: map[string]int{},
		person: Person{"248289761001", "jane@example.org", "Jane Doe", true}}
	p.RotateKeys()
	server := httptest.NewServer(p)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	p.URL = server.URL
	return p
}

// LogIn changes the person that is logged in.
func (p *Provider) LogIn(who Person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person = who
}

// Lie changes the answers from now on.
func (p *Provider) Lie(l Lies) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lies = l
}

// RotateKeys replaces the signing key. The provider publishes only the new one.
func (p *Provider) RotateKeys() {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = []signingKey{{fmt.Sprintf("key-%d", time.Now().UnixNano()), key}}
}

// PublicPEM returns the public key in PEM form, which an attacker knows.
func (p *Provider) PublicPEM() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	der, err := x509.MarshalPKIXPublicKey(&p.keys[0].key.PublicKey)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// Asked returns how many requests a path got.
func (p *Provider) Asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

// Faults returns the mistakes of the client.
func (p *Provider) Faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked[r.URL.Path]++
	serve := p.lies.Serve
	p.mu.Unlock()
	if serve != nil && serve(w, r) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		p.metadata(w)
	case "/authorize":
		p.authorize(w, r)
	case "/token":
		p.token(w, r)
	case "/jwks":
		p.publishKeys(w)
	case "/userinfo":
		p.userInfo(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (p *Provider) metadata(w http.ResponseWriter) {
	m := map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize",
		"token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/jwks", "userinfo_endpoint": p.URL + "/userinfo",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported":          []string{"RS256"},
		"authorization_response_iss_parameter_supported": true,
		"code_challenge_methods_supported":               []string{"S256"}}
	if p.lies.Metadata != nil {
		p.lies.Metadata(m)
	}
	writeJSON(w, 200, m)
}

// fault records a fault of the client and answers it.
func (p *Provider) fault(w http.ResponseWriter, code, what string) {
	p.wrong = append(p.wrong, what)
	writeJSON(w, 400, map[string]any{"error": code, "error_description": what})
}

// authorize redirects to the client with a code for the person that is logged in.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case q.Get("response_type") != "code" || q.Get("client_id") != p.ClientID || q.Get("redirect_uri") == "":
		p.fault(w, "invalid_request", "authorization request "+r.URL.RawQuery)
		return
	case len(q.Get("state")) < 20 || len(q.Get("nonce")) < 20:
		p.fault(w, "invalid_request", "no state or nonce")
		return
	case q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43:
		p.fault(w, "invalid_request", "no PKCE")
		return
	}
	code := rand.Text()
	p.codes[code] = grant{q.Get("redirect_uri"), q.Get("nonce"), q.Get("code_challenge")}
	answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
	if p.lies.Redirect != nil {
		p.lies.Redirect(answer)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
}

// token exchanges a code. A code works once.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	id, _ := url.QueryUnescape(user)
	secret, _ := url.QueryUnescape(password)
	method := "client_secret_basic"
	if id == "" {
		method = "client_secret_post"
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if p.Method != "" && p.Method != method {
		writeJSON(w, 401, map[string]any{"error": "invalid_client"})
		return
	}
	code := r.PostFormValue("code")
	g, known := p.codes[code]
	delete(p.codes, code)
	proof := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case id != p.ClientID || secret != p.ClientSecret:
		p.fault(w, "invalid_client", "the client is "+id)
		return
	case r.Method != http.MethodPost || r.PostFormValue("grant_type") != "authorization_code":
		p.fault(w, "invalid_request", "grant type")
		return
	case !known:
		p.fault(w, "invalid_grant", "an unknown code")
		return
	case r.PostFormValue("redirect_uri") != g.redirect:
		p.fault(w, "invalid_grant", "another redirect_uri")
		return
	case base64.RawURLEncoding.EncodeToString(proof[:]) != g.challenge:
		p.fault(w, "invalid_grant", "the verifier is wrong")
		return
	}
	access := rand.Text()
	p.tokens[access] = p.person
	writeJSON(w, 200, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 300,
		"id_token": p.idToken(g.nonce, access)})
}

// idToken returns the signed ID token of the person.
func (p *Provider) idToken(nonce, access string) string {
	now, half := time.Now().Unix(), sha256.Sum256([]byte(access))
	claims := map[string]any{"iss": p.URL, "sub": p.person.Subject, "aud": p.ClientID, "exp": now + 300, "iat": now,
		"nonce": nonce, "at_hash": base64.RawURLEncoding.EncodeToString(half[:16]), "email": p.person.Email,
		"name": p.person.Name}
	if p.person.Verified != nil {
		claims["email_verified"] = p.person.Verified
	}
	key := p.keys[len(p.keys)-1]
	header := map[string]any{"alg": "RS256", "typ": "JWT", "kid": key.id}
	if p.lies.Claims != nil {
		p.lies.Claims(claims)
	}
	if p.lies.Header != nil {
		p.lies.Header(header)
	}
	text := encode(header) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	text += "." + base64.RawURLEncoding.EncodeToString(signature)
	if p.lies.Token != nil {
		text = p.lies.Token(text)
	}
	return text
}

// SignHS256 returns a token with the claims of another one, signed with a shared key.
func SignHS256(token string, key []byte, header map[string]any) string {
	text := encode(header) + "." + part(token, 1)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Unsigned returns a token with the claims of another one and no signature.
func Unsigned(token string) string {
	return encode(map[string]any{"alg": "none", "typ": "JWT"}) + "." + part(token, 1) + "."
}

func part(token string, n int) string {
	start := 0
	for i := range token {
		if token[i] != '.' {
			continue
		}
		if n == 0 {
			return token[start:i]
		}
		n, start = n-1, i+1
	}
	return token[start:]
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func (p *Provider) publishKeys(w http.ResponseWriter) {
	var list []map[string]any
	for _, k := range p.keys {
		list = append(list, map[string]any{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": k.id,
			"n": base64.RawURLEncoding.EncodeToString(k.key.N.Bytes()),
			"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(k.key.E)).Bytes())})
	}
	if p.lies.Keys != nil {
		list = p.lies.Keys(list)
	}
	writeJSON(w, 200, map[string]any{"keys": list})
}

func (p *Provider) userInfo(w http.ResponseWriter, r *http.Request) {
	who, ok := p.tokens[trimBearer(r.Header.Get("Authorization"))]
	if !ok {
		p.fault(w, "invalid_token", "an unknown access token")
		return
	}
	info := map[string]any{"sub": who.Subject, "email": who.Email, "name": who.Name}
	if who.Verified != nil {
		info["email_verified"] = who.Verified
	}
	if p.lies.UserInfo != nil {
		p.lies.UserInfo(info)
	}
	writeJSON(w, 200, info)
}

func trimBearer(header string) string {
	const prefix = "Bearer "
	if len(header) < len(prefix) || header[:len(prefix)] != prefix {
		return ""
	}
	return header[len(prefix):]
}

func writeJSON(w http.ResponseWriter, status int, v map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(maps.Clone(v))
}
