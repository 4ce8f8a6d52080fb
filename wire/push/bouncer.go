package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// Limits of requests to the bouncer (protocol).
const (
	uploadTimeout   = 90 * time.Second // of an upload of statistics
	maxUploadAnswer = 16 << 20         // bytes; about 110 for each organization
)

// DefaultBouncer is the URL of the vendor's bouncer, which serves the apps in the stores.
const DefaultBouncer = "https://push.zulipchat.com"

// BouncerAccount is this server's account at a bouncer.
type BouncerAccount struct {
	URL string `json:"url"`
	Org string `json:"org"` // UUID of this server; "": not registered yet
	Key string `json:"key"`
}

// Bouncer is a client of a push bouncer, a server that forwards notifications for this one. Its methods may be called
// concurrently.
type Bouncer struct {
	account atomic.Pointer[BouncerAccount]
	http    *http.Client
	// lastAllowed is when the bouncer last forwarded a notification, in Unix seconds.
	lastAllowed atomic.Int64
}

// NewBouncer returns a client with an account.
func NewBouncer(a BouncerAccount) *Bouncer {
	a.URL = strings.TrimSuffix(a.URL, "/")
	b := &Bouncer{http: &http.Client{Timeout: timeout}}
	b.account.Store(&a)
	return b
}

// Account returns the account in use.
func (b *Bouncer) Account() BouncerAccount { return *b.account.Load() }

// errNotRegistered means that the server has no account yet.
var errNotRegistered = fmt.Errorf("%w: the server is not registered at the push bouncer; run parley push register",
	wire.ErrPushRefused)

// request is one request to the bouncer.
type request struct {
	method, path string // the path is below /api/v1/remotes/
	kind         string // content type; "": no body
	body         []byte
	open         bool // without credentials
	upload       bool // may take long, and has a long answer
}

// do sends a request and returns its answer. Errors are errNotRegistered, *wire.BouncerRefusal, or one that wraps
// wire.ErrPushFailed; all others are of the network.
func (b *Bouncer) do(r request) ([]byte, error) {
	account := b.Account()
	if !r.open && account.Org == "" {
		return nil, errNotRegistered
	}
	client, limit := b.http, int64(maxAnswer)
	if r.upload {
		client, limit = &http.Client{Transport: b.http.Transport, Timeout: uploadTimeout}, maxUploadAnswer
	}
	status, answer, err := send(client, r.method, account.URL+"/api/v1/remotes/"+r.path, r.kind, r.body,
		func(h *http.Request) {
			h.Header.Set("User-Agent", "ZulipServer/"+wire.Version)
			if !r.open {
				h.SetBasicAuth(account.Org, account.Key)
			}
		}, limit)
	if err != nil {
		return nil, fmt.Errorf("reach the push bouncer: %w", err)
	}
	if status == http.StatusOK {
		return answer, nil
	}
	failure := struct{ Code, Msg string }{Code: "BAD_REQUEST"}
	json.Unmarshal(answer, &failure) // it keeps its code if the answer is not JSON
	switch {
	case status >= 500: // every other answer is final, also 429, as with the reference server
		return nil, fmt.Errorf("%w: the bouncer answered %d %s", wire.ErrPushFailed, status, failure.Msg)
	case failure.Msg == "":
		failure.Msg = "the push bouncer answered " + strconv.Itoa(status)
	}
	return nil, &wire.BouncerRefusal{Code: failure.Code, Text: failure.Msg}
}

func (b *Bouncer) postJSON(path string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return b.do(request{method: "POST", path: path, kind: "application/json", body: text})
}

const formType = "application/x-www-form-urlencoded"

func (b *Bouncer) postForm(path string, form url.Values) ([]byte, error) {
	return b.do(request{method: "POST", path: path, kind: formType, body: []byte(form.Encode())})
}

// rights is the part of answers about an organization.
type rights struct {
	CanPush bool     `json:"can_push"`
	End     *float64 `json:"expected_end_timestamp"`
}

func (r *rights) command() *realm.SetPushRights {
	if r == nil {
		return nil
	}
	c := &realm.SetPushRights{Allowed: r.CanPush}
	if r.End != nil && r.CanPush {
		c.End = int64(*r.End)
	}
	return c
}

// reasonMark is before the bouncer's reason in the text of a refusal (protocol).
const reasonMark = "Reason provided by the server: "

// rightsOf returns the rights of the organization in a refusal, or nil.
func rightsOf(err error) *realm.SetPushRights {
	var refused *wire.BouncerRefusal
	if !errors.As(err, &refused) {
		return nil
	}
	switch refused.Code {
	case "PUSH_NOTIFICATIONS_DISALLOWED":
		_, reason, ok := strings.Cut(refused.Text, reasonMark)
		if !ok {
			reason = refused.Text
		}
		return &realm.SetPushRights{Reason: reason}
	case "MISSING_REMOTE_REALM", "REMOTE_REALM_SERVER_MISMATCH_ERROR", "INVALID_ZULIP_SERVER", "UNAUTHORIZED":
		return &realm.SetPushRights{Reason: refused.Text}
	}
	return nil
}

// bouncerToken returns a token as the bouncer takes it: Apple's in hexadecimal.
func bouncerToken(d realm.PushToken) string {
	if d.Kind == realm.PushAPNs {
		return wire.APNsToken(d.Token)
	}
	return d.Token
}

// testByBouncer shows a test notification. The bouncer refuses requests with other members than these.
func (p *Pusher) testByBouncer(n wire.PushOrigin, d realm.PushToken) error {
	_, err := p.bouncer.postJSON("push/test_notification", map[string]any{
		"realm_uuid":   n.RealmUUID,
		"user_uuid":    n.UserUUID,
		"user_id":      n.User,
		"token":        bouncerToken(d),
		"token_kind":   d.Kind,
		"base_payload": legacyFields(&n, true),
	})
	var refused *wire.BouncerRefusal
	if errors.As(err, &refused) && refused.Code == "INVALID_REMOTE_PUSH_DEVICE_TOKEN" {
		return wire.ErrDeviceUnknownToBouncer
	}
	return err
}

// Register registers or removes a device at the bouncer. The bouncer takes registrations as forms, unlike
// notifications.
func (p *Pusher) Register(r wire.PushRegistration) error {
	if p.bouncer == nil {
		return wire.ErrPushNotConfigured
	}
	if err := p.ask(r.Realm, false); err != nil {
		return err
	}
	form := url.Values{"realm_uuid": {r.RealmUUID}}
	path := "push/e2ee/register"
	if r.Device != 0 {
		form.Set("token_id", r.TokenID)
		form.Set("encrypted_push_registration", r.Encrypted)
		form.Set("bouncer_public_key", r.PublicKey)
	} else {
		form.Set("user_id", r.User.String())
		form.Set("user_uuid", r.UserUUID)
		switch {
		case r.Gone && r.Token.Token == "":
			path = "push/unregister/all"
		case r.Gone:
			path = "push/unregister"
		default:
			path = "push/register"
		}
		if r.Token.Token != "" {
			form.Set("token", bouncerToken(r.Token))
			form.Set("token_kind", strconv.Itoa(int(r.Token.Kind)))
		}
		if !r.Gone && r.Token.Kind == realm.PushAPNs {
			form.Set("ios_app_id", r.Token.App)
		}
	}
	_, err := p.bouncer.postForm(path, form)
	return err
}

// notifyByBouncer lets the bouncer notify a user. The bouncer notifies every device it knows, of both kinds, so the
// request has the payloads of both. The listed tokens only decide which ones the answer calls dead.
func (p *Pusher) notifyByBouncer(n notification) (answer wire.PushAnswer, err error) {
	android, apple := []string{}, []string{}
	for _, d := range n.tokens {
		if d.Kind == realm.PushAPNs {
			apple = append(apple, bouncerToken(d))
		} else {
			android = append(android, d.Token)
		}
	}
	forApple := map[string]any{"badge": 0, "custom": map[string]any{"zulip": n.apns}}
	if !n.removal {
		forApple["alert"] = map[string]string{
			"title":    n.alert.title,
			"subtitle": n.alert.subtitle,
			"body":     n.alert.body,
		}
		forApple["sound"] = "default"
	}
	text, err := p.bouncer.postJSON("push/notify", map[string]any{
		"realm_uuid":      n.RealmUUID,
		"user_uuid":       n.UserUUID,
		"user_id":         n.User,
		"apns_payload":    forApple,
		"gcm_payload":     n.fcm,
		"gcm_options":     map[string]string{"priority": priority(n)},
		"android_devices": android,
		"apple_devices":   apple,
	})
	if err != nil {
		return wire.PushAnswer{Rights: rightsOf(err)}, err
	}
	p.bouncer.lastAllowed.Store(time.Now().Unix())
	var reply struct {
		Deleted struct {
			Android []string `json:"android_devices"`
			Apple   []string `json:"apple_devices"`
		} `json:"deleted_devices"`
		Realm *rights `json:"realm"`
	}
	if json.Unmarshal(text, &reply) != nil {
		return answer, nil // the bouncer accepted the notification, even if its answer is not readable
	}
	answer.Rights = reply.Realm.command()
	dead := map[realm.PushKind]map[string]bool{realm.PushFCM: {}, realm.PushAPNs: {}}
	for _, t := range reply.Deleted.Android {
		dead[realm.PushFCM][t] = true
	}
	for _, t := range reply.Deleted.Apple {
		dead[realm.PushAPNs][t] = true
	}
	for _, d := range n.tokens {
		if dead[d.Kind][bouncerToken(d)] {
			answer.Tokens = append(answer.Tokens, d)
		}
	}
	return answer, nil
}

// notifyEncryptedByBouncer lets the bouncer forward notifications that it cannot decrypt.
func (p *Pusher) notifyEncryptedByBouncer(n notification) (answer wire.PushAnswer, err error) {
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
		return answer, nil
	}
	text, err := p.bouncer.postJSON("push/e2ee/notify",
		map[string]any{"realm_uuid": n.RealmUUID, "push_requests": requests})
	if err != nil {
		return wire.PushAnswer{Rights: rightsOf(err)}, err
	}
	p.bouncer.lastAllowed.Store(time.Now().Unix())
	var reply struct {
		Dead   []string `json:"delete_token_ids"`
		Status *rights  `json:"realm_push_status"`
	}
	if json.Unmarshal(text, &reply) != nil {
		return answer, nil
	}
	answer.Rights = reply.Status.command()
	dead := map[string]bool{}
	for _, id := range reply.Dead {
		dead[id] = true
	}
	for _, d := range n.devices {
		if dead[*d.TokenID] {
			answer.Devices = append(answer.Devices, d)
		}
	}
	return answer, nil
}
