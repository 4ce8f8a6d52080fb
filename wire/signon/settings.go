package signon

import "parley/actors/registry"

// Settings is the setting of the logins at other providers.
type Settings struct {
	AuthConfig string
}

// Table describes the setting.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "auth-config", Group: registry.Access, Value: &s.AuthConfig,
			Meaning: "file with the login providers and the rules for logins (TOML): OpenID Connect, GitHub, SAML, " +
				"LDAP, second factors, sessions",
		},
	}
}
