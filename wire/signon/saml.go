package signon

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/crewjam/saml"
	"github.com/crewjam/saml/samlsp"
	dsig "github.com/russellhaering/goxmldsig"
)

// SAMLConfig is the keys of a provider that only SAML servers have. id_attribute, email_attribute and name_attribute
// are names of attributes of an assertion, too.
type SAMLConfig struct {
	// MetadataFile is the path of the metadata of the provider. It is a file, so no other program can change the keys.
	MetadataFile string `toml:"metadata_file"`
	// EntityID is the name of this server at the provider; "": the address of its metadata.
	EntityID string `toml:"entity_id"`
	// KeyFile and CertificateFile are PEM files with the key of this server, which signs requests and decrypts
	// assertions.
	KeyFile         string `toml:"key_file"`
	CertificateFile string `toml:"certificate_file"`

	metadata *saml.EntityDescriptor
	pair     *tls.Certificate // nil: none
}

const (
	// maxMetadata limits a file with metadata, in bytes.
	maxMetadata = 1 << 20
	// maxSAMLMessage limits a message of a provider, in bytes of base64.
	maxSAMLMessage = 512 << 10
	// samlIssuer is the beginning of the issuer of a SAML server; its entity id follows. Some providers have the same
	// name for OpenID Connect, and other subjects.
	samlIssuer = "saml:"
	// MaxReplays limits the messages of one provider that are remembered until they expire, about 100 bytes each.
	MaxReplays = 10_000
)

// completeSAML checks the keys of a SAML server, and reads its files.
func (c *Config) completeSAML(folder string) error {
	if c.MetadataFile == "" {
		return errors.New("metadata_file is missing")
	}
	text, err := os.ReadFile(inFolder(folder, c.MetadataFile))
	if err == nil && len(text) > maxMetadata {
		err = fmt.Errorf("it has %d bytes, the limit is %d", len(text), maxMetadata)
	}
	if err == nil {
		c.metadata, err = samlsp.ParseMetadata(text)
	}
	if err != nil {
		return fmt.Errorf("metadata_file: %w", err)
	}
	c.Issuer = orElse(c.Issuer, samlIssuer+c.metadata.EntityID)
	if (c.KeyFile == "") != (c.CertificateFile == "") {
		return errors.New("key_file and certificate_file belong together")
	}
	if c.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(inFolder(folder, c.CertificateFile), inFolder(folder, c.KeyFile))
		if err != nil {
			return fmt.Errorf("key_file and certificate_file: %w", err)
		}
		c.pair = &pair
	}
	p := newSAML(c, time.Now)
	return c.checkSSO(p.service("https://chat.example.org").GetSSOBindingLocation(saml.HTTPRedirectBinding))
}

// checkSSO refuses a page of the provider that is not encrypted where it must be.
func (c *Config) checkSSO(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return errors.New("metadata_file: there is no SingleSignOnService with the binding HTTP-Redirect")
	case c.AllowInsecure && !isLoopback(u.Hostname()):
		return fmt.Errorf("allow_insecure is only for providers on this machine, not for %q", u.Host)
	case u.Scheme != "https" && !(u.Scheme == "http" && c.AllowInsecure):
		return fmt.Errorf("metadata_file: %s is not encrypted", address)
	}
	return nil
}

// samlProvider is a SAML 2.0 server: logins by a redirect, whose answers come in forms.
type samlProvider struct {
	config *Config
	now    func() time.Time
	used   replays
}

func newSAML(c *Config, now func() time.Time) *samlProvider {
	return &samlProvider{config: c, now: now}
}

// Paths of the pages for SAML servers, below the address of an organization. SAMLAnswerPath gets the answers of all
// providers; the others have the name of the provider before SAMLMetadataEnd or SAMLLogoutEnd.
const (
	SAMLAnswerPath  = "/complete/saml/"
	SAMLPath        = "/saml/"
	SAMLMetadataEnd = "/metadata.xml"
	SAMLLogoutEnd   = "/logout"
)

// service returns the client of the provider for the organization with an address.
func (p *samlProvider) service(base string) *saml.ServiceProvider {
	at := func(path string) url.URL {
		u, err := url.Parse(base + path)
		if err != nil {
			panic("BUG: address of an organization: " + err.Error())
		}
		return *u
	}
	own := SAMLPath + url.PathEscape(p.config.Name)
	s := &saml.ServiceProvider{EntityID: p.config.EntityID, MetadataURL: at(own + SAMLMetadataEnd),
		AcsURL: at(SAMLAnswerPath), SloURL: at(own + SAMLLogoutEnd), IDPMetadata: p.config.metadata,
		AuthnNameIDFormat: saml.PersistentNameIDFormat, RejectSHA1Signatures: true, RequireSignedResponseForCBC: true,
		RejectUnknownConditions: true, ReplayCache: &p.used, MetadataOmitValidUntil: true,
		LogoutBindings:                   []string{saml.HTTPRedirectBinding, saml.HTTPPostBinding},
		AssertionConsumerServiceBindings: []string{saml.HTTPPostBinding}}
	if p.config.IDAttribute != "" {
		s.AuthnNameIDFormat = saml.UnspecifiedNameIDFormat
	}
	if pair := p.config.pair; pair != nil {
		s.Key, _ = pair.PrivateKey.(crypto.Signer)
		s.Certificate, _ = x509.ParseCertificate(pair.Certificate[0])
		s.SignatureMethod = dsig.RSASHA256SignatureMethod
		if s.Certificate.PublicKeyAlgorithm == x509.ECDSA {
			s.SignatureMethod = dsig.ECDSASHA256SignatureMethod
		}
	}
	return s
}

// requestID returns the id of the request of a login. It follows from the state, so that an answer can be checked
// without the cookie of the login: browsers send none with a form of another site.
func requestID(state string) string {
	sum := sha256.Sum256([]byte("id of the request of " + state))
	return "id-" + hex.EncodeToString(sum[:20])
}

// Begin implements Provider.
func (p *samlProvider) Begin(_ context.Context, f Flow) (string, error) {
	s := p.service(strings.TrimSuffix(f.Redirect, SAMLAnswerPath))
	r, err := s.MakeAuthenticationRequest(s.GetSSOBindingLocation(saml.HTTPRedirectBinding), saml.HTTPRedirectBinding,
		saml.HTTPPostBinding)
	if err != nil {
		return "", samlError(err)
	}
	r.ID = requestID(f.State)
	u, err := r.Redirect(f.State, s)
	if err != nil {
		return "", samlError(err)
	}
	return u.String(), nil
}

// samlError returns the Error of a message that is not valid.
func samlError(err error) error {
	var invalid *saml.InvalidResponseError
	if errors.As(err, &invalid) {
		err = invalid.PrivateErr
	}
	return fail("The login provider sent an identity that is not valid. Please try again.", fmt.Errorf("SAML: %w", err))
}

// Finish implements Provider. Of f it needs the state and the address; the caller must check afterwards that the
// browser has started the login with that state.
func (p *samlProvider) Finish(_ context.Context, f Flow, answer url.Values) (Identity, error) {
	text := answer.Get("SAMLResponse")
	if f.State == "" || text == "" || len(text) > maxSAMLMessage {
		return Identity{}, fail("The login provider sent a wrong answer. Please try again.",
			fmt.Errorf("the answer has %d bytes", len(text)))
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		_, err = SAMLIssuer(text)
	}
	if err != nil {
		return Identity{}, samlError(err)
	}
	s := p.service(strings.TrimSuffix(f.Redirect, SAMLAnswerPath))
	a, err := s.ParseXMLResponse(raw, []string{requestID(f.State)}, s.AcsURL)
	if err != nil {
		return Identity{}, samlError(err)
	}
	return p.identity(a)
}

// identity returns the person of an assertion that was checked.
func (p *samlProvider) identity(a *saml.Assertion) (Identity, error) {
	values, friendly := Claims{}, Claims{}
	for _, statement := range a.AttributeStatements {
		for _, x := range statement.Attributes {
			var list []string
			for _, v := range x.Values[:min(len(x.Values), maxClaimValues)] {
				list = append(list, v.Value)
			}
			values[x.Name] = append(values[x.Name], list...)
			if x.FriendlyName != "" {
				friendly[x.FriendlyName] = list
			}
		}
	}
	for name, list := range friendly {
		if _, known := values[name]; !known {
			values[name] = list
		}
	}
	first := func(names ...string) string {
		for _, name := range names {
			if list := values[name]; len(list) > 0 && list[0] != "" {
				return list[0]
			}
		}
		return ""
	}
	id := Identity{Issuer: p.config.Issuer}
	nameID := a.Subject.NameID
	switch {
	case p.config.IDAttribute != "":
		id.Subject = first(p.config.IDAttribute)
	case nameID != nil && nameID.Format != string(saml.TransientNameIDFormat):
		id.Subject = nameID.Value
	}
	if id.Subject == "" || len(id.Subject) > maxSubject {
		return Identity{}, fail("The login provider sent an identity that is not valid. Please try again.", fmt.Errorf(
			"SAML: the subject has %d bytes; the provider must send a NameID that stays the same, or id_attribute",
			len(id.Subject)))
	}
	if id.Email = first(emailAttributes...); p.config.EmailAttribute != "" {
		id.Email = first(p.config.EmailAttribute)
	}
	if id.Email == "" && nameID != nil && nameID.Format == string(saml.EmailAddressNameIDFormat) {
		id.Email = nameID.Value
	}
	if id.Name = first(nameAttributes...); p.config.NameAttribute != "" {
		id.Name = first(p.config.NameAttribute)
	}
	if id.Name == "" {
		id.Name = strings.TrimSpace(first("givenName", "urn:oid:2.5.4.42") + " " + first("sn", "urn:oid:2.5.4.4"))
	}
	id.Verified, id.Rules = id.Email != "", p.config.matching(values)
	return id, nil
}

// The names of attributes that common providers use.
var (
	emailAttributes = []string{"email", "mail", "urn:oid:0.9.2342.19200300.100.1.3",
		"http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress"}
	nameAttributes = []string{"displayName", "urn:oid:2.16.840.1.113730.3.1.241", "name", "cn", "urn:oid:2.5.4.3",
		"http://schemas.microsoft.com/identity/claims/displayname"}
)

// Check implements Provider. It reads only files: a SAML server is asked by browsers alone.
func (p *samlProvider) Check(_ context.Context, report func(string)) error {
	s := p.service("https://chat.example.org")
	report("the metadata of " + p.config.metadata.EntityID + " has the page " +
		s.GetSSOBindingLocation(saml.HTTPRedirectBinding))
	keys, expired := 0, 0
	for _, d := range p.config.metadata.IDPSSODescriptors {
		for _, k := range d.KeyDescriptors {
			for _, x := range k.KeyInfo.X509Data.X509Certificates {
				der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(x.Data), ""))
				if err != nil {
					continue
				}
				if c, err := x509.ParseCertificate(der); err == nil && k.Use != "encryption" {
					if keys++; p.now().After(c.NotAfter) {
						expired++
					}
				}
			}
		}
	}
	if keys == expired {
		return fail("The login provider has a wrong configuration.",
			fmt.Errorf("metadata_file: %d certificates for signatures, %d of them have expired", keys, expired))
	}
	report(fmt.Sprintf("it has %d certificates for signatures, %d of them have expired", keys, expired))
	report("register " + SAMLPath + p.config.Name + SAMLMetadataEnd + " of each organization at the provider")
	return nil
}

// SAMLServer is a SAML server as the pages of one organization use it.
type SAMLServer struct {
	*saml.ServiceProvider
	entry *Entry
}

// SAML returns the pages of a SAML server for the organization with an address, nil for other providers.
func (e *Entry) SAML(base string) *SAMLServer {
	if p, is := e.Provider.(*samlProvider); is {
		return &SAMLServer{p.service(base), e}
	}
	return nil
}

// MetadataXML returns the metadata of this server for the provider.
func (s *SAMLServer) MetadataXML() ([]byte, error) {
	return xml.MarshalIndent(s.ServiceProvider.Metadata(), "", " ")
}

// LogOut checks a request of the provider to end the sessions of a person: the query of an address, or the form of one
// (nil: there is none). It returns the subject, and the address to which the browser returns ("" if the provider has
// none). Each request works once.
func (s *SAMLServer) LogOut(rawQuery string, form url.Values) (subject, back string, err error) {
	r := &http.Request{Method: http.MethodGet, URL: &url.URL{RawQuery: rawQuery}}
	state := r.URL.Query().Get("RelayState")
	if form != nil {
		r = &http.Request{Method: http.MethodPost, URL: &url.URL{}, Form: form, PostForm: form}
		state = form.Get("RelayState")
	}
	if len(rawQuery) > maxSAMLMessage || len(form.Get("SAMLRequest")) > maxSAMLMessage {
		return "", "", samlError(errors.New("the request is too long"))
	}
	request, err := s.ValidateLogoutRequest(r)
	if err != nil {
		return "", "", samlError(err)
	}
	if s.Key == nil || s.GetSLOBindingLocation(saml.HTTPRedirectBinding) == "" { // an answer must be signed
		return request.NameID.Value, "", nil
	}
	u, err := s.MakeRedirectLogoutResponse(request.ID, state)
	if err != nil {
		return "", "", samlError(err)
	}
	return request.NameID.Value, u.String(), nil
}

// SAMLIssuer returns the issuer of a message in base64, which is not checked yet. It refuses messages with a document
// type: they are attacks by entities.
func SAMLIssuer(text string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", err
	}
	d := xml.NewDecoder(bytes.NewReader(raw))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return "", err
		}
		switch x := token.(type) {
		case xml.Directive, xml.ProcInst:
			if p, is := x.(xml.ProcInst); !is || p.Target != "xml" {
				return "", errors.New("the message has a document type or an instruction")
			}
		case xml.StartElement:
			if depth == 1 && x.Name.Local == "Issuer" {
				var name string
				err := d.DecodeElement(&name, &x)
				return strings.TrimSpace(name), err
			}
			depth++
		case xml.EndElement:
			depth--
		}
	}
}

// FindSAML returns the SAML server of an organization that has made a message in base64, nil if there is none. The
// message is not checked yet.
func (p *Providers) FindSAML(subdomain, text string) *Entry {
	if len(text) > maxSAMLMessage {
		return nil
	}
	issuer, err := SAMLIssuer(text)
	if err != nil {
		return nil
	}
	for _, e := range p.Of(subdomain) {
		if s, is := e.Provider.(*samlProvider); is && s.config.metadata.EntityID == issuer {
			return e
		}
	}
	return nil
}

// replays are the ids of messages that were used. It is safe for concurrent use.
type replays struct {
	mu   sync.Mutex
	list map[string]time.Time // until they expire
}

// Consume implements saml.AssertionReplayCache. If it is full it refuses, so that nothing is used twice.
func (r *replays) Consume(id string, until time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, used := r.list[id]; used {
		return saml.ErrAssertionReplayed
	}
	if len(r.list) >= MaxReplays {
		for other, at := range r.list {
			if time.Now().After(at) {
				delete(r.list, other)
			}
		}
		if len(r.list) >= MaxReplays {
			return errors.New("too many messages of the provider are not expired")
		}
	}
	if r.list == nil {
		r.list = map[string]time.Time{}
	}
	r.list[id] = until
	return nil
}
