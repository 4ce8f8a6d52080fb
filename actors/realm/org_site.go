package realm

import "slices"

// Site is the address under which clients reach an organization.
type Site struct {
	URL  string // scheme and host, without a slash at the end
	Host string // part of the made-up email addresses that hide the real ones
	Name string // string id; "" is the root organization
	// Deactivated is set if the organization is deactivated. It follows from facts on disk.
	Deactivated bool
	// Logins are the login providers of the organization; nil: there are none. They are shared and never modified. It
	// is a pointer, so that sites can be compared.
	Logins *LoginProviders
	// Policy is the operator's rules for logins.
	Policy LoginPolicy
}

// Providers returns the login providers of the organization.
func (s Site) Providers() []LoginProvider {
	if s.Logins == nil {
		return nil
	}
	return s.Logins.List
}

// ProviderPages returns the login providers of the organization that have pages.
func (s Site) ProviderPages() (out []LoginProvider) {
	for _, p := range s.Providers() {
		if p.Type != DirectoryType {
			out = append(out, p)
		}
	}
	return out
}

// HasDirectory reports whether users of the organization can enter names and passwords of a directory.
func (s Site) HasDirectory() bool {
	return slices.ContainsFunc(s.Providers(), func(p LoginProvider) bool { return p.Type == DirectoryType })
}

// DirectoryType is the type of a login provider without pages: its users enter names and passwords in the login form.
const DirectoryType = "ldap"

// LoginProviders is a list of login providers, in the order in which login pages show them.
type LoginProviders struct{ List []LoginProvider }

// LoginPolicy is the operator's rules for the logins of an organization. The zero value has none.
type LoginPolicy struct {
	// FactorUpTo is the lowest role that needs a second factor; 0: none needs one.
	FactorUpTo Role
	// SessionIdle and SessionLifetime are how long a browser session lasts after its last use, and after the login, in
	// seconds; 0: as long as without rules.
	SessionIdle, SessionLifetime int64
}

// LoginProvider is a login provider as clients see it.
type LoginProvider struct {
	Type    string // oidc, github or DirectoryType
	Name    string // part of addresses
	Display string // for users
	Icon    string // path of the picture of its button on this server; "": none
}
