package server

import (
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/httpd"
)

// The permission matrix runs once for each way in which a user logs in. The answers do not depend on it, except for the
// rows of the tables below.

// matrixLogin is the way in which the users of a matrix log in.
type matrixLogin int

const (
	byKey matrixLogin = iota
	byAdditionalKey
	// bySession: users ask below /json, with a cookie and a CSRF token. Bots have no sessions; they use their keys.
	bySession
)

// TestPermissionMatrixBySession repeats the matrix with browser sessions.
func TestPermissionMatrixBySession(t *testing.T) { permissionMatrix(t, newCoverage(bySession)) }

// TestPermissionMatrixByAdditionalKey repeats the matrix with a second API key of each account.
func TestPermissionMatrixByAdditionalKey(t *testing.T) {
	permissionMatrix(t, newCoverage(byAdditionalKey))
}

// namedKeys is the largest id of a key that cells name. The keys that users log in with have larger ones.
const namedKeys = 10

// otherAnswers are the answers that depend on the login, with the reason.
var otherAnswers = []struct {
	login         matrixLogin
	want, instead string
	why           string
}{
	{byAdditionalKey, "Account is deactivated", "Invalid API key", "the deactivation of an account revokes these keys"},
	{bySession, "Account is deactivated", noLogin, "the deactivation of an account ends its sessions"},
	{bySession, "This organization has been deactivated", noLogin, "the end of an organization ends all sessions"},
}

// neverByKey are the endpoints that refuse all users without a browser session.
var neverByKey = []string{"POST /users/me/web_push", "POST /users/me/confirmation"}

// keyMakesNoKeys is the answer to a user that logs in with an additional key and asks for another one.
const keyMakesNoKeys = "An additional API key cannot create API keys of its account."

// neverByAdditionalKey are the endpoints that answer every user keyMakesNoKeys.
var neverByAdditionalKey = []string{"POST /users/me/api_keys", "POST /users/me/api_key/regenerate"}

// expected returns the answer that a cell expects for users that log in in this way.
func (l matrixLogin) expected(want string) string {
	for _, x := range otherAnswers {
		if x.login == l && x.want == want {
			return x.instead
		}
	}
	return want
}

// matrixPassword is the password of users with a session. Their requests to the endpoints of asksPassword have it.
const matrixPassword = "purple otter 42 lamp"

// asksPassword are the endpoints that ask users with a session for their password; TestSessionMakesNoKeyWithoutPassword
// tests them without it.
var asksPassword = []string{"POST /users/me/api_keys", "POST /users/me/api_key/regenerate",
	"POST /users/me/confirmation", "POST /users/me/data_exports"}

// asksAgain are the endpoints that ask users for their password where the session is old, as those of the matrix are;
// TestDangerousActsAskAgain tests them without it.
var asksAgain = []string{"POST /export/realm", "PATCH /compliance_exports", "POST /compliance_exports",
	"POST /compliance_exports/{request_id}"}

var matrixPasswordHash = sync.OnceValue(func() string {
	hash, err := httpd.NewPasswords(nil).Hash(1, matrixPassword)
	if err != nil {
		panic(err)
	}
	return hash
})

// matrixSession is the browser session of a user.
type matrixSession struct {
	secret, csrf string
	withoutToken bool // the user sends the cookies only, as a page of another site does
}

// prepareLogin gives a user the credentials that the matrix is about.
func (c *matrixServer) prepareLogin(p *matrixUser, id realm.ID, bot realm.BotType) {
	c.Helper()
	user := realm.UserID(p.id)
	switch {
	case c.login == byAdditionalKey:
		if p.firstKey == "" {
			p.firstKey = p.key
		}
		for last := int64(0); last <= namedKeys; {
			k, err := realm.Execute(c.orgs, id, realm.System, realm.AddKey{User: user, Label: "matrix"})
			if err == nil && k.ID <= namedKeys {
				_, err = realm.Execute(c.orgs, id, realm.System, realm.RevokeKey{User: user, Key: k.ID})
			}
			if err != nil {
				c.Fatalf("%s: %v", p.name, err)
			}
			p.key, last = k.Secret, k.ID
		}
	case c.login == bySession && bot == realm.Human:
		set := realm.SetPassword{User: user, Hash: matrixPasswordHash(), KeepKeys: true}
		if _, err := realm.Execute(c.orgs, id, realm.System, set); err != nil {
			c.Fatalf("%s: %v", p.name, err)
		}
		o, err := realm.Execute(c.orgs, id, realm.System, realm.OpenBrowserSession{LogIn: realm.LogIn{User: user}})
		if err != nil {
			c.Fatalf("%s: %v", p.name, err)
		}
		p.session = &matrixSession{secret: o.Secret, csrf: wire.CSRFToken(c.tools, id, o.User, o.ID)}
	}
}

// notBelowJSON are endpoints that users do not ask with a session, with the reason.
var notBelowJSON = []struct{ endpoint, why string }{
	{"POST /fetch_api_key", "below /json it is another endpoint, which asks for the password of the session's user"},
}

// The endpoints that the web app's prefix does not offer are those that it replaces.
func TestNotBelowJSON(t *testing.T) {
	for _, x := range notBelowJSON {
		if !slices.ContainsFunc(wire.WebEndpoints(), func(e wire.Endpoint) bool {
			return e.Method+" "+e.Path == x.endpoint
		}) {
			t.Errorf("%s is served below /json: remove its row from notBelowJSON", x.endpoint)
		}
	}
	if len(wire.WebEndpoints()) != len(notBelowJSON) {
		t.Error("an endpoint below /json has no row in notBelowJSON")
	}
}

// usesSession reports whether a request is sent with a session.
func (p *matrixUser) usesSession(method, path string) bool {
	return p.session != nil && !slices.ContainsFunc(notBelowJSON, func(x struct{ endpoint, why string }) bool {
		return x.endpoint == method+" "+path
	})
}

// prefix returns the beginning of the path of a request.
func (p *matrixUser) prefix(method, path string) string {
	if p.usesSession(method, path) && !isResumable(path) {
		return "/json"
	}
	return "/api/v1"
}

// isResumable reports whether a path is that of resumable uploads. Web clients send them to the API's prefix, with the
// cookie, and with the origin instead of a CSRF token.
func isResumable(path string) bool { return path == "/tus" || strings.HasPrefix(path, "/tus/") }

// addCredentials adds the header lines that identify a user.
func (c *matrixServer) addCredentials(req *fasthttp.Request, user *matrixUser, method, path string) {
	c.sentWith = byKey
	switch {
	case !user.usesSession(method, path):
		if user.firstKey != "" {
			c.sentWith = byAdditionalKey
		}
		if user.key != "" {
			req.Header.Set("Authorization", "Basic "+
				base64.StdEncoding.EncodeToString([]byte(user.email+":"+user.key)))
		}
		return
	case isResumable(path):
		req.Header.Set("Origin", "http://"+user.host)
	case method != "GET" && !user.session.withoutToken:
		req.Header.Set("X-CSRFToken", user.session.csrf)
	}
	c.sentWith = bySession
	req.Header.SetCookie("sessionid", user.session.secret)
	req.Header.SetCookie("csrftoken", user.session.csrf)
}

// takeCookies stores the cookies of an answer, as a browser does.
func (s *matrixSession) takeCookies(r *fasthttp.Response) {
	if s == nil {
		return
	}
	for name, value := range map[string]*string{"sessionid": &s.secret, "csrftoken": &s.csrf} {
		var cookie fasthttp.Cookie
		cookie.SetKey(name)
		if r.Header.Cookie(&cookie) {
			*value = string(cookie.Value())
		}
	}
}

// hasUselessSession reports whether the user's session is of no use in the organization: the account is deactivated, or
// belongs to another one. For the server, the user is then logged out.
func (p *matrixUser) hasUselessSession() bool {
	return p.session != nil && (p.name == "gone" || p.name == "owner elsewhere")
}
