package doctor

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// checkSettings names settings that the server refuses, and those that contradict each other without stopping it.
func checkSettings(_ context.Context, c *Config) Finding {
	if c.SettingsError != nil {
		return fault("correct the setting; parley serve does not start with it", "%v", c.SettingsError)
	}
	host, _ := c.publicHost()
	https := strings.HasPrefix(c.URL, "https://")
	ownTLS := c.TLSCert != "" || c.ACME != ""
	names := strings.FieldsFunc(c.ACME, func(r rune) bool { return r == ',' || r == ' ' })
	switch {
	case c.ACME != "" && host != "" && !slices.Contains(names, host):
		return fault("add the host of url to tls-acme, or correct url",
			"tls-acme has no certificate for %s, the host of url", host)
	case ownTLS && !https:
		return fault("write https:// in url, or remove tls-cert and tls-acme",
			"the server speaks TLS, but url is %s", c.URL)
	case https && !ownTLS && c.TrustedProxies == "":
		return fault("set tls-acme or tls-cert, or set trusted-proxies to the address of the proxy that speaks TLS",
			"url is https, but neither the server nor a trusted proxy speaks TLS")
	}
	for _, text := range strings.Split(c.TrustedProxies, ",") {
		if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil && p.Bits() == 0 {
			return fault("name only the proxies",
				"trusted-proxies trusts every address: anyone can claim to be another one")
		}
	}
	return ok("no contradictions")
}

// checkExposure names addresses that other machines can reach although they are made for this one.
func checkExposure(_ context.Context, c *Config) Finding {
	switch {
	case c.Demo && !loopback(c.Listen):
		return fault("remove demo", "with demo anyone who reaches %s logs in as any user", c.Listen)
	case c.DebugListen != "" && !loopback(c.DebugListen):
		return fault("set debug-listen to a loopback address",
			"metrics and profiles at %s need no login", c.DebugListen)
	}
	return ok("listens on %s", c.Listen)
}

func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
