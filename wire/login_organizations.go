package wire

import (
	"strings"

	"parley/actors/realm"
)

// Organizations finds and creates organizations of the server. All methods are safe for concurrent use.
type Organizations interface {
	// Find returns the organization with a subdomain. The id is 0 if it does not exist.
	Find(subdomain string) (realm.ID, Site)
	// AccountsOf returns the active organizations in which an address has an active account of a human.
	AccountsOf(email string) []OrganizationAt
	// First returns the organization that sends emails of the server itself; its id is 0 if there is none.
	First() OrganizationAt
	// CheckSubdomain returns an error if an organization cannot have that subdomain.
	CheckSubdomain(subdomain string) error
	// Create creates an organization without users.
	Create(subdomain, name string) (OrganizationAt, error)
}

// OrganizationAt is an organization and its site.
type OrganizationAt struct {
	Realm realm.ID
	Site  Site
}

// MaxFoundAddresses limits the addresses of one request for emails about accounts (protocol).
const MaxFoundAddresses = 10

// emailJob sends emails without waiting.
type emailJob struct{ emails []realm.Email }

func (x emailJob) Decide(t *realm.Turn) (any, error) {
	t.SendEmails(x.emails...)
	return nil, nil
}
func (emailJob) Done(any, error) {}

// FindAccounts sends the owner of an address an email with the organizations in which the address has an account.
// Addresses without one get no email. It does not wait.
func FindAccounts(c *Call, email, language string) {
	found := c.Tools.Organizations.AccountsOf(email)
	if len(found) == 0 {
		return
	}
	var sites []Site
	for _, o := range found {
		sites = append(sites, o.Site)
	}
	c.sendLater(found[0].Realm, c.Tools.Emails.Accounts(email, sites, language))
}

func (c *Call) sendLater(id realm.ID, emails ...realm.Email) {
	c.Server.RunAsync([]AsyncCommand{{Realm: id, Caller: c.asServer().Caller, CommandWithCallback: emailJob{emails}}})
}

// CheckNewOrganization refuses organizations that visitors cannot create.
func CheckNewOrganization(c *Call, subdomain, name string) error {
	switch {
	case !c.Tools.OpenOrganizations || c.Tools.Organizations == nil:
		return realm.Missing("This server is not open for new organizations.")
	case subdomain == "" || c.Tools.Organizations.CheckSubdomain(subdomain) != nil:
		return realm.BadRequest("Enter an address of lower-case letters, digits and dashes.")
	case ReservedSubdomain(subdomain):
		return realm.BadRequest("This address is reserved. Choose another one.")
	}
	if id, _ := c.Tools.Organizations.Find(subdomain); id != 0 {
		return realm.BadRequest("This address is already in use.")
	}
	return realm.CheckOrganizationName(name)
}

// RequestOrganization sends the link that creates an organization to the address of its owner.
func RequestOrganization(c *Call, l realm.EmailedLink, language string, now int64) error {
	l.Kind, l.Until, l.Org = realm.OrganizationLink, now+realm.SignUpValidity, strings.TrimSpace(l.Org)
	if err := CheckNewOrganization(c, l.Subdomain, l.Org); err != nil {
		return err
	}
	if !realm.ValidEmail(l.Email) {
		return realm.ErrInvalidEmail()
	}
	o := c.Tools.Organizations.First()
	if o.Realm == 0 {
		return realm.BadRequest("The operator of this server has to create its first organization.")
	}
	c.sendLater(o.Realm, c.Tools.Emails.NewOrganization(l, language))
	return nil
}

// FindNewOrganization returns the link of a token if an organization can be created with it at a time.
func FindNewOrganization(c *Call, token string, now int64) (realm.EmailedLink, error) {
	l, err := findEmailedLink(c, token, realm.OrganizationLink)
	if err == nil && now > l.Until {
		err = realm.ErrEmailedLink()
	}
	if err == nil {
		err = CheckNewOrganization(c, l.Subdomain, l.Org)
	}
	return l, err
}

// CreateOrganization creates an organization with its owner.
func CreateOrganization(c *Call, l realm.EmailedLink, name, password string) (OrganizationAt, realm.UserID, error) {
	hash, err := newPasswordHash(c, password)
	if err != nil {
		return OrganizationAt{}, 0, err
	}
	if err := realm.CheckUserName(name); err != nil { // before there is an organization without an owner
		return OrganizationAt{}, 0, err
	}
	o, err := c.Tools.Organizations.Create(l.Subdomain, l.Org)
	if err != nil {
		return o, 0, err
	}
	own := c.asServer()
	own.Realm, own.Site = o.Realm, o.Site
	id, err := Execute(
		own,
		realm.CreateUser{Email: l.Email, Name: name, Password: hash, Role: realm.Owner, First: true},
	)
	if err != nil {
		return o, 0, err
	}
	_, err = Execute(own, realm.CreateFirstChannels{})
	return o, id, err
}
