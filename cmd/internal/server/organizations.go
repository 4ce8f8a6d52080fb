package server

import (
	"maps"
	"slices"
	"strings"

	"parley/actors"
	"parley/actors/realm"
	"parley/wire"
)

// organizations implements wire.Organizations.
type organizations struct {
	sites *siteTable
	orgs  *actors.Server
}

func (o *organizations) Find(subdomain string) (realm.ID, wire.Site) {
	id, site, ok := o.orgs.RealmByName(strings.ToLower(subdomain))
	if !ok {
		return 0, o.sites.site(subdomain)
	}
	return id, site
}

func (o *organizations) AccountsOf(email string) (found []wire.OrganizationAt) {
	realms := o.orgs.Realms()
	for _, name := range slices.Sorted(maps.Keys(realms)) {
		id, site := o.Find(name)
		a, ok := o.orgs.AccountByEmail(id, email)
		if ok && a.Active && a.Bot == realm.Human && !site.Deactivated {
			found = append(found, wire.OrganizationAt{Realm: id, Site: site})
		}
	}
	return found
}

// First returns the root organization, or the one with the smallest name among the active ones.
func (o *organizations) First() wire.OrganizationAt {
	for _, name := range slices.Sorted(maps.Keys(o.orgs.Realms())) {
		if id, site := o.Find(name); !site.Deactivated {
			return wire.OrganizationAt{Realm: id, Site: site}
		}
	}
	return wire.OrganizationAt{}
}

func (o *organizations) CheckSubdomain(subdomain string) error {
	return wire.CheckSubdomain(subdomain)
}

func (o *organizations) Create(subdomain, name string) (at wire.OrganizationAt, err error) {
	id, err := o.orgs.CreateRealm(subdomain, strings.TrimSpace(name))
	_, site := o.Find(subdomain)
	return wire.OrganizationAt{Realm: id, Site: site}, err
}
