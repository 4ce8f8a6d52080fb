package wire

import "net/url"

// maxURL is how long an address may be, in bytes.
const maxURL = 2048

// validURL reports whether a text is an absolute web address.
func validURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= maxURL && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
