package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"parley/actors/realm"
)

var jwtEndpoints = []Endpoint{opened(Custom("POST", "/jwt/fetch_api_key", jwtKey).Says("{api_key: str, email: str, user_id: int, user?: User}"))}

type jwtForm struct {
	Token   string `form:"json_web_token,maxlen=8192"`
	Profile bool   `form:"include_profile"`
}

// jwtKey logs in whoever a configured issuer vouches for, in a token signed with HS256.
func jwtKey(c *Call, f jwtForm) (Answer, error) {
	if c.Realm == 0 {
		return nil, realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain")
	}
	if c.Site.Closed {
		return nil, errRealmClosed()
	}
	key := c.Tools.JWTKeys[c.Site.Name]
	if key == "" {
		return nil, realm.Bad("JWT authentication is not enabled for this organization")
	}
	if f.Token == "" {
		return nil, realm.Bad("No JSON web token passed in request")
	}
	claims, ok := openJWT(f.Token, key, now())
	if !ok {
		return nil, realm.Bad("Bad JSON web token")
	}
	if claims.Email == "" {
		return nil, realm.Bad("No email specified in JSON web token claims")
	}
	a, ok := c.House.ByEmail(c.Realm, claims.Email)
	if !ok || a.Bot != realm.Human {
		return nil, authFailed()
	}
	answer, err := issueKey(c, a)
	if err != nil || !f.Profile {
		return answer, err
	}
	me := &Call{House: c.House, Realm: a.Realm, Caller: realm.Caller{User: a.User}}
	answer["user"], err = Look(me, func(v realm.View) (any, error) { return userObject(v, v.Me(), c.Site, true, true), nil })
	return answer, err
}

// jwtClaims is what a token may say.
type jwtClaims struct {
	Email     string   `json:"email"`
	Expires   *float64 `json:"exp"`
	NotBefore *float64 `json:"nbf"`
}

// openJWT checks a token's form, signature and time.
func openJWT(token, key string, at float64) (c jwtClaims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, false
	}
	var raw [3][]byte
	for i, p := range parts {
		b, err := base64.RawURLEncoding.DecodeString(p)
		if err != nil {
			return c, false
		}
		raw[i] = b
	}
	var head struct {
		Algorithm string `json:"alg"`
	}
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(parts[0] + "." + parts[1]))
	if json.Unmarshal(raw[0], &head) != nil || head.Algorithm != "HS256" || !hmac.Equal(mac.Sum(nil), raw[2]) || json.Unmarshal(raw[1], &c) != nil {
		return c, false
	}
	if c.Expires != nil && at >= *c.Expires || c.NotBefore != nil && at < *c.NotBefore {
		return c, false
	}
	return c, true
}
