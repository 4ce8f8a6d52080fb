package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"parley/actors/realm"
)

// Paths of the pages that links in emails open; the token follows them (protocol).
const (
	SignUpPath       = "/accounts/do_confirm/"
	ResetPath        = "/accounts/password/reset/"
	OrganizationPath = "/accounts/new_organization/"
	UnsubscribePath  = "/accounts/unsubscribe/"
)

// linkPaths are the paths by the kind of the link.
var linkPaths = map[realm.EmailedLinkKind]string{
	realm.SignUpLink: SignUpPath, realm.ResetLink: ResetPath, realm.OrganizationLink: OrganizationPath,
}

// linkToken is the readable part of the token of a link. The address is left out of links that reset a password: if one
// reaches another person, it does not reveal whose account it is.
type linkToken struct {
	Kind      realm.EmailedLinkKind `json:"k"`
	Until     int64                 `json:"t"`
	User      realm.UserID          `json:"u,omitempty"`
	Email     string                `json:"e,omitempty"`
	Subdomain string                `json:"s,omitempty"`
	Org       string                `json:"o,omitempty"`
}

// linkSignatureText returns the text that the signature of a link covers.
func linkSignatureText(id realm.ID, l realm.EmailedLink) string {
	if l.Kind == realm.OrganizationLink {
		id = 0 // the organization does not exist yet
	}
	return fmt.Sprintf("link %d of %d for %d %q until %d, credentials %x, organization %q %q", l.Kind, id, l.User,
		l.Email, l.Until, l.State, l.Subdomain, l.Org)
}

// emailedLinkToken returns the last part of the address of a link.
func emailedLinkToken(t *Tools, id realm.ID, l realm.EmailedLink) string {
	shown := linkToken{l.Kind, l.Until, l.User, l.Email, l.Subdomain, l.Org}
	if l.Kind == realm.ResetLink {
		shown.Email = ""
	}
	text, err := json.Marshal(shown)
	if err != nil {
		panic("BUG: encode link: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(text) + "." + t.Sign(linkSignatureText(id, l))
}

// emailedLinkPath returns the path of the page that a link opens.
func emailedLinkPath(t *Tools, id realm.ID, l realm.EmailedLink) string {
	path := linkPaths[l.Kind]
	if l.Kind == realm.ResetLink {
		path += l.User.String() + "/" // protocol
	}
	return path + emailedLinkToken(t, id, l)
}

// maxLinkToken limits the token of a link in bytes; an address has at most 254 and a name at most 40 characters.
const maxLinkToken = 2000

// findEmailedLink returns the link of a token, and checks its signature. The caller checks whether it is still valid.
func findEmailedLink(c *Call, token string, kind realm.EmailedLinkKind) (l realm.EmailedLink, err error) {
	body, mark, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	var shown linkToken
	if err != nil || len(token) > maxLinkToken || json.Unmarshal(text, &shown) != nil || shown.Kind != kind {
		return l, realm.ErrEmailedLink()
	}
	l = realm.EmailedLink{Kind: kind, Email: shown.Email, Until: shown.Until, User: shown.User,
		Subdomain: shown.Subdomain, Org: shown.Org}
	if kind == realm.ResetLink {
		if l, err = Read(c.asServer(), func(v realm.View) (realm.EmailedLink, error) {
			return v.CurrentReset(shown.User, shown.Until)
		}); err != nil {
			return l, err
		}
	}
	if !c.Tools.VerifySignature(linkSignatureText(c.Realm, l), mark) {
		return l, realm.ErrEmailedLink()
	}
	return l, nil
}

// asServer returns the call with the server as its caller.
func (c *Call) asServer() *Call {
	server := *c
	server.Account, server.Session, server.Caller = nil, nil, realm.Caller{System: true, Client: c.Caller.Client}
	return &server
}

// UnsubscribeURL returns the address at which a user switches off emails like this one, or "".
func UnsubscribeURL(email realm.Email, id realm.ID, s Site, t *Tools) string {
	u := email.Unsubscribe
	if u == nil {
		return ""
	}
	return s.URL + UnsubscribePath + string(u.Topic) + "/" + u.User.String() + "." + t.Sign(unsubscribeText(id, *u))
}

func unsubscribeText(id realm.ID, u realm.Unsubscription) string {
	return fmt.Sprintf("unsubscribe %d in %d from %q", u.User, id, u.Topic)
}

// FindUnsubscription returns the user and the kind of emails that the address of a link names. The link does not
// expire: it is in emails that are kept for years.
func FindUnsubscription(c *Call, topic, token string) (u realm.Unsubscription, err error) {
	text, mark, _ := strings.Cut(token, ".")
	id, err := strconv.ParseInt(text, 10, 64)
	u = realm.Unsubscription{User: realm.UserID(id), Topic: realm.EmailTopic(topic)}
	if err != nil || !u.Topic.Known() || !c.Tools.VerifySignature(unsubscribeText(c.Realm, u), mark) {
		return u, realm.ErrEmailedLink()
	}
	return u, nil
}

// Unsubscribe switches off the emails that a link names.
func Unsubscribe(c *Call, u realm.Unsubscription) error {
	_, err := Execute(c.asServer(), realm.StopEmails{Unsubscription: u})
	return err
}
