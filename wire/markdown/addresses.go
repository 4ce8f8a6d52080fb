package markdown

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// schemes are the URL schemes that a link can have.
var schemes = map[string]bool{
	"bitcoin": true, "file": true, "ftp": true, "geo": true, "http": true, "https": true, "im": true, "irc": true,
	"ircs":   true,
	"magnet": true, "mailto": true, "matrix": true, "mms": true, "news": true, "nntp": true, "openpgp4fpr": true,
	"sip": true,
	"sms": true, "smsto": true, "ssh": true, "tel": true, "urn": true, "webcal": true, "wtai": true, "xmpp": true,
}

// hasHosts are the schemes whose addresses are written with // even without a host.
var hasHosts = map[string]bool{"file": true, "ftp": true, "http": true, "https": true, "mms": true, "nntp": true}

// address is a URL in parts. Empty queries and fragments count as missing.
type address struct {
	scheme, host, path, query, fragment string
}

// splitAddress splits a URL as other servers of the protocol do: text before a colon that looks like a scheme is one.
func splitAddress(s string) (a address, ok bool) {
	s = strings.TrimLeftFunc(s, func(c rune) bool { return c <= ' ' })
	if strings.ContainsAny(s, "\t\r\n") {
		s = strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(s)
	}
	if i := strings.IndexByte(s, ':'); i > 0 && isScheme(s[:i]) {
		a.scheme, s = strings.ToLower(s[:i]), s[i+1:]
	}
	if strings.HasPrefix(s, "//") {
		end := strings.IndexAny(s[2:], "/?#")
		if end < 0 {
			end = len(s) - 2
		}
		a.host, s = s[2:2+end], s[2+end:]
		if strings.ContainsRune(a.host, '[') != strings.ContainsRune(a.host, ']') {
			return a, false
		}
	}
	s, a.fragment, _ = strings.Cut(s, "#")
	a.path, a.query, _ = strings.Cut(s, "?")
	return a, true
}

func isScheme(s string) bool {
	if !isAlpha(s[0]) {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !isAlnum(s[i]) && s[i] != '+' && s[i] != '-' && s[i] != '.' {
			return false
		}
	}
	return true
}

func (a address) String() string {
	s := a.path
	switch {
	case a.host != "":
		if s != "" && s[0] != '/' {
			s = "/" + s
		}
		s = "//" + a.host + s
	case strings.HasPrefix(s, "//"), hasHosts[a.scheme] && (s == "" || s[0] == '/'):
		s = "//" + s
	}
	if a.scheme != "" {
		s = a.scheme + ":" + s
	}
	if a.query != "" {
		s += "?" + a.query
	}
	if a.fragment != "" {
		s += "#" + a.fragment
	}
	return s
}

// cleanAddress converts an address in a message to a value for href. ok is false if the address is not allowed.
func cleanAddress(s string) (string, bool) {
	s = strings.ReplaceAll(s, " ", "%20")
	a, ok := splitAddress(s)
	if !ok {
		return "", true
	}
	if a.scheme == "" && a.host == "" {
		switch {
		case strings.Contains(a.path, "@"):
			a.scheme = "mailto"
			return a.String(), true
		case strings.HasPrefix(a.path, "/"):
			if strings.HasPrefix(a.path, "//") { // it would refer to another host
				return "", false
			}
			return a.String(), true
		case a.path == "" && a.query == "" && a.fragment != "":
			return "#" + a.fragment, true
		}
	}
	if a.scheme == "" {
		if a.host == "" {
			s = "//" + s
		}
		if a, ok = splitAddress("http:" + s); !ok {
			return "", true
		}
	}
	if !schemes[a.scheme] || needsHost[a.scheme] && !validHost(a.host) {
		return "", false
	}
	return a.String(), true
}

// needsHost are the schemes with a host for which browsers check the host ("special" in the URL standard).
var needsHost = map[string]bool{"ftp": true, "http": true, "https": true}

// outsideHosts are the characters that the URL standard forbids in a host, besides controls. A percent sign begins an
// encoded character there; no link needs one in a host.
const outsideHosts = " #%/:<>?@[\\]^`{|}\""

// maxPort is the largest port number.
const maxPort = 1<<16 - 1

// validHost reports whether browsers accept the part of an address between // and the path. Every script that reads
// such an address fails if they do not. The empty host is accepted: a link without an address becomes "http://"
// (protocol). A host with an empty label is refused: no name server knows it.
func validHost(host string) bool {
	if host == "" {
		return true
	}
	host = host[strings.LastIndexByte(host, '@')+1:] // without name and password
	if rest, ok := strings.CutPrefix(host, "["); ok {
		inside, port, ok := strings.Cut(rest, "]")
		ip, err := netip.ParseAddr(inside)
		return ok && err == nil && ip.Is6() && ip.Zone() == "" && validPort(port)
	}
	name, port := host, ""
	if i := strings.IndexByte(host, ':'); i >= 0 {
		name, port = host[:i], host[i:]
	}
	if name == "" || !validPort(port) || strings.ContainsAny(name, outsideHosts) ||
		strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return false
	}
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	if slices.Contains(labels, "") {
		return false
	}
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" { // browsers read the host as IPv4
		return validIPv4(labels)
	}
	return true
}

// validPort reports whether text is empty or a colon and a port. The port can be missing, and a word stays a link, as
// in the reference server: people write "host:port".
func validPort(text string) bool {
	port, ok := strings.CutPrefix(text, ":")
	if !ok || port == "" {
		return text == "" || ok
	}
	if strings.Trim(port, "0123456789") != "" {
		return !strings.ContainsAny(port, outsideHosts)
	}
	n, err := strconv.ParseUint(port, 10, 32)
	return err == nil && n <= maxPort
}

// validIPv4 reports whether browsers read labels as an IPv4 address: at most four numbers, each but the last below
// 256; the last fills the rest. Numbers can be octal or hexadecimal, as in C.
func validIPv4(labels []string) bool {
	if len(labels) > 4 {
		return false
	}
	for i, l := range labels {
		base, digits := 10, l
		if rest, ok := strings.CutPrefix(strings.ToLower(l), "0x"); ok {
			base, digits = 16, rest
		} else if len(l) > 1 && l[0] == '0' {
			base = 8
		}
		if digits == "" {
			continue // the standard reads "0x" as 0
		}
		bits := 8
		if i == len(labels)-1 {
			bits = 8 * (5 - len(labels))
		}
		if _, err := strconv.ParseUint(digits, base, bits); err != nil {
			return false
		}
	}
	return true
}

// safeAddress checks an address before it is written: it has an allowed scheme, or none.
func safeAddress(s string) bool {
	if s == "" || s[0] == '#' || s[0] == '/' {
		return true
	}
	i := strings.IndexAny(s, ":/?#")
	if i < 0 || s[i] != ':' {
		return true
	}
	return schemes[strings.ToLower(s[:i])]
}

// localAddress makes an address of this organization relative.
func (r *renderer) localAddress(s string) string {
	if rest, ok := strings.CutPrefix(s, r.options.RealmURL); ok && r.options.RealmURL != "" && len(rest) > 0 &&
		rest[0] == '/' {
		rest = rest[1:]
		if strings.HasPrefix(rest, "#") || strings.HasPrefix(rest, "user_uploads/") {
			return rest
		}
	}
	return s
}
