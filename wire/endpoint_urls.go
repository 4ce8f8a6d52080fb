package wire

import "net/url"

// maxURL is the maximum length of a URL in bytes.
const maxURL = 2048

// validURL reports whether a text is an absolute http or https URL.
func validURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= maxURL && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
