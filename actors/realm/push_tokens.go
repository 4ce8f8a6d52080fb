package realm

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
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
	// Of a browser: the keys that encrypt its notifications, and the session that made the subscription. Old rows can
	// have 0, which is no session: such a browser is not notified.
	Keys    WebPushKeys
	Session int64
}

// WebPushKeys are the keys of a browser's subscription (RFC 8291), in base64 for addresses: its public key, and its
// authentication secret.
type WebPushKeys struct{ Public, Secret string }

// PushTokens is the row of one user's tokens, oldest first.
type PushTokens struct{ List []PushToken }

// Limits of push tokens. The length, in bytes, comes from the protocol. Above a number, the oldest tokens are removed.
// Users choose the addresses of browsers, and each notification connects to all of them: so there are few, and very few
// of one push host. A user has about as many browsers, and at most two of one maker.
const (
	MaxPushToken     = 4096
	maxPushTokens    = 64 // of one user, of all kinds
	MaxWebPush       = 10 // browsers of one user
	MaxWebPushOfHost = 2  // browsers of one user with the same PushHost
)

// PushHost returns the part of a subscription's address that one owner controls: the domain that was registered,
// without its subdomains and the port, or the IP address. It is "" if the address has none.
func PushHost(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return domain
	}
	return host
}

// limitWebPush returns a list of tokens, oldest first, without the oldest ones of browsers above the limits.
func limitWebPush(list []PushToken) []PushToken {
	browsers, ofHost := 0, map[string]int{}
	kept := make([]PushToken, 0, len(list))
	for _, x := range slices.Backward(list) {
		if x.Kind == PushWeb {
			host := PushHost(x.Token)
			if browsers >= MaxWebPush || ofHost[host] >= MaxWebPushOfHost {
				continue
			}
			browsers++
			ofHost[host]++
		}
		kept = append(kept, x)
	}
	slices.Reverse(kept)
	return kept
}

// PushTokensOf returns a user's tokens, oldest first.
func (r *Realm) PushTokensOf(u UserID) []PushToken {
	if l := r.small.pushTokens.find(u); l != nil {
		return slices.Clone(l.List)
	}
	return nil
}

// NotifiedPushTokens returns a user's tokens, oldest first, without those of browsers that have no valid session, and
// at most as many of browsers as a user can have: older rows may have more.
func (v View) NotifiedPushTokens(u UserID) []PushToken {
	return limitWebPush(slices.DeleteFunc(v.PushTokensOf(u), func(x PushToken) bool {
		return x.Kind == PushWeb && !slices.ContainsFunc(v.StoredBrowserSessions(u), func(s BrowserSession) bool {
			return s.ID == x.Session && v.Now < s.Expires()
		})
	}))
}

// AddPushToken asks to notify a device. A known token is not changed, but it is sent to the push bouncer again, which
// may have lost it. A browser is bound to the session of the request; a request without a session is refused.
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
	if c.Kind == PushWeb {
		s := t.OwnBrowserSession()
		if s == nil {
			return Done{}, BadRequest("Notifications of browsers need a browser session.")
		}
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
	list = limitWebPush(append(list, x))
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
