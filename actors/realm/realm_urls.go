package realm

import (
	"net/url"
	"strings"
)

// maxWebURL is the maximum length of a URL in bytes.
const maxWebURL = 2048

// IsServiceURL reports whether s is an absolute http or https URL that the server can call, such as the service of a
// bot. It accepts any host, because a service can run inside the network of the organization.
func IsServiceURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= maxWebURL && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// isWebURL reports whether s is an absolute http or https URL that clients can show as a link. It accepts less than
// IsServiceURL: the scheme is in lower case, the host has a dot or begins with "localhost", and the URL has no white
// space, quotes or angle brackets. It accepts more where net/url finds an invalid escape. Clients can depend on both.
func isWebURL(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	host, _, _ := strings.Cut(rest, "/")
	if !ok || host == "" || len(s) > maxWebURL || strings.ContainsAny(s, " \t\r\n<>\"") {
		return false
	}
	return strings.Contains(host, ".") || strings.HasPrefix(host, "localhost")
}
