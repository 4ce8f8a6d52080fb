package bouncertest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"golang.org/x/crypto/nacl/box"
)

// Kinds of tokens, and their limits (protocol).
const (
	apns            = 1
	fcm             = 2
	maxToken        = 4096
	registrationAge = 24 * 3600 // seconds
)

var appPattern = regexp.MustCompile(`^[.a-zA-Z0-9-]+$`)

// checkToken checks the parameters token and token_kind.
func (c *call) checkToken() (token string, kind int64, err error) {
	if err := c.form.require("token", "token_kind"); err != nil {
		return "", 0, err
	}
	token = c.form.Get("token")
	if _, err := c.form.json("token_kind", &kind); err != nil {
		return "", 0, err
	}
	switch {
	case kind != apns && kind != fcm:
		return "", 0, bad("Invalid token type")
	case token == "" || len(token) > maxToken:
		return "", 0, bad("Empty or invalid length token")
	}
	if _, err := hex.DecodeString(token); kind == apns && c.b.StrictTokens && err != nil {
		return "", 0, bad("Invalid APNS token")
	}
	return token, kind, nil
}

func registerDevice(c *call) (answer, error) {
	token, kind, err := c.checkToken()
	if err != nil {
		return nil, err
	}
	o, err := c.formOwner()
	if err != nil {
		return nil, err
	}
	if o.id == nil && o.uuid == "" {
		return nil, bad("Missing user_id or user_uuid")
	}
	app := ""
	if kind == apns {
		app = c.form.Get("ios_app_id")
		switch {
		case app == "":
			return nil, bad("Missing ios_app_id")
		case !appPattern.MatchString(app):
			return nil, bad("ios_app_id has invalid format")
		}
	}
	if err := c.resolve(&o); err != nil {
		return nil, err
	}
	d := &device{server: c.server, user: o.id, userUUID: o.uuid, realm: o.realm, kind: kind, token: token, app: app}
	if o.uuid != "" {
		d.user = nil
		if o.id != nil {
			c.b.devices = slices.DeleteFunc(c.b.devices, func(x *device) bool {
				return x.server == c.server && x.user != nil && *x.user == *o.id && x.kind == kind && x.token == token
			})
		}
	}
	for _, x := range c.b.devices {
		if x.server == d.server && x.userUUID == d.userUUID && x.kind == kind && x.token == token &&
			(d.user == nil && x.user == nil || d.user != nil && x.user != nil && *x.user == *d.user) {
			return nil, nil
		}
	}
	c.b.devices = append(c.b.devices, d)
	return nil, nil
}

// belongsTo reports whether a device is one of a user's.
func (d *device) belongsTo(s *remoteServer, o owner) bool {
	return d.server == s &&
		(o.uuid != "" && d.userUUID == o.uuid || o.id != nil && d.user != nil && *d.user == *o.id)
}

func (c *call) unregister(match func(*device) bool) (removed int, err error) {
	o, err := c.formOwner()
	if err != nil {
		return 0, err
	}
	if o.id == nil && o.uuid == "" {
		return 0, errInternal
	}
	if err := c.resolve(&o); err != nil {
		return 0, err
	}
	before := len(c.b.devices)
	c.b.devices = slices.DeleteFunc(c.b.devices, func(d *device) bool {
		return d.belongsTo(c.server, o) && match(d)
	})
	return before - len(c.b.devices), nil
}

func unregisterDevice(c *call) (answer, error) {
	token, kind, err := c.checkToken()
	if err != nil {
		return nil, err
	}
	n, err := c.unregister(func(d *device) bool { return d.kind == kind && d.token == token })
	if err == nil && n == 0 {
		err = bad("Token does not exist")
	}
	return nil, err
}

func unregisterAll(c *call) (answer, error) {
	_, err := c.unregister(func(*device) bool { return true })
	return nil, err
}

// devicesOf returns a user's devices of one kind. Rows by number that repeat a row by UUID are removed.
func (c *call) devicesOf(o owner, kind int64) []*device {
	byUUID := map[string]bool{}
	for _, d := range c.b.devices {
		if d.belongsTo(c.server, o) && d.userUUID != "" && d.kind == kind {
			byUUID[d.token] = true
		}
	}
	c.b.devices = slices.DeleteFunc(c.b.devices, func(d *device) bool {
		return d.belongsTo(c.server, o) && d.userUUID == "" && d.kind == kind && byUUID[d.token]
	})
	var out []*device
	for _, d := range c.b.devices {
		if d.belongsTo(c.server, o) && d.kind == kind {
			out = append(out, d)
		}
	}
	return out
}

func notify(c *call) (answer, error) {
	body, err := c.jsonBody()
	if err != nil {
		return nil, err
	}
	o, err := c.jsonOwner(body)
	if err != nil {
		return nil, err
	}
	if o.id == nil && o.uuid == "" {
		return nil, errInternal
	}
	forApple, err := body.object("apns_payload")
	if err != nil {
		return nil, err
	}
	forGoogle, err := body.object("gcm_payload")
	if err != nil {
		return nil, err
	}
	if err := checkOptions(body); err != nil && !c.b.NoServices {
		return nil, err
	}
	android, err := body.texts("android_devices")
	if err != nil {
		return nil, err
	}
	apple, err := body.texts("apple_devices")
	if err != nil {
		return nil, err
	}
	if err := c.resolve(&o); err != nil {
		return nil, err
	}
	if err := c.checkPlan(o.realm); err != nil {
		return nil, err
	}
	androids, apples := c.devicesOf(o, fcm), c.devicesOf(o, apns)
	c.deliver(androids, forGoogle)
	c.deliver(apples, forApple)
	a := answer{
		"total_android_devices": len(androids),
		"total_apple_devices":   len(apples),
		"deleted_devices": answer{
			"android_devices": minus(android, c.devicesOf(o, fcm)),
			"apple_devices":   minus(apple, c.devicesOf(o, apns)),
		},
		"realm": nil,
	}
	if o.realm != nil {
		can, end, _ := c.b.mayPush(c.server, o.realm)
		a["realm"] = answer{"can_push": can, "expected_end_timestamp": end}
	}
	return a, nil
}

// checkOptions checks the options for Google's service.
func checkOptions(body object) error {
	options, err := body.object("gcm_options")
	if err != nil {
		return err
	}
	priority, ok := options["priority"]
	if ok && priority != "high" && priority != "normal" {
		return bad("Invalid GCM option to bouncer: priority '%v'", priority)
	}
	if len(options) > 1 || len(options) == 1 && !ok {
		return bad("Invalid GCM options to bouncer: %v", options)
	}
	return nil
}

// deliver passes a notification on to devices, and forgets the dead ones.
func (c *call) deliver(list []*device, payload map[string]any) {
	for _, d := range list {
		if c.b.Dead[d.token] {
			c.b.devices = slices.DeleteFunc(c.b.devices, func(x *device) bool {
				return x.kind == d.kind && x.token == d.token
			})
			continue
		}
		c.b.deliveries = append(c.b.deliveries, Delivery{d.token, payload})
	}
}

// minus returns the tokens that no device has.
func minus(tokens []string, devices []*device) []string {
	out := []string{}
	for _, t := range tokens {
		if !slices.ContainsFunc(devices, func(d *device) bool { return d.token == t }) {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return out
}

func testNotification(c *call) (answer, error) {
	body, err := c.jsonBody()
	if err != nil {
		return nil, err
	}
	if err := body.require("token", "token_kind", "user_id", "user_uuid", "base_payload"); err != nil {
		return nil, err
	}
	err = body.only("token", "token_kind", "user_id", "user_uuid", "realm_uuid", "base_payload")
	if err != nil {
		return nil, err
	}
	o, err := c.jsonOwner(body)
	if err != nil {
		return nil, err
	}
	kind, err := body.integer("token_kind")
	if err != nil {
		return nil, err
	}
	token, err := body.text("token")
	if err != nil {
		return nil, err
	}
	base, err := body.object("base_payload")
	if err != nil {
		return nil, err
	}
	if err := c.resolve(&o); err != nil {
		return nil, err
	}
	for _, d := range c.devicesOf(o, *kind) {
		if d.token != token {
			continue
		}
		if base["realm_name"] == nil || base["realm_uri"] == nil {
			return nil, errInternal
		}
		c.deliver([]*device{d}, base)
		return nil, nil
	}
	return nil, &refusal{status: 400, code: "INVALID_REMOTE_PUSH_DEVICE_TOKEN",
		msg: "Device not recognized by the push bouncer"}
}

// encryptedDevice is a device that gets notifications that the bouncer cannot read.
type encryptedDevice struct {
	realm     *remoteRealm
	id, token string
	kind      string
	expired   bool
}

func (b *Bouncer) makeKey() {
	public, private, err := box.GenerateKey(rand.Reader)
	if err != nil {
		panic("BUG: no key: " + err.Error())
	}
	b.publicKey, b.privateKey = public, private
}

// PublicKey returns the key for which apps encrypt their tokens, in base64.
func (b *Bouncer) PublicKey() string { return base64.StdEncoding.EncodeToString(b.publicKey[:]) }

// TokenID returns the id of a token in encrypted registrations.
func TokenID(token string) string {
	h := sha256.Sum256([]byte(token))
	return base64.StdEncoding.EncodeToString(h[:8])
}

// Seal encrypts the registration of a token as apps do.
func (b *Bouncer) Seal(token, kind, app string, at int64) string {
	fields := map[string]any{"token": token, "token_kind": kind, "timestamp": at}
	if app != "" {
		fields["ios_app_id"] = app
	}
	text, _ := json.Marshal(fields)
	sealed, err := box.SealAnonymous(nil, text, b.publicKey, rand.Reader)
	if err != nil {
		panic("BUG: not sealed: " + err.Error())
	}
	return base64.StdEncoding.EncodeToString(sealed)
}

// ownRealm returns an organization of the server that asks.
func (c *call) ownRealm(uuid string) (*remoteRealm, error) {
	r := c.b.realms[uuid]
	switch {
	case r == nil:
		return nil, errMissingRealm
	case r.server != c.server:
		return nil, errMismatch
	}
	return r, nil
}

func registerEncrypted(c *call) (answer, error) {
	f := c.form
	err := f.require("realm_uuid", "token_id", "encrypted_push_registration", "bouncer_public_key")
	if err != nil {
		return nil, err
	}
	r, err := c.ownRealm(f.Get("realm_uuid"))
	if err != nil {
		return nil, err
	}
	if f.Get("bouncer_public_key") != c.b.PublicKey() {
		return nil, &refusal{status: 400, code: "INVALID_BOUNCER_PUBLIC_KEY", msg: "Invalid bouncer_public_key"}
	}
	invalid := bad("Invalid encrypted_push_registration")
	sealed, err := base64.StdEncoding.DecodeString(f.Get("encrypted_push_registration"))
	if err != nil {
		return nil, invalid
	}
	text, ok := box.OpenAnonymous(nil, sealed, c.b.publicKey, c.b.privateKey)
	var x struct {
		Token string  `json:"token"`
		Kind  string  `json:"token_kind"`
		App   *string `json:"ios_app_id"`
		At    *int64  `json:"timestamp"`
	}
	if !ok || json.Unmarshal(text, &x) != nil || x.At == nil || x.Token == "" || len(x.Token) > maxToken ||
		x.Kind != "apns" && x.Kind != "fcm" || (x.Kind == "apns") != (x.App != nil) ||
		TokenID(x.Token) != f.Get("token_id") {
		return nil, invalid
	}
	if _, err := hex.DecodeString(x.Token); x.Kind == "apns" && err != nil {
		return nil, invalid
	}
	if c.b.Now().Unix()-*x.At > registrationAge {
		return nil, &refusal{status: 400, code: "REQUEST_EXPIRED", msg: "Request expired"}
	}
	for _, d := range c.b.encrypted {
		if d.realm == r && d.id == f.Get("token_id") {
			d.expired = false
			return nil, nil
		}
	}
	c.b.encrypted = append(c.b.encrypted, &encryptedDevice{realm: r, id: f.Get("token_id"), token: x.Token,
		kind: x.Kind})
	return nil, nil
}

func notifyEncrypted(c *call) (answer, error) {
	body, err := c.jsonBody()
	if err != nil {
		return nil, err
	}
	if err := body.require("realm_uuid", "push_requests"); err != nil {
		return nil, err
	}
	uuid, err := body.text("realm_uuid")
	if err != nil {
		return nil, err
	}
	r, err := c.ownRealm(uuid)
	if err != nil {
		return nil, err
	}
	if err := c.checkPlan(r); err != nil {
		return nil, err
	}
	sent, gone := map[string]int{}, []string{}
	list, _ := body.fields["push_requests"].([]any)
	for i, x := range list {
		fields, _ := x.(map[string]any)
		o := object{fmt.Sprintf(`request["push_requests"][%d]`, i), fields}
		if err := checkPushRequest(o); err != nil {
			return nil, err
		}
		load, _ := o.object("payload")
		at := slices.IndexFunc(c.b.encrypted, func(d *encryptedDevice) bool {
			return d.realm == r && d.id == fields["token_id"] && !d.expired
		})
		if at < 0 || c.b.Dead[c.b.encrypted[at].token] {
			gone = append(gone, fields["token_id"].(string))
			if at >= 0 {
				c.b.encrypted[at].expired = true
			}
			continue
		}
		sent[c.b.encrypted[at].kind]++
		c.b.deliveries = append(c.b.deliveries, Delivery{c.b.encrypted[at].token, load})
	}
	can, end, _ := c.b.mayPush(c.server, r)
	return answer{
		"android_successfully_sent_count": sent["fcm"],
		"apple_successfully_sent_count":   sent["apns"],
		"delete_token_ids":                gone,
		"realm_push_status":               answer{"can_push": can, "expected_end_timestamp": end},
	}, nil
}

// checkPushRequest checks one encrypted notification.
func checkPushRequest(o object) error {
	if err := o.require("token_id", "payload"); err != nil {
		return err
	}
	load, err := o.object("payload")
	if err != nil {
		return err
	}
	if err := (object{o.path("payload"), load}).require("push_key_id", "encrypted_data"); err != nil {
		return err
	}
	if o.fields["fcm_priority"] != nil {
		if p := o.fields["fcm_priority"]; p != "high" && p != "normal" {
			return bad("Invalid %s", o.path("fcm_priority"))
		}
		return o.only("token_id", "payload", "fcm_priority")
	}
	if err := o.require("http_headers"); err != nil {
		return err
	}
	return o.only("token_id", "payload", "http_headers")
}
