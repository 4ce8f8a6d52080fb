package wire

import (
	"fmt"
	"strings"
)

// maxSubdomainBytes limits the length of an organization's subdomain.
const maxSubdomainBytes = 40

// punycodePrefix begins the names that programs show as other letters, which can look like another organization's.
const punycodePrefix = "xn--"

// CheckSubdomain returns an error if text cannot be the subdomain of an organization. The root organization has "".
func CheckSubdomain(text string) error {
	outside := strings.HasPrefix(text, "-") || strings.HasSuffix(text, "-")
	letters := strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	if len(text) > maxSubdomainBytes || outside || !letters || text == "www" {
		return fmt.Errorf("%q is not a subdomain: use lower-case letters, digits and dashes, at most %d characters",
			text, maxSubdomainBytes)
	}
	if strings.HasPrefix(text, punycodePrefix) {
		return fmt.Errorf("%q is not a subdomain: it must not begin with %s", text, punycodePrefix)
	}
	return nil
}
