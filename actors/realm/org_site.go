package realm

// Site is the address under which clients reach an organization.
type Site struct {
	URL  string // scheme and host, without a slash at the end
	Host string // part of the made-up email addresses that hide the real ones
	Name string // string id; "" is the root organization
	// Deactivated is set if the organization is deactivated. It follows from facts on disk.
	Deactivated bool
	// Logins are the login providers of the organization, in the order in which login pages show them. The slice is
	// shared and never modified.
	Logins []LoginProvider
}

// LoginProvider is a login provider as clients see it.
type LoginProvider struct {
	Type    string // oidc or github
	Name    string // part of addresses
	Display string // for users
}
