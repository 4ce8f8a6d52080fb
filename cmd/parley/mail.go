package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"parley/actors"
	"parley/actors/realm"
	"parley/wire"
	"parley/wire/mail"
)

// mailOutboxDir is where letters go while no SMTP server is configured.
func mailOutboxDir(data string) string { return filepath.Join(data, "outbox") }

// newMailer is what sends letters.
func (c *config) newMailer(host string, tools *wire.Tools, log *slog.Logger) (*mail.Sender, error) {
	from := c.SMTPFrom
	if from == "" {
		if net.ParseIP(host) != nil {
			host = "localhost"
		}
		from = "Parley <noreply@" + host + ">"
	}
	p, err := mail.NewSender(mail.Config{Host: c.SMTPHost, Port: c.SMTPPort, User: c.SMTPUser, Password: c.SMTPPassword, From: from, Security: c.SMTPTLS, Folder: mailOutboxDir(c.Data), Tools: tools}, log)
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	if c.SMTPHost == "" {
		log.Info("no smtp-host: letters are kept in the outbox", "outbox", mailOutboxDir(c.Data))
	}
	return p, nil
}

// mailHost is the domain of channels' mail addresses.
func (c *config) mailHost(host string) string {
	if c.MailDomain != "" {
		return c.MailDomain
	}
	if net.ParseIP(host) != nil {
		return "localhost"
	}
	return host
}

// openSMTP opens the way in for mail, if there is to be one; the returned function closes it.
func (c *config) openSMTP(domain string, house *actors.Server, tools *wire.Tools, log *slog.Logger) (func(context.Context) error, error) {
	if c.MailListen == "" {
		return func(context.Context) error { return nil }, nil
	}
	l, err := net.Listen("tcp", c.MailListen)
	if err != nil {
		return nil, fmt.Errorf("mail-listen: %w", err)
	}
	g := mail.NewSMTPServer(domain, channelMailbox{house, tools}, log)
	go func() {
		if err := g.Serve(l); err != nil {
			log.Error("mail gate failed", "error", err)
		}
	}()
	log.Info("mail for channels comes in", "listen", l.Addr().String(), "domain", domain)
	return g.Close, nil
}

// channelMailbox finds the organization whose channel a mail is for.
type channelMailbox struct {
	house *actors.Server
	tools *wire.Tools
}

func (m channelMailbox) Known(token string) bool {
	_, ok := m.find(token)
	return ok
}

func (m channelMailbox) find(token string) (realm.ID, bool) {
	for _, id := range m.house.Realms() {
		known, err := m.house.View(id, realm.Caller{System: true}, func(v realm.View) (any, error) { return v.Founded() && v.FindMailAddress(token) != nil, nil })
		if err == nil && known == true {
			return id, true
		}
	}
	return 0, false
}

func (m channelMailbox) Post(token string, x wire.IncomingMail) error {
	id, ok := m.find(token)
	if !ok {
		return fmt.Errorf("no channel has this address")
	}
	return wire.PostIncomingMail(&wire.Call{Server: m.house, Tools: m.tools, Realm: id, Caller: realm.Caller{System: true, Client: "Internal"}}, token, x)
}
