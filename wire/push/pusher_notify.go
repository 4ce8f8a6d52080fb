package push

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/sideshow/apns2"
	"github.com/sideshow/apns2/payload"
	"golang.org/x/crypto/nacl/secretbox"

	"parley/actors/realm"
	"parley/wire"
)

// notify is as in Service. A refusal for good is logged and not tried again.
func (p *Pusher) notify(n notification) (left notification, unregistered wire.UnregisteredDevices, err error) {
	left = n
	left.tokens, left.devices = nil, nil
	sent := false
	if p.c.Bouncer != "" {
		sent = true
		if len(n.tokens) > 0 {
			invalid, e := p.notifyByBouncer(n)
			if unregistered.Tokens = invalid; e != nil {
				left.tokens, err = n.tokens, e
			}
		}
		if len(n.devices) > 0 {
			invalid, e := p.notifyEncryptedByBouncer(n)
			if unregistered.Devices = invalid; e != nil {
				left.devices, err = n.devices, e
			}
		}
	} else {
		for _, d := range n.tokens {
			var e error
			switch {
			case d.Kind == realm.PushAPNs && p.apns != nil:
				e = p.sendAPNs(apnsNotification(n, d))
			case d.Kind == realm.PushFCM && p.fcm != nil:
				e = p.sendFCM(d.Token, priority(n), n.fcm)
			default:
				continue
			}
			sent = true
			if errors.Is(e, wire.ErrDeviceUnknown) {
				unregistered.Tokens = append(unregistered.Tokens, d)
			} else if e != nil {
				left.tokens, err = append(left.tokens, d), e
			}
		}
	}
	if !sent {
		return left, unregistered, wire.ErrPushNotConfigured
	}
	if err != nil {
		p.log.Warn("push notification failed",
			"user", n.User.String(), "realm", n.RealmID, "devices", len(left.tokens)+len(left.devices), "err", err)
	}
	return left, unregistered, err
}

// TestEncrypted shows a test notification on devices that are notified end-to-end encrypted.
func (p *Pusher) TestEncrypted(
	origin wire.PushOrigin, devices []realm.Device, now int64,
) (unregistered wire.UnregisteredDevices, err error) {
	_, unregistered, err = p.notify(newTestNotification(origin, devices, now))
	return unregistered, err
}

// priority returns Google's priority. A removal must not wake a device.
func priority(n notification) string {
	if n.removal {
		return "normal"
	}
	return "high"
}

// apnsNotification returns a notification for one of Apple's devices. Its id is a hash of the job and the device, so a
// second attempt does not show a delivered notification again.
func apnsNotification(n notification, d realm.PushToken) *apns2.Notification {
	key := sha256.Sum256([]byte(n.key + " " + d.Token))
	id, _ := uuid.FromBytes(key[:16]) // cannot fail: the key has 16 bytes
	out := &apns2.Notification{
		DeviceToken: wire.APNsToken(d.Token),
		Topic:       d.App,
		ApnsID:      id.String(),
		CollapseID:  id.String(),
		Expiration:  time.Now().Add(24 * time.Hour),
	}
	load := payload.NewPayload().Custom("zulip", n.apns)
	if n.removal {
		out.Payload = load.Badge(0)
		return out
	}
	load.AlertTitle(n.alert.title).AlertSubtitle(n.alert.subtitle).AlertBody(n.alert.body)
	out.Payload = load.Sound("default").Badge(0)
	return out
}

// notifyByBouncer lets the bouncer notify devices by their tokens. unregistered are the tokens that are not valid any
// more.
func (p *Pusher) notifyByBouncer(n notification) (unregistered []realm.PushToken, err error) {
	android, apple := []string{}, []string{}
	for _, d := range n.tokens {
		if d.Kind == realm.PushAPNs {
			apple = append(apple, d.Token)
		} else {
			android = append(android, d.Token)
		}
	}
	forApple, forAndroid := map[string]any{}, map[string]any{}
	if len(apple) > 0 {
		forApple = map[string]any{"badge": 0, "custom": map[string]any{"zulip": n.apns}}
		if !n.removal {
			forApple["alert"] = map[string]string{
				"title":    n.alert.title,
				"subtitle": n.alert.subtitle,
				"body":     n.alert.body,
			}
			forApple["sound"] = "default"
		}
	}
	if len(android) > 0 {
		forAndroid = n.fcm
	}
	answer, code, err := p.sendJSONToBouncer("notify", map[string]any{
		"realm_uuid":   n.RealmUUID,
		"user_id":      n.User,
		"apns_payload": forApple,
		"gcm_payload":  forAndroid,
		"gcm_options": map[string]string{
			"priority": priority(n),
		},
		"android_devices": android,
		"apple_devices":   apple,
	})
	if err == nil && code != "" {
		err = fmt.Errorf("%w: %s", wire.ErrPushRefused, code)
	}
	if err != nil {
		return nil, err
	}
	var reply struct {
		Deleted struct {
			Android []string `json:"android_devices"`
			Apple   []string `json:"apple_devices"`
		} `json:"deleted_devices"`
	}
	if json.Unmarshal(answer, &reply) != nil {
		return nil, nil // the bouncer accepted the notification, even if its answer is not readable
	}
	for _, d := range n.tokens {
		invalid := reply.Deleted.Android
		if d.Kind == realm.PushAPNs {
			invalid = reply.Deleted.Apple
		}
		if slices.Contains(invalid, d.Token) {
			unregistered = append(unregistered, d)
		}
	}
	return unregistered, nil
}

// notifyEncryptedByBouncer lets the bouncer forward notifications that it cannot decrypt.
func (p *Pusher) notifyEncryptedByBouncer(n notification) (unregistered []realm.Device, err error) {
	requests := []any{}
	for _, d := range n.devices {
		sealed, err := seal(d.Key, n.secret)
		if err != nil {
			p.log.Warn("notification not encrypted for a device", "user", n.User.String(), "device", d.ID, "err", err)
			continue
		}
		load := map[string]any{"push_key_id": *d.KeyID, "encrypted_data": sealed}
		r := map[string]any{"token_id": *d.TokenID, "payload": load}
		if d.TokenKind == "apns" {
			load["aps"] = map[string]any{"mutable-content": 1, "alert": map[string]string{"title": "New notification"}}
			r["http_headers"] = map[string]any{"apns_priority": 10, "apns_push_type": "alert"}
			if n.removal {
				r["http_headers"] = map[string]any{"apns_priority": 5, "apns_push_type": "background"}
			}
		} else {
			r["fcm_priority"] = priority(n)
		}
		requests = append(requests, r)
	}
	if len(requests) == 0 {
		return nil, nil
	}
	answer, code, err := p.sendJSONToBouncer("e2ee/notify",
		map[string]any{"realm_uuid": n.RealmUUID, "push_requests": requests})
	if err == nil && code != "" {
		err = fmt.Errorf("%w: %s", wire.ErrPushRefused, code)
	}
	if err != nil {
		return nil, err
	}
	var reply struct {
		Unregistered []string `json:"delete_token_ids"`
	}
	if json.Unmarshal(answer, &reply) != nil {
		return nil, nil
	}
	for _, d := range n.devices {
		if slices.Contains(reply.Unregistered, *d.TokenID) {
			unregistered = append(unregistered, d)
		}
	}
	return unregistered, nil
}

// secretBoxKind is the first byte of a device's key. A key for libsodium's secretbox follows (protocol).
const secretBoxKind = 0x31

var errUnknownKeyKind = errors.New("unknown kind of device key")

// seal encrypts a notification for a device. It returns a fresh nonce and the box in base64.
func seal(key, text []byte) (string, error) {
	if len(key) != 33 || key[0] != secretBoxKind {
		return "", errUnknownKeyKind
	}
	var nonce [24]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		panic("BUG: no randomness: " + err.Error())
	}
	return base64.StdEncoding.EncodeToString(secretbox.Seal(nonce[:], text, &nonce, (*[32]byte)(key[1:]))), nil
}
