package wire

import (
	"strings"

	"parley/actors/realm"
)

var deactivationEndpoints = []Endpoint{
	CommandFromCall("POST", "/realm/deactivate", func(c *Call, _ deactivateRealmForm) (realm.CloseRealm, error) {
		return realm.CloseRealm{}, c.confirmAct(realm.Owner)
	}, emptyAnswer),
	Custom("GET", "/realm/subdomain/{subdomain}", checkSubdomain).withoutLogin(),
}

var deactivationEvents = []EventKind{
	Event(func(e *realm.RealmEnded, _ *Recipient) *realmDeactivatedEvent {
		return &realmDeactivatedEvent{Realm: e.Realm}
	}),
}

type realmDeactivatedEvent struct {
	_     struct{} `const:"type=realm op=deactivated"`
	Realm realm.ID `json:"realm_id"`
}

// subdomainAnswer says in msg whether a name is free.
type subdomainAnswer struct {
	Msg string `json:"msg"`
}

type deactivateRealmForm struct{}

// Limits of the length of a subdomain, in bytes. The upper limit is below the 63 bytes of a host name label.
const (
	minSubdomain = 3
	maxSubdomain = 40
)

type subdomainForm struct {
	Name string `path:"subdomain"`
}

// checkSubdomain answers whether a new organization could have the name.
func checkSubdomain(c *Call, f subdomainForm) (*subdomainAnswer, error) {
	return &subdomainAnswer{c.subdomainAvailability(f.Name)}, nil
}

func (c *Call) subdomainAvailability(name string) string {
	switch {
	case len(name) < minSubdomain:
		return "Subdomain needs to have length 3 or greater."
	case len(name) > maxSubdomain:
		return "Subdomain is too long."
	case strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-"):
		return "Subdomain cannot start or end with a '-'."
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return "Subdomain can only have lowercase letters, numbers, and '-'s."
	case name == "www" || c.Tools.SubdomainTaken(name):
		return "Subdomain is already in use. Please choose a different one."
	}
	return "available"
}

// errRealmDeactivated refuses requests to a deactivated organization.
func errRealmDeactivated() error {
	return realm.Refuse(realm.Unauthenticated, "REALM_DEACTIVATED", "This organization has been deactivated")
}
