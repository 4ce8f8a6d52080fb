package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var domainEndpoints = []Endpoint{
	Get("/realm/domains", func(c *Call, v realm.View, _ noParameters) (*domainsAnswer, error) {
		return &domainsAnswer{each(v.Domains(), newDomain)}, nil
	}),
	Custom("POST", "/realm/domains", addDomain),
	CommandFromForm("PATCH", "/realm/domains/{domain}", func(f editDomainForm) realm.EditDomain {
		return realm.EditDomain{Domain: f.Domain, Subdomains: f.Subdomains}
	}, emptyAnswer),
	CommandFromForm("DELETE", "/realm/domains/{domain}", func(f domainForm) realm.RemoveDomain {
		return realm.RemoveDomain{Domain: f.Domain}
	}, emptyAnswer),
}

var domainEvents = []EventKind{
	Event(func(e *realm.DomainAdded, to *Recipient) *domainAddedEvent {
		return &domainAddedEvent{Domain: newDomain(e.Domain)}
	}),
	Event(func(e *realm.DomainChanged, to *Recipient) *domainChangedEvent {
		return &domainChangedEvent{Domain: newDomain(e.Domain)}
	}),
	Event(func(e *realm.DomainRemoved, to *Recipient) *domainRemovedEvent {
		return &domainRemovedEvent{Domain: e.Name}
	}),
}

type domainsAnswer struct {
	Domains []domainJSON `json:"domains"`
}

// addedDomainAnswer has the id and the name.
type addedDomainAnswer struct {
	Domain []either[int64, string] `json:"new_domain"`
}

type domainAddedEvent struct {
	_      struct{}   `const:"type=realm_domains op=add"`
	Domain domainJSON `json:"realm_domain"`
}

type domainChangedEvent struct {
	_      struct{}   `const:"type=realm_domains op=change"`
	Domain domainJSON `json:"realm_domain"`
}

type domainRemovedEvent struct {
	_      struct{} `const:"type=realm_domains op=remove"`
	Domain string   `json:"domain"`
}

type domainJSON struct {
	Name       string `json:"domain"`
	Subdomains bool   `json:"allow_subdomains"`
}

type domainForm struct {
	Domain string `path:"domain"`
}

type addDomainForm struct {
	Domain     form.Opt[string] `form:"domain"`
	Subdomains form.Opt[bool]   `form:"allow_subdomains"`
}

// addDomain adds a domain. Only owners learn which parameters are missing.
func addDomain(c *Call, f addDomainForm) (*addedDomainAnswer, error) {
	err := checkPermission(c, func(v realm.View) error {
		_, err := v.RequireOwner()
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !f.Domain.Set:
		return nil, form.Missing("domain")
	case !f.Subdomains.Set:
		return nil, form.Missing("allow_subdomains")
	}
	d, err := Execute(c, realm.AddDomain{Domain: f.Domain.Value, Subdomains: f.Subdomains.Value})
	if err != nil {
		return nil, err
	}
	return &addedDomainAnswer{[]either[int64, string]{{d.ID}, {d.Name}}}, nil
}

type editDomainForm struct {
	domainForm
	Subdomains bool `form:"allow_subdomains,required"`
}

func newDomain(d realm.Domain) domainJSON { return domainJSON{d.Name, d.Subdomains} }
