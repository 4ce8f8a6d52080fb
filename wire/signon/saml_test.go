package signon

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"encoding/xml"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"
)

const (
	samlBase = "https://chat.example.org"
	idpBase  = "https://idp.example.org"
)

// samlKey returns a key with a certificate.
func samlKey(t *testing.T) (*rsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err == nil {
		c, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key, c
}

// samlTest is a SAML server of a test and its client.
type samlTest struct {
	*testing.T
	idp   *saml.IdentityProvider
	entry *Entry
	own   *saml.ServiceProvider
	user  *saml.Session
}

func (s *samlTest) GetServiceProvider(*http.Request, string) (*saml.EntityDescriptor, error) {
	return s.own.Metadata(), nil
}

func (s *samlTest) GetSession(http.ResponseWriter, *http.Request, *saml.IdpAuthnRequest) *saml.Session {
	return s.user
}

func newSAMLTest(t *testing.T, encrypted bool, more string) *samlTest {
	t.Helper()
	key, cert := samlKey(t)
	at := func(path string) url.URL {
		u, _ := url.Parse(idpBase + path)
		return *u
	}
	s := &samlTest{T: t, idp: &saml.IdentityProvider{Key: key, Certificate: cert, MetadataURL: at("/metadata"),
		SSOURL: at("/sso"), LogoutURL: at("/slo"), SignatureMethod: dsig.RSASHA256SignatureMethod},
		user: &saml.Session{ID: "1", Index: "1", CreateTime: time.Now(), ExpireTime: time.Now().Add(time.Hour),
			NameID: "jane-1", NameIDFormat: string(saml.PersistentNameIDFormat), UserEmail: "jane@example.org",
			UserCommonName: "Jane Doe", Groups: []string{"staff", "admins"}}}
	s.idp.ServiceProviderProvider, s.idp.SessionProvider = s, s
	text, err := xml.Marshal(s.idp.Metadata())
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	files := map[string][]byte{"idp.xml": text}
	if encrypted {
		ownKey, ownCert := samlKey(t)
		files["key.pem"] = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY",
			Bytes: x509.MarshalPKCS1PrivateKey(ownKey)})
		files["cert.pem"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ownCert.Raw})
		more = "key_file = \"key.pem\"\ncertificate_file = \"cert.pem\"\n" + more
	}
	files["auth.toml"] = []byte("[[provider]]\nname = \"idp\"\ntype = \"saml\"\nmetadata_file = \"idp.xml\"\n" + more)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := Open(filepath.Join(folder, "auth.toml"))
	if err != nil {
		t.Fatal(err)
	}
	s.entry = list.Find("", SAML, "idp")
	s.own = s.entry.Provider.(*samlProvider).service(samlBase)
	return s
}

// answer makes a login at the server, and returns its state and the message. change changes the assertion before it is
// signed.
func (s *samlTest) answer(change func(*saml.IdpAuthnRequest)) (Flow, []byte) {
	s.Helper()
	f := NewFlow(samlBase + SAMLAnswerPath)
	address, err := s.entry.Begin(s.Context(), f)
	if err != nil {
		s.Fatal(err)
	}
	r := httptest.NewRequest("GET", address, nil)
	request, err := saml.NewIdpAuthnRequest(s.idp, r)
	if err == nil {
		err = request.Validate()
	}
	if err == nil {
		err = saml.DefaultAssertionMaker{}.MakeAssertion(request, s.user)
	}
	if err != nil {
		s.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	if err := request.MakeResponse(); err != nil {
		s.Fatal(err)
	}
	doc := etree.NewDocument()
	doc.SetRoot(request.ResponseEl)
	raw, err := doc.WriteToBytes()
	if err != nil {
		s.Fatal(err)
	}
	return f, raw
}

func (s *samlTest) finish(f Flow, raw []byte) (Identity, error) {
	return s.entry.Finish(s.Context(), f, url.Values{"SAMLResponse": {base64.StdEncoding.EncodeToString(raw)}})
}

// A SAML server identifies a person by a name that stays the same, also in an encrypted assertion.
func TestSAMLLogin(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		s := newSAMLTest(t, encrypted, "[[provider.rule]]\nclaim = \"eduPersonAffiliation\"\nvalue = \"admins\"\n"+
			"role = \"administrator\"\n")
		f, raw := s.answer(nil)
		if bytes.Contains(raw, []byte("EncryptedAssertion")) != encrypted {
			t.Errorf("encrypted %t:\n%s", encrypted, raw)
		}
		who, err := s.finish(f, raw)
		want := Identity{Issuer: "saml:" + idpBase + "/metadata", Subject: "jane-1", Email: "jane@example.org",
			Verified: true, Name: "Jane Doe", Rules: []int{0}}
		if err != nil || !reflect.DeepEqual(who, want) {
			t.Errorf("encrypted %t: %+v %v", encrypted, who, err)
		}
		if _, err := s.finish(f, raw); err == nil {
			t.Error("the same answer identifies a person twice")
		}
		if err := s.entry.Check(t.Context(), func(string) {}); err != nil {
			t.Error(err)
		}
	}
}

// samlAttack changes an answer that is right.
type samlAttack struct {
	name   string
	before func(*saml.IdpAuthnRequest) // before it is signed
	after  func(doc *etree.Document)   // after
	text   func(raw []byte) []byte     // of the message
	flow   func(Flow) Flow             // of the browser
}

func assertionOf(doc *etree.Document) *etree.Element { return doc.FindElement("//Assertion") }

// evil returns a copy of the assertion about another person, without a signature.
func evil(doc *etree.Document) *etree.Element {
	x := assertionOf(doc).Copy()
	x.CreateAttr("ID", "evil")
	x.FindElement("//NameID").SetText("owner")
	x.RemoveChild(x.FindElement("./Signature"))
	return x
}

func unsign(doc *etree.Document) {
	for _, x := range doc.FindElements("//Signature") {
		x.Parent().RemoveChild(x)
	}
}

// onlyAssertionSigned removes the signature of the response.
func onlyAssertionSigned(doc *etree.Document) {
	if x := doc.Root().FindElement("./Signature"); x != nil {
		doc.Root().RemoveChild(x)
	}
}

// wrappings are attacks by signature wrapping: the signed assertion is moved, another one is where it was.
func wrappings() (out []samlAttack) {
	for name, wrap := range map[string]func(doc *etree.Document, bad, good *etree.Element){
		"before the signed one": func(doc *etree.Document, bad, good *etree.Element) {
			doc.Root().InsertChildAt(good.Index(), bad)
		},
		"after the signed one": func(doc *etree.Document, bad, _ *etree.Element) { doc.Root().AddChild(bad) },
		"around the signed one": func(doc *etree.Document, bad, good *etree.Element) {
			doc.Root().RemoveChild(good)
			bad.AddChild(good)
			doc.Root().AddChild(bad)
		},
		"around, in the signature": func(doc *etree.Document, bad, good *etree.Element) {
			signature := good.FindElement("./Signature").Copy()
			doc.Root().RemoveChild(good)
			signature.CreateElement("ds:Object").AddChild(good)
			bad.AddChild(signature)
			doc.Root().AddChild(bad)
		},
		"in an extension": func(doc *etree.Document, bad, good *etree.Element) {
			doc.Root().RemoveChild(good)
			doc.Root().CreateElement("samlp:Extensions").AddChild(good)
			doc.Root().AddChild(bad)
		},
		"with the same id": func(doc *etree.Document, bad, good *etree.Element) {
			bad.CreateAttr("ID", good.SelectAttrValue("ID", ""))
			doc.Root().InsertChildAt(good.Index(), bad)
		},
		"inside the signed one": func(_ *etree.Document, bad, good *etree.Element) { good.AddChild(bad) },
	} {
		out = append(out, samlAttack{name: "wrapping: another assertion " + name, after: func(doc *etree.Document) {
			onlyAssertionSigned(doc)
			wrap(doc, evil(doc), assertionOf(doc))
		}})
	}
	return out
}

// samlAttacks are answers that must be refused.
func samlAttacks(t *testing.T) []samlAttack {
	stranger, strangerCert := samlKey(t)
	assertion := func(change func(*saml.Assertion)) func(*saml.IdpAuthnRequest) {
		return func(r *saml.IdpAuthnRequest) { change(r.Assertion) }
	}
	replace := func(old, new string) func([]byte) []byte {
		return func(raw []byte) []byte { return bytes.ReplaceAll(raw, []byte(old), []byte(new)) }
	}
	past := time.Now().Add(-time.Hour)
	list := append(wrappings(), []samlAttack{
		{name: "no signature", after: unsign},
		{name: "a changed name", text: replace(">jane-1<", ">owner<")},
		{name: "a changed attribute", text: replace("jane@example.org", "evil@example.org")},
		{name: "a signature with another key", before: func(r *saml.IdpAuthnRequest) {
			other := *r.IDP
			other.Key, other.Certificate = stranger, strangerCert
			r.IDP = &other
		}},
		{name: "another audience", before: assertion(func(a *saml.Assertion) {
			a.Conditions.AudienceRestrictions[0].Audience.Value = "https://other.example.org"
		})},
		{name: "no audience", before: assertion(func(a *saml.Assertion) { a.Conditions.AudienceRestrictions = nil })},
		{name: "another recipient", before: assertion(func(a *saml.Assertion) {
			a.Subject.SubjectConfirmations[0].SubjectConfirmationData.Recipient = "https://other.example.org/acs"
		})},
		{name: "expired", before: assertion(func(a *saml.Assertion) { a.Conditions.NotOnOrAfter = past })},
		{name: "the confirmation has expired", before: assertion(func(a *saml.Assertion) {
			a.Subject.SubjectConfirmations[0].SubjectConfirmationData.NotOnOrAfter = past
		})},
		{name: "not valid yet", before: assertion(func(a *saml.Assertion) {
			a.Conditions.NotBefore = time.Now().Add(time.Hour)
		})},
		{name: "made long ago", before: assertion(func(a *saml.Assertion) { a.IssueInstant = past })},
		{name: "another issuer", before: assertion(func(a *saml.Assertion) {
			a.Issuer.Value = "https://evil.example"
		})},
		{name: "of another request", before: assertion(func(a *saml.Assertion) {
			a.Subject.SubjectConfirmations[0].SubjectConfirmationData.InResponseTo = "id-other"
		})},
		{name: "the answer to another login", flow: func(f Flow) Flow { return NewFlow(f.Redirect) }},
		{name: "no login at all", flow: func(f Flow) Flow { return Flow{Redirect: f.Redirect} }},
		{name: "at another organization", flow: func(f Flow) Flow {
			f.Redirect = "https://other.example.org" + SAMLAnswerPath
			return f
		}},
		{name: "a name that changes each time", before: assertion(func(a *saml.Assertion) {
			a.Subject.NameID.Format = string(saml.TransientNameIDFormat)
		})},
		{name: "no name", before: assertion(func(a *saml.Assertion) { a.Subject.NameID.Value = "" })},
		{name: "XXE: an external entity", text: func(raw []byte) []byte {
			return append([]byte(`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>`),
				bytes.ReplaceAll(raw, []byte(">jane-1<"), []byte(">&e;<"))...)
		}},
		{name: "a billion laughs", text: func(raw []byte) []byte {
			return append([]byte(`<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>`), raw...)
		}},
		{name: "a document type", text: func(raw []byte) []byte { return append([]byte(`<!DOCTYPE x>`), raw...) }},
		{name: "an instruction", text: func(raw []byte) []byte {
			return append([]byte(`<?xml-stylesheet href="x"?>`), raw...)
		}},
		{name: "not XML", text: func([]byte) []byte { return []byte("SAML") }},
		{name: "nothing", text: func([]byte) []byte { return nil }},
		{name: "huge", text: func(raw []byte) []byte {
			return append(raw, bytes.Repeat([]byte(" "), maxSAMLMessage)...)
		}},
		{name: "a failure", text: replace("status:Success", "status:AuthnFailed")},
		{name: "after a comment in the name", text: replace(">jane-1<", ">jane<!---->-1<"), before: assertion(
			func(a *saml.Assertion) { a.Subject.NameID.Value = "jane-12" })},
	}...)
	slices.SortStableFunc(list, func(a, b samlAttack) int { return strings.Compare(a.name, b.name) })
	return list
}

// Each attack on a SAML login is refused with a reason, and identifies no person.
func TestSAMLAttacks(t *testing.T) {
	s := newSAMLTest(t, false, "")
	for _, x := range samlAttacks(t) {
		f, raw := s.answer(x.before)
		if x.after != nil {
			doc := etree.NewDocument()
			if err := doc.ReadFromBytes(raw); err != nil {
				t.Fatal(err)
			}
			x.after(doc)
			raw, _ = doc.WriteToBytes()
		}
		if x.name == "after a comment in the name" {
			raw = bytes.ReplaceAll(raw, []byte(">jane-12<"), []byte(">jane-1<!---->2<"))
		} else if x.text != nil {
			raw = x.text(raw)
		}
		if x.flow != nil {
			f = x.flow(f)
		}
		who, err := s.finish(f, raw)
		if x.name == "after a comment in the name" && err == nil && who.Subject == "jane-12" { // the whole name counts
			continue
		}
		var failed *Error
		if !errors.As(err, &failed) || !reflect.DeepEqual(who, Identity{}) {
			t.Errorf("%s: %+v, %v\n%s", x.name, who, err, raw)
			continue
		}
		t.Logf("| %s | refused: %s |", x.name, quoted(failed.Err.Error()))
	}
	if f, raw := s.answer(nil); true {
		if _, err := s.finish(f, raw); err != nil {
			t.Errorf("after the attacks: %v", err)
		}
	}
}

// The right server is found by the issuer, which is checked afterwards. Files with mistakes are refused.
func TestSAMLConfig(t *testing.T) {
	s := newSAMLTest(t, false, "organizations = [\"\"]\n")
	list := &Providers{list: []*Entry{s.entry}}
	_, raw := s.answer(nil)
	text := base64.StdEncoding.EncodeToString(raw)
	if list.FindSAML("", text) != s.entry || list.FindSAML("other", text) != nil || list.FindSAML("", "x") != nil {
		t.Error("the server is not found by its issuer")
	}
	metadata, err := s.entry.SAML(samlBase).MetadataXML()
	if err != nil || !bytes.Contains(metadata, []byte(samlBase+SAMLAnswerPath)) {
		t.Errorf("the metadata: %v\n%s", err, metadata)
	}
	for _, x := range [][2]string{{"", "metadata_file is missing"}, {"metadata_file = \"none\"\n", "metadata_file"},
		{"metadata_file = \"secret\"\n", "metadata_file"}} {
		if _, err := open(t, "[[provider]]\nname = \"idp\"\ntype = \"saml\"\n"+x[0]); err == nil ||
			!strings.Contains(err.Error(), x[1]) {
			t.Errorf("%q: %v, want %q", x[0], err, x[1])
		}
	}
}

// A server ends the sessions of a person by a signed request, once.
func TestSAMLLogout(t *testing.T) {
	s := newSAMLTest(t, true, "")
	own := s.entry.SAML(samlBase)
	// The identity provider is the service provider of the library with exchanged roles: it signs in the same way.
	other := &saml.ServiceProvider{EntityID: s.idp.MetadataURL.String(), Key: s.idp.Key.(*rsa.PrivateKey),
		Certificate:     s.idp.Certificate,
		SignatureMethod: dsig.RSASHA256SignatureMethod, IDPMetadata: s.idp.Metadata(),
		AuthnNameIDFormat: saml.PersistentNameIDFormat}
	request, err := other.MakeLogoutRequest(own.SloURL.String(), "jane-1")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	doc := etree.NewDocument()
	doc.SetRoot(request.Element())
	if _, err := doc.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	form := func(raw []byte) url.Values {
		return url.Values{"SAMLRequest": {base64.StdEncoding.EncodeToString(raw)}, "RelayState": {"x"}}
	}
	for name, change := range map[string]func() []byte{
		"another person": func() []byte { return bytes.ReplaceAll(b.Bytes(), []byte("jane-1"), []byte("owner1")) },
		"no signature": func() []byte {
			d := etree.NewDocument()
			d.ReadFromBytes(b.Bytes())
			unsign(d)
			raw, _ := d.WriteToBytes()
			return raw
		},
		"nothing": func() []byte { return nil },
	} {
		if subject, _, err := own.LogOut("", form(change())); err == nil {
			t.Errorf("%s: logs out %q", name, subject)
		}
	}
	subject, back, err := own.LogOut("", form(b.Bytes()))
	if err != nil || subject != "jane-1" || !strings.HasPrefix(back, idpBase+"/slo?") {
		t.Errorf("the request: %q %q %v", subject, back, err)
	}
	if _, _, err := own.LogOut("", form(b.Bytes())); err == nil {
		t.Error("the same request works twice")
	}
	if _, _, err := own.LogOut("SAMLRequest=x", nil); err == nil {
		t.Error("a wrong address works")
	}

}
