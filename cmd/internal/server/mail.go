package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"time"

	"parley/wire"
	"parley/wire/mail"
	"parley/wire/push"
)

// mailFolder returns the folder that receives outgoing emails while no SMTP server is configured.
func mailFolder(data string) string { return filepath.Join(data, "outbox") }

// newMailer returns the sender of emails. host is the host of the root organization.
func (s *Settings) newMailer(host string, tools *wire.Tools, orgs wire.Server, log *slog.Logger) (*mail.Sender, error) {
	from := s.mailSender(host)
	key, err := s.dkimKey(host)
	if err != nil {
		return nil, err
	}
	sender, err := mail.NewSender(mail.Config{
		DKIM:     key,
		Host:     s.SMTPHost,
		Port:     s.SMTPPort,
		User:     s.SMTPUser,
		Password: s.SMTPPassword,
		From:     from,
		Security: s.SMTPTLS,
		Folder:   mailFolder(s.Data),
		Tools:    tools,
		Server:   orgs,
		Places:   tools.Places,
	}, log)
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	if s.SMTPHost == "" {
		log.Info("smtp-host is not set; emails are written to a folder", "folder", mailFolder(s.Data))
	}
	return sender, nil
}

// mailSender returns the sender of emails.
func (s *Settings) mailSender(host string) string {
	if s.SMTPFrom != "" {
		return s.SMTPFrom
	}
	if net.ParseIP(host) != nil {
		host = "localhost"
	}
	return "Parley <noreply@" + host + ">"
}

// dkimKey returns the key that signs emails, or nil. host is the host of the root organization.
func (s *Settings) dkimKey(host string) (*mail.DKIMKey, error) {
	if s.DKIMKey == "" {
		return nil, nil
	}
	_, domain, _ := strings.Cut(strings.TrimSuffix(s.mailSender(host), ">"), "@")
	return mail.LoadDKIMKey(s.DKIMKey, s.DKIMSelector, domain)
}

// DKIMRecord returns the name and the text of the DNS record for the key that signs emails; both are "" if there is no
// key. host is the host of the root organization.
func (s *Settings) DKIMRecord(host string) (name, text string, err error) {
	key, err := s.dkimKey(host)
	if err != nil || key == nil {
		return "", "", err
	}
	name, text = key.Record()
	return name, text, nil
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

// receivesMail reports whether the server receives email for channels and replies.
func (s *Settings) receivesMail() bool { return s.MailListen != "" || s.IMAPHost != "" }

// incomingMail receives email for channels and replies: by SMTP, from a mailbox, or both.
type incomingMail struct {
	listener net.Listener     // nil: not by SMTP
	server   *mail.SMTPServer // nil: not by SMTP
	poller   *mail.IMAPPoller // nil: there is no mailbox
}

// openIncomingMail starts to receive email if the settings say so; else it returns nil.
func (s *Server) openIncomingMail() (*incomingMail, error) {
	if !s.receivesMail() {
		return nil, nil
	}
	host := s.sites.Site("").Host
	domain := s.mailHost(host)
	receiver := &mail.Receiver{Mailboxes: mail.Mailbox{Organizations: s.orgs, Tools: s.tools}, Own: s.mailSender(host),
		Senders: mail.SenderCheck{AddressOnly: !s.MailDMARC}, Log: s.log, Now: time.Now}
	box := mail.IMAPConfig{Host: s.IMAPHost, Port: s.IMAPPort, User: s.IMAPUser, Password: s.IMAPPassword,
		Security: s.IMAPTLS, Folder: s.IMAPFolder, Domain: domain}
	if s.IMAPHost != "" {
		if err := box.Check(); err != nil {
			return nil, err
		}
	}
	m := &incomingMail{}
	if s.MailListen != "" {
		l, err := net.Listen("tcp", s.MailListen)
		if err != nil {
			return nil, fmt.Errorf("mail-listen: %w", err)
		}
		m.listener, m.server = l, mail.NewSMTPServer(domain, receiver, s.log)
		go func() {
			if err := m.server.Serve(l); err != nil {
				s.log.Error("SMTP server failed", "err", err)
			}
		}()
		s.log.Info("receiving email", "listen", l.Addr().String(), "domain", domain)
	}
	if s.IMAPHost != "" {
		m.poller = mail.StartIMAP(box, receiver, s.log)
		s.log.Info("reading a mailbox", "host", s.IMAPHost, "user", s.IMAPUser, "domain", domain)
	}
	return m, nil
}

func (m *incomingMail) addr() string {
	if m == nil || m.listener == nil {
		return ""
	}
	return m.listener.Addr().String()
}

// Close stops receiving email and waits for emails in progress.
func (m *incomingMail) Close(ctx context.Context) error {
	if m == nil {
		return nil
	}
	if m.poller != nil {
		m.poller.Close()
	}
	if m.server == nil {
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
