package mail

import (
	"parley/actors/registry"
)

// Settings are the settings of email.
type Settings struct {
	SMTPHost     string
	SMTPPort     int
	SMTPUser     string
	SMTPPassword string
	SMTPFrom     string
	SMTPTLS      string
	MailListen   string
	MailDomain   string
	MailDMARC    bool
	IMAPHost     string
	IMAPPort     int
	IMAPUser     string
	IMAPPassword string
	IMAPTLS      string
	IMAPFolder   string
	DKIMKey      string
	DKIMSelector string
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "smtp-host", Group: registry.Mail, Value: &s.SMTPHost,
			Meaning: "SMTP server for outgoing email; if empty, emails are written to the outbox folder in the data " +
				"directory",
		},
		{
			Name: "smtp-port", Default: "587", Group: registry.Mail, Value: &s.SMTPPort,
			Meaning: "port of the SMTP server, 1 to 65535",
		},
		{
			Name: "smtp-user", Group: registry.Mail, Value: &s.SMTPUser,
			Meaning: "user name at the SMTP server, if it requires a login",
		},
		{
			Name: "smtp-password", Group: registry.Mail, Value: &s.SMTPPassword,
			Meaning: "password at the SMTP server",
		},
		{
			Name: "smtp-from", Group: registry.Mail, Value: &s.SMTPFrom,
			Meaning: "sender of outgoing email (default: noreply at the external URL's host)",
		},
		{
			Name: "smtp-tls", Default: StartTLS, Group: registry.Mail, Value: &s.SMTPTLS,
			Meaning: "starttls, tls (from the first byte) or none",
		},
		{
			Name: "dkim-key", Group: registry.Mail, Value: &s.DKIMKey,
			Meaning: "PEM file with a private key (RSA or Ed25519) that signs outgoing email (DKIM) for the domain " +
				"of smtp-from; if empty, the SMTP server has to sign it",
		},
		{
			Name: "dkim-selector", Default: "parley", Group: registry.Mail, Value: &s.DKIMSelector,
			Meaning: "name of the key's DNS record, which is NAME._domainkey.DOMAIN",
		},
		{
			Name: "mail-listen", Group: registry.Mail, Value: &s.MailListen,
			Meaning: "address to receive email for channels and replies to emails at, by SMTP; if empty, the server " +
				"receives no email",
		},
		{
			Name: "imap-host", Group: registry.Mail, Value: &s.IMAPHost,
			Meaning: "IMAP server of a mailbox that gets the email for channels and the replies, as another way in " +
				"than mail-listen; set it on one server of a cluster only",
		},
		{
			Name: "imap-port", Default: "993", Group: registry.Mail, Value: &s.IMAPPort,
			Meaning: "port of the IMAP server, 1 to 65535",
		},
		{Name: "imap-user", Group: registry.Mail, Value: &s.IMAPUser, Meaning: "user name of the mailbox"},
		{Name: "imap-password", Group: registry.Mail, Value: &s.IMAPPassword, Meaning: "password of the mailbox"},
		{
			Name: "imap-tls", Default: TLS, Group: registry.Mail, Value: &s.IMAPTLS,
			Meaning: "tls (from the first byte), starttls or none",
		},
		{
			Name: "imap-folder", Default: "INBOX", Group: registry.Mail, Value: &s.IMAPFolder,
			Meaning: "folder of the mailbox; mails are deleted there once they are posted, and flagged if refused",
		},
		{
			Name: "mail-dmarc", Default: "true", Group: registry.Mail, Value: &s.MailDMARC,
			Meaning: "refuse replies whose sender's domain demands a signature (DMARC) that the mail does not have; " +
				"needs DNS",
		},
		{
			Name: "mail-domain", Group: registry.Mail, Value: &s.MailDomain,
			Meaning: "domain of the email addresses of channels and of replies (default: the external URL's host)",
		},
	}
}
