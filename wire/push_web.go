package wire

import (
	"crypto/ecdh"
	"encoding/base64"
	"net/url"
	"strings"

	"parley/actors/realm"
)

// Sizes of a browser's subscription in bytes (RFC 8291): an uncompressed point on P-256, and the secret.
const (
	webPushPublicBytes = 65
	webPushSecretBytes = 16
)

// getWebPush returns the public key with which browsers subscribe to notifications of this server (RFC 8292).
func getWebPush(c *Call, v realm.View, _ noParameters) (*webPushAnswer, error) {
	if _, err := v.RequireHuman(); err != nil {
		return nil, err
	}
	return &webPushAnswer{c.Tools.WebPushKey}, nil
}

type webPushAnswer struct {
	Key string `json:"application_server_key"`
}

type webPushAddressForm struct {
	Endpoint string `form:"endpoint,required"`
}

// webPushForm is a browser's PushSubscription.
type webPushForm struct {
	webPushAddressForm
	Public string `form:"p256dh,required"`
	Secret string `form:"auth,required"`
}

// addWebPush subscribes a browser. A second subscription with the address of the first replaces it.
func addWebPush(c *Call, f webPushForm) (realm.AddPushToken, error) {
	var none realm.AddPushToken
	if c.Tools.WebPushKey == "" {
		return none, realm.Refuse(realm.Busy, "PUSH_SERVICE_NOT_CONFIGURED",
			"Server is not configured to use push notification service.")
	}
	u, err := url.Parse(f.Endpoint)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(f.Endpoint) > realm.MaxPushToken {
		return none, realm.BadRequest("endpoint is not an https address")
	}
	public, err := webPushBytes(f.Public)
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(public)
	}
	if err != nil || len(public) != webPushPublicBytes {
		return none, realm.BadRequest("p256dh is not a public key")
	}
	secret, err := webPushBytes(f.Secret)
	if err != nil || len(secret) != webPushSecretBytes {
		return none, realm.BadRequest("auth is not %d bytes in base64", webPushSecretBytes)
	}
	return realm.AddPushToken{Kind: realm.PushWeb, Token: f.Endpoint,
		Keys: realm.WebPushKeys{Public: base64.RawURLEncoding.EncodeToString(public),
			Secret: base64.RawURLEncoding.EncodeToString(secret)}}, nil
}

// webPushBytes decodes the base64 of browsers: for addresses, or the usual one, with or without padding.
func webPushBytes(s string) ([]byte, error) {
	if len(s) > 2*webPushPublicBytes {
		return nil, base64.CorruptInputError(0)
	}
	s = strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(s, "="))
	return base64.RawURLEncoding.DecodeString(s)
}
