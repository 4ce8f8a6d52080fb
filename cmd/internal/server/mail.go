package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"parley/actors"
	"parley/actors/realm"
	"parley/wire"
	"parley/wire/mail"
	"parley/wire/push"
)

// mailFolder returns the folder that receives outgoing emails while no SMTP server is configured.
func mailFolder(data string) string { return filepath.Join(data, "outbox") }

// newMailer returns the sender of emails. host is the host of the root organization.
func (s *Settings) newMailer(host string, tools *wire.Tools, log *slog.Logger) (*mail.Sender, error) {
	from := s.SMTPFrom
	if from == "" {
		if net.ParseIP(host) != nil {
			host = "localhost"
		}
		from = "Parley <noreply@" + host + ">"
	}
	sender, err := mail.NewSender(mail.Config{
		Host:     s.SMTPHost,
		Port:     s.SMTPPort,
		User:     s.SMTPUser,
		Password: s.SMTPPassword,
		From:     from,
		Security: s.SMTPTLS,
		Folder:   mailFolder(s.Data),
		Tools:    tools,
	}, log)
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	if s.SMTPHost == "" {
		log.Info("smtp-host is not set; emails are written to a folder", "folder", mailFolder(s.Data))
	}
	return sender, nil
}

// mailHost returns the domain of the email addresses of channels. host is the host of the root organization.
func (s *Settings) mailHost(host string) string {
	if s.MailDomain != "" {
		return s.MailDomain
	}
	if net.ParseIP(host) != nil {
		return "localhost"
	}
	return host
}

// incomingMail is the SMTP server that receives email for channels; nil if there is none.
type incomingMail struct {
	listener net.Listener
	server   *mail.SMTPServer
}

// openSMTP starts to receive email for channels if the settings say so.
func (s *Server) openSMTP() (*incomingMail, error) {
	if s.MailListen == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", s.MailListen)
	if err != nil {
		return nil, fmt.Errorf("mail-listen: %w", err)
	}
	domain := s.mailHost(s.sites.site("").Host)
	m := &incomingMail{l, mail.NewSMTPServer(domain, channelMailbox{s.orgs, s.tools}, s.log)}
	go func() {
		if err := m.server.Serve(l); err != nil {
			s.log.Error("SMTP server failed", "err", err)
		}
	}()
	s.log.Info("receiving email for channels", "listen", l.Addr().String(), "domain", domain)
	return m, nil
}

func (m *incomingMail) addr() string {
	if m == nil {
		return ""
	}
	return m.listener.Addr().String()
}

// Close stops receiving email and waits for emails in progress.
func (m *incomingMail) Close(ctx context.Context) error {
	if m == nil {
		return nil
	}
	return m.server.Close(ctx)
}

// channelMailbox delivers an email to the channel that its address belongs to.
type channelMailbox struct {
	orgs  *actors.Server
	tools *wire.Tools
}

// Known reports whether a channel of any organization has the address token.
func (m channelMailbox) Known(token string) bool {
	_, ok := m.find(token)
	return ok
}

func (m channelMailbox) find(token string) (realm.ID, bool) {
	for _, id := range m.orgs.Realms() {
		known, err := m.orgs.View(id, realm.Caller{System: true}, func(v realm.View) (any, error) {
			return v.Founded() && v.FindMailAddress(token) != nil, nil
		})
		if err == nil && known == true {
			return id, true
		}
	}
	return 0, false
}

// Post sends an email as a message to the channel with the address token.
func (m channelMailbox) Post(token string, x wire.IncomingMail) error {
	id, ok := m.find(token)
	if !ok {
		return errors.New("no channel has this address")
	}
	return wire.PostIncomingMail(&wire.Call{Server: m.orgs, Tools: m.tools, Realm: id, Caller: realm.System}, token, x)
}

// bouncerAccount returns the account that the settings name, else the one that parley push register stored.
func (s *Server) bouncerAccount() (push.BouncerAccount, error) {
	if s.BouncerOrg != "" {
		return push.BouncerAccount{URL: s.Bouncer, Org: s.BouncerOrg, Key: s.BouncerKey}, nil
	}
	a, err := push.LoadAccount(s.Data)
	if err != nil || s.Bouncer == "" || s.Bouncer == a.URL {
		return a, err
	}
	return push.BouncerAccount{URL: s.Bouncer}, nil // registered elsewhere, or not yet
}
