package httpd

import (
	"encoding/json"
	"strconv"
	"time"

	"parley/actors/realm"
)

// A sealed cookie has the state of a login that takes several requests. It is encrypted with a key that follows from
// the server's secret, so every core of a cluster can read it, and neither the browser nor a network can. It belongs to
// one organization and one purpose, and it expires.

// sealedCookie is the name of a cookie and the purpose of its content.
type sealedCookie string

const (
	// flowCookie has the state of a login at a provider, from the redirect to its answer.
	flowCookie sealedCookie = "parley_login"
	// identityCookie has a person whom a provider has identified, while the person enters a password or a name.
	identityCookie sealedCookie = "parley_identity"
	// factorCookie has a user with the right password, while they enter a code of the second factor.
	factorCookie sealedCookie = "parley_factor"
	// newFactorCookie has the secret of a second factor that a user is about to add.
	newFactorCookie sealedCookie = "parley_new_factor"
)

const (
	// sealedTime is how long a login may take: the time to find a password and a second factor.
	sealedTime = 10 * time.Minute
	// maxSealed limits a sealed cookie in bytes; browsers store 4096 with the name.
	maxSealed = 3800
)

// sealed is the content of a sealed cookie.
type sealed struct {
	Until int64           `json:"t"` // Unix seconds
	Value json.RawMessage `json:"v"`
}

// purpose binds a sealed cookie to its use and its organization.
func (c sealedCookie) purpose(id realm.ID) string { return string(c) + " of " + strconv.Itoa(int(id)) }

// setSealed sets a sealed cookie. It refuses values that browsers would not store.
func (s *Server) setSealed(p *pageRequest, c sealedCookie, value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		text, err = json.Marshal(sealed{Until: s.now().Add(sealedTime).Unix(), Value: text})
	}
	if err != nil {
		return err
	}
	b := s.options.Tools.Seal(c.purpose(p.call.Realm), text)
	if len(b) > maxSealed {
		return realm.BadRequest("The login provider sent no valid identity.")
	}
	setCookie(p.ctx, p.call.Site, string(c), b, sealedTime)
	return nil
}

// readSealed reads a sealed cookie into value. It returns false if there is none, or none that is valid.
func (s *Server) readSealed(p *pageRequest, c sealedCookie, value any) bool {
	cookie := p.browser.cookieNamed(string(c))
	if len(cookie) == 0 || len(cookie) > maxSealed {
		return false
	}
	text, ok := s.options.Tools.Unseal(c.purpose(p.call.Realm), string(cookie))
	var x sealed
	return ok && json.Unmarshal(text, &x) == nil && s.now().Unix() < x.Until &&
		json.Unmarshal(x.Value, value) == nil
}

// removeSealed removes a sealed cookie.
func (s *Server) removeSealed(p *pageRequest, c sealedCookie) {
	setCookie(p.ctx, p.call.Site, string(c), "", 0)
}
