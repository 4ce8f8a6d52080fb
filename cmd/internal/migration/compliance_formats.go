package migration

import (
	"archive/zip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"strconv"
	"strings"
	"time"
)

// newComplianceWriter returns a writer of a format into a zip file.
func newComplianceWriter(format string, z *zip.Writer, organization string) (complianceWriter, error) {
	switch format {
	case ComplianceJSON:
		w, err := z.Create("messages.jsonl")
		if err != nil {
			return nil, err
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return jsonCompliance{enc}, nil
	case ComplianceCSV:
		w, err := z.Create("messages.csv")
		if err != nil {
			return nil, err
		}
		x := &csvCompliance{zip: z, messages: csv.NewWriter(w)}
		return x, x.messages.Write(messageColumns)
	case ComplianceEML:
		return &emlCompliance{z, organization}, nil
	}
	panic("BUG: unchecked format of a compliance export: " + format)
}

type jsonCompliance struct{ enc *json.Encoder }

func (x jsonCompliance) write(r *complianceRecord) error { return x.enc.Encode(r) }
func (jsonCompliance) close() error                      { return nil }

// csvCompliance writes messages.csv and then changes.csv. A zip file is written one entry after the other, so the
// changes wait in memory.
type csvCompliance struct {
	zip      *zip.Writer
	messages *csv.Writer
	changes  [][]string
}

var messageColumns = []string{"id", "sent", "sender_id", "sender_email", "sender_name", "channel_id", "channel",
	"topic", "participants", "content", "erased", "client", "changes", "deleted", "deleted_by", "deletion",
	"legal_holds", "files"}

var changeColumns = []string{"message_id", "at", "by_id", "by_email", "by_name", "content_before", "topic_before",
	"topic_after", "channel_before", "channel_after"}

// SafeCell returns a text that spreadsheet programs do not take for a formula: an apostrophe precedes the characters
// with which formulas begin.
func SafeCell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n|%\uff1d\uff0b\uff0d\uff20", []rune(s)[0]) {
		return "'" + s
	}
	return s
}

func writeSafe(w *csv.Writer, cells []string) error {
	for i := range cells {
		cells[i] = SafeCell(cells[i])
	}
	return w.Write(cells)
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (x *csvCompliance) write(r *complianceRecord) error {
	channel, deleted, by, why := "", "", "", ""
	if r.ChannelID != 0 {
		channel = r.ChannelID.String()
	}
	if d := r.Deleted; d != nil {
		deleted, why = d.At, d.Reason
		if d.By != nil {
			by = d.By.Email
		}
	}
	var people, holds []string
	for _, p := range r.People {
		people = append(people, p.Name+" <"+p.Email+">")
	}
	for _, h := range r.Holds {
		holds = append(holds, strconv.FormatInt(h, 10))
	}
	for _, c := range r.Changes {
		x.changes = append(x.changes, []string{r.ID.String(), c.At, c.By.ID.String(), c.By.Email, c.By.Name,
			textOf(c.Content), textOf(c.Topic), textOf(c.NewName), c.From, c.To})
	}
	return writeSafe(x.messages, []string{r.ID.String(), r.Sent, r.Sender.ID.String(), r.Sender.Email, r.Sender.Name,
		channel, r.Channel, textOf(r.Topic), strings.Join(people, ", "), r.Content, strconv.FormatBool(r.Erased),
		r.Client, strconv.Itoa(len(r.Changes)), deleted, by, why, strings.Join(holds, " "), strings.Join(r.Files, " ")})
}

func (x *csvCompliance) close() error {
	x.messages.Flush()
	if err := x.messages.Error(); err != nil {
		return err
	}
	w, err := x.zip.Create("changes.csv")
	if err != nil {
		return err
	}
	changes := csv.NewWriter(w)
	if err := changes.Write(changeColumns); err != nil {
		return err
	}
	for _, c := range x.changes {
		if err := writeSafe(changes, c); err != nil {
			return err
		}
	}
	changes.Flush()
	return changes.Error()
}

// emlCompliance writes each message as a mail, for programs that review mails.
type emlCompliance struct {
	zip          *zip.Writer
	organization string
}

// emlField returns a header field whose value may have any characters. A line end cannot begin another field.
func emlField(name, value string) string {
	value = strings.Join(strings.Fields(value), " ")
	return name + ": " + mime.QEncoding.Encode("utf-8", value) + "\r\n"
}

// emlAddress returns a person as an address field has them.
func emlAddress(p compliancePerson) string {
	plain := strings.NewReplacer(`"`, "'", `\`, "/", "\r", " ", "\n", " ").Replace(p.Name)
	name := mime.QEncoding.Encode("utf-8", plain)
	if !strings.HasPrefix(name, "=?") {
		name = `"` + name + `"`
	}
	return name + " <" + strings.Join(strings.Fields(p.Email), "") + ">"
}

func (x *emlCompliance) write(r *complianceRecord) error {
	w, err := x.zip.Create(fmt.Sprintf("messages/%012d.eml", r.ID))
	if err != nil {
		return err
	}
	sent, err := time.Parse(time.RFC3339, r.Sent)
	if err != nil {
		return err
	}
	var to []string
	for _, p := range r.People {
		to = append(to, emlAddress(p))
	}
	subject := "Direct message"
	if r.Topic != nil {
		subject = "#" + r.Channel + " > " + *r.Topic
		to = []string{emlAddress(compliancePerson{Name: "#" + r.Channel, Email: "channel-" + r.ChannelID.String() +
			"@parley.invalid"})}
	}
	head := "From: " + emlAddress(r.Sender) + "\r\nTo: " + strings.Join(to, ",\r\n ") + "\r\n" +
		emlField("Subject", subject) + "Date: " + sent.Format(time.RFC1123Z) + "\r\n" +
		"Message-ID: <" + r.ID.String() + "@parley.invalid>\r\n" + emlField("X-Parley-Organization", x.organization) +
		"X-Parley-Changes: " + strconv.Itoa(len(r.Changes)) + "\r\n"
	if d := r.Deleted; d != nil {
		by := ""
		if d.By != nil {
			by = " by " + d.By.Email
		}
		head += emlField("X-Parley-Deleted", d.At+by+", "+d.Reason)
	}
	for _, h := range r.Holds {
		head += "X-Parley-Legal-Hold: " + strconv.FormatInt(h, 10) + "\r\n"
	}
	for _, f := range r.Files {
		head += emlField("X-Parley-File", f)
	}
	head += "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n" +
		"Content-Transfer-Encoding: quoted-printable\r\n\r\n"
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	body := quotedprintable.NewWriter(w)
	text := r.Content
	if r.Erased {
		text = "(The text was erased.)"
	}
	for _, c := range r.Changes {
		text += "\n\n-- Changed at " + c.At + " by " + c.By.Name + " <" + c.By.Email + ">"
		if c.Topic != nil || c.From != "" {
			text += "\nmoved from " + c.From + " " + textOf(c.Topic) + " to " + c.To + " " + textOf(c.NewName)
		}
		if c.Content != nil {
			text += "\ntext before:\n" + *c.Content
		}
	}
	if _, err := io.WriteString(body, text+"\n"); err != nil {
		return err
	}
	return body.Close()
}

func (*emlCompliance) close() error { return nil }
