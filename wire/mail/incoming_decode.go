package mail

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-message/charset"
	"golang.org/x/text/encoding/charmap"
)

// decodeTransfer returns the content of a body. An unknown encoding is none.
func decodeTransfer(encoding string, r io.Reader) io.Reader {
	encoding, _, _ = strings.Cut(strings.ToLower(strings.Trim(encoding, " \t\"'")), ";")
	switch strings.ReplaceAll(strings.TrimSpace(encoding), "-", "") {
	case "base64":
		return &base64Reader{r: bufio.NewReader(r)}
	case "quotedprintable":
		return &lineDecoder{r: bufio.NewReaderSize(r, maxLine), decode: decodeQuotedLine}
	case "xuuencode", "uuencode", "xuue", "uue":
		return &lineDecoder{r: bufio.NewReaderSize(r, maxLine), decode: decodeUULine}
	}
	return r
}

// base64Reader decodes base64 and ignores all other bytes. Padding ends a group, not the content: some programs join
// the encodings of several pieces.
type base64Reader struct {
	r    *bufio.Reader
	bits uint32
	n    int // sextets in bits
	out  []byte
	err  error
}

func (d *base64Reader) Read(p []byte) (int, error) {
	for len(d.out) < len(p) && d.err == nil {
		var c byte
		if c, d.err = d.r.ReadByte(); d.err != nil || c == '=' {
			d.flush()
			continue
		}
		v := base64Value(c)
		if v < 0 {
			continue
		}
		if d.bits, d.n = d.bits<<6|uint32(v), d.n+1; d.n == 4 {
			d.out = append(d.out, byte(d.bits>>16), byte(d.bits>>8), byte(d.bits))
			d.bits, d.n = 0, 0
		}
	}
	n := copy(p, d.out)
	d.out = d.out[n:]
	if n == 0 && len(p) > 0 {
		return 0, d.err
	}
	return n, nil
}

// flush ends a group of two or three sextets.
func (d *base64Reader) flush() {
	switch d.n {
	case 2:
		d.out = append(d.out, byte(d.bits>>4))
	case 3:
		d.out = append(d.out, byte(d.bits>>10), byte(d.bits>>2))
	}
	d.bits, d.n = 0, 0
}

func base64Value(c byte) int {
	switch {
	case 'A' <= c && c <= 'Z':
		return int(c - 'A')
	case 'a' <= c && c <= 'z':
		return int(c-'a') + 26
	case '0' <= c && c <= '9':
		return int(c-'0') + 52
	case c == '+', c == '-':
		return 62
	case c == '/', c == '_':
		return 63
	}
	return -1
}

// lineDecoder decodes a body line by line.
type lineDecoder struct {
	r      *bufio.Reader
	decode func(line []byte) []byte
	out    []byte
	err    error
}

func (d *lineDecoder) Read(p []byte) (int, error) {
	for len(d.out) == 0 && d.err == nil {
		var line []byte
		line, d.err = d.r.ReadSlice('\n')
		if d.err == bufio.ErrBufferFull {
			d.err = nil
		}
		d.out = d.decode(line)
	}
	n := copy(p, d.out)
	d.out = d.out[n:]
	if n == 0 {
		return 0, d.err
	}
	return n, nil
}

// decodeQuotedLine decodes a line of quoted-printable. An equals sign without two hexadecimal digits is itself.
func decodeQuotedLine(line []byte) []byte {
	text := bytes.TrimRight(line, " \t\r\n")
	end := line[len(bytes.TrimRight(line, "\r\n")):]
	if len(end) == 0 {
		text = line // the last line, or a piece of a long one
	}
	if bytes.HasSuffix(text, []byte("=")) {
		text, end = text[:len(text)-1], nil
	}
	return append(decodeQuoted(text), end...)
}

func decodeQuoted(text []byte) []byte {
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] == '=' && i+2 < len(text) {
			if v, err := strconv.ParseUint(string(text[i+1:i+3]), 16, 8); err == nil {
				out = append(out, byte(v))
				i += 2
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}

// decodeUULine decodes a line of uuencode, or returns nothing for a line around the content.
func decodeUULine(line []byte) []byte {
	line = bytes.TrimRight(line, "\r\n")
	if bytes.HasPrefix(line, []byte("begin ")) || string(line) == "end" || !isUULine(line) {
		return nil
	}
	size := int(line[0]-' ') & 63
	var out []byte
	for i := 1; len(out) < size; i += 4 {
		var group [4]byte // spaces at the end of a line may be missing
		for j := range group {
			if i+j < len(line) {
				group[j] = (line[i+j] - ' ') & 63
			}
		}
		out = append(out, group[0]<<2|group[1]>>4, group[1]<<4|group[2]>>2, group[2]<<6|group[3])
	}
	return out[:size]
}

// isUULine reports whether a line has the length that its first character gives.
func isUULine(line []byte) bool {
	if len(line) == 0 || line[0] < ' ' || line[0] > '`' {
		return false
	}
	size := int(line[0]-' ') & 63
	want := 1 + (size+2)/3*4
	return len(line) <= want+2 && len(bytes.TrimRight(line, " ")) <= want+2 && len(line) >= want-3
}

// decodeCharset returns a text in UTF-8. A text in an unknown or wrong character set is read as UTF-8, or else as
// Windows-1252, which programs without a declaration use most.
func decodeCharset(name string, text []byte) string {
	name = strings.ToLower(strings.Trim(name, " \t\"'"))
	switch name {
	case "", "utf-8", "utf8", "us-ascii", "ascii", "7bit", "8bit", "unknown-8bit", "x-unknown", "iso-8859-1":
	default:
		if r, err := charset.Reader(name, bytes.NewReader(text)); err == nil {
			if decoded, err := io.ReadAll(r); err == nil {
				return strings.ToValidUTF8(string(decoded), "\uFFFD")
			}
		}
	}
	whole := text
	for range utf8.UTFMax - 1 { // the text may be cut within a character
		if utf8.Valid(whole) {
			return string(whole)
		}
		if len(text) == maxText {
			whole = whole[:len(whole)-1]
		}
	}
	decoded, _ := charmap.Windows1252.NewDecoder().Bytes(text)
	return string(decoded)
}

var encodedWord = regexp.MustCompile(`=\?([^?\s]+)\?([bBqQ])\?([^?]*)\?=`)

// decodeField returns a header field in UTF-8. Neighbouring encoded words of one character set are decoded together,
// because some programs cut within a character.
func decodeField(raw string) string {
	var b strings.Builder
	var content []byte // of encoded words that are not written yet
	set := ""
	flush := func() {
		b.WriteString(decodeCharset(set, content))
		content, set = nil, ""
	}
	at := 0
	for _, m := range encodedWord.FindAllStringSubmatchIndex(raw, -1) {
		between := raw[at:m[0]]
		name, _, _ := strings.Cut(strings.ToLower(raw[m[2]:m[3]]), "*") // a language may follow
		if content == nil || strings.TrimSpace(between) != "" || name != set {
			after := content != nil
			flush()
			if !after || strings.TrimSpace(between) != "" {
				b.WriteString(decodeCharset("", []byte(between)))
			}
		}
		word := []byte(raw[m[6]:m[7]])
		if raw[m[4]] == 'b' || raw[m[4]] == 'B' {
			word, _ = io.ReadAll(&base64Reader{r: bufio.NewReader(bytes.NewReader(word))})
		} else {
			word = decodeQuoted(bytes.ReplaceAll(word, []byte("_"), []byte(" ")))
		}
		if content = append(content, word...); content == nil {
			content = []byte{}
		}
		set, at = name, m[1]
	}
	flush()
	b.WriteString(decodeCharset("", []byte(raw[at:])))
	return b.String()
}

// parseParameters returns the value of a field such as Content-Type in lower case, and its parameters. Whatever is no
// parameter is ignored.
func parseParameters(field string) (value string, params map[string]string) {
	params = map[string]string{}
	pieces := splitParameters(field)
	value = strings.ToLower(strings.TrimSpace(pieces[0]))
	continued := map[string]bool{}
	for _, piece := range pieces[1:] {
		name, v, ok := strings.Cut(piece, "=")
		if name = strings.ToLower(strings.TrimSpace(name)); !ok || name == "" {
			continue
		}
		v = strings.TrimSpace(v)
		if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
			v = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(v[1 : len(v)-1])
		} else {
			v = strings.Trim(v, `"'`+" ")
		}
		base, index, parts := strings.Cut(name, "*")
		switch {
		case !parts:
			if _, again := params[name]; !again {
				params[name] = decodeField(v)
			}
		case index == "" || index == "0*" || index == "0" || continued[base]:
			if strings.HasSuffix(name, "*") {
				v = decodeExtended(v)
			}
			if !continued[base] {
				params[base] = ""
			}
			continued[base] = true
			params[base] += v
		}
	}
	return value, params
}

// splitParameters splits a field at the semicolons that are not in quotes.
func splitParameters(field string) []string {
	quoted, escaped := false, false
	var pieces []string
	start := 0
	for i := range len(field) {
		switch c := field[i]; {
		case escaped:
			escaped = false
		case c == '\\' && quoted:
			escaped = true
		case c == '"':
			quoted = !quoted
		case c == ';' && !quoted:
			pieces, start = append(pieces, field[start:i]), i+1
		}
	}
	return append(pieces, field[start:])
}

// decodeExtended decodes a value that begins with its character set and a language, and has escapes such as %C3.
func decodeExtended(v string) string {
	set, rest, ok := strings.Cut(v, "'")
	if _, text, more := strings.Cut(rest, "'"); ok && more {
		v = text
	} else {
		set = ""
	}
	return decodeCharset(set, decodeQuoted([]byte(strings.ReplaceAll(v, "%", "="))))
}
