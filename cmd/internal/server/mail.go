package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

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
	domain := s.mailHost(s.sites.Site("").Host)
	receiver := &mail.Receiver{Mailboxes: mail.Mailbox{Organizations: s.orgs, Tools: s.tools},
		Senders: mail.SenderCheck{AddressOnly: !s.MailDMARC}, Log: s.log, Now: time.Now}
	m := &incomingMail{l, mail.NewSMTPServer(domain, receiver, s.log)}
	go func() {
		if err := m.server.Serve(l); err != nil {
			s.log.Error("SMTP server failed", "err", err)
		}
	}()
	s.log.Info("receiving email", "listen", l.Addr().String(), "domain", domain)
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
