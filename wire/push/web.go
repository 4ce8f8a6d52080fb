package push

import (
	"context"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"

	"parley/actors/realm"
	"parley/wire"
)

// WebConfig is what notifications of browsers need. Each browser has a push service of its maker, which needs no
// account: the server identifies itself by a key (RFC 8292) and encrypts for the browser (RFC 8291).
type WebConfig struct {
	Key     *ecdh.PrivateKey // of NewWebKey; nil: there are no notifications of browsers
	Contact string           // email or https address of the operator, which push services may ask for
	Client  *http.Client     // must not connect to private networks: users choose the addresses
}

// maxWebText is how much of the text of a message a browser gets, in code points. An encrypted notification must not be
// larger than 4096 bytes (RFC 8291), and a code point has up to 4, in JSON up to 6.
const maxWebText = 200

// webTTL is how long a push service keeps a notification for a browser that is closed, in seconds; as for phones.
const webTTL = 24 * 60 * 60

// NewWebKey derives the server's key for notifications of browsers from its secret, so that it stays the same: browsers
// are subscribed with it.
func NewWebKey(secret []byte) *ecdh.PrivateKey {
	for n := 0; ; n++ {
		seed, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprint("web push ", n), 32)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		if key, err := ecdh.P256().NewPrivateKey(seed); err == nil {
			return key // fails for one seed of 2^32
		}
	}
}

// PublicWebKey returns the public part of the key as browsers want it.
func PublicWebKey(key *ecdh.PrivateKey) string {
	return base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes())
}

// webMessage is a notification as the service worker of the client gets it.
type webMessage struct {
	id string // the same at every attempt

	Type  string `json:"type"` // message or test
	Title string `json:"title"`
	Body  string `json:"body"`
	Icon  string `json:"icon,omitempty"`
	Tag   string `json:"tag"`            // a later notification with the tag replaces an earlier one
	Hash  string `json:"hash,omitempty"` // the place in the client that a click opens
	Realm string `json:"realm_url"`
}

func webTest(n wire.PushOrigin) webMessage {
	return webMessage{id: "test", Type: "test", Title: n.RealmName, Body: testText(n), Tag: "test", Realm: n.RealmURL}
}

// sendWeb sends one notification to one browser, unless its push host gets too many. The error is ErrDeviceUnknown also
// for a subscription that has failed MaxWebFailures times.
func (p *Pusher) sendWeb(m webMessage, d realm.PushToken) error {
	if err := p.web.take(d.Token, time.Now()); err != nil {
		return err
	}
	err := p.postWeb(m, d)
	if p.web.record(d.Token, err != nil, time.Now()) {
		p.log.Info("browser removed: its push service failed again and again", "err", err)
		return wire.ErrDeviceUnknown
	}
	return err
}

// postWeb sends one notification to a browser's push service.
func (p *Pusher) postWeb(m webMessage, d realm.PushToken) error {
	text, err := json.Marshal(m)
	if err != nil {
		panic("BUG: a notification does not encode: " + err.Error())
	}
	key := sha256.Sum256([]byte(m.id))
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	answer, err := webpush.SendNotificationWithContext(ctx, text, &webpush.Subscription{
		Endpoint: d.Token,
		Keys:     webpush.Keys{P256dh: d.Keys.Public, Auth: d.Keys.Secret},
	}, &webpush.Options{
		HTTPClient: p.c.Web.Client,
		Subscriber: p.c.Web.Contact,
		// A push service that still has the notification of an earlier attempt replaces it.
		Topic:           base64.RawURLEncoding.EncodeToString(key[:24]),
		TTL:             webTTL,
		Urgency:         webpush.UrgencyHigh,
		VAPIDPublicKey:  PublicWebKey(p.c.Web.Key),
		VAPIDPrivateKey: base64.RawURLEncoding.EncodeToString(p.c.Web.Key.Bytes()),
	})
	if err != nil {
		return fmt.Errorf("reach a browser's push service: %w", err)
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // so that the connection can be used again
	switch status := answer.StatusCode; {
	case status < 300:
		return nil
	case status == http.StatusNotFound, status == http.StatusGone:
		return wire.ErrDeviceUnknown
	case status == http.StatusTooManyRequests, status >= 500:
		return fmt.Errorf("%w: a browser's answered %d", wire.ErrPushFailed, status)
	default:
		return fmt.Errorf("%w: a browser's answered %d", wire.ErrPushRefused, status)
	}
}

// fillWeb sets the notification for browsers. Only the browser can read it, so it has the text also where the
// organization requires end-to-end encryption.
func (n *notification) fillWeb(v realm.View, m realm.MessageInfo, subtitle, content, avatar string) {
	body := content
	if subtitle != "" {
		body = subtitle + " " + content
	}
	if u := v.Find(n.User); m.Channel == 0 && u != nil && !u.BoolSetting("pm_content_in_desktop_notifications") {
		body = hiddenContent
	}
	n.web = webMessage{id: n.key, Type: "message", Title: alertTitle(m), Body: cut(body, maxWebText), Icon: avatar,
		Tag: "message " + m.ID.String(), Hash: "#narrow/id/" + m.ID.String(), Realm: n.RealmURL}
}

// cut returns the first maxRunes code points of a text.
func cut(s string, maxRunes int) string {
	for i := range s {
		if maxRunes--; maxRunes < 0 {
			return s[:i]
		}
	}
	return s
}
