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
			Name: "mail-listen", Group: registry.Mail, Value: &s.MailListen,
			Meaning: "address to receive email for channels and replies to emails at, by SMTP; if empty, the server " +
				"receives no email",
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
