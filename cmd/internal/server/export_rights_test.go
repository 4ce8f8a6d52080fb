package server

import (
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/wire"
)

// writeHook calls a function at the first write.
type writeHook struct{ hook func() }

func (w *writeHook) Write(p []byte) (int, error) {
	if w.hook != nil {
		w.hook()
		w.hook = nil
	}
	return len(p), nil
}

// An export ends with an error when its user loses, after the first line, the account, the role or the organization.
func TestExportStopsWithTheRightsOfItsUser(t *testing.T) {
	const id = realm.ID(1)
	for what, withdraw := range map[string]realm.Command[realm.Done]{
		"the account":      realm.DeactivateUser{},
		"the role":         realm.EditUser{},
		"the organization": realm.CloseRealm{},
		"nothing":          nil,
	} {
		s := startDemo(t)
		a, _ := s.orgs.AccountByEmail(id, "ada@example.org")
		x, err := realm.Execute(s.orgs, id, realm.Caller{User: a.User}, realm.StartExport{Kind: realm.PublicExport})
		if err != nil {
			t.Fatal(err)
		}
		switch c := withdraw.(type) {
		case realm.DeactivateUser:
			c.User = a.User
			withdraw = c
		case realm.EditUser:
			member := realm.Member
			c.User, c.Role = a.User, &member
			withdraw = c
		}
		err = wire.WriteExport(s.orgs, id, s.sites.ByID(id), x, &writeHook{func() {
			if withdraw != nil {
				if _, err := realm.Execute(s.orgs, id, realm.System, withdraw); err != nil {
					t.Fatal(err)
				}
			}
		}})
		refused := err != nil && strings.Contains(err.Error(), "Insufficient permission")
		if refused != (withdraw != nil) {
			t.Errorf("without %s: %v", what, err)
		}
	}
}
