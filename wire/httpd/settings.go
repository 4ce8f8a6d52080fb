package httpd

import (
	"strconv"

	"parley/actors/registry"
)

// Settings are the settings of the rate limits.
type Settings struct {
	TrustedProxies     string
	RateLimit          int
	AnonymousRateLimit int
	LoginLimit         int
	OAuthRegistration  bool
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "trusted-proxies", Group: registry.Network, Value: &s.TrustedProxies,
			Meaning: "addresses or networks, comma-separated, whose X-Forwarded-For header is trusted",
		},
		{
			Name: "rate-limit", Default: strconv.Itoa(DefaultUserLimit), Group: registry.Limits, Value: &s.RateLimit,
			Meaning: "requests per minute for one account at each node; 0 switches rate limits off",
		},
		{
			Name: "anonymous-rate-limit", Default: strconv.Itoa(DefaultVisitorLimit),
			Group: registry.Limits, Value: &s.AnonymousRateLimit,
			Meaning: "requests per minute for one IP address without a login or with a failed one, at each node; " +
				"0: no limit",
		},
		{
			Name: "login-limit", Default: strconv.Itoa(DefaultLoginLimit),
			Group: registry.Limits, Value: &s.LoginLimit,
			Meaning: "failed logins of one account from one IP address in half an hour; from all addresses " +
				"together ten times as many; 0: no limit",
		},
		{
			Name: "oauth-registration", Default: "false", Group: registry.Network, Value: &s.OAuthRegistration,
			Meaning: "allow apps for agents to register at /oauth/register, so that they can ask users for a limited " +
				"API key in the browser",
		},
	}
}
