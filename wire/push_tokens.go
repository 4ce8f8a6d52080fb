package wire

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"regexp"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

// browserNotifications is why the endpoints of Web Push exist.
const browserNotifications = "notifications of browsers, which Zulip does not have"

var pushEndpoints = []Endpoint{
	CommandFromCall("POST", "/users/me/apns_device_token", addAPNsToken, emptyAnswer),
	CommandFromCall("DELETE", "/users/me/apns_device_token", removeToken(realm.PushAPNs), emptyAnswer),
	CommandFromCall("POST", "/users/me/android_gcm_reg_id", func(c *Call, f tokenForm) (realm.AddPushToken, error) {
		return realm.AddPushToken{Kind: realm.PushFCM, Token: f.Token}, checkToken(realm.PushFCM, f.Token)
	}, emptyAnswer),
	CommandFromCall("DELETE", "/users/me/android_gcm_reg_id", removeToken(realm.PushFCM), emptyAnswer),
	Get("/users/me/web_push", getWebPush).atOwner().
		extension(browserNotifications),
	CommandFromCall("POST", "/users/me/web_push", addWebPush, emptyAnswer).extension(browserNotifications),
	CommandFromCall("DELETE", "/users/me/web_push", func(_ *Call, f webPushAddressForm) (realm.RemovePushToken, error) {
		return realm.RemovePushToken{Kind: realm.PushWeb, Token: f.Endpoint}, nil
	}, emptyAnswer).extension(browserNotifications),
	Custom("POST", "/mobile_push/test_notification", testNotification),
	CommandFromForm("POST", "/register_client_device", func(noParameters) realm.AddDevice {
		return realm.AddDevice{}
	}, func(id int64) deviceAnswer { return deviceAnswer{id} }),
	CommandFromForm("POST", "/remove_client_device", func(f deviceForm) realm.RemoveDevice {
		return realm.RemoveDevice{ID: f.ID}
	}, emptyAnswer),
	Custom("POST", "/mobile_push/register", registerDevice),
	Custom("POST", "/mobile_push/e2ee/test_notification", testEncryptedNotification),
	Custom("POST", "/remotes/push/e2ee/register", registerRemote).withoutLogin().AlwaysFails(),
	Custom("GET", "/zulip-services/verify/{access_token}", proveHostname).withoutLogin().atOwner().
		extension("the push service checks with it that the server has this host name"),
}

var pushEvents = []EventKind{
	Event(func(e *realm.DeviceAdded, _ *Recipient) *deviceAddedEvent { return &deviceAddedEvent{ID: e.ID} }),
	Event(func(e *realm.DeviceRemoved, _ *Recipient) *deviceRemovedEvent { return &deviceRemovedEvent{ID: e.ID} }),
	Event(deviceChanged),
}

type deviceAnswer struct {
	ID int64 `json:"device_id"`
}

type hostnameAnswer struct {
	Secret string `json:"verification_secret"`
}

// deviceJSON is a device that uses end-to-end encryption.
type deviceJSON struct {
	KeyID        *int64  `json:"push_key_id"`
	TokenID      *string `json:"push_token_id"`
	PendingToken *string `json:"pending_push_token_id"`
	Updated      *int64  `json:"push_token_last_updated_timestamp"`
	Failure      *string `json:"push_registration_error_code"`
}

type deviceAddedEvent struct {
	_  struct{} `const:"type=device op=add"`
	ID int64    `json:"device_id"`
}

// deviceChangedEvent has the changed fields.
type deviceChangedEvent struct {
	_       struct{}        `const:"type=device op=update"`
	ID      int64           `json:"device_id"`
	KeyID   *int64          `json:"push_key_id,omitzero"`
	Token   *orNull[string] `json:"push_token_id,omitzero"`
	Pending *orNull[string] `json:"pending_push_token_id,omitzero"`
	Updated *int64          `json:"push_token_last_updated_timestamp,omitzero"`
	Failure *orNull[string] `json:"push_registration_error_code,omitzero"`
}

type deviceRemovedEvent struct {
	_  struct{} `const:"type=device op=remove"`
	ID int64    `json:"device_id"`
}

// Pusher sends notifications to mobile devices through the push services of Apple and Google, or through a bouncer.
type Pusher interface {
	// Test sends a test notification. The error is ErrDeviceUnknown if the service does not know the device, and
	// ErrDeviceUnknownToBouncer if the bouncer does not.
	Test(PushOrigin, realm.PushToken) error
	// TestEncrypted sends a test notification to devices that use end-to-end encryption; now is in Unix seconds. The
	// answer has the devices that their service no longer knows.
	TestEncrypted(origin PushOrigin, devices []realm.Device, now int64) (PushAnswer, error)
	// Register registers a device with the bouncer. The error is ErrPushNotConfigured if there is no bouncer, and wraps
	// ErrPushRefused if trying again cannot help; a *BouncerRefusal says why.
	Register(PushRegistration) error
}

// PushOrigin identifies the user and organization that a notification comes from.
type PushOrigin struct {
	RealmUUID, RealmName, RealmURL string
	User                           realm.UserID
	UserUUID                       string
	RealmID                        realm.ID
	Host                           string
}

// PushOriginOf returns the origin of notifications to a user.
func PushOriginOf(v realm.View, u realm.UserID, s Site) PushOrigin {
	return PushOrigin{
		RealmUUID: v.Org().UUID, RealmName: v.Org().Name, RealmURL: s.URL, RealmID: v.ID(), Host: s.Host, User: u,
		UserUUID: v.PushUserUUID(u),
	}
}

// PushAnswer is the answer of a push service besides success or failure: the devices that it no longer knows, and what
// the push bouncer says about the organization.
type PushAnswer struct {
	Tokens  []realm.PushToken
	Devices []realm.Device
	Rights  *realm.SetPushRights // nil: the answer does not say
}

// PushRegistration is the registration of a device with the bouncer.
type PushRegistration struct {
	realm.DeviceRegistration
	Realm     realm.ID
	RealmUUID string
	User      realm.UserID
	UserUUID  string
}

// The errors of a Pusher that endpoints answer with a refusal.
var (
	ErrDeviceUnknown          = errors.New("push service does not know the device")
	ErrDeviceUnknownToBouncer = errors.New("push bouncer does not know the device")
	// ErrPushNotConfigured means that no push service is configured for these devices.
	ErrPushNotConfigured = errors.New("no push service is configured for these devices")
	// ErrPushRefused means that the service rejects this server until an administrator corrects the configuration.
	ErrPushRefused = errors.New("push service refused this server")
	// ErrPushFailed means that the service answered with an internal error. All other errors are network errors.
	ErrPushFailed = errors.New("push service failed")
)

// BouncerRefusal is the error of a request that the push bouncer refused. It wraps ErrPushRefused.
type BouncerRefusal struct{ Code, Text string }

func (e *BouncerRefusal) Error() string {
	return ErrPushRefused.Error() + ": " + e.Code + " " + e.Text
}
func (e *BouncerRefusal) Unwrap() error { return ErrPushRefused }

type tokenForm struct {
	Token string `form:"token,required"`
}

type apnsForm struct {
	Token string `form:"token,required"`
	App   string `form:"appid,required,maxlen=200"`
}

// appPattern matches the ids of apps on Apple's devices (protocol). The push bouncer refuses others.
var appPattern = regexp.MustCompile(`^[.a-zA-Z0-9-]+$`)

func addAPNsToken(c *Call, f apnsForm) (realm.AddPushToken, error) {
	if !appPattern.MatchString(f.App) {
		return realm.AddPushToken{}, realm.BadRequest("appid has invalid format")
	}
	return realm.AddPushToken{Kind: realm.PushAPNs, Token: f.Token, App: f.App}, checkToken(realm.PushAPNs, f.Token)
}

func removeToken(kind realm.PushKind) func(*Call, tokenForm) (realm.RemovePushToken, error) {
	return func(c *Call, f tokenForm) (realm.RemovePushToken, error) {
		return realm.RemovePushToken{Kind: kind, Token: f.Token}, checkToken(kind, f.Token)
	}
}

// checkToken refuses invalid device tokens. Apple's tokens are bytes, in hexadecimal or, from older programs, in
// base64.
func checkToken(kind realm.PushKind, token string) error {
	if token == "" || len(token) > realm.MaxPushToken {
		return realm.BadRequest("Empty or invalid length token")
	}
	if _, ok := apnsBytes(token); kind == realm.PushAPNs && !ok {
		return realm.BadRequest("Invalid APNS token")
	}
	return nil
}

func apnsBytes(token string) ([]byte, bool) {
	if b, err := hex.DecodeString(token); err == nil {
		return b, true
	}
	// the decoder of the original server skips characters outside of the alphabet
	plain := strings.Map(func(c rune) rune {
		if c < 128 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("+/=", c)) {
			return c
		}
		return -1
	}, token)
	b, err := base64.StdEncoding.DecodeString(plain)
	return b, err == nil && len(b) > 0
}

// APNsToken returns a token in hexadecimal, as Apple's service requires.
func APNsToken(token string) string {
	b, _ := apnsBytes(token)
	return hex.EncodeToString(b)
}

type testNotificationForm struct {
	Token form.Opt[string] `form:"token"`
}

func testNotification(c *Call, f testNotificationForm) (a noFields, _ error) {
	type target struct {
		note    PushOrigin
		devices []realm.PushToken
	}
	to, err := Read(c, func(v realm.View) (target, error) {
		me, err := v.RequireHuman()
		if err != nil {
			return target{}, err
		}
		t := target{note: PushOriginOf(v, me.ID, c.Site)}
		for _, d := range v.PushTokensOf(me.ID) {
			if d.Kind != realm.PushWeb && (!f.Token.Set || d.Token == f.Token.Value) {
				t.devices = append(t.devices, d)
			}
		}
		if f.Token.Set && len(t.devices) == 0 {
			return t, errDeviceUnknown()
		}
		return t, nil
	})
	if err != nil || c.Tools.Push == nil { // without a push service: the same answer as if the device were off
		return a, err
	}
	var failed error
	for _, d := range to.devices {
		var refused *BouncerRefusal
		switch err := c.Tools.Push.Test(to.note, d); {
		case errors.Is(err, ErrDeviceUnknown):
			ApplyPushAnswer(c.Server, c.Realm, c.Caller.User,
				PushAnswer{Tokens: []realm.PushToken{d}})
			failed = errDeviceUnknown()
		case errors.Is(err, ErrDeviceUnknownToBouncer):
			failed = realm.Refuse(realm.Invalid, "INVALID_REMOTE_PUSH_DEVICE_TOKEN",
				"Device not recognized by the push bouncer")
		case errors.Is(err, ErrPlaceClosed):
			failed = ErrPlaceClosed
		case err == nil || failed != nil:
		case errors.As(err, &refused):
			failed = realm.BadRequest("%s", bouncerText(refused))
		default:
			failed = realm.Refuse(realm.BadGateway, "BAD_REQUEST", "The push notification service cannot be reached")
		}
	}
	return a, failed
}

// bouncerText returns the text with which a phone shows a refusal of the bouncer (protocol).
func bouncerText(e *BouncerRefusal) string {
	if e.Code == "INVALID_ZULIP_SERVER" {
		return "Push notifications bouncer error: " + e.Text
	}
	return e.Text
}

func errDeviceUnknown() error {
	return realm.Refuse(realm.Invalid, "INVALID_PUSH_DEVICE_TOKEN", "Device not recognized")
}

type testEncryptedNotificationForm struct {
	Device form.Opt[int64] `form:"device_id"`
}

// testEncryptedNotification sends a test notification to the caller's devices that use end-to-end encryption.
func testEncryptedNotification(c *Call, f testEncryptedNotificationForm) (a noFields, _ error) {
	type target struct {
		origin  PushOrigin
		devices []realm.Device
		now     int64
	}
	to, err := Read(c, func(v realm.View) (target, error) {
		me, err := v.RequireHuman()
		if err != nil {
			return target{}, err
		}
		if c.Tools.Push == nil {
			return target{}, errPushNotConfigured()
		}
		t := target{origin: PushOriginOf(v, me.ID, c.Site), now: v.Now}
		for _, d := range v.DevicesOf(me.ID) {
			if d.TokenID != nil && d.KeyID != nil && (!f.Device.Set || d.ID == f.Device.Value) {
				t.devices = append(t.devices, d)
			}
		}
		if len(t.devices) == 0 {
			return t, errNoActiveDevice()
		}
		return t, nil
	})
	if err != nil {
		return a, err
	}
	unregistered, err := c.Tools.Push.TestEncrypted(to.origin, to.devices, to.now)
	ApplyPushAnswer(c.Server, c.Realm, to.origin.User, unregistered)
	switch {
	case errors.Is(err, ErrPushNotConfigured):
		return a, errPushNotConfigured()
	case errors.Is(err, ErrPushRefused):
		return a, realm.Refuse(realm.Forbidden, "ADMIN_ACTION_REQUIRED",
			"Push notification configuration issue on server, contact the server administrator or retry later.")
	case errors.Is(err, ErrPushFailed):
		return a, realm.Refuse(realm.BadGateway, "INTERNAL_SERVER_ERROR_ON_BOUNCER",
			"Internal server error on push notification service, retry later.")
	case err != nil:
		return a, realm.Refuse(realm.BadGateway, "FAILED_TO_CONNECT_BOUNCER",
			"Network error while connecting to push notification service.")
	case len(unregistered.Devices) == len(to.devices):
		return a, errNoActiveDevice()
	}
	return a, nil
}

func errNoActiveDevice() error {
	return realm.Refuse(realm.Invalid, "NO_ACTIVE_PUSH_DEVICE", "No active registered push device")
}

func errPushNotConfigured() error {
	return realm.Refuse(realm.Busy, "PUSH_SERVICE_NOT_CONFIGURED",
		"Server is not configured to use push notification service.")
}

// ApplyPushAnswer removes devices that a push service no longer knows, and records what the push bouncer says about the
// organization. A device that is already removed is no error.
func ApplyPushAnswer(server Server, id realm.ID, u realm.UserID, devices PushAnswer) {
	if devices.Rights != nil {
		SetPushRights(server, id, *devices.Rights)
	}
	for _, d := range devices.Tokens {
		cmd := realm.RemovePushToken{User: u, Kind: d.Kind, Token: d.Token}
		server.Turn(id, realm.Caller{System: true}, func(t *realm.Turn) (any, error) { return cmd.Decide(t) })
	}
	for _, d := range devices.Devices {
		cmd := realm.RemoveDeviceToken{ID: d.ID, Token: *d.TokenID}
		server.Turn(id, realm.Caller{System: true}, func(t *realm.Turn) (any, error) { return cmd.Decide(t) })
	}
}

// SetPushRights records what the push bouncer says about an organization. Nearly every answer says the same: then the
// realm has no turn.
func SetPushRights(server Server, id realm.ID, cmd realm.SetPushRights) error {
	v, err := server.View(id, realm.Caller{System: true}, func(v realm.View) (any, error) {
		return cmd.Changes(v.PushState()), nil
	})
	if changes, _ := v.(bool); err != nil || !changes {
		return err
	}
	caller := realm.System
	_, err = server.Turn(id, caller, func(t *realm.Turn) (any, error) { return cmd.Decide(t) })
	return err
}

type remoteForm struct {
	Realm     string `form:"realm_uuid,required,maxlen=100"`
	TokenID   string `form:"token_id,required,maxlen=100"`
	Encrypted string `form:"encrypted_push_registration,required,maxlen=20000"`
	PublicKey string `form:"bouncer_public_key,required,maxlen=1000"`
}

// registerRemote is the endpoint where a bouncer accepts devices of other servers. This server is no bouncer: it has
// no key for apps to encrypt their tokens with. It therefore always refuses.
func registerRemote(c *Call, f remoteForm) (noFields, error) {
	return noFields{}, realm.Refuse(realm.Forbidden, "PUSH_SERVICE_NOT_CONFIGURED",
		"This server does not pass on push notifications for others.")
}

type proofForm struct {
	Token string `path:"access_token"`
}

// proveHostname answers the push bouncer, which asks whether this server prepared a transfer of its hostname.
func proveHostname(c *Call, f proofForm) (*hostnameAnswer, error) {
	if c.Tools.HostnameProof != nil {
		if secret, ok := c.Tools.HostnameProof(f.Token); ok {
			return &hostnameAnswer{secret}, nil
		}
	}
	return nil, realm.Refuse(realm.Invalid, "REMOTE_SERVER_VERIFICATION_SECRET_NOT_PREPARED",
		"Verification secret not prepared")
}

// PushKeyKind is the first byte of a device's key of pushKeyBytes bytes. A key for libsodium's secretbox follows
// (protocol).
const (
	PushKeyKind  = 0x31
	pushKeyBytes = 33
)

type deviceForm struct {
	ID int64 `form:"device_id,required"`
}

type registerDeviceForm struct {
	deviceForm
	KeyID     *int64           `form:"push_key_id,min=0,max=4294967295"`
	Key       form.Opt[string] `form:"push_key,maxlen=1000"`
	Kind      form.Opt[string] `form:"token_kind,enum=fcm|apns"`
	TokenID   form.Opt[string] `form:"token_id,maxlen=100"`
	PublicKey form.Opt[string] `form:"bouncer_public_key,maxlen=1000"`
	Encrypted form.Opt[string] `form:"encrypted_push_registration,maxlen=20000"`
}

// Check requires the key group, the token group or both, each complete.
func (f *registerDeviceForm) Check() *form.Error {
	key := f.KeyID != nil
	if key != f.Key.Set {
		return form.Bad("push_key_id and push_key go together")
	}
	token := 0
	for _, x := range []form.Opt[string]{f.Kind, f.TokenID, f.PublicKey, f.Encrypted} {
		if x.Set {
			token++
		}
	}
	switch {
	case token != 0 && token != 4:
		return form.Bad("token_kind, token_id, bouncer_public_key and encrypted_push_registration go together")
	case !key && token == 0:
		return form.Bad("Nothing to register: send a key, a token, or both")
	}
	if b, err := base64.StdEncoding.DecodeString(f.Key.Value); key &&
		(err != nil || len(b) != pushKeyBytes || b[0] != PushKeyKind) {
		return form.Bad("Invalid `push_key`")
	}
	if b, err := base64.StdEncoding.DecodeString(f.TokenID.Value); token > 0 && (err != nil || len(b) != 8) {
		return form.Bad("token_id is not 8 bytes in base64")
	}
	return nil
}

func registerDevice(c *Call, f registerDeviceForm) (noFields, error) {
	cmd := realm.RegisterDevice{ID: f.ID, KeyID: f.KeyID, Kind: f.Kind.Value}
	if f.KeyID != nil {
		cmd.Key, _ = base64.StdEncoding.DecodeString(f.Key.Value)
	}
	if f.TokenID.Set {
		cmd.Token, cmd.Encrypted, cmd.PublicKey = &f.TokenID.Value, f.Encrypted.Value, f.PublicKey.Value
	}
	_, err := Execute(c, cmd)
	return noFields{}, err
}

// devicesByID returns devices by their id in decimal.
func devicesByID(list []realm.Device) map[string]deviceJSON {
	out := map[string]deviceJSON{}
	for _, d := range list {
		out[realm.UserID(d.ID).String()] = deviceJSON{d.KeyID, d.TokenID, d.PendingToken, d.Updated, d.Failure}
	}
	return out
}

func deviceChanged(e *realm.DeviceChanged, _ *Recipient) *deviceChangedEvent {
	out := &deviceChangedEvent{ID: e.ID, KeyID: e.KeyID, Updated: e.Updated}
	switch {
	case e.TokenGone:
		out.Token = &orNull[string]{}
	case e.Token != nil:
		out.Token = &orNull[string]{e.Token}
	}
	if e.PendingSet {
		out.Pending = &orNull[string]{e.Pending}
	}
	if e.FailureSet {
		out.Failure = &orNull[string]{e.Failure}
	}
	return out
}
