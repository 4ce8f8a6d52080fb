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

// sealed is the content of a sealed cookie, or of another text that a page gets back.
type sealed struct {
	Until int64           `json:"t"` // Unix seconds
	Value json.RawMessage `json:"v"`
}

// seal returns a text that unseal reads for sealedTime, for the same use and in the same organization.
func (s *Server) seal(p *pageRequest, use string, value any) (string, error) {
	text, err := json.Marshal(value)
	if err == nil {
		text, err = json.Marshal(sealed{Until: s.now().Add(sealedTime).Unix(), Value: text})
	}
	if err != nil {
		return "", err
	}
	return s.options.Tools.Seal(sealPurpose(p, use), text), nil
}

// unseal reads a sealed text into value. It returns false for one that is not valid, or not any more.
func (s *Server) unseal(p *pageRequest, use, text string, value any) bool {
	opened, ok := s.options.Tools.Unseal(sealPurpose(p, use), text)
	var x sealed
	return ok && json.Unmarshal(opened, &x) == nil && s.now().Unix() < x.Until &&
		json.Unmarshal(x.Value, value) == nil
}

// sealPurpose binds a sealed text to its use and to the organization of a request.
func sealPurpose(p *pageRequest, use string) string {
	return use + " of " + strconv.Itoa(int(p.call.Realm))
}

// setSealed sets a sealed cookie. It refuses values that browsers would not store.
func (s *Server) setSealed(p *pageRequest, c sealedCookie, value any) error {
	b, err := s.seal(p, string(c), value)
	if err != nil {
		return err
	}
	if len(b) > maxSealed {
		return realm.BadRequest("The login provider sent no valid identity.")
	}
	setCookie(p.ctx, p.call.Site, string(c), b, sealedTime)
	return nil
}

// readSealed reads a sealed cookie into value. It returns false if there is none, or none that is valid.
func (s *Server) readSealed(p *pageRequest, c sealedCookie, value any) bool {
	cookie := p.browser.cookieNamed(string(c))
	return len(cookie) > 0 && len(cookie) <= maxSealed && s.unseal(p, string(c), string(cookie), value)
}

// removeSealed removes a sealed cookie.
func (s *Server) removeSealed(p *pageRequest, c sealedCookie) {
	setCookie(p.ctx, p.call.Site, string(c), "", 0)
}
