package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"parley/actors/realm"
)

// Rights are the rights that apps can ask for. The right to manage is not among them: it contains more than an app with
// a page of consent should get.
var Rights = []string{realm.RightRead, realm.RightSend, realm.RightReact, realm.RightEdit, realm.RightUpload,
	realm.RightRemind, realm.RightMark}

// Lifetimes are the lifetimes of keys that users can choose, in seconds.
var Lifetimes = []int64{24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600, 90 * 24 * 3600}

// CodeTime is how long a code can be used, in seconds: the browser is redirected at once.
const CodeTime = 60

// maxState is the length of the text that a client gets back from the page, in bytes.
const maxState = 1000

// Request is a request of an app to a user.
type Request struct {
	Client    string   `json:"c"` // hash of the client_id
	Name      string   `json:"n"` // of the client
	Redirect  string   `json:"r"`
	State     string   `json:"s"`
	Challenge string   `json:"p"` // of PKCE
	Rights    []string `json:"w"`
}

// Authorize checks the parameters of a request. A request that names no known client or another redirect URI must not
// redirect the browser: then redirect is false. Otherwise the error goes back to the client.
func Authorize(q url.Values, client *Client, resource string) (r Request, redirect bool, err *Error) {
	one := func(name string) string {
		if len(q[name]) != 1 {
			return ""
		}
		return q[name][0]
	}
	switch {
	case client == nil:
		return r, false, refuse("invalid_client", "The app is not known here.")
	case !client.hasRedirect(one("redirect_uri")):
		return r, false, refuse("invalid_request", "The app has not registered this redirect URI.")
	}
	r = Request{Client: hash(one("client_id")), Name: client.Name, Redirect: one("redirect_uri"), State: one("state"),
		Challenge: one("code_challenge")}
	if len(r.State) > maxState {
		r.State = ""
		return r, true, refuse("invalid_request", "The state is too long.")
	}
	switch {
	case one("response_type") != "code":
		return r, true, refuse("unsupported_response_type", "The response type must be code.")
	case one("code_challenge_method") != "S256":
		return r, true, refuse("invalid_request", "The code challenge method must be S256.")
	case !isChallenge(r.Challenge):
		return r, true, refuse("invalid_request", "The code challenge is not a SHA-256 hash in base64url.")
	case len(q["resource"]) > 0 && !sameResource(q["resource"], resource):
		return r, true, refuse("invalid_target", "The resource must be "+resource+".")
	}
	if r.Rights = rightsOf(one("scope")); len(r.Rights) == 0 {
		return r, true, refuse("invalid_scope", "The scope has none of these rights: "+strings.Join(Rights, " "))
	}
	return r, true, nil
}

// sameResource reports whether a request names no other resource than this one.
func sameResource(asked []string, resource string) bool {
	return !slices.ContainsFunc(asked, func(a string) bool { return strings.TrimSuffix(a, "/") != resource })
}

// rightsOf returns the rights of a scope in the order of Rights. Without a scope, an app can read.
func rightsOf(scope string) (out []string) {
	asked := strings.Fields(scope)
	if len(asked) == 0 {
		asked = []string{realm.RightRead}
	}
	for _, r := range Rights {
		if slices.Contains(asked, r) {
			out = append(out, r)
		}
	}
	return out
}

// isChallenge reports whether a text is a SHA-256 hash in base64url without padding.
func isChallenge(text string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(b) == sha256.Size
}

// Answer returns the address to which the browser goes back: with the values, the state of the request, and the issuer
// (RFC 9207).
func (r *Request) Answer(issuer string, values ...string) string {
	u, err := url.Parse(r.Redirect)
	if err != nil {
		panic("BUG: a checked redirect URI is not valid: " + err.Error())
	}
	q := u.Query()
	for i := 0; i < len(values); i += 2 {
		q.Set(values[i], values[i+1])
	}
	if r.State != "" {
		q.Set("state", r.State)
	}
	q.Set("iss", issuer)
	u.RawQuery = q.Encode()
	return u.String()
}

// Refused returns the address that tells the client of a refusal.
func (r *Request) Refused(issuer string, err *Error) string {
	return r.Answer(issuer, "error", err.Code, "error_description", err.Description)
}

// Origin returns the origin of the redirect URI, for the page's content security policy.
func (r *Request) Origin() string {
	u, err := url.Parse(r.Redirect)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Host returns the host to which the browser goes back.
func (r *Request) Host() string {
	u, err := url.Parse(r.Redirect)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Code is the text that an app exchanges for the key.
type Code struct {
	User      realm.UserID `json:"u"`
	Key       int64        `json:"k"`
	Client    string       `json:"c"` // hash of the client_id
	Redirect  string       `json:"r"`
	Challenge string       `json:"p"`
	Until     int64        `json:"t"` // Unix seconds
}

// NewCode returns the code for the key that a user has granted.
func NewCode(r Request, user realm.UserID, key, now int64) Code {
	return Code{user, key, r.Client, r.Redirect, r.Challenge, now + CodeTime}
}

// hash returns the SHA-256 hash of a text in base64url, as PKCE has it.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// CheckToken checks a request for the key of a code. code is nil if the text of the code is not one of this server.
func CheckToken(form url.Values, code *Code, client *Client, resource string, now int64) *Error {
	for _, name := range []string{"code", "client_id", "redirect_uri", "code_verifier"} {
		if len(form[name]) != 1 || form.Get(name) == "" {
			return refuse("invalid_request", "The request needs "+name+" once.")
		}
	}
	switch {
	case form.Get("grant_type") != "authorization_code":
		return refuse("unsupported_grant_type", "The grant type must be authorization_code.")
	case client == nil:
		return &Error{401, "invalid_client", "The app is not known here."}
	case code == nil || now >= code.Until:
		return refuse("invalid_grant", "The code is not valid, or not any more.")
	case code.Client != hash(form.Get("client_id")):
		return refuse("invalid_grant", "The code is for another app.")
	case code.Redirect != form.Get("redirect_uri"):
		return refuse("invalid_grant", "The code is for another redirect URI.")
	case !matches(code.Challenge, form.Get("code_verifier")):
		return refuse("invalid_grant", "The code verifier does not fit.")
	case len(form["resource"]) > 0 && !sameResource(form["resource"], resource):
		return refuse("invalid_target", "The resource must be "+resource+".")
	}
	return nil
}

// matches reports whether a verifier belongs to a challenge.
func matches(challenge, verifier string) bool {
	return len(verifier) >= 43 && len(verifier) <= 128 &&
		subtle.ConstantTimeCompare([]byte(hash(verifier)), []byte(challenge)) == 1
}

// ErrUsed refuses a code that was used before.
func ErrUsed() *Error {
	return refuse("invalid_grant", "The code was used before. The key that it was exchanged for is revoked.")
}

// ErrNoKey refuses a code whose key the user has revoked, or whose account was deactivated.
func ErrNoKey() *Error { return refuse("invalid_grant", "The key was revoked.") }
