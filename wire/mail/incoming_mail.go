package mail

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // mails come in every character set there is
	readmail "github.com/emersion/go-message/mail"
	"github.com/emersion/go-smtp"
	"golang.org/x/net/html"

	"parley/actors/realm"
	"parley/wire"
)

// tokenLength is what tells the token in an address from the readable rest.
const tokenLength = 32

// AddressToken is the token in an address such as plans.<token>.show-sender@example.com, or "".
func AddressToken(address string) string {
	local, _, _ := strings.Cut(address, "@")
	for _, part := range strings.Split(local, ".") {
		if len(part) == tokenLength && !strings.Contains(part, "-") {
			return strings.ToLower(part)
		}
	}
	return ""
}

// parsedMail is a mail that was parsedMail. Its files lie behind each other in a file that has no name any more.
type parsedMail struct {
	wire.IncomingMail
	files   *os.File // nil: there are none
	size    int64
	omitted int // files that were not kept
}

func (p *parsedMail) close() {
	if p.files != nil {
		p.files.Close()
	}
}

// errNoSpace is for a mail whose files cannot be kept at the moment.
var errNoSpace = &smtp.SMTPError{Code: 452, EnhancedCode: smtp.EnhancedCode{4, 3, 1}, Message: "Insufficient storage"}

// addFile takes a file out of a mail.
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
	p.Files = append(p.Files, wire.MailAttachment{Name: name, Content: io.NewSectionReader(p.files, p.size, n)})
	p.size += n
	return nil
}

// failureWriter is a writer that knows whether it was the one that failed.
type failureWriter struct {
	w      io.Writer
	failed bool
}

func (x *failureWriter) Write(b []byte) (int, error) {
	n, err := x.w.Write(b)
	x.failed = err != nil
	return n, err
}

// parseMail finds the topic, the text and the files of a mail: its first plain text, or else its first page, without markup;
// and all parts that have a name. The caller closes it.
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
	subject, _ := m.Header.Subject() // one that cannot be decoded counts as none
	p.Topic = topicFromSubject(subject)
	from := ""
	if list, err := m.Header.AddressList("From"); err == nil && len(list) > 0 {
		from = list[0].String()
	}
	plain, page := "", ""
	for range maxParts {
		part, err := m.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil && (part == nil || !message.IsUnknownCharset(err)) {
			return p, err
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
			err = nil
		}
		if err != nil {
			return p, err
		}
	}
	if plain == "" {
		plain = page
	}
	if plain == "" {
		plain = "(no text)"
	}
	p.Text = strings.ReplaceAll(strings.ToValidUTF8(plain, "\uFFFD"), "\r\n", "\n")
	if from != "" {
		p.Text = "From: " + strings.NewReplacer("*", "", "`", "", "<", "(", ">", ")").Replace(from) + "\n\n" + p.Text
	}
	if p.omitted > 0 {
		p.Text += fmt.Sprintf("\n\n(%d further files of this mail were not kept.)", p.omitted)
	}
	return p, nil
}

// describePart is a part's type and, if it is a file, its name: what is attached, and what is to be shown in place but has a name.
func describePart(part *readmail.Part) (kind, name string, isFile bool) {
	switch h := part.Header.(type) {
	case *readmail.AttachmentHeader:
		name, _ = h.Filename()
		return "", name, true
	case *readmail.InlineHeader:
		kind, params, _ := h.ContentType()
		_, shown, _ := h.ContentDisposition()
		name = cmp.Or(shown["filename"], params["name"])
		return kind, name, name != ""
	}
	return "", "", false
}

func readText(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxText))
	return string(text), err
}

// topicFromSubject is a subject without the marks of answers and forwarding, so that a conversation stays in its topic.
func topicFromSubject(subject string) string {
	s := strings.Join(strings.Fields(subject), " ")
	for {
		cut := false
		for _, mark := range []string{"re:", "fwd:", "fw:", "aw:"} {
			if len(s) >= len(mark) && strings.EqualFold(s[:len(mark)], mark) {
				s, cut = strings.TrimSpace(s[len(mark):]), true
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

// htmlToText is what a page says, one line a block.
func htmlToText(page string) string {
	var b strings.Builder
	hidden := 0
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			lines := strings.Split(b.String(), "\n")
			out := lines[:0]
			for _, l := range lines {
				if l = strings.Join(strings.Fields(l), " "); l != "" {
					out = append(out, l)
				}
			}
			return strings.Join(out, "\n")
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
