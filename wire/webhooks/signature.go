package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// sign adds the headers of the Standard Webhooks specification: the id of the message, the time of the attempt, and
// their signature together with the body. A service that checks them knows that the call is from this server, and that
// it is not an old one that is sent again.
func sign(h http.Header, out *call, now time.Time) {
	at := strconv.FormatInt(now.Unix(), 10)
	h.Set("Webhook-Id", out.id)
	h.Set("Webhook-Timestamp", at)
	h.Set("Webhook-Signature", "v1,"+signature(out.secret, out.id, at, out.body))
}

// signature returns the signature of a body under a secret of the form "whsec_" and base64.
func signature(secret, id, at string, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic("BUG: the secret of a bot is not base64: " + err.Error())
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
