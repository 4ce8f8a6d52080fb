package signon

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"image/png"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"
)

// The second factor is TOTP (RFC 6238) with the values that all apps have: SHA-1, six digits, 30 seconds.
const (
	codePeriod = 30 // seconds
	codeDigits = 6
	// codeSkew is how many periods the clock of a user's device may be wrong.
	codeSkew = 1
	// qrSize is the width of the picture that an app scans, in pixels.
	qrSize = 220
	// RecoveryCodes is the number of recovery codes that a user gets.
	RecoveryCodes = 10
	// recoveryBytes is the length of a recovery code before encoding: 80 random bits.
	recoveryBytes = 10
)

var codeOptions = totp.ValidateOpts{Period: codePeriod, Digits: codeDigits, Algorithm: otp.AlgorithmSHA1}

// NewFactor returns the secret of a new second factor, 160 random bits in base32.
func NewFactor() string {
	b := make([]byte, 20)
	rand.Read(b)
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)
}

// FactorPicture returns the picture (PNG) with which an app takes over the secret of a second factor. service and
// account are the names that the app shows.
func FactorPicture(service, account, secret string) ([]byte, error) {
	raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		return nil, err
	}
	// A colon separates both names in the app's address.
	name := func(s string) string { return strings.ReplaceAll(s, ":", " ") }
	key, err := totp.Generate(totp.GenerateOpts{Issuer: name(service), AccountName: name(account), Secret: raw,
		Period: codePeriod, Digits: codeDigits, Algorithm: otp.AlgorithmSHA1})
	if err != nil {
		return nil, err
	}
	picture, err := key.Image(qrSize, qrSize)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = png.Encode(&out, picture)
	return out.Bytes(), err
}

// MatchCode returns the step of a code: the number of 30 seconds since 1970 whose code it is. It returns false if the
// code does not belong to a time near now.
func MatchCode(secret, code string, now time.Time) (step int64, ok bool) {
	current := now.Unix() / codePeriod
	for s := current - codeSkew; s <= current+codeSkew; s++ {
		want, err := totp.GenerateCodeCustom(secret, time.Unix(s*codePeriod, 0), codeOptions)
		if err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			step, ok = s, true
		}
	}
	return step, ok
}

// CleanCode returns a code as the user meant it: without spaces and dashes, in upper case. It reports whether it has
// the form of a code of an app; others are recovery codes.
func CleanCode(text string) (code string, fromApp bool) {
	code = strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(text))
	return code, len(code) == codeDigits && strings.Trim(code, "0123456789") == ""
}

// NewRecoveryCodes returns new recovery codes, as CleanCode returns them.
func NewRecoveryCodes() []string {
	codes := make([]string, RecoveryCodes)
	for i := range codes {
		b := make([]byte, recoveryBytes)
		rand.Read(b)
		codes[i] = base32.StdEncoding.EncodeToString(b)
	}
	return codes
}

// ShownRecoveryCode returns a recovery code in groups, as users write it down.
func ShownRecoveryCode(code string) string {
	var groups []string
	for len(code) > 4 {
		groups, code = append(groups, code[:4]), code[4:]
	}
	return strings.Join(append(groups, code), "-")
}
