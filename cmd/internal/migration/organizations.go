package migration

import (
	"parley/actors/realm"
	"parley/snapshot"
)

// Organizations finds the organizations of a stopped server's data directory by subdomain and by API key.
type Organizations struct {
	BySubdomain map[string]realm.ID
	ByKeyHash   map[[32]byte]realm.ID
}

// FindOrganizations reads all organizations of a data directory.
func FindOrganizations(d snapshot.Disk) (Organizations, error) {
	k := Organizations{map[string]realm.ID{}, map[[32]byte]realm.ID{}}
	ids, err := d.Realms()
	if err != nil {
		return k, err
	}
	for _, id := range ids {
		x, err := snapshot.Recover(d, id)
		if err != nil {
			return k, err
		}
		if !x.Realm.Founded() {
			continue
		}
		k.BySubdomain[x.Realm.Org().StringID] = id
		x.Realm.EachUser(func(u *realm.User) {
			for _, h := range KeyHashes(u) {
				k.ByKeyHash[h] = id
			}
		})
	}
	return k, nil
}

// Find returns the organization with a subdomain.
func (k *Organizations) Find(subdomain string) (id realm.ID, found bool) {
	id, found = k.BySubdomain[subdomain]
	return id, found
}

// Reserve returns the number for an organization: the wanted one if it is free, otherwise the next one.
func (k *Organizations) Reserve(_ string, wanted realm.ID) (realm.ID, error) {
	last, free := realm.ID(0), wanted > 0
	for _, id := range k.BySubdomain {
		last, free = max(last, id), free && id != wanted
	}
	if free {
		return wanted, nil
	}
	return last + 1, nil
}
