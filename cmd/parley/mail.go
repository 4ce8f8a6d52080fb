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

// outboxDir is where letters go while no SMTP server is configured.
func outboxDir(data string) string { return filepath.Join(data, "outbox") }

// post is what sends letters.
func (c *config) post(host string, tools *wire.Tools, log *slog.Logger) (*mail.Post, error) {
	from := c.MailFrom
	if from == "" {
		if net.ParseIP(host) != nil {
			host = "localhost"
		}
		from = "Parley <noreply@" + host + ">"
	}
	p, err := mail.NewPost(mail.Config{Host: c.MailHost, Port: c.MailPort, User: c.MailUser, Password: c.MailPassword, From: from, Security: c.MailTLS, Outbox: outboxDir(c.Data), Tools: tools}, log)
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	if c.MailHost == "" {
		log.Info("no smtp-host: letters are kept in the outbox", "outbox", outboxDir(c.Data))
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

// gate opens the way in for mail, if there is to be one; the returned function closes it.
func (c *config) gate(domain string, house *actors.House, tools *wire.Tools, log *slog.Logger) (func(context.Context) error, error) {
	if c.MailListen == "" {
		return func(context.Context) error { return nil }, nil
	}
	l, err := net.Listen("tcp", c.MailListen)
	if err != nil {
		return nil, fmt.Errorf("mail-listen: %w", err)
	}
	g := mail.NewGate(domain, channelMail{house, tools}, log)
	go func() {
		if err := g.Serve(l); err != nil {
			log.Error("mail gate failed", "error", err)
		}
	}()
	log.Info("mail for channels comes in", "listen", l.Addr().String(), "domain", domain)
	return g.Close, nil
}

// channelMail finds the organization whose channel a mail is for.
type channelMail struct {
	house *actors.House
	tools *wire.Tools
}

func (m channelMail) Known(token string) bool {
	_, ok := m.find(token)
	return ok
}

func (m channelMail) find(token string) (realm.ID, bool) {
	for _, id := range m.house.Realms() {
		known, err := m.house.View(id, realm.Caller{System: true}, func(v realm.View) (any, error) { return v.Founded() && v.FindMailAddress(token) != nil, nil })
		if err == nil && known == true {
			return id, true
		}
	}
	return 0, false
}

func (m channelMail) Post(token string, x wire.Mail) error {
	id, ok := m.find(token)
	if !ok {
		return fmt.Errorf("no channel has this address")
	}
	return wire.TakeMail(&wire.Call{House: m.house, Tools: m.tools, Realm: id, Caller: realm.Caller{System: true, Client: "Internal"}}, token, x)
}
