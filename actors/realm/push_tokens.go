package realm

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
)

// PushKind is a service that delivers notifications to devices; the numbers are the protocol's.
type PushKind int

const (
	PushAPNs PushKind = 1
	PushFCM  PushKind = 2
)

// pushKinds are the services by the names that devices register with end-to-end encrypted.
var pushKinds = map[string]PushKind{"apns": PushAPNs, "fcm": PushFCM}

// tokenIDs is what a token may be called where it must not be read: base64 of the first 8 bytes of its SHA-256 (protocol:
// token_id). Apple's are bytes that older programs write in base64 and newer ones in hexadecimal, which is what is hashed.
func tokenIDs(x PushToken) (out []string) {
	spellings := []string{x.Token}
	if b, err := base64.StdEncoding.DecodeString(x.Token); x.Kind == PushAPNs && err == nil {
		spellings = append(spellings, hex.EncodeToString(b))
	}
	for _, s := range spellings {
		h := sha256.Sum256([]byte(s))
		out = append(out, base64.StdEncoding.EncodeToString(h[:8]))
	}
	return out
}

// PushToken is what a service knows a device by.
type PushToken struct {
	Kind  PushKind
	Token string
	App   string // of APNs
	Since int64
}

// PushTokens is the row of one user's devices, oldest first.
type PushTokens struct{ List []PushToken }

// Limits of push tokens: the length is the protocol's, in bytes; of the devices the oldest go, as nobody carries more.
const (
	MaxPushToken  = 4096
	maxPushTokens = 64
)

// PushTokensOf is a user's devices.
func (r *Realm) PushTokensOf(u UserID) []PushToken {
	if l := r.small.pushTokens.find(u); l != nil {
		return slices.Clone(l.List)
	}
	return nil
}

// AddPushToken asks to notify a device. One that is known already stays as it is; the service that passes notifications on
// for us hears of it again, as it may have forgotten.
type AddPushToken struct {
	Kind       PushKind
	Token, App string
}

func (c AddPushToken) Decide(t *Turn) (Done, error) {
	me, err := t.RequireHuman()
	if err != nil {
		return Done{}, err
	}
	if c.Token == "" || len(c.Token) > MaxPushToken {
		return Done{}, BadRequest("Empty or invalid length token")
	}
	list := t.PushTokensOf(me.ID)
	x := PushToken{c.Kind, c.Token, c.App, t.Now}
	if slices.ContainsFunc(list, func(x PushToken) bool { return x.Kind == c.Kind && x.Token == c.Token && x.App == c.App }) {
		t.registerDevices(me.ID, DeviceRegistration{Token: x})
		return Done{}, nil
	}
	list = slices.DeleteFunc(list, func(x PushToken) bool { return x.Kind == c.Kind && x.Token == c.Token })
	list = append(list, x)
	drop := max(0, len(list)-maxPushTokens)
	t.Record(&PushTokensChanged{me.ID, list[drop:]})
	var told []DeviceRegistration
	for _, old := range list[:drop] {
		told = append(told, DeviceRegistration{Token: old, Gone: true})
	}
	t.registerDevices(me.ID, append(told, DeviceRegistration{Token: x})...)
	return Done{}, nil
}

// RemovePushToken asks to notify a device no longer; the system asks so when its service no longer knows the device.
type RemovePushToken struct {
	User  UserID // of the system's
	Kind  PushKind
	Token string
}

func (c RemovePushToken) Decide(t *Turn) (Done, error) {
	u := c.User
	if !t.System {
		me, err := t.RequireHuman()
		if err != nil {
			return Done{}, err
		}
		u = me.ID
	}
	list := t.PushTokensOf(u)
	rest := slices.DeleteFunc(slices.Clone(list), func(x PushToken) bool { return x.Kind == c.Kind && x.Token == c.Token })
	if len(rest) == len(list) {
		return Done{}, BadRequest("Token does not exist")
	}
	t.Record(&PushTokensChanged{u, rest})
	if !t.System { // the service knows it no more
		t.registerDevices(u, DeviceRegistration{Token: PushToken{Kind: c.Kind, Token: c.Token}, Gone: true})
	}
	return Done{}, nil
}

// PushTokensChanged says a user has these devices now.
type PushTokensChanged struct {
	User UserID
	List []PushToken
}

func (f *PushTokensChanged) apply(r *Realm) {
	defer r.updatePushReachable(f.User)
	if len(f.List) == 0 {
		if r.small.pushTokens.find(f.User) != nil {
			r.small.pushTokens.remove(f.User)
		}
		return
	}
	r.small.pushTokens.put(f.User, &PushTokens{slices.Clone(f.List)})
}

func (*PushTokensChanged) tell(*Realm) []Notice { return nil }
func (*PushTokensChanged) keepsMarkdownConfig() {}
