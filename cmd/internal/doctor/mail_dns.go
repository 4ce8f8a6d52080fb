package doctor

import (
	"context"
	"errors"
	"net"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// checkMailDNS looks for the DNS records by which receivers know that emails are from the sender's domain: SPF, DKIM
// and DMARC. Without them most receivers treat emails as unwanted.
func checkMailDNS(ctx context.Context, c *Config) Finding {
	_, domain, _ := strings.Cut(strings.ToLower(c.sender()), "@")
	if c.SMTPHost == "" || domain == "localhost" || net.ParseIP(strings.Trim(domain, "[]")) != nil {
		return ok("no emails are sent from a domain")
	}
	spf, err := c.findRecord(ctx, domain, "v=spf1")
	switch {
	case err != nil:
		return fault("check the name server of this machine", "no answer about %s: %v", domain, err)
	case len(spf) == 0:
		return fault("add a TXT record such as \"v=spf1 mx include:YOUR-PROVIDER -all\" that names the servers that "+
			"send mail for "+domain, "%s has no SPF record", domain)
	case len(spf) > 1:
		return fault("join them into one", "%s has %d SPF records, so receivers ignore them", domain, len(spf))
	}
	note := "SPF and DMARC records exist; the mail server has to sign emails (DKIM), or set dkim-key"
	if c.DKIMName != "" {
		keys, err := c.LookupTXT(ctx, c.DKIMName)
		if err != nil && !isNotFound(err) {
			return fault("check the name server of this machine", "no answer about %s: %v", c.DKIMName, err)
		}
		if !hasKey(keys, c.DKIMText) {
			return fault("add the TXT record "+c.DKIMName+" with the text \""+c.DKIMText+"\"",
				"%s has not the public key of dkim-key, so receivers refuse the signatures", c.DKIMName)
		}
		note = "SPF, DKIM and DMARC records exist"
	}
	dmarc, err := c.findRecord(ctx, "_dmarc."+domain, "v=DMARC1")
	if owner, known := publicsuffix.EffectiveTLDPlusOne(domain); len(dmarc) == 0 && err == nil && known == nil {
		dmarc, err = c.findRecord(ctx, "_dmarc."+owner, "v=DMARC1")
	}
	switch {
	case err != nil:
		return fault("check the name server of this machine", "no answer about _dmarc.%s: %v", domain, err)
	case len(dmarc) != 1:
		return fault("have one TXT record _dmarc."+domain+", such as \"v=DMARC1; p=quarantine\"; "+
			"begin with p=none to try it", "%s has %d DMARC records", domain, len(dmarc))
	}
	return ok("%s: %s", domain, note)
}

// findRecord returns the TXT records of a name that begin with a version.
func (c *Config) findRecord(ctx context.Context, name, version string) (out []string, err error) {
	list, err := c.LookupTXT(ctx, name)
	if isNotFound(err) {
		return nil, nil
	}
	for _, text := range list {
		if first, _, _ := strings.Cut(text, ";"); strings.HasPrefix(first+" ", version+" ") {
			out = append(out, text)
		}
	}
	return out, err
}

func isNotFound(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// hasKey reports whether one of the records has the public key of want. The other tags may differ.
func hasKey(records []string, want string) bool {
	key := func(text string) string {
		for _, tag := range strings.Split(text, ";") {
			if name, value, ok := strings.Cut(tag, "="); ok && strings.TrimSpace(name) == "p" {
				return strings.Join(strings.Fields(value), "")
			}
		}
		return ""
	}
	for _, r := range records {
		if key(r) != "" && key(r) == key(want) {
			return true
		}
	}
	return false
}
