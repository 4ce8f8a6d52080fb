package realm

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
)

// PushKind is a service that delivers push notifications. The numbers come from the protocol.
type PushKind int

const (
	PushAPNs PushKind = 1
	PushFCM  PushKind = 2
	// PushWeb is not in the protocol: browsers, each through the push service of its maker (RFC 8030).
	PushWeb PushKind = 3
)

// pushKinds are the services by the names with which devices register end-to-end encrypted.
var pushKinds = map[string]PushKind{"apns": PushAPNs, "fcm": PushFCM}

// tokenIDs returns the possible token_ids of a token (protocol): base64 of the first 8 bytes of its SHA-256. They
// identify a token where the token itself must not appear. Older clients send Apple's tokens in base64, newer ones in
// hexadecimal, which is the form that is hashed. So there can be two.
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

// PushToken identifies a device to its push service.
type PushToken struct {
	Kind  PushKind
	Token string // of a browser: the address of its subscription
	App   string // app id; only for APNs
	Since int64
	// Of a browser: the keys that encrypt its notifications, and the session that it is logged in with; 0: an API key.
	Keys    WebPushKeys
	Session int64
}

// WebPushKeys are the keys of a browser's subscription (RFC 8291), in base64 for addresses: its public key, and its
// authentication secret.
type WebPushKeys struct{ Public, Secret string }

// PushTokens is the row of one user's tokens, oldest first.
type PushTokens struct{ List []PushToken }

// Limits of push tokens. The length, in bytes, comes from the protocol. Above the number, the oldest tokens are
// removed.
const (
	MaxPushToken  = 4096
	maxPushTokens = 64
)

// PushTokensOf returns a user's tokens, oldest first.
func (r *Realm) PushTokensOf(u UserID) []PushToken {
	if l := r.small.pushTokens.find(u); l != nil {
		return slices.Clone(l.List)
	}
	return nil
}

// NotifiedPushTokens returns a user's tokens, oldest first, without those of browsers whose session has expired.
func (v View) NotifiedPushTokens(u UserID) []PushToken {
	return slices.DeleteFunc(v.PushTokensOf(u), func(x PushToken) bool {
		return x.Session != 0 && !slices.ContainsFunc(v.StoredBrowserSessions(u), func(s BrowserSession) bool {
			return s.ID == x.Session && v.Now < s.Expires()
		})
	})
}

// AddPushToken asks to notify a device. A known token is not changed, but it is sent to the push bouncer again, which
// may have lost it.
type AddPushToken struct {
	Kind       PushKind
	Token, App string
	Keys       WebPushKeys // only for browsers
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
	x := PushToken{Kind: c.Kind, Token: c.Token, App: c.App, Since: t.Now, Keys: c.Keys}
	if s := t.OwnBrowserSession(); s != nil && c.Kind == PushWeb {
		x.Session = s.ID
	}
	known := func(old PushToken) bool {
		return old.Kind == x.Kind && old.Token == x.Token && old.App == x.App && old.Session == x.Session &&
			old.Keys == x.Keys
	}
	if slices.ContainsFunc(list, known) {
		t.registerDevices(me.ID, DeviceRegistration{Token: x})
		return Done{}, nil
	}
	list = slices.DeleteFunc(list, func(x PushToken) bool { return x.Kind == c.Kind && x.Token == c.Token })
	list = append(list, x)
	drop := max(0, len(list)-maxPushTokens)
	t.Record(&PushTokensChanged{me.ID, list[drop:]})
	var changes []DeviceRegistration
	for _, old := range list[:drop] {
		changes = append(changes, DeviceRegistration{Token: old, Gone: true})
	}
	t.registerDevices(me.ID, append(changes, DeviceRegistration{Token: x})...)
	return Done{}, nil
}

// RemovePushToken asks to stop notifying a device. The server asks for it when the push service rejects a token.
type RemovePushToken struct {
	User  UserID // used only if the server asks
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
	removed := func(x PushToken) bool { return x.Kind == c.Kind && x.Token == c.Token }
	rest := slices.DeleteFunc(slices.Clone(list), removed)
	if len(rest) == len(list) {
		return Done{}, BadRequest("Token does not exist")
	}
	t.Record(&PushTokensChanged{u, rest})
	if !t.System { // otherwise the service has removed it already
		t.registerDevices(u, DeviceRegistration{Token: PushToken{Kind: c.Kind, Token: c.Token}, Gone: true})
	}
	return Done{}, nil
}

// PushTokensChanged sets a user's list of tokens.
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

func (*PushTokensChanged) notices(*Realm) []Notice { return nil }
func (*PushTokensChanged) keepsMarkdownConfig()    {}
