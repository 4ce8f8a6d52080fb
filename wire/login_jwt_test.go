package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"testing"
	"time"
)

// signedJWT returns a token with any header and claims and a valid HS256 signature.
func signedJWT(key, header, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(header)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

func TestParseJWT(t *testing.T) {
	const key, hs256 = "0123456789abcdef0123456789abcdef", `{"alg":"HS256"}`
	now := time.UnixMicro(1_700_000_000_500_000)
	good := signedJWT(key, hs256, `{"email":"a@example.org","exp":1800000000}`)
	for _, x := range []struct {
		name, token string
		ok          bool
		email       string
	}{
		{"plain", good, true, "a@example.org"},
		{"no email", signedJWT(key, hs256, `{"exp":1800000000}`), true, ""},
		{"null claims", signedJWT(key, hs256, `null`), false, ""},
		{"no expiry", signedJWT(key, hs256, `{"email":"a"}`), false, ""},
		{"null expiry", signedJWT(key, hs256, `{"email":"a","exp":null}`), false, ""},
		{"null start", signedJWT(key, hs256, `{"email":"a","exp":1800000000,"nbf":null}`), true, "a"},
		{"not expired", signedJWT(key, hs256, `{"email":"a","exp":1700000000.6}`), true, "a"},
		{"expires now", signedJWT(key, hs256, `{"exp":1700000000.5}`), false, ""},
		{"expired", signedJWT(key, hs256, `{"exp":1699999999}`), false, ""},
		{"never expires", signedJWT(key, hs256, `{"email":"a","exp":1e300}`), true, "a"},
		{"always expired", signedJWT(key, hs256, `{"exp":-1e300}`), false, ""},
		{"valid from now", signedJWT(key, hs256, `{"email":"a","exp":1800000000,"nbf":1700000000.5}`), true, "a"},
		{"valid later", signedJWT(key, hs256, `{"exp":1800000000,"nbf":1700000000.6}`), false, ""},
		{"other claims are ignored", signedJWT(key, hs256,
			`{"email":"a","exp":1800000000,"iat":"x","aud":5,"iss":[]}`), true, "a"},
		{"expiry is a text", signedJWT(key, hs256, `{"exp":"1800000000"}`), false, ""},
		{"email is a number", signedJWT(key, hs256, `{"email":5,"exp":1800000000}`), false, ""},
		{"claims are a list", signedJWT(key, hs256, `[]`), false, ""},
		{"another algorithm", signedJWT(key, `{"alg":"HS512"}`, `{"exp":1800000000}`), false, ""},
		{"no algorithm", signedJWT(key, `{"alg":"none"}`, `{"exp":1800000000}`), false, ""},
		{"no header", signedJWT(key, `{}`, `{"exp":1800000000}`), false, ""},
		{"another key", signedJWT("x", hs256, `{"exp":1800000000}`), false, ""},
		{"padding", good + "=", false, ""},
		{"four parts", good + ".", false, ""},
		{"two parts", "a.b", false, ""},
		{"empty", "", false, ""},
	} {
		c, ok := parseJWT(x.token, key, now)
		if ok != x.ok || ok && c.Email != x.email {
			t.Errorf("%s: %v, %q, want %v, %q", x.name, ok, c.Email, x.ok, x.email)
		}
	}
}
