package main

import (
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"parley/wire/mail"
)

// outboxDir is where letters go while no SMTP server is configured.
func outboxDir(data string) string { return filepath.Join(data, "outbox") }

// post starts what sends letters.
func (c *config) post(host string, log *slog.Logger) (*mail.Post, error) {
	from := c.MailFrom
	if from == "" {
		if net.ParseIP(host) != nil {
			host = "localhost"
		}
		from = "Parley <noreply@" + host + ">"
	}
	p, err := mail.NewPost(mail.Config{Host: c.MailHost, Port: c.MailPort, User: c.MailUser, Password: c.MailPassword, From: from, Security: c.MailTLS, Outbox: outboxDir(c.Data)}, log)
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	if c.MailHost == "" {
		log.Info("no smtp-host: letters are kept in the outbox", "outbox", outboxDir(c.Data))
	}
	return p, nil
}
