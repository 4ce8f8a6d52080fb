package gifs

import (
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"parley/actors/registry"
	"parley/wire"
)

// Settings are the settings of the provider.
type Settings struct{ GIFProvider, GIFKeyFile, GIFURL, GIFAllow string }

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "gif-provider", Group: registry.Access, Value: &s.GIFProvider,
			Meaning: "provider of animated pictures that users search: giphy, klipy or tenor; the rating is a " +
				"setting of the organization (gif_rating_policy)",
		},
		{
			Name: "gif-key-file", Group: registry.Access, Value: &s.GIFKeyFile,
			Meaning: "file with the API key for gif-provider; every user can read the key, as the protocol sends it " +
				"to clients that ask the provider themselves",
		},
		{
			Name: "gif-url", Group: registry.Access, Value: &s.GIFURL,
			Meaning: "address of the interface of gif-provider, if it is not the provider's own, such as that of a " +
				"proxy",
		},
		{
			Name: "gif-allow", Group: registry.Access, Value: &s.GIFAllow,
			Meaning: "private networks, comma-separated, in which gif-url may be, such as 127.0.0.0/8",
		},
	}
}

// addresses are the interfaces of the providers.
var addresses = map[string]string{
	giphy: "https://api.giphy.com/v1/gifs",
	klipy: "https://api.klipy.com/v2",
	tenor: "https://tenor.googleapis.com/v2",
}

const (
	giphy = "giphy"
	klipy = "klipy"
	tenor = "tenor"
)

// maxKey bounds a key, in bytes.
const maxKey = 200

// check completes the settings and returns the key.
func (s *Settings) check(allowed func(netip.Addr) bool) (key string, err error) {
	if s.GIFProvider == "" {
		return "", nil
	}
	own := addresses[s.GIFProvider]
	if own == "" {
		return "", fmt.Errorf("gif-provider must be giphy, klipy or tenor, not %q", s.GIFProvider)
	}
	if s.GIFURL == "" {
		s.GIFURL = own
	}
	u, err := url.Parse(s.GIFURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return "", fmt.Errorf("gif-url must be an address such as https://host/path, without a password and a query")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !allowed(ip) {
		return "", fmt.Errorf("gif-url is in a private network: add it to gif-allow, such as 127.0.0.0/8")
	}
	text, err := os.ReadFile(s.GIFKeyFile)
	if err != nil {
		return "", fmt.Errorf("gif-key-file: %w", err)
	}
	key = strings.TrimSpace(string(text))
	if key == "" || len(key) > maxKey || strings.ContainsAny(key, "\r\n") {
		return "", fmt.Errorf("gif-key-file: %s must contain one line with a key", s.GIFKeyFile)
	}
	return key, nil
}

// keys returns the key under the name that clients know.
func keys(provider, key string) (k wire.GIFKeys) {
	switch provider {
	case giphy:
		k.GIPHY = key
	case klipy:
		k.KLIPY = key
	case tenor:
		k.Tenor = key
	}
	return k
}
