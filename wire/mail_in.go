package wire

import (
	"errors"
	"io"

	"parley/actors/realm"
)

// Mail is what came by mail for a channel.
type Mail struct {
	Topic, Text string
	Files       []MailFile
}

// MailFile is a file that came with a mail. Its content can be read again.
type MailFile struct {
	Name    string
	Content *io.SectionReader
}

// TakeMail posts a mail to the channel a token stands for, with its files, as the server.
func TakeMail(c *Call, token string, m Mail) (err error) {
	cmd := realm.PostMail{Token: token, Topic: m.Topic, Text: m.Text}
	defer func() {
		for _, f := range cmd.Files {
			err = errors.Join(err, c.Tools.Files.Release(f.Hash, c.usesContent(f.Hash)))
		}
	}()
	for _, f := range m.Files {
		x, err := c.Tools.Files.SaveUpload(c.Realm, io.NewSectionReader(f.Content, 0, f.Content.Size()), MaxUpload)
		if errors.Is(err, ErrNoFile) {
			continue
		}
		if err != nil {
			return err
		}
		cmd.Files = append(cmd.Files, savedAs(c, f.Name, x))
	}
	posted, err := Play(c, cmd)
	for _, u := range posted.Files {
		c.Tools.Thumbnails.want(c.Realm, u)
	}
	return err
}
