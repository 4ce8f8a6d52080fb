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
func PostIncomingMail(c *Call, token string, m IncomingMail) (err error) {
	cmd := realm.PostEmail{Token: token, Topic: m.Topic, Text: m.Text}
	defer func() {
		for _, f := range cmd.Files {
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
		cmd.Files = append(cmd.Files, saveUploadCommand(c, f.Name, x))
	}
	posted, err := Execute(c, cmd)
	for _, u := range posted.Files {
		c.requestThumbnail(u)
	}
	return err
}
