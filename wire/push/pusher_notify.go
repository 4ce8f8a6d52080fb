package push

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/sideshow/apns2"
	"github.com/sideshow/apns2/payload"
	"golang.org/x/crypto/nacl/secretbox"

	"parley/actors/realm"
	"parley/wire"
)

// notify is as in Service. A permanent refusal is logged and not tried again.
func (p *Pusher) notify(n notification) (left notification, answer wire.PushAnswer, err error) {
	left = n
	left.tokens, left.devices = nil, nil
	sent := false
	phones := slices.DeleteFunc(slices.Clone(n.tokens), isBrowser)
	if len(phones)+len(n.devices) > 0 {
		if e := p.ask(n.RealmID, false); e != nil {
			if !errors.Is(e, errPlaceClosed) {
				return n, answer, e
			}
			phones, n.devices = nil, nil
		}
	}
	for _, d := range n.tokens {
		if !isBrowser(d) || p.c.Web.Key == nil {
			continue
		}
		e := p.ask(n.RealmID, true)
		if errors.Is(e, errPlaceClosed) {
			continue
		}
		sent = true
		if e == nil {
			e = p.sendWeb(n.web, d)
		}
		if errors.Is(e, wire.ErrDeviceUnknown) {
			answer.Tokens = append(answer.Tokens, d)
		} else if errors.Is(e, wire.ErrPushRefused) {
			err = cmp.Or(err, e) // is not tried again, but others are
		} else if e != nil {
			left.tokens, err = append(left.tokens, d), e
		}
	}
	if p.bouncer != nil {
		sent = sent || len(phones)+len(n.devices) > 0
		if len(phones) > 0 {
			bounced := n
			bounced.tokens = phones
			some, e := p.notifyByBouncer(bounced)
			answer.Tokens, answer.Rights = append(answer.Tokens, some.Tokens...), some.Rights
			if e != nil {
				left.tokens, err = append(left.tokens, phones...), e
			}
		}
		if len(n.devices) > 0 {
			some, e := p.notifyEncryptedByBouncer(n)
			answer.Devices = some.Devices
			if some.Rights != nil {
				answer.Rights = some.Rights
			}
			if e != nil {
				left.devices, err = n.devices, e
			}
		}
	} else {
		for _, d := range phones {
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
				answer.Tokens = append(answer.Tokens, d)
			} else if e != nil {
				left.tokens, err = append(left.tokens, d), e
			}
		}
	}
	if !sent {
		return left, answer, wire.ErrPushNotConfigured
	}
	if err != nil {
		p.log.Warn("push notification failed",
			"user", n.User.String(), "realm", n.RealmID, "devices", len(left.tokens)+len(left.devices), "err", err)
	}
	return left, answer, err
}

// TestEncrypted shows a test notification on devices that are notified end-to-end encrypted.
func (p *Pusher) TestEncrypted(
	origin wire.PushOrigin, devices []realm.Device, now int64,
) (answer wire.PushAnswer, err error) {
	_, answer, err = p.notify(newTestNotification(origin, devices, now))
	return answer, err
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

var errUnknownKeyKind = errors.New("unknown kind of device key")

// seal encrypts a notification for a device. It returns a fresh nonce and the box in base64.
func seal(key, text []byte) (string, error) {
	if len(key) != 33 || key[0] != wire.PushKeyKind {
		return "", errUnknownKeyKind
	}
	var nonce [24]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		panic("BUG: no randomness: " + err.Error())
	}
	return base64.StdEncoding.EncodeToString(secretbox.Seal(nonce[:], text, &nonce, (*[32]byte)(key[1:]))), nil
}
