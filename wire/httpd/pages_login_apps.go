package httpd

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/web"
)

// appLogin is a login in a browser for an app, which has opened the login page with a one-time secret of 32 bytes, in
// hexadecimal digits. Phone apps get the API key, desktop apps a token that opens a session (protocol).
type appLogin struct{ mobile, desktop string }

const (
	mobileField  = "mobile_flow_otp"
	desktopField = "desktop_flow_otp"
	secretDigits = 64
)

// appLoginOf returns the login for an app that a request asks for; the zero value if it asks for none.
func appLoginOf(p *pageRequest) (a appLogin, err error) {
	get := p.query
	if p.posted() {
		get = p.field
	}
	return newAppLogin(get(mobileField), get(desktopField))
}

// newAppLogin checks the one-time secrets of a login for an app.
func newAppLogin(mobile, desktop string) (a appLogin, err error) {
	a = appLogin{mobile, desktop}
	for _, secret := range []string{a.mobile, a.desktop} {
		if b, err := hex.DecodeString(secret); err != nil || secret != "" && 2*len(b) != secretDigits {
			return appLogin{}, realm.BadRequest("Invalid OTP")
		}
	}
	if a.mobile != "" && a.desktop != "" {
		return appLogin{}, realm.BadRequest("Can't use both mobile_flow_otp and desktop_flow_otp together.")
	}
	return a, nil
}

func (a appLogin) requested() bool { return a.mobile != "" || a.desktop != "" }

// finish logs the app in: it redirects to the phone app, or shows the text to paste into the desktop app.
func (a appLogin) finish(s *Server, p *pageRequest, l passedLogin) (web.View, error) {
	c := p.visitorCall()
	if a.mobile != "" {
		k, err := wire.KeyForApp(c, l.user, l.password)
		if err != nil {
			return web.View{}, err
		}
		p.redirect = "zulip://login?" + url.Values{
			"realm":                 {c.Site.URL},
			"email":                 {k.Email},
			"user_id":               {k.User.String()},
			"otp_encrypted_api_key": {xorHex([]byte(k.Key), a.mobile)},
		}.Encode()
		return web.View{}, nil
	}
	token := s.loginTokens.add(loginToken{realm: c.Realm, user: l.user, password: l.password}, s.now())
	return web.DesktopLogin(sealHex([]byte(token), a.desktop)), nil
}

// xorHex combines a text with a one-time secret of at least the same length, in hexadecimal digits.
func xorHex(text []byte, secret string) string {
	key, _ := hex.DecodeString(secret)
	out := make([]byte, len(text))
	for i := range out {
		out[i] = text[i] ^ key[i]
	}
	return hex.EncodeToString(out)
}

// sealHex encrypts a text with AES-256-GCM, as desktop apps expect it: the nonce comes first.
func sealHex(text []byte, secret string) string {
	key, _ := hex.DecodeString(secret)
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("BUG: secret of a desktop app: " + err.Error())
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic("BUG: make AES-GCM: " + err.Error())
	}
	nonce := make([]byte, gcm.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		panic("BUG: no randomness: " + err.Error())
	}
	return hex.EncodeToString(gcm.Seal(nonce, nonce, text, nil))
}

// loginTokenPath is the path of the page that opens a session with a login token; the token follows it (protocol).
const loginTokenPath = "/accounts/login/subdomain/"

const (
	// loginTokenTime is how long a login token can be used: the time to copy it from the browser to the app.
	loginTokenTime = 2 * time.Minute
	// MaxLoginTokens limits the tokens that wait to be used, about 200 bytes each. Beyond it, any of them is dropped.
	MaxLoginTokens = 1000
	// loginTokenLength is the length of a token in characters.
	loginTokenLength = 32
)

// loginToken opens one session. It exists in memory only: it is used at once.
type loginToken struct {
	realm    realm.ID
	user     realm.UserID
	password string // hash of the password that was checked, or ""
	expires  time.Time
}

// loginTokens are the tokens that were not used yet. It is safe for concurrent use.
type loginTokens struct {
	make func(length int) string
	mu   sync.Mutex
	list map[string]loginToken
}

// add returns a new token.
func (l *loginTokens) add(t loginToken, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for secret, other := range l.list {
		if now.After(other.expires) || len(l.list) >= MaxLoginTokens {
			delete(l.list, secret)
		}
	}
	t.expires = now.Add(loginTokenTime)
	secret := l.make(loginTokenLength)
	l.list[secret] = t
	return secret
}

// LoginTokens returns the number of login tokens that were not used yet, expired ones included.
func (s *Server) LoginTokens() int64 {
	s.loginTokens.mu.Lock()
	defer s.loginTokens.mu.Unlock()
	return int64(len(s.loginTokens.list))
}

// take returns a token and removes it.
func (l *loginTokens) take(secret string, id realm.ID, now time.Time) (t loginToken, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t, ok = l.list[secret]; !ok || t.realm != id {
		return t, false
	}
	delete(l.list, secret)
	return t, !now.After(t.expires)
}

// loginTokenPage opens the session of a login token.
func (s *Server) loginTokenPage(p *pageRequest) (web.View, error) {
	t, ok := s.loginTokens.take(p.token(), p.call.Realm, s.now())
	if !ok {
		err := realm.ErrEmailedLink()
		return web.Failure("Log in", err.Msg), err
	}
	opened, err := wire.OpenSession(p.call, realm.LogIn{User: t.user, Password: t.password})
	if err != nil {
		return web.Failure("Log in", s.errorText(err)), err
	}
	s.logIn(p.ctx, p.call, opened)
	p.redirect = "/"
	return web.View{}, nil
}
