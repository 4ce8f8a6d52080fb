package push

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"
)

// keyLetters are the letters of keys; maxHostname limits hostnames (protocol).
const (
	keyLength   = 64
	keyLetters  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	maxHostname = 128
)

// newKey returns a random key. The 62 letters are drawn without bias.
func newKey() string {
	out := make([]byte, 0, keyLength)
	for len(out) < keyLength {
		var b [keyLength]byte
		rand.Read(b[:])
		for _, x := range b {
			if int(x) < 256/len(keyLetters)*len(keyLetters) && len(out) < keyLength {
				out = append(out, keyLetters[int(x)%len(keyLetters)])
			}
		}
	}
	return string(out)
}

// NewAccount returns an account that the server proposes to a bouncer.
func NewAccount(address string) BouncerAccount {
	return BouncerAccount{URL: address, Org: uuid.NewString(), Key: newKey()}
}

// ServerRegistration is a server's description of itself for the bouncer.
type ServerRegistration struct {
	Hostname, Contact string
	Rotate            bool // replaces the key by a new one
}

// RegisterServer registers the account of b, or renews its registration. created is false if the bouncer knew it. save
// stores the new key when the bouncer has accepted it.
func (b *Bouncer) RegisterServer(r ServerRegistration, save func(BouncerAccount) error) (created bool, err error) {
	if r.Hostname == "" || len(r.Hostname) > maxHostname {
		return false, fmt.Errorf("the hostname must have 1 to %d characters, not %d", maxHostname, len(r.Hostname))
	}
	account := b.Account()
	form := url.Values{
		"zulip_org_id": {account.Org}, "zulip_org_key": {account.Key},
		"hostname": {r.Hostname}, "contact_email": {r.Contact},
	}
	if r.Rotate {
		account.Key = newKey()
		form.Set("new_org_key", account.Key)
	}
	text, err := b.do(request{method: "POST", path: "server/register", kind: formType, open: true,
		body: []byte(form.Encode())})
	if err != nil {
		return false, err
	}
	if r.Rotate { // the old key is dead: store the new one before anything else can fail
		b.account.Store(&account)
		if err := save(account); err != nil {
			return false, err
		}
	}
	var a struct{ Created bool }
	json.Unmarshal(text, &a)
	return a.Created, nil
}

// proofLifetime is how long a proof of the hostname is valid (protocol).
const proofLifetime = 10 * time.Second

// HostnameProofs keeps the secret that the bouncer fetches from this server's hostname, one at a time. Its methods may
// be called concurrently.
type HostnameProofs struct {
	mu            sync.Mutex
	token, secret string
	until         time.Time
}

// prepare keeps a secret for proofLifetime and returns the token with which it can be fetched.
func (p *HostnameProofs) prepare(secret string, now time.Time) (token string) {
	b := make([]byte, 32)
	rand.Read(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.token, p.secret, p.until = base64.RawURLEncoding.EncodeToString(b), secret, now.Add(proofLifetime)
	return p.token
}

// Get returns the secret of a token; ok is false if there is none or it is too old.
func (p *HostnameProofs) Get(token string, now time.Time) (secret string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if token == "" || token != p.token || now.After(p.until) {
		return "", false
	}
	return p.secret, true
}

// TransferHostname takes over the registration of a hostname by proving that this server answers there. It returns the
// account with its id and a new key; the old key is dead.
func (b *Bouncer) TransferHostname(hostname string, proofs *HostnameProofs) (a BouncerAccount, err error) {
	post := func(path string, form url.Values) ([]byte, error) {
		return b.do(request{method: "POST", path: path, kind: formType, open: true, body: []byte(form.Encode())})
	}
	text, err := post("server/register/transfer", url.Values{"hostname": {hostname}})
	if err != nil {
		return a, err
	}
	var first struct {
		Secret string `json:"verification_secret"`
	}
	if json.Unmarshal(text, &first) != nil || first.Secret == "" {
		return a, errors.New("the push bouncer's answer has no verification_secret")
	}
	token := proofs.prepare(first.Secret, time.Now())
	text, err = post("server/register/verify_challenge",
		url.Values{"hostname": {hostname}, "access_token": {token}})
	if err != nil {
		return a, err
	}
	var second struct {
		Org string `json:"zulip_org_id"`
		Key string `json:"zulip_org_key"`
	}
	if json.Unmarshal(text, &second) != nil || second.Org == "" || second.Key == "" {
		return a, errors.New("the push bouncer's answer has no zulip_org_id and zulip_org_key")
	}
	a = BouncerAccount{URL: b.Account().URL, Org: second.Org, Key: second.Key}
	b.account.Store(&a)
	return a, nil
}

// SetAccount replaces the account in use.
func (b *Bouncer) SetAccount(a BouncerAccount) { b.account.Store(&a) }
