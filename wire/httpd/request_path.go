package httpd

import "strings"

// requestPath returns the path of a request target in the form in which routes are found: without the host of an
// absolute target and without query, with the escapes of letters, digits and "-._~" resolved (RFC 3986, 6.2.2), and
// without doubled slashes and slashes at the end. Other escapes remain: an escaped slash separates nothing.
func requestPath(target string) string {
	if !strings.HasPrefix(target, "/") {
		if _, rest, absolute := strings.Cut(target, "://"); absolute {
			start := strings.IndexAny(rest, "/?")
			if start < 0 || rest[start] == '?' {
				return "/"
			}
			target = rest[start:]
		}
	}
	path, _, _ := strings.Cut(target, "?")
	path = unescapeUnreserved(path)
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// unescapeUnreserved resolves the escapes of characters that need none.
func unescapeUnreserved(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	var out strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) {
			high, low := hexDigit(path[i+1]), hexDigit(path[i+2])
			if c := byte(high<<4 | low); high >= 0 && low >= 0 {
				if isUnreserved(c) {
					out.WriteByte(c)
				} else {
					out.WriteString(path[i : i+3])
				}
				i += 2
				continue
			}
		}
		out.WriteByte(path[i])
	}
	return out.String()
}

func isUnreserved(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte("-._~", c) >= 0
}

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	if 'A' <= c && c <= 'F' {
		c += 'a' - 'A'
	}
	return strings.IndexByte("0123456789abcdef", c)
}
