package mail

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // decoders for all character sets of mail
	readmail "github.com/emersion/go-message/mail"
	"golang.org/x/net/html"

	"parley/actors/realm"
	"parley/wire"
)

// tokenLength is the number of letters of a token; the other parts of an address are readable names.
const tokenLength = 32

// AddressToken returns the token in an address such as plans.<token>.show-sender@example.com, or "".
func AddressToken(address string) string {
	local, _, _ := strings.Cut(address, "@")
	for _, part := range strings.Split(local, ".") {
		if len(part) == tokenLength && !strings.Contains(part, "-") {
			return strings.ToLower(part)
		}
	}
	return ""
}

// parsedMail is a mail after parsing. Its attachments are stored one after the other in an unlinked temporary file.
type parsedMail struct {
	wire.IncomingMail
	files   *os.File // nil if there are no attachments
	size    int64    // of files
	omitted int      // attachments beyond realm.MaxEmailFiles
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

// parseMail returns the topic, the text and the attachments of a mail. The text is the first plain text, or else the
// first HTML part without markup. Every part with a file name is an attachment. The caller closes the result.
func parseMail(r io.Reader) (p *parsedMail, err error) {
	m, err := readmail.CreateReader(r)
	if err != nil && (m == nil || !message.IsUnknownCharset(err)) {
		return nil, err
	}
	p = &parsedMail{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	subject, _ := m.Header.Subject() // "" if it cannot be decoded
	p.Topic = topicFromSubject(subject)
	from := ""
	if list, err := m.Header.AddressList("From"); err == nil && len(list) > 0 {
		from = list[0].String()
	}
	text, err := p.readParts(m)
	if err != nil {
		return p, err
	}
	p.Text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	if from != "" {
		withoutMarkup := strings.NewReplacer("*", "", "`", "", "<", "(", ">", ")").Replace(from)
		p.Text = "From: " + withoutMarkup + "\n\n" + p.Text
	}
	if p.omitted > 0 {
		p.Text += fmt.Sprintf("\n\n(%d further files of this mail were not kept.)", p.omitted)
	}
	return p, nil
}

// readParts stores the attachments and returns the text.
func (p *parsedMail) readParts(m *readmail.Reader) (text string, err error) {
	plain, page := "", ""
	for range maxParts {
		part, err := m.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil && (part == nil || !message.IsUnknownCharset(err)) {
			return "", err
		}
		kind, name, isFile := describePart(part)
		switch {
		case isFile:
			err = p.addFile(name, part.Body)
		case kind == "text/plain" && plain == "":
			plain, err = readText(part.Body)
			plain = strings.TrimSpace(plain)
		case kind == "text/html" && page == "":
			page, err = readText(part.Body)
			page = htmlToText(page)
		default:
			err = nil // a text in an unknown character set that is not used
		}
		if err != nil {
			return "", err
		}
	}
	return cmp.Or(plain, page, "(no text)"), nil
}

// describePart returns the content type of a part and whether it is a file: an attachment, or an inline part with a
// name.
func describePart(part *readmail.Part) (kind, name string, isFile bool) {
	switch h := part.Header.(type) {
	case *readmail.AttachmentHeader:
		name, _ = h.Filename()
		return "", name, true
	case *readmail.InlineHeader:
		kind, params, _ := h.ContentType()
		_, disposition, _ := h.ContentDisposition()
		name = cmp.Or(disposition["filename"], params["name"])
		return kind, name, name != ""
	}
	return "", "", false
}

func readText(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxText))
	return string(text), err
}

// topicFromSubject returns a subject without the prefixes of replies and forwarded mails, so that a conversation stays
// in one topic.
func topicFromSubject(subject string) string {
	s := strings.Join(strings.Fields(subject), " ")
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

// htmlToText returns the visible text of an HTML page, one line for each block.
func htmlToText(page string) string {
	var b strings.Builder
	hidden := 0 // elements around the current token whose text is not shown
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return trimLines(b.String())
		case html.TextToken:
			if hidden == 0 {
				b.WriteString(strings.ReplaceAll(string(z.Text()), "\n", " "))
			}
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			switch string(name) {
			case "style", "script", "head", "title":
				if kind == html.StartTagToken {
					hidden++
				} else if kind == html.EndTagToken && hidden > 0 {
					hidden--
				}
			case "p", "div", "br", "li", "tr", "h1", "h2", "h3", "blockquote", "table", "ul", "ol":
				b.WriteByte('\n')
			}
		}
	}
}

// trimLines removes empty lines, and white space at both ends of and repeated within lines.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	out := lines[:0]
	for _, l := range lines {
		if l = strings.Join(strings.Fields(l), " "); l != "" {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}
