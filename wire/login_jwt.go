package wire

import (
	"time"

	"github.com/golang-jwt/jwt/v5"

	"parley/actors/realm"
)

var jwtEndpoints = []Endpoint{
	Custom("POST", "/jwt/fetch_api_key", fetchKeyByJWT).withoutLogin(),
}

type jwtAnswer struct {
	loginAnswer
	Profile *userJSON `json:"user,omitzero"`
}

type jwtForm struct {
	Token   string `form:"json_web_token,maxlen=8192"`
	Profile bool   `form:"include_profile"`
}

// fetchKeyByJWT returns the API key of the user that a token names. The token must be signed with HS256, using the key
// that the server's configuration has for the organization.
func fetchKeyByJWT(c *Call, f jwtForm) (*jwtAnswer, error) {
	if c.Realm == 0 {
		return nil, realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain")
	}
	if c.Site.Deactivated {
		return nil, errRealmDeactivated()
	}
	key := c.Tools.JWTKeys[c.Site.Name]
	if key == "" {
		return nil, realm.BadRequest("JWT authentication is not enabled for this organization")
	}
	if f.Token == "" {
		return nil, realm.BadRequest("No JSON web token passed in request")
	}
	claims, ok := parseJWT(f.Token, key, time.Now())
	if !ok {
		return nil, realm.BadRequest("Bad JSON web token")
	}
	if claims.Email == "" {
		return nil, realm.BadRequest("No email specified in JSON web token claims")
	}
	a, ok := c.Server.AccountByEmail(c.Realm, claims.Email)
	if !ok || a.Bot != realm.Human {
		return nil, errAuthFailed()
	}
	login, err := issueKey(c, a, "", c.loginEmail())
	if err != nil {
		return nil, err
	}
	answer := &jwtAnswer{loginAnswer: *login}
	if !f.Profile {
		return answer, nil
	}
	me := &Call{Server: c.Server, Realm: a.Realm, Caller: realm.Caller{User: a.User}}
	answer.Profile, err = Read(me, func(v realm.View) (*userJSON, error) {
		return ptr(newUserJSON(v, v.Me(), c.Site, true, true)), nil
	})
	return answer, err
}

// jwtClaims is the claims of a token that the server reads. Times are Unix seconds and can have a fraction.
type jwtClaims struct {
	Email     string   `json:"email"`
	Expires   *float64 `json:"exp"`
	NotBefore *float64 `json:"nbf"`
}

// The methods of jwt.Claims. All other registered claims are ignored, even if their types are wrong.

func (c *jwtClaims) GetExpirationTime() (*jwt.NumericDate, error) { return numericDate(c.Expires), nil }
func (c *jwtClaims) GetNotBefore() (*jwt.NumericDate, error)      { return numericDate(c.NotBefore), nil }
func (c *jwtClaims) GetIssuedAt() (*jwt.NumericDate, error)       { return nil, nil }
func (c *jwtClaims) GetAudience() (jwt.ClaimStrings, error)       { return nil, nil }
func (c *jwtClaims) GetIssuer() (string, error)                   { return "", nil }
func (c *jwtClaims) GetSubject() (string, error)                  { return "", nil }

// maxJWTSeconds bounds times of tokens, so that converting them does not overflow: about the year 3100.
const maxJWTSeconds = 1 << 35

// numericDate converts a time of a token with the precision of a microsecond, nil if it is absent.
func numericDate(seconds *float64) *jwt.NumericDate {
	if seconds == nil {
		return nil
	}
	bounded := max(-maxJWTSeconds, min(*seconds, maxJWTSeconds))
	return &jwt.NumericDate{Time: time.UnixMicro(int64(bounded * 1e6))}
}

// parseJWT checks the format, signature and times of a token. A token without exp is refused: once it leaks, it would
// be a login for ever.
func parseJWT(token, key string, now time.Time) (c jwtClaims, ok bool) {
	_, err := jwt.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return []byte(key), nil },
		jwt.WithExpirationRequired(),
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithTimeFunc(func() time.Time { return now }))
	return c, err == nil
}
