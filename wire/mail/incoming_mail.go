package mail

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"mime"
	netmail "net/mail"
	"os"
	"regexp"
	"slices"
	"strings"

	"parley/actors/realm"
	"parley/wire"
)

// tokenLength is the number of letters of a token; the other parts of an address are readable names.
const tokenLength = 32

// AddressToken returns the token in an address such as plans.<token>.show-sender@example.com, or "".
func AddressToken(address string) string {
	token := ""
	for _, part := range addressParts(address) {
		if len(part) == tokenLength && !strings.Contains(part, "-") {
			token = part // the last one: a channel's name may have as many letters
		}
	}
	return token
}

func addressParts(address string) []string {
	local, _, _ := strings.Cut(strings.ToLower(address), "@")
	return strings.FieldsFunc(local, func(c rune) bool { return c == '.' || c == '+' })
}

// addressOptions are the words behind the token of an address.
type addressOptions struct {
	showSender    bool // the message begins with the sender
	includeFooter bool // the signature is not cut
	includeQuotes bool // the quoted mail is not cut
	preferHTML    bool // the HTML form is shown if the mail has both
}

func optionsOf(address string) (o addressOptions) {
	for _, part := range addressParts(address) {
		switch part {
		case "show-sender":
			o.showSender = true
		case "include-footer":
			o.includeFooter = true
		case "include-quotes":
			o.includeQuotes = true
		case "prefer-html":
			o.preferHTML = true
		case "prefer-text":
			o.preferHTML = false
		}
	}
	return o
}

// parsedMail is a mail after parsing. Its attachments are stored one after the other in an unlinked temporary file.
type parsedMail struct {
	wire.IncomingMail // without the text, which depends on the address
	header            mailHeader
	from              string // the sender, or ""
	forwarded         bool   // the subject says that the mail is a forwarded one
	sections          []mailSection
	parts             int      // that were read
	depth             int      // of the part that is read
	files             *os.File // nil if there are no attachments
	size              int64    // of files
	omitted           int      // attachments beyond realm.MaxEmailFiles
}

func (p *parsedMail) close() {
	if p.files != nil {
		p.files.Close()
	}
}

// addFile stores an attachment. It returns errNoSpace if that failed, or the error of reading r.
func (p *parsedMail) addFile(name string, r io.Reader) error {
	if len(p.Files) == realm.MaxEmailFiles {
		p.omitted++
		return nil
	}
	if p.files == nil {
		f, err := os.CreateTemp("", "parley-mail-")
		if err != nil {
			return errNoSpace
		}
		p.files = f
		os.Remove(f.Name())
	}
	w := &failureWriter{w: p.files}
	n, err := io.Copy(w, r)
	if w.failed {
		return errNoSpace
	}
	if err != nil {
		return err
	}
	content := io.NewSectionReader(p.files, p.size, n)
	p.Files = append(p.Files, wire.MailAttachment{Name: name, Content: content})
	p.size += n
	return nil
}

// failureWriter records whether writing failed, so that addFile can tell a failed write from a failed read.
type failureWriter struct {
	w      io.Writer
	failed bool
}

func (x *failureWriter) Write(b []byte) (int, error) {
	n, err := x.w.Write(b)
	x.failed = err != nil
	return n, err
}

// parseMail reads a mail with its attachments; textFor returns its text. A mail is never rejected for its form: what
// cannot be decoded is shown as it is. Errors are those of reading r, and errNoSpace. The caller closes the result.
func parseMail(r io.Reader) (*parsedMail, error) {
	p := &parsedMail{}
	lines := newMailLines(r)
	h := readHeader(lines, nil)
	p.header = h
	subject := decodeField(h["subject"])
	p.Topic, p.forwarded = topicFromSubject(subject), forwardedSubject.MatchString(subject)
	p.from = realm.RemoveUnprintable(senderOf(h["from"]), "")
	var err error
	p.sections, err = p.readEntity(h, lines, nil, "text/plain")
	if err == nil {
		err = lines.failed()
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

var forwardedSubject = regexp.MustCompile(`(?i)^[\[( ]*(fwd?|wg|tr|rv|i|enc|vs|vb|fs|pd)\s*(\[\d+\])?:`)

// senderOf returns the first sender of a From field, such as "Ann" <ann@example.org>.
func senderOf(field string) string {
	text := strings.TrimSpace(decodeField(field))
	for _, form := range []string{decodeCharset("", []byte(field)), text} {
		if list, err := parseAddresses(form); err == nil && len(list) > 0 {
			if list[0].Name == "" {
				return list[0].Address
			}
			return `"` + decodeField(list[0].Name) + `" <` + list[0].Address + ">"
		}
	}
	return text
}

// parseAddresses returns the addresses of a field in UTF-8. Their names may be in any character set.
func parseAddresses(field string) ([]*netmail.Address, error) {
	words := &mime.WordDecoder{CharsetReader: func(name string, r io.Reader) (io.Reader, error) {
		text, err := io.ReadAll(r)
		return strings.NewReader(decodeCharset(name, text)), err
	}}
	parser := netmail.AddressParser{WordDecoder: words}
	return parser.ParseList(field)
}

// mailSection is a piece of a mail's text in each of the forms that the mail has.
type mailSection struct {
	plain, page string // plain text, HTML
	other       string // a text of another type, which is shown if the mail has nothing else
}

// maxDepth is how many levels of parts in parts are read.
const maxDepth = 10

// readEntity reads a mail or a part behind its header, stores the attachments and returns the texts.
func (p *parsedMail) readEntity(h mailHeader, l *mailLines, bounds []string, kind string) ([]mailSection, error) {
	declared, params := parseParameters(h["content-type"])
	if strings.Contains(declared, "/") {
		kind = declared
	} else if strings.Contains(declared, "html") {
		kind = "text/html"
	}
	disposition, more := parseParameters(h["content-disposition"])
	name := cmp.Or(more["filename"], params["name"])
	if strings.HasPrefix(kind, "multipart/") && p.depth < maxDepth {
		p.depth++
		defer func() { p.depth-- }()
		return p.readMultipart(kind, params["boundary"], l, bounds)
	}
	body := decodeTransfer(h["content-transfer-encoding"], &mailBody{lines: l, boundaries: bounds})
	p.parts++
	if p.parts > maxParts {
		p.omitted++
		_, err := io.Copy(io.Discard, body)
		return nil, err
	}
	isMail := kind == "message/rfc822" || kind == "message/global"
	switch {
	case disposition == "attachment" || name != "":
		return nil, p.addFile(name, body)
	case isMail && p.depth < maxDepth:
		return p.readForwarded(body)
	case kind == "text/plain" || kind == "text" || kind == "text/html":
	case strings.HasPrefix(kind, "text/") || strings.HasPrefix(kind, "message/"):
		text, err := readText(body)
		return []mailSection{{other: strings.TrimSpace(decodeCharset(params["charset"], text))}}, err
	case kind == "application/ms-tnef":
		return nil, p.addFile("winmail.dat", body)
	default:
		_, sub, _ := strings.Cut(kind, "/")
		return nil, p.addFile("file."+cmp.Or(sub, "bin"), body)
	}
	if kind == "text/html" {
		text, err := readText(body)
		return []mailSection{{page: decodePage(h["content-type"], params["charset"], text)}}, err
	}
	text, err := p.readPlain(body)
	return []mailSection{{plain: strings.Trim(decodeCharset(params["charset"], text), "\r\n\t ")}}, err
}

// readMultipart reads the parts of a multipart. Without a boundary in the header, the first line that looks like one
// is it. The text before the first part is shown only if there are no parts.
func (p *parsedMail) readMultipart(kind, boundary string, l *mailLines, around []string) ([]mailSection, error) {
	boundary = strings.TrimRight(boundary, " \t")
	bounds := append(slices.Clone(around), boundary)
	var before []byte
	var all []mailSection
	inside := false
	for {
		line, ok := l.next()
		if !ok {
			break
		}
		text := strings.TrimRight(string(line.text), " \t")
		if boundary == "" && len(text) > 2 && strings.HasPrefix(text, "--") {
			boundary = text[2:]
			bounds[len(around)] = boundary
		}
		depth, last := boundaryOf(line, bounds)
		switch {
		case depth >= 0 && depth < len(around):
			l.pushBack(line)
			return joinSections(kind, all, before, inside), nil
		case depth >= 0 && last:
			// What follows is read by the caller: nothing, or the boundary of a part around this one. Some
			// programs add further parts behind the last boundary.
			inside = true
		case depth >= 0:
			inside = true
			inner := "text/plain"
			if kind == "multipart/digest" {
				inner = "message/rfc822"
			}
			sections, err := p.readEntity(readHeader(l, bounds), l, bounds, inner)
			if err != nil {
				return nil, err
			}
			all = append(all, sections...)
		case !inside && len(before) < maxText:
			before = append(append(before, line.text...), line.end...)
		}
	}
	return joinSections(kind, all, before, inside), l.failed()
}

// joinSections returns the texts of a multipart. Those of an alternative are forms of one text.
func joinSections(kind string, all []mailSection, before []byte, inside bool) []mailSection {
	if !inside {
		return []mailSection{{plain: strings.TrimSpace(decodeCharset("", before))}}
	}
	if kind != "multipart/alternative" {
		return all
	}
	var one mailSection
	for _, x := range all {
		one.plain = joinTexts(one.plain, x.plain)
		one.page = joinTexts(one.page, x.page)
		one.other = joinTexts(one.other, x.other)
	}
	return []mailSection{one}
}

func joinTexts(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// readForwarded reads a mail within a mail.
func (p *parsedMail) readForwarded(body io.Reader) ([]mailSection, error) {
	p.depth++
	defer func() { p.depth-- }()
	l := newMailLines(body)
	h := readHeader(l, nil)
	head := ""
	for _, field := range []string{"From", "Date", "Subject"} {
		if v := strings.TrimSpace(decodeField(h[strings.ToLower(field)])); v != "" {
			head = strings.TrimLeft(head+"\n"+field+": "+withoutMarkup.Replace(v), "\n")
		}
	}
	sections, err := p.readEntity(h, l, nil, "text/plain")
	if err == nil {
		err = l.failed()
	}
	if head != "" {
		sections = append([]mailSection{{plain: "Forwarded mail:\n" + head}}, sections...)
	}
	return sections, err
}

func readText(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxText))
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	return text, err
}

// readPlain reads a plain text. Files in uuencode within it are attachments.
func (p *parsedMail) readPlain(body io.Reader) (text []byte, err error) {
	r := bufio.NewReaderSize(body, maxLine)
	for {
		line, err := r.ReadSlice('\n')
		if m := uuencodedFile.FindSubmatch(line); m != nil {
			name := decodeCharset("", m[1])
			if ahead, _ := r.Peek(1); len(ahead) == 1 {
				ahead, _ = r.Peek(1 + (int(ahead[0]-' ')&63+2)/3*4)
				if isUULine(bytes.TrimRight(ahead, "\r\n")) {
					file := &lineDecoder{r: bufio.NewReader(&uuencodedLines{r: r}), decode: decodeUULine}
					if err := p.addFile(name, file); err != nil {
						return nil, err
					}
					continue
				}
			}
		}
		if room := maxText - len(text); room > 0 {
			text = append(text, line[:min(room, len(line))]...)
		}
		if err == io.EOF {
			return text, nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return nil, err
		}
	}
}

var uuencodedFile = regexp.MustCompile(`^begin [0-7]{3,4} ([^\r\n]+?)\s*$`)

// uuencodedLines reads the lines of r up to the end of a file in uuencode.
type uuencodedLines struct {
	r    *bufio.Reader
	rest []byte
	done bool
}

func (x *uuencodedLines) Read(p []byte) (int, error) {
	if len(x.rest) == 0 {
		if x.done {
			return 0, io.EOF
		}
		line, err := x.r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			err = nil
		}
		if x.done = string(bytes.TrimSpace(line)) == "end"; x.done {
			return 0, io.EOF
		}
		if err != nil && len(line) == 0 {
			return 0, err
		}
		x.rest = append(x.rest[:0], line...)
	}
	n := copy(p, x.rest)
	x.rest = x.rest[n:]
	return n, nil
}

var withoutMarkup = strings.NewReplacer("*", "", "`", "", "<", "(", ">", ")")

// textFor returns the text that is posted for an address with these options.
func (p *parsedMail) textFor(o addressOptions) string {
	quotes := o.includeQuotes || p.forwarded
	text, other := "", ""
	for _, x := range p.sections {
		plain, page := unifyLines(x.plain), ""
		if plain == "" || o.preferHTML {
			page = htmlToText(x.page, quotes)
		}
		if plain != "" && !quotes {
			plain = cutQuotes(plain)
		}
		if o.preferHTML {
			plain, page = page, plain
		}
		text = joinTexts(text, cmp.Or(plain, page))
		other = joinTexts(other, unifyLines(x.other))
	}
	text = cmp.Or(text, other, "(no text)")
	if !o.includeFooter {
		text = cutFooter(text)
	}
	if o.showSender && p.from != "" {
		text = "From: " + withoutMarkup.Replace(p.from) + "\n\n" + text
	}
	if p.omitted > 0 {
		text += fmt.Sprintf("\n\n(%d further files of this mail were not kept.)", p.omitted)
	}
	return realm.RemoveUnprintable(text, "\t\n")
}

// topicFromSubject returns a subject without the prefixes of replies and forwarded mails, so that a conversation stays
// in one topic.
func topicFromSubject(subject string) string {
	s := strings.Join(strings.Fields(realm.RemoveUnprintable(subject, "\t\r\n")), " ")
	for {
		cut := false
		for _, prefix := range []string{"re:", "fwd:", "fw:", "aw:"} {
			if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
				s, cut = strings.TrimSpace(s[len(prefix):]), true
			}
		}
		if !cut {
			break
		}
	}
	if s == "" {
		return "Email with no subject"
	}
	return s
}
