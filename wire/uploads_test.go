package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"testing"
	"time"
)

func TestTemporaryAddressesEnd(t *testing.T) {
	mark := func(key, text string) string {
		m := hmac.New(sha256.New, []byte(key))
		m.Write([]byte(text))
		return string(m.Sum(nil))
	}
	own := &Tools{Sign: func(text string) string { return mark("own", text) }, Signed: func(text, got string) bool { return got == mark("own", text) }}
	other := &Tools{Sign: func(text string) string { return mark("other", text) }}
	now := time.Unix(1_800_000_000, 0)
	token := SignUpload(own, 7, "7/ab/a b.png", now.Add(temporary))
	for _, at := range []time.Duration{0, temporary} {
		if id, path, ok := OpenUpload(own, token, now.Add(at)); !ok || id != 7 || path != "7/ab/a b.png" {
			t.Errorf("after %s: %d %q %v", at, id, path, ok)
		}
	}
	if _, _, ok := OpenUpload(own, token, now.Add(temporary+time.Second)); ok {
		t.Error("it opens a file after its time")
	}
	for _, wrong := range []string{"", ".", token[:len(token)-1], "x" + token, SignUpload(other, 7, "7/ab/a b.png", now.Add(temporary))} {
		if _, _, ok := OpenUpload(own, wrong, now); ok {
			t.Errorf("%q opens a file", wrong)
		}
	}
}
