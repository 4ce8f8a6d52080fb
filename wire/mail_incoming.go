package wire

import (
	"errors"
	"io"

	"parley/actors/realm"
)

// IncomingMail is an email that was sent to a channel.
type IncomingMail struct {
	Topic, Text string
	Files       []MailAttachment
}

// MailAttachment is a file of an incoming email. Its content can be read several times.
type MailAttachment struct {
	Name    string
	Content *io.SectionReader
}

// PostIncomingMail posts an email with its files to the channel of the token. The sender is the server's email
// gateway.
func PostIncomingMail(c *Call, token string, m IncomingMail) error {
	cmd := realm.PostEmail{Token: token, Topic: m.Topic, Text: m.Text}
	return m.post(c, &cmd.Files, func() (realm.EmailPosted, error) { return Execute(c, cmd) })
}

// post stores the files of an email, sets them in the command that execute runs, and runs it.
func (m *IncomingMail) post(
	c *Call, files *[]realm.SaveUpload, execute func() (realm.EmailPosted, error),
) (err error) {
	defer func() {
		for _, f := range *files {
			err = errors.Join(err, c.Tools.Files.Release(f.Hash, c.usesContent(f.Hash)))
		}
	}()
	for _, f := range m.Files {
		if f.Content.Size() == 0 {
			continue
		}
		x, err := c.Tools.Files.SaveUpload(c.Realm, io.NewSectionReader(f.Content, 0, f.Content.Size()), MaxUploadBytes)
		if err != nil {
			return err
		}
		*files = append(*files, saveUploadCommand(c, f.Name, x))
	}
	posted, err := execute()
	for _, u := range posted.Files {
		c.requestThumbnail(u)
	}
	return err
}
