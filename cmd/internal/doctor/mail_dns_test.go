package doctor

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
)

// Each missing or wrong record of the sender's domain is named, with the record to add.
func TestMailRecords(t *testing.T) {
	const key = "v=DKIM1; k=ed25519; p=abc="
	complete := map[string][]string{"chat.example.org": {"other", "v=spf1 mx -all"},
		"_dmarc.example.org": {"v=DMARC1; p=reject"}, "parley._domainkey.chat.example.org": {"v=DKIM1; p=a bc="}}
	for _, x := range []struct {
		name, fault, remedy string
		change              func(records map[string][]string, c *Config)
	}{
		{"complete", "", "", func(map[string][]string, *Config) {}},
		{"no SPF", "no SPF record", "v=spf1", func(r map[string][]string, _ *Config) { delete(r, "chat.example.org") }},
		{"SPF twice", "2 SPF records", "join", func(r map[string][]string, _ *Config) {
			r["chat.example.org"] = []string{"v=spf1 a", "v=spf1 mx"}
		}},
		{"no DKIM", "has not the public key", key, func(r map[string][]string, _ *Config) {
			delete(r, "parley._domainkey.chat.example.org")
		}},
		{"another key", "has not the public key", key, func(r map[string][]string, _ *Config) {
			r["parley._domainkey.chat.example.org"] = []string{"v=DKIM1; p=abd="}
		}},
		{"no DMARC", "0 DMARC records", "v=DMARC1", func(r map[string][]string, _ *Config) {
			delete(r, "_dmarc.example.org")
		}},
		{"name server down", "no answer", "name server", func(_ map[string][]string, c *Config) {
			c.LookupTXT = func(context.Context, string) ([]string, error) { return nil, errors.New("timeout") }
		}},
		{"no key and no records of one", "", "", func(r map[string][]string, c *Config) {
			c.DKIMName = ""
			delete(r, "parley._domainkey.chat.example.org")
		}},
	} {
		c := sound(t)
		records := map[string][]string{}
		for name, list := range complete {
			records[name] = list
		}
		c.LookupTXT = func(_ context.Context, name string) ([]string, error) {
			if list := records[name]; list != nil {
				return list, nil
			}
			return nil, &net.DNSError{IsNotFound: true}
		}
		c.SMTPHost, c.SMTPFrom, c.DKIMName, c.DKIMText = "mail.example.org", "Chat <chat@chat.example.org>",
			"parley._domainkey.chat.example.org", key
		x.change(records, &c)
		f := checkMailDNS(t.Context(), &c)
		if (f.Fault == "") != (x.fault == "") || !strings.Contains(f.Fault, x.fault) ||
			!strings.Contains(f.Remedy, x.remedy) {
			t.Errorf("%s: %+v", x.name, f)
		}
	}
}
