package realm

import "net/url"

// maxWebURL is the maximum length of a URL in bytes.
const maxWebURL = 2048

// IsServiceURL reports whether s is an absolute http or https URL that the server can call: the service of a bot. Any
// host is accepted, because a service can run inside the organization's network.
//
// URLs that clients show as links are checked by isWebURL instead. It accepts less: the host needs a dot or begins with
// "localhost", the scheme is in lower case, and white space, quotes and angle brackets are refused.
func IsServiceURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= maxWebURL && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
