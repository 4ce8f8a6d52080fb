package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"parley/actors/realm"
)

var jwtEndpoints = []Endpoint{Custom("POST", "/jwt/fetch_api_key", fetchKeyByJWT).Returns("{api_key: str, email: str, user_id: int, user?: User}").withoutLogin()}

type jwtForm struct {
	Token   string `form:"json_web_token,maxlen=8192"`
	Profile bool   `form:"include_profile"`
}

// fetchKeyByJWT logs in whoever a configured issuer vouches for, in a token signed with HS256.
func fetchKeyByJWT(c *Call, f jwtForm) (Answer, error) {
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
	claims, ok := parseJWT(f.Token, key, nowWithFraction())
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
	answer, err := issueKey(c, a)
	if err != nil || !f.Profile {
		return answer, err
	}
	me := &Call{Server: c.Server, Realm: a.Realm, Caller: realm.Caller{User: a.User}}
	answer["user"], err = Read(me, func(v realm.View) (any, error) { return userObject(v, v.Me(), c.Site, true, true), nil })
	return answer, err
}

// jwtClaims is what a token may say.
type jwtClaims struct {
	Email     string   `json:"email"`
	Expires   *float64 `json:"exp"`
	NotBefore *float64 `json:"nbf"`
}

// parseJWT checks a token's form, signature and time.
func parseJWT(token, key string, at float64) (c jwtClaims, ok bool) {
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
