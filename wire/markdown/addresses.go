package markdown

import "strings"

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
	if !schemes[a.scheme] {
		return "", false
	}
	return a.String(), true
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
