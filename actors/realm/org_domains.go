package realm

import (
	"slices"
	"strings"
)

// Domain is the row of an email domain whose addresses may join while the organization restricts them.
type Domain struct {
	ID         int64
	Name       string
	Subdomains bool // addresses of subdomains may join too
}

// Limits of domains. The length is the protocol's, in characters. The number keeps the list small, because every
// registration contains it.
const (
	maxDomain  = 255
	maxDomains = 500
)

// Domains returns the organization's domains in the order in which they were added.
func (r *Realm) Domains() []Domain { return r.small.domains.list() }

// domainByName returns the organization's domain with a name, or nil.
func (r *Realm) domainByName(name string) *Domain {
	for _, d := range r.small.domains.all() {
		if d.Name == name {
			return d
		}
	}
	return nil
}

func errNoDomain(name string) *Refusal { return BadRequest("No entry found for domain %s.", name) }

// domainProblem returns the error in a domain's spelling in the protocol's words, or "".
func domainProblem(d string) string {
	switch {
	case d == "":
		return "Domain can't be empty."
	case !strings.Contains(d, "."):
		return "Domain must have at least one dot (.)"
	case runeCount(d) > maxDomain:
		return "Domain is too long"
	case d[0] == '.' || d[len(d)-1] == '.':
		return "Domain cannot start or end with a dot (.)"
	}
	for _, part := range strings.Split(d, ".") {
		switch {
		case part == "":
			return "Consecutive '.' are not allowed."
		case part[0] == '-' || part[len(part)-1] == '-':
			return "Subdomains cannot start or end with a '-'."
		case strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			return "Domain can only have letters, numbers, '.' and '-'s."
		}
	}
	return ""
}

// AddDomain asks to allow addresses of a domain to join.
type AddDomain struct {
	Domain     string
	Subdomains bool
}

func (c AddDomain) Decide(t *Turn) (Domain, error) {
	if _, err := t.RequireOwner(); err != nil {
		return Domain{}, err
	}
	name := strings.ToLower(strings.TrimSpace(c.Domain))
	if fault := domainProblem(name); fault != "" {
		return Domain{}, BadRequest("Invalid domain: %s", fault)
	}
	if t.domainByName(name) != nil {
		return Domain{}, BadRequest("The domain %s is already a part of your organization.", name)
	}
	if t.small.domains.size() >= maxDomains {
		return Domain{}, BadRequest("Too many domains (limit: %d)", maxDomains)
	}
	d := Domain{t.nextID("domain"), name, c.Subdomains}
	t.Record(&DomainAdded{d})
	return d, nil
}

// DomainAdded is the event realm_domains/add.
type DomainAdded struct{ Domain Domain }

func (f *DomainAdded) apply(r *Realm) {
	d := f.Domain
	r.reserveID("domain", d.ID)
	r.small.domains.put(d.ID, &d)
}

func (f *DomainAdded) notices(r *Realm) []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: f}}
}
func (*DomainAdded) EventType() string { return "realm_domains" }

// EditDomain asks to include a domain's subdomains, or to exclude them.
type EditDomain struct {
	Domain     string
	Subdomains bool
}

func (c EditDomain) Decide(t *Turn) (Done, error) {
	if _, err := t.RequireOwner(); err != nil {
		return Done{}, err
	}
	d := t.domainByName(strings.ToLower(c.Domain))
	if d == nil {
		return Done{}, errNoDomain(c.Domain)
	}
	if d.Subdomains != c.Subdomains {
		t.Record(&DomainChanged{Domain{d.ID, d.Name, c.Subdomains}})
	}
	return Done{}, nil
}

// DomainChanged is the event realm_domains/change.
type DomainChanged struct{ Domain Domain }

func (f *DomainChanged) apply(r *Realm) {
	r.small.domains.change(f.Domain.ID).Subdomains = f.Domain.Subdomains
}
func (f *DomainChanged) notices(r *Realm) []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: f}}
}
func (*DomainChanged) EventType() string { return "realm_domains" }

// RemoveDomain asks to allow addresses of a domain no longer. Without any domain the restriction would refuse all
// addresses, so removing the last domain turns it off.
type RemoveDomain struct{ Domain string }

func (c RemoveDomain) Decide(t *Turn) (Done, error) {
	if _, err := t.RequireOwner(); err != nil {
		return Done{}, err
	}
	d := t.domainByName(strings.ToLower(c.Domain))
	if d == nil {
		return Done{}, errNoDomain(c.Domain)
	}
	t.Record(&DomainRemoved{d.ID, d.Name})
	if t.small.domains.size() == 0 && t.OrgBool("emails_restricted_to_domains") {
		t.Record(&OrganizationChanged{Setting: "emails_restricted_to_domains", Value: false})
	}
	return Done{}, nil
}

// DomainRemoved is the event realm_domains/remove.
type DomainRemoved struct {
	ID   int64
	Name string
}

func (f *DomainRemoved) apply(r *Realm) { r.small.domains.remove(f.ID) }
func (f *DomainRemoved) notices(r *Realm) []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: f}}
}
func (*DomainRemoved) EventType() string { return "realm_domains" }

// Reasons why an address may not join, in the words of invitations and changes of address.
const (
	outsideDomain   = "Outside your domain."
	disposableEmail = "Please use your real email address."
	plusEmail       = "Email addresses containing + are not allowed."
)

// addressProblem returns the reason why an address may not belong to the organization, or "".
func (r *Realm) addressProblem(email string) string {
	user, domain, _ := strings.Cut(FoldEmail(email), "@")
	if !r.OrgBool("emails_restricted_to_domains") {
		if r.OrgBool("disallow_disposable_email_addresses") && isDisposableDomain(domain) {
			return disposableEmail
		}
		return ""
	}
	if strings.Contains(user, "+") { // with + the same mailbox could join any number of times
		return plusEmail
	}
	for _, d := range r.small.domains.all() {
		if domain == d.Name || d.Subdomains && strings.HasSuffix(domain, "."+d.Name) {
			return ""
		}
	}
	return outsideDomain
}

// checkEmailDomain refuses addresses that may not belong to the organization, in the words of account creation.
func (v View) checkEmailDomain(email string) error {
	switch v.addressProblem(email) {
	case outsideDomain:
		return BadRequest("Email '%s' not allowed in this organization", email)
	case disposableEmail:
		return BadRequest("Disposable email addresses are not allowed in this organization")
	case plusEmail:
		return BadRequest(plusEmail)
	}
	return nil
}

// disposableDomains are domains of services that give anyone a mailbox for minutes. Their subdomains are included.
var disposableDomains = strings.Fields(`
	10minutemail.com 20minutemail.com 33mail.com anonbox.net burnermail.io byom.de deadaddress.com discard.email
	discardmail.com dispostable.com dropmail.me emailondeck.com emailsensei.com fakeinbox.com fakemail.net
	filzmail.com getairmail.com getnada.com grr.la guerrillamail.biz guerrillamail.com guerrillamail.de
	guerrillamail.info guerrillamail.net guerrillamail.org guerrillamailblock.com harakirimail.com incognitomail.org
	inboxkitten.com jetable.org kurzepost.de mail-temp.com mailcatch.com maildrop.cc mailexpire.com mailforspam.com
	mailinator.com mailinator.net mailinator2.com mailnesia.com mailnull.com mailsac.com mailtemp.info meltmail.com
	mintemail.com moakt.com mohmal.com mytemp.email mytrashmail.com nada.email no-spam.ws nospam.ze.tc objectmail.com
	one-time.email owlymail.com pokemail.net rcpt.at sharklasers.com shitmail.me sneakemail.com sofort-mail.de spam.la
	spam4.me spambog.com spambox.us spamex.com spamgourmet.com spamhole.com spaml.de tempail.com temp-mail.io
	temp-mail.org tempinbox.com tempmail.dev tempmail.net tempmailaddress.com tempmailo.com tempr.email
	throwawaymail.com tmail.ws tmpmail.net tmpmail.org trash-mail.com trash-mail.de trashmail.at trashmail.com
	trashmail.de trashmail.me trashmail.net trbvm.com wegwerfmail.de wegwerfmail.net wegwerfmail.org wh4f.org
	yopmail.com yopmail.fr yopmail.net
`)

// isDisposableDomain reports whether a domain, or one above it, is a disposable one.
func isDisposableDomain(domain string) bool {
	return slices.ContainsFunc(disposableDomains, func(d string) bool {
		return domain == d || strings.HasSuffix(domain, "."+d)
	})
}
