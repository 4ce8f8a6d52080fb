package signon

import (
	"encoding/base32"
	"image/png"
	"strings"
	"testing"
	"time"
)

// The codes are those of RFC 6238, appendix B, shortened to six digits.
func TestCodesOfTheSpecification(t *testing.T) {
	secret := base32.StdEncoding.EncodeToString([]byte("12345678901234567890"))
	for at, code := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471",
		1234567890: "005924", 2000000000: "279037", 20000000000: "353130"} {
		for _, ahead := range []int64{-30, 0, 30} {
			step, ok := MatchCode(secret, code, time.Unix(at+ahead, 0))
			if !ok || step != at/30 {
				t.Errorf("code of second %d with a clock %d seconds ahead: step %d, %v", at, ahead, step, ok)
			}
		}
		for _, ahead := range []int64{-91, 91} {
			if _, ok := MatchCode(secret, code, time.Unix(at+ahead, 0)); ok {
				t.Errorf("the code of second %d is accepted with a clock %d seconds ahead", at, ahead)
			}
		}
	}
	for _, wrong := range []string{"", "000000", "28708", "2870821", "287 82", "２８７０８２"} {
		if _, ok := MatchCode(secret, wrong, time.Unix(59, 0)); ok {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

// Users write codes in groups and in lower case.
func TestCleanCode(t *testing.T) {
	for text, want := range map[string]string{"123 456": "123456", " 123456 ": "123456", "abcd-efgh": "ABCDEFGH"} {
		if code, app := CleanCode(text); code != want || app != (len(want) == 6) {
			t.Errorf("%q is %q, from an app %v", text, code, app)
		}
	}
	seen := map[string]bool{}
	for _, code := range NewRecoveryCodes() {
		again, app := CleanCode(strings.ToLower(ShownRecoveryCode(code)))
		if again != code || app || seen[code] || len(code) != 16 {
			t.Errorf("recovery code %s is read as %s", code, again)
		}
		seen[code] = true
	}
	if len(seen) != RecoveryCodes {
		t.Errorf("%d different codes", len(seen))
	}
}

func TestFactorPicture(t *testing.T) {
	b, err := FactorPicture("Chat: of us", "ann@example.org", NewFactor())
	if err != nil {
		t.Fatal(err)
	}
	if p, err := png.DecodeConfig(strings.NewReader(string(b))); err != nil || p.Width != qrSize {
		t.Errorf("the picture: %+v %v", p, err)
	}
}
