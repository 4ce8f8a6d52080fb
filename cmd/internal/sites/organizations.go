package sites

import (
	"maps"
	"slices"
	"strings"

	"parley/actors/realm"
	"parley/wire"
)

var _ wire.Organizations = (*Table)(nil)

func (t *Table) Find(subdomain string) (realm.ID, wire.Site) {
	id, site, ok := t.Orgs.RealmByName(strings.ToLower(subdomain))
	if !ok {
		return 0, t.Site(subdomain)
	}
	return id, site
}

func (t *Table) AccountsOf(email string) (found []wire.OrganizationAt) {
	for _, id := range t.Orgs.RealmsWithPerson(email) {
		found = append(found, wire.OrganizationAt{Realm: id, Site: t.ByID(id)})
	}
	slices.SortFunc(found, func(a, b wire.OrganizationAt) int { return strings.Compare(a.Site.Name, b.Site.Name) })
	return found
}

// First returns the root organization, or the one with the smallest name among the active ones.
func (t *Table) First() wire.OrganizationAt {
	for _, name := range slices.Sorted(maps.Keys(t.Orgs.Realms())) {
		if id, site := t.Find(name); !site.Deactivated {
			return wire.OrganizationAt{Realm: id, Site: site}
		}
	}
	return wire.OrganizationAt{}
}

func (t *Table) CheckSubdomain(subdomain string) error {
	return wire.CheckSubdomain(subdomain)
}

func (t *Table) Create(subdomain, name string) (at wire.OrganizationAt, err error) {
	id, err := t.Orgs.CreateRealm(subdomain, strings.TrimSpace(name))
	_, site := t.Find(subdomain)
	return wire.OrganizationAt{Realm: id, Site: site}, err
}
