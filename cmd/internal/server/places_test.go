package server

import (
	"slices"
	"testing"

	"parley/actors/realm"
)

// Each place of organizations is one of a service, and each service is in both lists: a new place or service that one
// of them lacks is found here.
func TestServicesAreInBothLists(t *testing.T) {
	var named []string
	places := map[realm.Place]bool{}
	for _, x := range Services() {
		if len(x.Places) == 0 {
			t.Errorf("%q has no place: GET /places lacks it", x.Name)
		}
		for _, p := range x.Places {
			places[p] = true
			if !slices.ContainsFunc(realm.Places, func(r realm.PlaceRule) bool { return r.Place == p }) {
				t.Errorf("the place %s of %q is not in realm.Places", p, x.Name)
			}
		}
		if x.Unlisted != "" {
			if x.Name != "" || x.Where != nil || x.use == nil {
				t.Errorf("%v: a service that parley places does not list has only places and their use", x.Places)
			}
			continue
		}
		if x.Name == "" || x.Data == "" || x.Switches == "" || x.Where == nil {
			t.Errorf("%q lacks a text of parley places, or Unlisted has no reason", x.Name)
		}
		if slices.Contains(named, x.Name) {
			t.Errorf("two services are named %q", x.Name)
		}
		named = append(named, x.Name)
	}
	for _, r := range realm.Places {
		if !places[r.Place] {
			t.Errorf("no service has the place %s: add it to Services", r.Place)
		}
	}
}
