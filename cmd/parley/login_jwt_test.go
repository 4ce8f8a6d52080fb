package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// A login token signed with the key of the setting jwt-keys logs a user in.
func TestJWTLogin(t *testing.T) {
	key := strings.Repeat("k", 32)
	p := startProgram(t, parleyCommand("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo",
		"--jwt-keys", "="+key))
	at := p.serving()
	token := func(email, key string) string {
		enc := base64.RawURLEncoding.EncodeToString
		text := enc([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc([]byte(`{"email":"`+email+`"}`))
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(text))
		return text + "." + enc(mac.Sum(nil))
	}
	visitor := &account{url: at}
	a, err := visitor.call("POST", "jwt/fetch_api_key",
		url.Values{"json_web_token": {token("ann@example.org", key)}, "include_profile": {"true"}})
	if err != nil {
		t.Fatal(err)
	}
	ann := &account{url: at, email: fmt.Sprint(a["email"]), key: fmt.Sprint(a["api_key"])}
	me, err := ann.call("GET", "users/me", nil)
	if profile, _ := a["user"].(map[string]any); err != nil || me["user_id"] == nil ||
		profile["user_id"] != me["user_id"] {
		t.Errorf("logged in as %v, the profile is %v: %v", me["user_id"], a["user"], err)
	}
	expectCode(t, visitor, "BAD_REQUEST", "POST", "jwt/fetch_api_key",
		url.Values{"json_web_token": {token("ann@example.org", strings.Repeat("x", 32))}})
	expectCode(t, visitor, "AUTHENTICATION_FAILED", "POST", "jwt/fetch_api_key",
		url.Values{"json_web_token": {token("who@example.org", key)}})
}
