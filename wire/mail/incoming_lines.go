package mail

import (
	"bufio"
	"bytes"
	"io"
	"strings"
)

// maxLine is the number of bytes of a line that are read at once. A longer line is read in pieces.
const maxLine = 64 << 10

// mailLines reads the lines of a mail. A line ends with LF, CRLF, CR CR LF or CR: old mail programs and gateways send
// each of them.
type mailLines struct {
	r       *bufio.Reader
	pending []mailLine // lines that were pushed back
	partial bool       // the last line was a piece without its end
	err     error      // the error of the reader; io.EOF at the end of the mail
}

// mailLine is a line, or a piece of one, and the bytes that end it.
type mailLine struct {
	text, end []byte
	continued bool // the line before it was a piece without its end
}

func newMailLines(r io.Reader) *mailLines { return &mailLines{r: bufio.NewReaderSize(r, maxLine)} }

// next returns the next line. ok is false at the end of the mail and after an error.
func (l *mailLines) next() (line mailLine, ok bool) {
	if n := len(l.pending); n > 0 {
		line, l.pending = l.pending[0], l.pending[1:]
		return line, true
	}
	line.continued = l.partial
	for len(line.text) < maxLine {
		c, err := l.r.ReadByte()
		if err != nil {
			l.err, l.partial = err, false
			return line, len(line.text) > 0
		}
		if c != '\n' && c != '\r' {
			line.text = append(line.text, c)
			continue
		}
		line.end, l.partial = []byte{c}, false
		if c == '\r' {
			ahead, _ := l.r.Peek(2)
			switch {
			case bytes.HasPrefix(ahead, []byte("\n")):
				line.end = []byte("\r\n")
			case string(ahead) == "\r\n":
				line.end = []byte("\r\r\n")
			}
			l.r.Discard(len(line.end) - 1)
		}
		return line, true
	}
	l.partial = true
	return line, true
}

// pushBack lets next return the lines again.
func (l *mailLines) pushBack(lines ...mailLine) { l.pending = append(lines, l.pending...) }

// failed returns the error that ended the mail too early, or nil.
func (l *mailLines) failed() error {
	if l.err == io.EOF {
		return nil
	}
	return l.err
}

// mailBody reads the body of one part: the lines up to a boundary of the parts around it, or to the end of the mail.
type mailBody struct {
	lines      *mailLines
	boundaries []string // of the parts around this one, the innermost last
	rest       []byte
	end        []byte // the end of the last line; it belongs to the boundary if one follows
	done       bool
}

func (b *mailBody) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.done {
			return 0, io.EOF
		}
		line, ok := b.lines.next()
		if !ok {
			b.done = true
			if err := b.lines.failed(); err != nil {
				return 0, err
			}
			b.rest = b.end
			continue
		}
		if depth, _ := boundaryOf(line, b.boundaries); depth >= 0 {
			b.lines.pushBack(line)
			b.done = true
			continue
		}
		b.rest = append(append([]byte{}, b.end...), line.text...)
		b.end = line.end
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// boundaryOf returns the index of the boundary that a line is, or -1, and whether it is the last of its parts.
func boundaryOf(line mailLine, boundaries []string) (depth int, last bool) {
	if line.continued || !bytes.HasPrefix(line.text, []byte("--")) {
		return -1, false
	}
	text := strings.TrimRight(string(line.text[2:]), " \t")
	for i := len(boundaries) - 1; i >= 0; i-- {
		switch text {
		case boundaries[i]:
			return i, false
		case boundaries[i] + "--":
			return i, true
		}
	}
	return -1, false
}

// mailHeader contains the fields of a mail or a part by their lower-case names. Only the first of each name is stored.
type mailHeader map[string]string

// maxHeader is the number of bytes of a header that are stored.
const maxHeader = 256 << 10

// receivedField is the field in which each mail server says from where, and mostly for whom, it got a mail.
const receivedField = "received"

// hopFields are fields that each mail server on the way adds. Their values are joined by commas.
var hopFields = map[string]bool{receivedField: true, "delivered-to": true, "x-original-to": true}

// readHeader reads a header. Lines that are no fields are ignored, unless the header has no field at all or no end:
// then they are the text of a mail without a header.
func readHeader(l *mailLines, boundaries []string) mailHeader {
	h := mailHeader{}
	last, size := "", 0
	var others []mailLine
	for first := true; ; first = false {
		line, ok := l.next()
		if !ok {
			break
		}
		if depth, _ := boundaryOf(line, boundaries); depth >= 0 {
			l.pushBack(append(others, line)...)
			return h
		}
		if len(line.text) == 0 && !line.continued {
			if len(h) == 0 && len(others) > 0 {
				l.pushBack(append(others, line)...)
			}
			return h
		}
		name, value, isField := fieldOf(line)
		size += len(line.text)
		switch {
		case first && isMailboxLine(line.text):
		case size > maxHeader:
		case line.continued, line.text[0] == ' ', line.text[0] == '\t':
			if last != "" {
				h[last] += string(line.text)
			} else {
				others = append(others, line)
			}
		case isField:
			last = name
			switch first, again := h[name]; {
			case again && hopFields[name]:
				h[last] = first + ", " + value
				continue
			case again:
				last = "second " + name
			}
			h[last] = value
		default:
			others, last = append(others, line), "no field"
		}
	}
	l.pushBack(others...)
	return h
}

// isMailboxLine reports whether a line is the separator of mailbox files, which some programs send with a mail.
func isMailboxLine(text []byte) bool {
	return bytes.HasPrefix(text, []byte("From ")) || bytes.HasPrefix(text, []byte(">From "))
}

func fieldOf(line mailLine) (name, value string, ok bool) {
	name, value, ok = strings.Cut(string(line.text), ":")
	name = strings.ToLower(strings.TrimRight(name, " \t"))
	if !ok || name == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c >= 127 }) {
		return "", "", false
	}
	return name, strings.TrimLeft(value, " \t"), true
}
