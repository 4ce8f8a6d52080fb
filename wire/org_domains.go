package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var domainEndpoints = []Endpoint{
	Get("/realm/domains", func(c *Call, v realm.View, _ noParameters) (Answer, error) {
		return Answer{"domains": domainObjects(v.Domains())}, nil
	}).Returns("{domains: [Domain]}"),
	Custom("POST", "/realm/domains", addDomain).Returns("{new_domain: [int | str]}"),
	CommandFromForm("PATCH", "/realm/domains/{domain}", func(f editDomainForm) realm.EditDomain {
		return realm.EditDomain{Domain: f.Domain, Subdomains: f.Subdomains}
	}, emptyAnswer),
	CommandFromForm("DELETE", "/realm/domains/{domain}", func(f domainForm) realm.RemoveDomain {
		return realm.RemoveDomain{Domain: f.Domain}
	}, emptyAnswer),
}

var domainEvents = []EventKind{
	EventOneOf(func(e *realm.DomainAdded, to *Recipient) any {
		return obj{"type": "realm_domains", "op": "add", "realm_domain": domainObject(e.Domain)}
	}),
	EventOneOf(func(e *realm.DomainChanged, to *Recipient) any {
		return obj{"type": "realm_domains", "op": "change", "realm_domain": domainObject(e.Domain)}
	}),
	EventOneOf(func(e *realm.DomainRemoved, to *Recipient) any {
		return obj{"type": "realm_domains", "op": "remove", "domain": e.Name}
	}),
}

type domainForm struct {
	Domain string `path:"domain"`
}

type addDomainForm struct {
	Domain     form.Opt[string] `form:"domain"`
	Subdomains form.Opt[bool]   `form:"allow_subdomains"`
}

// addDomain adds a domain. Only owners learn which parameters are missing.
func addDomain(c *Call, f addDomainForm) (Answer, error) {
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
	return Answer{"new_domain": []any{d.ID, d.Name}}, nil
}

type editDomainForm struct {
	domainForm
	Subdomains bool `form:"allow_subdomains,required"`
}

func domainObject(d realm.Domain) obj {
	return obj{"domain": d.Name, "allow_subdomains": d.Subdomains}
}

func domainObjects(list []realm.Domain) []any {
	out := make([]any, len(list))
	for i, d := range list {
		out[i] = domainObject(d)
	}
	return out
}
