package integrations

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Signature says how a service signs its requests. It is checked if the bot's owner has entered the secret.
type Signature struct {
	Kind   string `toml:"kind"`   // token, hmac, slack or stripe
	Header string `toml:"header"` // the header with the signature
	Prefix string `toml:"prefix"` // the text before the digits, with hmac
}

// SecretKey is the key of the secret in the configuration of an incoming-webhook bot.
const SecretKey = "signature_secret"

// The kinds of signatures.
const (
	signatureToken  = "token"  // the header is the secret (GitLab)
	signatureHMAC   = "hmac"   // HMAC-SHA256 of the body in hexadecimal digits (GitHub, Gitea)
	signatureSlack  = "slack"  // HMAC-SHA256 of version, time and body (Slack)
	signatureStripe = "stripe" // HMAC-SHA256 of time and body; time and digits are in one header (Stripe)
)

// signatureAge is the age at which a signature with a time is refused, so that a recorded request cannot be repeated
// later. Slack and Stripe recommend five minutes.
const signatureAge = 5 * time.Minute

// ErrSignature says that a request is not signed with the secret.
var ErrSignature = errors.New("the signature does not fit the secret")

func (s *Signature) check() error {
	if !slices.Contains([]string{signatureToken, signatureHMAC, signatureSlack, signatureStripe}, s.Kind) {
		return fmt.Errorf("signature.kind is %q; it must be token, hmac, slack or stripe", s.Kind)
	}
	if s.Header == "" {
		return errors.New("signature.header is missing")
	}
	return nil
}

// Verify checks the signature of a request at a time. It returns ErrSignature.
func (s *Signature) Verify(r Request, secret string, now time.Time) error {
	given := r.Header(s.Header)
	ok := false
	switch s.Kind {
	case signatureToken:
		ok = hmac.Equal([]byte(given), []byte(secret))
	case signatureHMAC:
		ok = strings.HasPrefix(given, s.Prefix) && signed(strings.TrimPrefix(given, s.Prefix), secret, string(r.Body))
	case signatureSlack:
		at := r.Header("X-Slack-Request-Timestamp")
		ok = recent(at, now) && signed(strings.TrimPrefix(given, "v0="), secret, "v0:"+at+":"+string(r.Body))
	case signatureStripe:
		at, digits := "", []string{}
		for part := range strings.SplitSeq(given, ",") {
			switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
			case "t":
				at = value
			case "v1":
				digits = append(digits, value)
			}
		}
		ok = recent(at, now) && slices.ContainsFunc(digits, func(d string) bool {
			return signed(d, secret, at+"."+string(r.Body))
		})
	}
	if !ok {
		return ErrSignature
	}
	return nil
}

// signed reports whether digits are the HMAC-SHA256 of a text.
func signed(digits, secret, text string) bool {
	given, err := hex.DecodeString(digits)
	if err != nil {
		return false
	}
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return hmac.Equal(given, h.Sum(nil))
}

// recent reports whether a time in seconds is at most signatureAge away from now.
func recent(seconds string, now time.Time) bool {
	at, err := strconv.ParseInt(seconds, 10, 64)
	return err == nil && now.Sub(time.Unix(at, 0)).Abs() <= signatureAge
}
