package wire

import "parley/actors/realm"

var domainEndpoints = []Endpoint{
	Get("/realm/domains", func(c *Call, v realm.View, _ noParameters) (Answer, error) {
		return Answer{"domains": domainObjects(v.Domains())}, nil
	}).Returns("{domains: [Domain]}"),
	CommandFromForm("POST", "/realm/domains", func(f addDomainForm) realm.AddDomain {
		return realm.AddDomain{Domain: f.Domain, Subdomains: f.Subdomains}
	}, func(d realm.Domain) Answer {
		return Answer{"new_domain": []any{d.ID, d.Name}}
	}).Returns("{new_domain: [int | str]}"),
	CommandFromForm("PATCH", "/realm/domains/{domain}", func(f editDomainForm) realm.EditDomain {
		return realm.EditDomain{Domain: f.Domain, Subdomains: f.Subdomains}
	}, emptyAnswer),
	CommandFromForm("DELETE", "/realm/domains/{domain}", func(f domainForm) realm.RemoveDomain {
		return realm.RemoveDomain{Domain: f.Domain}
	}, emptyAnswer),
}

var domainEvents = []EventKind{
	Event(func(e *realm.DomainAdded, to *Recipient) any {
		return obj{"type": "realm_domains", "op": "add", "realm_domain": domainObject(e.Domain)}
	}),
	Event(func(e *realm.DomainChanged, to *Recipient) any {
		return obj{"type": "realm_domains", "op": "change", "realm_domain": domainObject(e.Domain)}
	}),
	Event(func(e *realm.DomainRemoved, to *Recipient) any {
		return obj{"type": "realm_domains", "op": "remove", "domain": e.Name}
	}),
}

type domainForm struct {
	Domain string `path:"domain"`
}

type addDomainForm struct {
	Domain     string `form:"domain,required"`
	Subdomains bool   `form:"allow_subdomains,required"`
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
