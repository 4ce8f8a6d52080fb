package httpd

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
)

func unauthorized(msg string) error { return realm.Refuse(realm.Unauthenticated, "UNAUTHORIZED", msg) }

// deactivatedMsg is the text of every refusal by a deactivated organization. The code differs: see authenticate,
// where all failures of HTTP Basic share one code.
const deactivatedMsg = "This organization has been deactivated"

func errDeactivated() error {
	return realm.Refuse(realm.Unauthenticated, "REALM_DEACTIVATED", deactivatedMsg)
}

// authenticate identifies the caller by HTTP Basic credentials: email address and API key. It sets c.Account and
// the user of c.Caller. A request without credentials passes only where the endpoint allows logged-out visitors and the
// organization is open to them.
//
// Every failure of HTTP Basic has the code UNAUTHORIZED; only the message tells the cause (protocol). The order
// of the checks is part of the protocol, too.
//
// Without credentials, a browser session counts on routes that accept one.
func (s *Server) authenticate(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint, r *route) error {
	header := ctx.Request.Header.Peek("Authorization")
	if e.APIKeyInQuery {
		if _, sent := c.Params.Get("api_key"); sent || len(header) == 0 {
			return s.queryKey(c)
		}
	}
	if len(header) == 0 {
		if r.takesSessions() {
			if found, err := s.authenticateBrowser(ctx, c, r); found {
				return err
			}
		}
		if e.Visitors {
			if c.Realm == 0 {
				return realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain")
			}
			if c.Site.Deactivated {
				return errDeactivated()
			}
			open, err := wire.Read(c, func(v realm.View) (bool, error) { return v.SpectatorsAllowed(), nil })
			if err == nil && open {
				return nil
			}
		}
		return realm.ErrNotLoggedIn()
	}
	return s.checkCredentials(c, header, e.AllowWebhookBots, s.findAccount)
}

// findAccount returns the account with an API key of any organization, which is loaded if it is not in memory.
func (s *Server) findAccount(hash [32]byte) (*wire.Account, bool) {
	a, ok := s.options.Server.AccountByKeyHash(hash)
	if !ok && s.options.Sleeping != nil && s.options.Sleeping.WakeByKey(hash) {
		return s.options.Server.AccountByKeyHash(hash)
	}
	return a, ok
}

// usualCredentialBytes is the size of decoded credentials up to which they need no allocation: an email address of
// 200 bytes and a key.
const usualCredentialBytes = 256

// checkCredentials identifies the caller by the value of an Authorization header, for the ordinary path and the fast
// path. It sets c.Account and the user of c.Caller. c.Realm and c.Site must be set. find returns the account with an
// API key.
func (s *Server) checkCredentials(
	c *wire.Call, header []byte, allowWebhookBots bool, find func(hash [32]byte) (*wire.Account, bool),
) error {
	scheme, credentials, _ := bytes.Cut(header, []byte(" "))
	if !bytes.EqualFold(scheme, []byte("basic")) {
		return realm.BadRequest("This endpoint requires HTTP basic authentication.")
	}
	var usual [usualCredentialBytes]byte
	plain := usual[:]
	credentials = bytes.TrimSpace(credentials)
	if n := base64.StdEncoding.DecodedLen(len(credentials)); n > len(plain) {
		plain = make([]byte, n)
	}
	n, err := base64.StdEncoding.Decode(plain, credentials)
	if plain = plain[:n]; err != nil || bytes.Count(plain, []byte(":")) != 1 {
		return unauthorized("Invalid authorization header for basic auth")
	}
	email, key, _ := bytes.Cut(plain, []byte(":"))
	email, key = bytes.TrimSpace(email), bytes.TrimSpace(key)
	if !wellFormedKey(key) {
		return unauthorized("Malformed API key")
	}
	if len(email) == 0 { // which only a bearer token does not have
		return unauthorized("Invalid API key")
	}
	return s.checkKey(c, string(key), string(email), allowWebhookBots, find)
}

// checkKey identifies the caller by a well-formed API key, and by an email address unless that is "". It sets what
// checkCredentials sets.
func (s *Server) checkKey(
	c *wire.Call, key, email string, allowWebhookBots bool, find func(hash [32]byte) (*wire.Account, bool),
) error {
	hash := s.options.Tools.HashKey(key)
	a, ok := find(hash)
	if !ok || email != "" && !strings.EqualFold(a.Email, email) {
		return unauthorized("Invalid API key")
	}
	if a.Realm == c.Realm && c.Site.Deactivated {
		return unauthorized(deactivatedMsg)
	}
	if !a.Active {
		return unauthorized("Account is deactivated")
	}
	if a.Realm != c.Realm {
		return unauthorized("Account is not associated with this subdomain")
	}
	if a.Bot == realm.IncomingWebhook && !allowWebhookBots {
		return unauthorized("This API is not available to incoming webhook bots.")
	}
	c.Account, c.Caller.User, c.Caller.Key = a, a.User, hash
	s.recordKeyUse(a, hash)
	return nil
}

// recordKeyUse records, at most once a day, that an additional API key was used. The request does not wait for it.
func (s *Server) recordKeyUse(a *wire.Account, hash [32]byte) {
	if k := a.AdditionalKey(hash); k != nil && k.UseRecordDue(s.now().Unix()) {
		s.options.Server.RunAsync([]wire.AsyncCommand{{Realm: a.Realm,
			Caller: realm.Caller{
				System:    true,
				Client:    "Internal",
				Operation: "note the use of an API key",
			},
			CommandWithCallback: realm.RecordKeyUse{User: a.User, Hash: hash}}})
	}
}

// queryKey identifies the caller by the parameter api_key. Unlike in authenticate, each failure has a code of its
// own (protocol).
func (s *Server) queryKey(c *wire.Call) error {
	key, sent := c.Params.Get("api_key")
	key = strings.TrimSpace(key)
	hash := s.options.Tools.HashKey(key)
	a, ok := s.findAccount(hash)
	switch {
	case !sent:
		return form.Missing("api_key")
	case !wellFormedKey(key):
		return realm.Refuse(realm.Unauthenticated, "INVALID_API_KEY", "Malformed API key")
	case !ok:
		return realm.Refuse(realm.Unauthenticated, "INVALID_API_KEY", "Invalid API key")
	case a.Realm != c.Realm:
		return realm.BadRequest("Account is not associated with this subdomain")
	case c.Site.Deactivated:
		return errDeactivated()
	case !a.Active:
		return realm.Refuse(realm.Unauthenticated, "USER_DEACTIVATED", "Account is deactivated")
	}
	c.Account, c.Caller.User, c.Caller.Key = a, a.User, hash
	s.recordKeyUse(a, hash)
	return nil
}

// keyLength is the length of an API key in characters (protocol).
const keyLength = 32

func wellFormedKey[T string | []byte](k T) bool {
	if len(k) != keyLength {
		return false
	}
	for _, c := range []byte(k) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}
