package signon

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley/actors/realm"
)

// Identity is a person as a provider describes them.
type Identity struct {
	// Issuer and Subject identify the person; they never change.
	Issuer, Subject string
	// Email is an address of the person, or "". Verified says that the provider has checked that they own it.
	Email    string
	Verified bool
	Name     string // full name, or ""
	// Rules are the numbers of the rules of the provider that are about the person.
	Rules []int
	// Fields are values of custom profile fields; nil: the provider has none. They are not stored in cookies.
	Fields map[string]string `json:"-"`
}

// Flow is the state of one login between Begin and Finish. It has secrets: the caller seals it before the browser
// stores it, and uses it once.
type Flow struct {
	State    string // returned by the provider: the answer belongs to this login
	Nonce    string // returned in the ID token: the token was made for this login
	Verifier string // proves that the code is used by the program that has asked for it (PKCE)
	Redirect string // the address to which the provider redirects
}

// NewFlow returns the state of a new login.
func NewFlow(redirect string) Flow {
	return Flow{State: token(), Nonce: token(), Verifier: token(), Redirect: redirect}
}

// token returns 256 random bits as text.
func token() string {
	b := make([]byte, 32)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Provider is one login provider. All methods are safe for concurrent use.
type Provider interface {
	// Begin returns the address of the provider's page for a login.
	Begin(context.Context, Flow) (string, error)
	// Finish checks the answer with which the provider has redirected the browser, and returns the person.
	Finish(context.Context, Flow, url.Values) (Identity, error)
	// Check asks the provider for all that a login needs before a person is involved. It calls report after each step.
	Check(ctx context.Context, report func(step string)) error
}

// Entry is a provider with its names.
type Entry struct {
	Type, Name, Display string
	Issuer              string
	Provider                       // nil for a directory, which has no pages
	Directory           *Directory // nil for a provider with pages
	config              *Config
}

// IconPath is the path of the pictures of providers on this server; type, name and a part of a hash follow.
const IconPath = "/accounts/login/icon/"

// iconPath returns the path of the picture of the provider, which changes with the picture; "" if there is none.
func (e *Entry) iconPath() string {
	if e.config.icon == nil {
		return ""
	}
	sum := sha256.Sum256(e.config.icon)
	return IconPath + e.Type + "/" + url.PathEscape(e.Name) + "/" + hex.EncodeToString(sum[:4])
}

// Icon returns the picture of the provider and its type; nil if there is none.
func (e *Entry) Icon() (picture []byte, typ string) {
	return e.config.icon, http.DetectContentType(e.config.icon)
}

// Addresses returns the addresses of the servers of the provider, to which this server connects or sends
// browsers.
func (e *Entry) Addresses() (out []string) {
	switch {
	case e.Directory != nil:
		return e.config.URLs
	case e.config.metadata == nil:
		return []string{e.Issuer}
	}
	for _, d := range e.config.metadata.IDPSSODescriptors {
		for _, s := range d.SingleSignOnServices {
			out = append(out, s.Location)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Check asks the provider for all that a login needs before a person is involved. It calls report after each step.
func (e *Entry) Check(ctx context.Context, report func(step string)) error {
	if e.Directory != nil {
		return e.Directory.Check(ctx, report)
	}
	return e.Provider.Check(ctx, report)
}

// Providers are the login providers of a server. It is never modified. A nil one is empty.
type Providers struct {
	list     []*Entry
	policies map[string]realm.LoginPolicy // by subdomain, or allOthers
	text     string                       // everything that decides about logins, with the secrets
}

// Open reads the configuration file. Without a path there are no providers.
func Open(path string) (*Providers, error) {
	p := &Providers{}
	if path == "" {
		return p, nil
	}
	configs, policies, err := read(path)
	if err != nil {
		return nil, err
	}
	p.policies = policies
	for _, c := range configs {
		e := &Entry{Type: c.Type, Name: c.Name, Display: c.DisplayName, Issuer: c.Issuer, config: c}
		switch c.Type {
		case OIDC:
			e.Provider = newOIDC(c, time.Now)
		case GitHub:
			e.Provider = newGitHub(c)
		case SAML:
			e.Provider = newSAML(c, time.Now)
		case LDAP:
			e.Directory = &Directory{c}
		}
		p.list = append(p.list, e)
		p.text += strings.Join([]string{c.Type, c.Name, c.Issuer, c.ClientID, c.secret, c.BaseDN, c.UserFilter,
			c.bindPassword, samlKeys(c)}, "\n") + fmt.Sprint(c.URLs, c.Rules) + "\n"
	}
	return p, nil
}

// samlKeys returns the keys and the name of a SAML server.
func samlKeys(c *Config) string {
	if c.metadata == nil {
		return ""
	}
	text, err := xml.Marshal(c.metadata)
	if err != nil {
		panic("BUG: encode metadata: " + err.Error())
	}
	return string(text)
}

// Secrets returns a text that changes with everything that decides about logins. It contains the secrets.
func (p *Providers) Secrets() string { return p.text }

// Of returns the providers of the organization with a subdomain, in the order of the file.
func (p *Providers) Of(subdomain string) (out []*Entry) {
	if p == nil {
		return nil
	}
	for _, e := range p.list {
		if c := e.config; c.Organizations == nil || slices.Contains(c.Organizations, subdomain) {
			out = append(out, e)
		}
	}
	return out
}

// Find returns a provider of an organization, or nil. With the type "" the name is enough.
func (p *Providers) Find(subdomain, typ, name string) *Entry {
	for _, e := range p.Of(subdomain) {
		if (typ == "" || e.Type == typ) && e.Name == name {
			return e
		}
	}
	return nil
}

// Directories returns the directories of an organization.
func (p *Providers) Directories(subdomain string) (out []*Entry) {
	for _, e := range p.Of(subdomain) {
		if e.Directory != nil {
			out = append(out, e)
		}
	}
	return out
}

// All returns all providers.
func (p *Providers) All() []*Entry { return p.list }

// FindByName returns the first provider with a name, or nil.
func (p *Providers) FindByName(name string) *Entry {
	for _, e := range p.list {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Names returns the names of all providers.
func (p *Providers) Names() (out []string) {
	for _, e := range p.list {
		out = append(out, e.Name)
	}
	return out
}

// code returns the code of a provider's answer. It refuses answers to another login, and those of another provider.
// issuerRequired says that this provider names itself in all answers (RFC 9207).
func (f *Flow) code(answer url.Values, issuer string, issuerRequired bool) (string, error) {
	state := answer.Get("state")
	if f.State == "" || subtle.ConstantTimeCompare([]byte(state), []byte(f.State)) != 1 {
		return "", fail("This login was not started in this browser, or it took too long. Please try again.",
			errors.New("the state of the answer is wrong"))
	}
	if iss := answer.Get("iss"); iss != issuer && (iss != "" || issuerRequired) {
		return "", fail("The answer is from another login provider. Please try again.",
			errors.New("the answer is from the issuer "+quoted(iss)))
	}
	if code := answer.Get("error"); code != "" {
		return "", fail("The login provider has refused the login, or you have cancelled it.",
			errors.New("the provider answers "+quoted(code)+": "+quoted(answer.Get("error_description"))))
	}
	code := answer.Get("code")
	if code == "" || len(code) > maxCode {
		return "", fail("The login provider sent a wrong answer. Please try again.", errors.New("there is no code"))
	}
	return code, nil
}

const (
	// maxCode limits the code of an answer in bytes; it comes in an address.
	maxCode = 4096
	// maxQuoted limits texts of a provider in the log, in bytes.
	maxQuoted = 200
)

// quoted returns the beginning of a text of a provider for the log.
func quoted(text string) string {
	if len(text) > maxQuoted {
		text = text[:maxQuoted]
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text), "?")
}
