package mail

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-msgauth/dmarc"
	"golang.org/x/net/publicsuffix"
)

const (
	// dnsTimeout limits each question about a sender. A mail whose sender cannot be checked is sent again later.
	dnsTimeout = 10 * time.Second
	// maxSignatures is how many signatures of a mail are verified: each takes a question and some work.
	maxSignatures = 5
)

// SenderCheck checks who sent a reply. The address must be the user's, and if its domain asks for it (DMARC with the
// policy quarantine or reject), a signature of the domain must confirm the mail (DKIM). The network address of the
// sender (SPF) confirms nothing, because mail usually arrives by the operator's own mail server.
type SenderCheck struct {
	AddressOnly bool // no questions to the DNS
	// LookupTXT returns the texts of a domain name; nil: from the DNS.
	LookupTXT func(name string) ([]string, error)
}

// check returns nil, or an *smtp.SMTPError. raw is the mail and want the address of the user.
func (c SenderCheck) check(raw io.Reader, h mailHeader, want string) error {
	from, err := parseAddresses(decodeCharset("", []byte(h["from"])))
	_, again := h["second from"]
	if err != nil || len(from) != 1 || again || want == "" || !strings.EqualFold(from[0].Address, want) {
		return errOtherSender
	}
	if c.AddressOnly {
		return nil
	}
	_, domain, _ := strings.Cut(strings.ToLower(want), "@")
	policy, err := c.policy(domain)
	switch {
	case errors.Is(err, dmarc.ErrNoPolicy):
		return nil
	case dmarc.IsTempFail(err):
		return errNotNow
	case err != nil: // such as a policy that is no policy
		return errForged
	}
	strict := policy.DKIMAlignment == dmarc.AlignmentStrict
	list, err := dkim.VerifyWithOptions(raw, &dkim.VerifyOptions{LookupTXT: c.lookup, MaxVerifications: maxSignatures})
	if err != nil && !errors.Is(err, dkim.ErrTooManySignatures) {
		return errForged
	}
	answer := errForged
	for _, v := range list {
		switch {
		case !sameDomain(strings.ToLower(v.Domain), domain, strict) || !coversFrom(v):
		case v.Err == nil:
			return nil
		case dkim.IsTempFail(v.Err):
			answer = errNotNow
		}
	}
	return answer
}

// policy returns the wish of a domain: that of the domain itself, or of the domain that its owner has registered.
// dmarc.ErrNoPolicy means that mails need no signature.
func (c SenderCheck) policy(domain string) (*dmarc.Record, error) {
	options := &dmarc.LookupOptions{LookupTXT: c.lookup}
	r, err := dmarc.LookupWithOptions(domain, options)
	asked := dmarc.PolicyNone
	if err == nil {
		asked = r.Policy
	} else if owner := ownerDomain(domain); errors.Is(err, dmarc.ErrNoPolicy) && owner != domain {
		if r, err = dmarc.LookupWithOptions(owner, options); err == nil {
			if asked = r.Policy; r.SubdomainPolicy != "" {
				asked = r.SubdomainPolicy
			}
		}
	}
	if err == nil && asked == dmarc.PolicyNone {
		err = dmarc.ErrNoPolicy
	}
	return r, err
}

// lookup asks the DNS. Every error except "no such name" is temporary.
func (c SenderCheck) lookup(name string) (texts []string, err error) {
	if c.LookupTXT != nil {
		texts, err = c.LookupTXT(name)
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), dnsTimeout)
		defer cancel()
		texts, err = net.DefaultResolver.LookupTXT(ctx, name)
	}
	var dns *net.DNSError
	if err != nil && !(errors.As(err, &dns) && dns.IsNotFound) {
		err = &net.DNSError{Err: err.Error(), Name: name, IsTemporary: true}
	}
	return texts, err
}

// ownerDomain returns the domain that was registered, such as example.org for mail.example.org.
func ownerDomain(domain string) string {
	owner, err := publicsuffix.EffectiveTLDPlusOne(domain)
	if err != nil {
		return domain
	}
	return owner
}

func sameDomain(signer, from string, strict bool) bool {
	return signer == from || !strict && ownerDomain(signer) == ownerDomain(from)
}

// coversFrom reports whether a signature includes the sender of the mail.
func coversFrom(v *dkim.Verification) bool {
	for _, k := range v.HeaderKeys {
		if strings.EqualFold(k, "From") {
			return true
		}
	}
	return false
}
