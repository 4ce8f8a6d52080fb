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

// notify notifies devices of one thing. What has failed for now is left over, with the error of one of them; what is
// refused for good is logged, and not tried again.
func (p *Pusher) notify(n notification) (left notification, gone wire.UnregisteredDevices, err error) {
	left = n
	left.tokens, left.devices = nil, nil
	sent := false
	if p.c.Bouncer != "" {
		sent = true
		if len(n.tokens) > 0 {
			dead, e := p.notifyByBouncer(n)
			if gone.Tokens = dead; e != nil {
				left.tokens, err = n.tokens, e
			}
		}
		if len(n.devices) > 0 {
			dead, e := p.notifyEncryptedByBouncer(n)
			if gone.Devices = dead; e != nil {
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
				gone.Tokens = append(gone.Tokens, d)
			} else if e != nil {
				left.tokens, err = append(left.tokens, d), e
			}
		}
	}
	if !sent {
		return left, gone, wire.ErrPushNotConfigured
	}
	if err != nil {
		p.log.Warn("push notification failed", "user", n.User.String(), "realm", n.RealmURL, "devices", len(left.tokens)+len(left.devices), "error", err)
	}
	return left, gone, err
}

// TestEncrypted shows a test notification on devices that are notified end-to-end encrypted.
func (p *Pusher) TestEncrypted(
	origin wire.PushOrigin, devices []realm.Device, now int64,
) (gone wire.UnregisteredDevices, err error) {
	_, gone, err = p.notify(newTestNotification(origin, devices, now))
	return gone, err
}

// priority: what takes notifications back must not wake a device.
func priority(n notification) string {
	if n.removal {
		return "normal"
	}
	return "high"
}

// apnsNotification is a notification for one of Apple's devices. Its id follows from what it tells and to whom, so a second
// attempt of what arrived already shows nothing new.
func apnsNotification(n notification, d realm.PushToken) *apns2.Notification {
	key := sha256.Sum256([]byte(n.key + " " + d.Token))
	id, _ := uuid.FromBytes(key[:16]) // sixteen bytes are always one
	out := &apns2.Notification{DeviceToken: wire.APNsToken(d.Token), Topic: d.App, ApnsID: id.String(), CollapseID: id.String(), Expiration: time.Now().Add(24 * time.Hour)}
	load := payload.NewPayload().Custom("zulip", n.apns)
	if n.removal {
		out.Payload = load.Badge(0)
		return out
	}
	out.Payload = load.AlertTitle(n.alert.title).AlertSubtitle(n.alert.subtitle).AlertBody(n.alert.body).Sound("default").Badge(0)
	return out
}

// notifyByBouncer has the bouncer notifyByBouncer devices whose tokens it knows; it says which of them are dead.
func (p *Pusher) notifyByBouncer(n notification) (gone []realm.PushToken, err error) {
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
			forApple["alert"] = map[string]string{"title": n.alert.title, "subtitle": n.alert.subtitle, "body": n.alert.body}
			forApple["sound"] = "default"
		}
	}
	if len(android) > 0 {
		forAndroid = n.fcm
	}
	answer, code, err := p.sendJSONToBouncer("notify", map[string]any{"realm_uuid": n.RealmUUID, "user_id": n.User, "apns_payload": forApple, "gcm_payload": forAndroid,
		"gcm_options": map[string]string{"priority": priority(n)}, "android_devices": android, "apple_devices": apple})
	if err == nil && code != "" {
		err = fmt.Errorf("%w: %s", wire.ErrPushRefused, code)
	}
	if err != nil {
		return nil, err
	}
	var said struct {
		Deleted struct {
			Android []string `json:"android_devices"`
			Apple   []string `json:"apple_devices"`
		} `json:"deleted_devices"`
	}
	if json.Unmarshal(answer, &said) != nil {
		return nil, nil // it took them; that it says nothing we understand of the dead is no failure
	}
	for _, d := range n.tokens {
		dead := said.Deleted.Android
		if d.Kind == realm.PushAPNs {
			dead = said.Deleted.Apple
		}
		if slices.Contains(dead, d.Token) {
			gone = append(gone, d)
		}
	}
	return gone, nil
}

// notifyEncryptedByBouncer has the bouncer pass on what it cannot read.
func (p *Pusher) notifyEncryptedByBouncer(n notification) (gone []realm.Device, err error) {
	requests := []any{}
	for _, d := range n.devices {
		sealed, err := seal(d.Key, n.secret)
		if err != nil {
			p.log.Warn("device cannot be notified", "user", n.User.String(), "device", d.ID, "error", err)
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
	answer, code, err := p.sendJSONToBouncer("e2ee/notify", map[string]any{"realm_uuid": n.RealmUUID, "push_requests": requests})
	if err == nil && code != "" {
		err = fmt.Errorf("%w: %s", wire.ErrPushRefused, code)
	}
	if err != nil {
		return nil, err
	}
	var said struct {
		Dead []string `json:"delete_token_ids"`
	}
	if json.Unmarshal(answer, &said) != nil {
		return nil, nil
	}
	for _, d := range n.devices {
		if slices.Contains(said.Dead, *d.TokenID) {
			gone = append(gone, d)
		}
	}
	return gone, nil
}

// secretBoxKind is the first byte of a device's key: what follows is a key of libsodium's secretbox (protocol).
const secretBoxKind = 0x31

var errUnknownKeyKind = errors.New("the device's key is of no kind we know")

// seal encrypts a notification for a device: a fresh nonce, then the box, in base64.
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
