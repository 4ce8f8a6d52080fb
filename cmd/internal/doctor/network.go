package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/mail"
	"net/smtp"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// minCertificateTime is how long a certificate must still be valid. ACME renews thirty days before the end, so a
// shorter time means that the renewal fails.
const minCertificateTime = 21 * 24 * time.Hour

// publicHost returns the host name of the external address, or "" if clients reach the server by an IP address or
// only on this machine.
func (c *Config) publicHost() (host, port string) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Hostname() == "" || net.ParseIP(u.Hostname()) != nil || u.Hostname() == "localhost" {
		return "", ""
	}
	if port = u.Port(); port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Hostname(), port
}

func checkDNS(ctx context.Context, c *Config) Finding {
	host, _ := c.publicHost()
	if host == "" {
		return ok("url has no host name")
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return fault("create an A or AAAA record for the host name of url, or correct url",
			"%s has no address: %v", host, err)
	}
	return ok("%s is %s", host, strings.Join(addresses, ", "))
}

func checkTLS(ctx context.Context, c *Config) Finding {
	host, port := c.publicHost()
	if host == "" || !strings.HasPrefix(c.URL, "https://") {
		return ok("url is not https with a host name")
	}
	plain, err := c.Dial(ctx, "tcp", net.JoinHostPort(host, port))
	var conn *tls.Conn
	if err == nil {
		defer plain.Close()
		conn = tls.Client(plain, &tls.Config{ServerName: host, RootCAs: c.Roots, Time: c.Now})
		err = conn.HandshakeContext(ctx)
	}
	var invalid *tls.CertificateVerificationError
	switch {
	case errors.As(err, &invalid):
		return fault("install a certificate for the host of url (tls-cert, tls-acme, or at the proxy)",
			"browsers refuse the certificate at %s: %v", c.URL, invalid.Err)
	case err != nil:
		return fault("check that the server or proxy runs and that the firewall lets clients in",
			"no TLS connection to %s: %v", net.JoinHostPort(host, port), err)
	}
	leaf := conn.ConnectionState().PeerCertificates[0]
	return c.expiry("the certificate at "+c.URL, leaf)
}

// expiry judges how long a certificate is valid.
func (c *Config) expiry(what string, leaf *x509.Certificate) Finding {
	left := leaf.NotAfter.Sub(c.Now())
	if left < 0 {
		return fault("renew the certificate", "%s has expired on %s", what, leaf.NotAfter.Format(time.DateOnly))
	}
	if left < minCertificateTime {
		return fault("renew the certificate; with tls-acme the log says why the renewal fails",
			"%s expires on %s", what, leaf.NotAfter.Format(time.DateOnly))
	}
	return ok("%s is valid until %s", what, leaf.NotAfter.Format(time.DateOnly))
}

func checkTLSFiles(_ context.Context, c *Config) Finding {
	if c.TLSCert == "" {
		return ok("tls-cert is not set")
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return fault("tls-cert and tls-key must be PEM files of one certificate, readable by the server's user",
			"%s and %s: %v", c.TLSCert, c.TLSKey, err)
	}
	if host, _ := c.publicHost(); host != "" {
		if err := pair.Leaf.VerifyHostname(host); err != nil {
			return fault("use a certificate for the host name of url", "%s: %v", c.TLSCert, err)
		}
	}
	return c.expiry(c.TLSCert, pair.Leaf)
}

func checkSMTP(ctx context.Context, c *Config) Finding {
	if c.SMTPHost == "" {
		return ok("smtp-host is not set: emails are written to the folder outbox")
	}
	at := net.JoinHostPort(c.SMTPHost, strconv.Itoa(c.SMTPPort))
	remedy := "check smtp-host, smtp-port and smtp-tls, and that the firewall lets this machine out"
	conn, err := c.Dial(ctx, "tcp", at)
	if err != nil {
		return fault(remedy, "no connection to the mail server %s: %v", at, err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	config := &tls.Config{ServerName: c.SMTPHost, RootCAs: c.Roots, Time: c.Now}
	secure := c.SMTPPort == smtpsPort
	if secure {
		conn = tls.Client(conn, config)
	}
	client, err := smtp.NewClient(conn, c.SMTPHost)
	if err != nil {
		return fault(remedy, "the mail server %s does not answer as one: %v", at, err)
	}
	if can, _ := client.Extension("STARTTLS"); can && !secure {
		if err := client.StartTLS(config); err != nil {
			return fault("the mail server's certificate must be for smtp-host and not expired",
				"no encrypted connection to %s: %v", at, err)
		}
		secure = true
	}
	if c.SMTPUser != "" && secure {
		if err := client.Auth(smtp.PlainAuth("", c.SMTPUser, c.SMTPPassword, c.SMTPHost)); err != nil {
			return fault("correct smtp-user and smtp-password", "the mail server %s refuses the login: %v", at, err)
		}
	}
	from := c.sender()
	if err := client.Mail(from); err != nil {
		return fault("set smtp-from to an address for which the mail server accepts mail",
			"the mail server %s refuses mail from %s: %v", at, from, err)
	}
	client.Reset()
	client.Quit()
	return ok("%s accepts mail from %s", at, from)
}

// sender returns the address from which the server sends emails.
func (c *Config) sender() string {
	if a, err := mail.ParseAddress(c.SMTPFrom); err == nil {
		return a.Address
	}
	host, _ := c.publicHost()
	return "noreply@" + cmp.Or(host, "localhost")
}

// smtpsPort is the port on which mail servers speak TLS from the beginning (RFC 8314).
const smtpsPort = 465

func checkPush(ctx context.Context, c *Config) Finding {
	for _, f := range []struct{ setting, path, want string }{
		{"push-apns-key", c.APNsKey, "PRIVATE KEY"}, {"push-fcm-account", c.FCMAccount, "private_key"},
	} {
		if f.path == "" {
			continue
		}
		if err := contains(f.path, f.want); err != nil {
			return fault("download the key again from the push service and make it readable by the server's user",
				"%s: %v", f.setting, err)
		}
	}
	if c.Bouncer == "" {
		return ok("no push bouncer; keys: %t", c.APNsKey != "" || c.FCMAccount != "")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Bouncer, nil)
	if err == nil {
		var answer *http.Response
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.Roots, Time: c.Now}}
		defer transport.CloseIdleConnections()
		if answer, err = (&http.Client{Transport: transport}).Do(r); err == nil {
			answer.Body.Close()
		}
	}
	if err != nil {
		return fault("check push-bouncer, and that the firewall lets this machine out",
			"no answer of the push bouncer: %v", err)
	}
	return ok("%s answers; parley push status shows more", c.Bouncer)
}

func checkBucket(ctx context.Context, c *Config) Finding {
	if c.Bucket == nil {
		return ok("files are in the data directory")
	}
	if err := c.Bucket(ctx); err != nil {
		return fault("check the address and region of files, the keys of files-credentials and their right to "+
			"put, get and delete", "the bucket of the files does not work: %v", err)
	}
	return ok("an object was written, read and removed")
}
