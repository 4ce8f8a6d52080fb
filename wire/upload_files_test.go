package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"testing"
	"time"
)

func TestTemporaryURLsExpire(t *testing.T) {
	mark := func(key, text string) string {
		m := hmac.New(sha256.New, []byte(key))
		m.Write([]byte(text))
		return string(m.Sum(nil))
	}
	own := &Tools{Sign: func(text string) string {
		return mark("own", text)
	}, VerifySignature: func(text, got string) bool { return got == mark("own", text) }}
	other := &Tools{Sign: func(text string) string { return mark("other", text) }}
	now := time.Unix(1_800_000_000, 0)
	token := SignUploadToken(own, 7, "7/ab/a b.png", now.Add(temporaryURLValidity))
	for _, at := range []time.Duration{0, temporaryURLValidity} {
		if id, path, ok := VerifyUploadToken(own, token, now.Add(at)); !ok || id != 7 || path != "7/ab/a b.png" {
			t.Errorf("after %s: %d %q %v", at, id, path, ok)
		}
	}
	if _, _, ok := VerifyUploadToken(own, token, now.Add(temporaryURLValidity+time.Second)); ok {
		t.Error("an expired token gives access to a file")
	}
	for _, wrong := range []string{"", ".", token[:len(token)-1], "x" + token,
		SignUploadToken(other, 7, "7/ab/a b.png", now.Add(temporaryURLValidity))} {
		if _, _, ok := VerifyUploadToken(own, wrong, now); ok {
			t.Errorf("%q gives access to a file", wrong)
		}
	}
}
