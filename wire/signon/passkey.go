package signon

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"

	"parley/actors/realm"
)

// maxPasskeyAnswer limits the answer of a browser about a passkey in bytes: an identifier of 1 kB, a certificate that
// the server does not ask for, and the encoding.
const maxPasskeyAnswer = 32 << 10

// PasskeyUse is the purpose for which a page asks for a passkey.
type PasskeyUse string

const (
	AddPasskey     PasskeyUse = "add"
	PasskeyFactor  PasskeyUse = "factor" // prove a second factor, after the password
	PasskeyInstead PasskeyUse = "login"  // log in without a password; the device asks for a PIN or a fingerprint
)

// PasskeySite is the place of the passkeys of an organization: browsers give them to no other host.
type PasskeySite struct{ URL, Name string }

// PasskeyUser is a user with passkeys.
type PasskeyUser struct {
	ID          realm.UserID
	Name, Email string
	Passkeys    []realm.Passkey
}

// PasskeyQuestion is a question to a device of a user. The caller stores it in a sealed form until the answer.
type PasskeyQuestion struct {
	Use     PasskeyUse
	User    realm.UserID // 0 for PasskeyInstead
	Asked   int64        // Unix milliseconds
	Session webauthn.SessionData
}

// errPasskeyAnswer is the error of an answer that is not valid; for the log.
var errPasskeyAnswer = errors.New("the browser sent no valid answer about a passkey")

// PasskeysWork reports whether browsers have passkeys for an address: it has a host name and, unless it is of this
// machine, TLS.
func PasskeysWork(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || net.ParseIP(u.Hostname()) != nil {
		return false
	}
	return u.Scheme == "https" || u.Hostname() == "localhost" || strings.HasSuffix(u.Hostname(), ".localhost")
}

// library returns the library with the values of the site.
func (s PasskeySite) library() (*webauthn.WebAuthn, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	name := s.Name
	if name == "" {
		name = u.Hostname()
	}
	return webauthn.New(&webauthn.Config{RPID: u.Hostname(), RPDisplayName: name, RPOrigins: []string{s.URL},
		AttestationPreference: protocol.PreferNoAttestation})
}

// passkeyAlgorithms are the algorithms of new passkeys: those of all devices that are sold.
var passkeyAlgorithms = []protocol.CredentialParameter{
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgES256},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgEdDSA},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgRS256},
}

// AskPasskey returns a question to a device, and the options of the browser's function in JSON. user has no values for
// PasskeyInstead.
func (s PasskeySite) AskPasskey(use PasskeyUse, user PasskeyUser, now time.Time) (
	q PasskeyQuestion, options []byte, err error,
) {
	lib, err := s.library()
	if err != nil {
		return q, nil, err
	}
	q = PasskeyQuestion{Use: use, User: user.ID, Asked: now.UnixMilli()}
	var session *webauthn.SessionData
	var question any
	switch use {
	case AddPasskey:
		question, session, err = lib.BeginRegistration(user,
			webauthn.WithCredentialParameters(passkeyAlgorithms),
			webauthn.WithExclusions(webauthn.Credentials(user.WebAuthnCredentials()).CredentialDescriptors()),
			webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
				ResidentKey:      protocol.ResidentKeyRequirementPreferred,
				UserVerification: protocol.VerificationPreferred}))
	case PasskeyFactor:
		question, session, err = lib.BeginLogin(user, webauthn.WithUserVerification(protocol.VerificationDiscouraged))
	default:
		question, session, err = lib.BeginDiscoverableLogin(
			webauthn.WithUserVerification(protocol.VerificationRequired))
	}
	if err != nil {
		return q, nil, err
	}
	q.Session = *session
	options, err = json.Marshal(question)
	return q, options, err
}

// NewPasskey returns the passkey of an answer to a question with AddPasskey. The caller gives it a name.
func (s PasskeySite) NewPasskey(q PasskeyQuestion, user PasskeyUser, answer string) (p realm.Passkey, err error) {
	lib, err := s.library()
	if err != nil {
		return p, err
	}
	if q.Use != AddPasskey || q.User != user.ID || len(answer) > maxPasskeyAnswer {
		return p, errPasskeyAnswer
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(answer))
	if err != nil {
		return p, err
	}
	c, err := lib.CreateCredential(user, q.Session, parsed)
	if err != nil {
		return p, err
	}
	return realm.Passkey{ID: c.ID, Key: c.PublicKey, Asked: q.Asked, Count: c.Authenticator.SignCount,
		Flags: byte(c.Flags.ProtocolValue())}, nil
}

// ProvePasskey returns the use of a passkey that an answer proves. find returns the user with an id.
func (s PasskeySite) ProvePasskey(
	q PasskeyQuestion, answer string, find func(realm.UserID) (PasskeyUser, error),
) (use realm.UsePasskey, err error) {
	lib, err := s.library()
	if err != nil {
		return use, err
	}
	if len(answer) > maxPasskeyAnswer {
		return use, errPasskeyAnswer
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(answer))
	if err != nil {
		return use, err
	}
	var user PasskeyUser
	var c *webauthn.Credential
	switch q.Use {
	case PasskeyFactor:
		if user, err = find(q.User); err == nil {
			c, err = lib.ValidateLogin(user, q.Session, parsed)
		}
	case PasskeyInstead:
		_, c, err = lib.ValidatePasskeyLogin(func(_, handle []byte) (webauthn.User, error) {
			if len(handle) != 8 {
				return nil, errPasskeyAnswer
			}
			user, err = find(realm.UserID(binary.BigEndian.Uint64(handle)))
			return user, err
		}, q.Session, parsed)
	default:
		err = errPasskeyAnswer
	}
	switch {
	case err != nil:
		return use, err
	case c.Authenticator.CloneWarning:
		return use, errors.New("the passkey has counted fewer signatures than before: there may be a copy of it")
	}
	return realm.UsePasskey{User: user.ID, ID: c.ID, Asked: q.Asked,
		Count: parsed.Response.AuthenticatorData.Counter, Flags: byte(c.Flags.ProtocolValue())}, nil
}

// WebAuthnID returns the handle by which devices know the account. It says nothing about the person.
func (u PasskeyUser) WebAuthnID() []byte { return binary.BigEndian.AppendUint64(nil, uint64(u.ID)) }

func (u PasskeyUser) WebAuthnName() string        { return u.Email }
func (u PasskeyUser) WebAuthnDisplayName() string { return u.Name }

// WebAuthnCredentials returns the passkeys of the account as the library needs them.
func (u PasskeyUser) WebAuthnCredentials() (out []webauthn.Credential) {
	for _, p := range u.Passkeys {
		out = append(out, webauthn.Credential{ID: p.ID, PublicKey: p.Key,
			Flags:         webauthn.NewCredentialFlags(protocol.AuthenticatorFlags(p.Flags)),
			Authenticator: webauthn.Authenticator{SignCount: p.Count}})
	}
	return out
}
