package realm

import "strings"

// maxWebURL is the maximum length of a URL in bytes.
const maxWebURL = 2048

// IsWebURL reports whether s is an absolute http or https URL. White space, quotes and angle brackets are not allowed.
// The host must have a dot or begin with "localhost", so that links work for all readers. With internal it can have any
// name, because a bot's service can run inside the network of the organization.
func IsWebURL(s string, internal bool) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return false
	}
	host := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host = rest[:i]
	}
	if host == "" || len(s) > maxWebURL || strings.ContainsAny(s, " \t\r\n<>\"") {
		return false
	}
	return internal || strings.Contains(host, ".") || strings.HasPrefix(host, "localhost")
}
