package park

import "bytes"

// The strict head check: conditions that the head of a request must meet before fasthttp sees it. Parsers are
// known to differ in line ends, two lengths, folded lines and trailers. The check accepts only the form that all
// parsers read alike. TestVerdicts lists the cases.

// head is the part of a request's head that the connection layer needs. Its slices point into the buffer.
type head struct {
	size    int   // bytes, including the empty line
	length  int64 // of the body; -1 means chunked
	close   bool  // the Connection header lists "close"
	method  []byte
	target  []byte
	encoded bool // Content-Encoding other than identity

	host, authorization                []byte
	contentType, userAgent             []byte
	cookie, csrfToken, origin, referer []byte
	accept, lastEventID                []byte
	agentSession, agentVersion         []byte
	fastPath                           bool // HTTP/1.1, no Expect, and each header in this struct occurs at most once
}

// tokenByte and hostByte are the bytes allowed in a field name (RFC 9110, 5.6.2) and in a Host header.
var tokenByte, hostByte = byteSet("!#$%&'*+-.^_`|~"), byteSet("!$%&'()*+,-.:;=[]_~")

func byteSet(extra string) (set [256]bool) {
	for c := '0'; c <= '9'; c++ {
		set[c] = true
	}
	for c := 'a'; c <= 'z'; c++ {
		set[c], set[c-'a'+'A'] = true, true
	}
	for _, c := range []byte(extra) {
		set[c] = true
	}
	return set
}

// endOfHead returns the size of the head at the start of b, 0 if it is incomplete. from is where the last search
// ended. A line feed without carriage return is refused at once, so there is only one way to end a head.
func endOfHead(b []byte, from int) (size, next int, ref *refusal) {
	if len(b) > 0 && !tokenByte[b[0]] {
		return 0, 0, refuseMalformed
	}
	for i := from; ; {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return 0, len(b), nil
		}
		i += n
		if i == 0 || b[i-1] != '\r' {
			return 0, 0, refuseMalformed
		}
		if i >= 3 && b[i-2] == '\n' {
			return i + 1, i + 1, nil
		}
		i++
	}
}

// fieldCounts counts the header fields that may occur at most once in a head.
type fieldCounts struct {
	hosts, lengths, codings, expects, authorizations, contentTypes, userAgents int
	cookies, csrfTokens, origins, referers                                     int
	accepts, lastEventIDs, agentSessions, agentVersions                        int
}

// maxFastPathCount returns the largest count of the fields that must be unique for the fast path only.
func (n *fieldCounts) maxFastPathCount() int {
	return max(n.authorizations, n.contentTypes, n.userAgents, n.cookies, n.csrfTokens, n.origins, n.referers,
		n.lastEventIDs, n.agentSessions, n.agentVersions)
}

// parseHead parses a complete head. Every line in b ends with CRLF.
func parseHead(b []byte) (h head, ref *refusal) {
	h.size = len(b)
	line, rest := nextLine(b)
	http11, ref := h.requestLine(line)
	if ref != nil {
		return h, ref
	}
	var n fieldCounts
	for {
		line, rest = nextLine(rest)
		if len(line) == 0 {
			break
		}
		name, value, ok := splitField(line)
		if !ok {
			return h, refuseMalformed
		}
		if ref := h.field(&n, name, value, http11); ref != nil {
			return h, ref
		}
	}
	if n.hosts > 1 || n.lengths > 1 || n.codings > 1 || n.lengths+n.codings > 1 || n.hosts == 0 && http11 {
		return h, refuseMalformed
	}
	h.fastPath = http11 && n.expects == 0 && n.maxFastPathCount() <= 1
	if n.codings == 1 {
		h.length = -1
	}
	if h.encoded {
		return h, refuseEncoding
	}
	return h, nil
}

// field checks one header field and stores the ones that matter.
func (h *head) field(n *fieldCounts, name, value []byte, http11 bool) *refusal {
	switch len(name) { // comparing lengths first rules out nearly all other fields
	case len("Host"):
		if equalLower(name, "host") {
			n.hosts++
			h.host = value
			if len(value) == 0 || !allIn(value, &hostByte) {
				return refuseMalformed
			}
		}
	case len("Expect"): // Accept, Cookie and Origin have the same length
		switch {
		case equalLower(name, "accept"):
			if n.accepts++; n.accepts == 1 {
				h.accept = value
			}
		case equalLower(name, "cookie"):
			n.cookies++
			h.cookie = value
		case equalLower(name, "origin"):
			n.origins++
			h.origin = value
		case equalLower(name, "expect"):
			if n.expects++; !equalLower(value, "100-continue") {
				return refuseExpect
			}
		}
	case len("Referer"):
		if equalLower(name, "referer") {
			n.referers++
			h.referer = value
		}
	case len("X-CSRFToken"):
		if equalLower(name, "x-csrftoken") {
			n.csrfTokens++
			h.csrfToken = value
		}
	case len("Connection"): // User-Agent has the same length
		if equalLower(name, "connection") {
			h.close = h.close || listContains(value, "close")
		} else if equalLower(name, "user-agent") {
			n.userAgents++
			h.userAgent = value
		}
	case len("Content-Type"):
		if equalLower(name, "content-type") {
			n.contentTypes++
			h.contentType = value
		}
	case len("Authorization"): // Last-Event-ID has the same length
		if equalLower(name, "authorization") {
			n.authorizations++
			h.authorization = value
		} else if equalLower(name, "last-event-id") {
			n.lastEventIDs++
			h.lastEventID = value
		}
	case len("Mcp-Protocol-Version"):
		if equalLower(name, "mcp-protocol-version") {
			n.agentVersions++
			h.agentVersion = value
		}
	case len("Content-Length"): // Mcp-Session-Id has the same length
		if equalLower(name, "mcp-session-id") {
			n.agentSessions++
			h.agentSession = value
		} else if equalLower(name, "content-length") {
			n.lengths++
			length, ok := parseLength(value)
			if !ok {
				return refuseMalformed
			}
			h.length = length
		}
	case len("Content-Encoding"):
		if equalLower(name, "content-encoding") && len(value) > 0 && !equalLower(value, "identity") {
			h.encoded = true
		}
	case len("Transfer-Encoding"):
		if equalLower(name, "transfer-encoding") {
			n.codings++
			if !http11 {
				return refuseMalformed
			}
			if !equalLower(value, "chunked") {
				return refuseCoding
			}
		}
	}
	return nil
}

func (h *head) requestLine(line []byte) (http11 bool, ref *refusal) {
	sp := bytes.IndexByte(line, ' ')
	if sp <= 0 {
		return false, refuseMalformed
	}
	h.method, line = line[:sp], line[sp+1:]
	sp = bytes.IndexByte(line, ' ')
	if sp <= 0 || !allIn(h.method, &tokenByte) {
		return false, refuseMalformed
	}
	h.target, line = line[:sp], line[sp+1:]
	for _, c := range h.target {
		if c <= ' ' || c == 0x7f {
			return false, refuseMalformed
		}
	}
	switch {
	case h.target[0] == '/':
	case h.target[0] == '*' && len(h.target) == 1 && string(h.method) == "OPTIONS":
	case hasPrefixFold(h.target, "http://") || hasPrefixFold(h.target, "https://"):
	default:
		return false, refuseMalformed
	}
	switch {
	case string(line) == "HTTP/1.1":
		return true, nil
	case string(line) == "HTTP/1.0":
		return false, nil
	case len(line) == 8 && string(line[:5]) == "HTTP/" && isDigit(line[5]) && line[6] == '.' && isDigit(line[7]):
		return false, refuseVersion
	}
	return false, refuseMalformed
}

// nextLine cuts b after its first CRLF. b contains one.
func nextLine(b []byte) (line, rest []byte) {
	n := bytes.IndexByte(b, '\n')
	return b[:n-1], b[n+1:]
}

// splitField cuts a header line into name and value. It rejects folded lines, spaces before the colon and control
// characters.
func splitField(line []byte) (name, value []byte, ok bool) {
	n := bytes.IndexByte(line, ':')
	if n <= 0 || !allIn(line[:n], &tokenByte) {
		return nil, nil, false
	}
	name, value = line[:n], line[n+1:]
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return nil, nil, false
		}
	}
	return name, bytes.Trim(value, " \t"), true
}

// parseLength accepts only digits: no sign, no list, and at most 18 digits, which fit an int64.
func parseLength(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func allIn(b []byte, set *[256]bool) bool {
	for _, c := range b {
		if !set[c] {
			return false
		}
	}
	return true
}

// equalLower reports whether b equals want, ignoring ASCII case. want is lower-case.
func equalLower(b []byte, want string) bool {
	if len(b) != len(want) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != want[i] {
			return false
		}
	}
	return true
}

func hasPrefixFold(b []byte, want string) bool {
	return len(b) >= len(want) && equalLower(b[:len(want)], want)
}

// listContains reports whether a comma-separated value contains want.
func listContains(value []byte, want string) bool {
	for len(value) > 0 {
		item := value
		if n := bytes.IndexByte(value, ','); n >= 0 {
			item, value = value[:n], value[n+1:]
		} else {
			value = nil
		}
		if equalLower(bytes.Trim(item, " \t"), want) {
			return true
		}
	}
	return false
}

// chunkReader follows a chunked body byte by byte and finds its end. Chunk extensions are ignored up to a length,
// as HTTP demands. Trailers are refused: a parser that merges them into the head would change it after the check.
type chunkReader struct {
	state  chunkState
	digits int
	line   int   // bytes of the extension so far
	left   int64 // data bytes missing from this chunk; while reading the size, the size so far
	total  int64 // data bytes announced so far
}

type chunkState uint8

const (
	chunkSize chunkState = iota
	chunkExtension
	chunkSizeLF
	chunkData
	chunkDataCR
	chunkDataLF
	chunkEndCR
	chunkEndLF
	chunkDone
)

const (
	maxChunkDigits    = 12 // hex digits of a chunk size: far more than any body needs, far below overflow
	maxChunkExtension = 128
)

// consume processes the bytes of b that belong to the body and returns their number.
func (c *chunkReader) consume(b []byte, limit int64) (n int, ref *refusal) {
	for n < len(b) && c.state != chunkDone {
		ch := b[n]
		switch c.state {
		case chunkSize:
			v := hexValue(ch)
			switch {
			case v >= 0:
				if c.digits++; c.digits > maxChunkDigits {
					return n, refuseMalformed
				}
				c.left = c.left<<4 | int64(v)
			case c.digits == 0:
				return n, refuseMalformed
			case ch == ';':
				c.state, c.line = chunkExtension, 0
			case ch == '\r':
				c.state = chunkSizeLF
			default:
				return n, refuseMalformed
			}
		case chunkExtension:
			if c.line++; c.line > maxChunkExtension || ch < ' ' && ch != '\t' && ch != '\r' || ch == 0x7f {
				return n, refuseMalformed
			}
			if ch == '\r' {
				c.state = chunkSizeLF
			}
		case chunkSizeLF:
			if c.total += c.left; c.total > limit {
				return n, refuseBodySize
			}
			c.state = chunkData
			if c.left == 0 {
				c.state = chunkEndCR
			}
			if ch != '\n' {
				return n, refuseMalformed
			}
		case chunkData:
			m := min(c.left, int64(len(b)-n))
			n += int(m)
			if c.left -= m; c.left == 0 {
				c.state = chunkDataCR
			}
			continue
		case chunkDataCR, chunkEndCR:
			if ch != '\r' {
				return n, refuseMalformed
			}
			c.state++
		case chunkDataLF:
			if ch != '\n' {
				return n, refuseMalformed
			}
			c.state, c.digits, c.left = chunkSize, 0, 0
		case chunkEndLF:
			if ch != '\n' {
				return n, refuseMalformed
			}
			c.state = chunkDone
		}
		n++
	}
	return n, nil
}

func hexValue(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
