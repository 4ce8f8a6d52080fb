package realm_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// auditLines returns the entries after a number as lines, and the number of the last one.
func auditLines(t *testing.T, s *Scene, after int64) (lines []string, last int64) {
	t.Helper()
	if after == 0 {
		after = -1 // the oldest first
	}
	entries, more, err := s.ViewAs(System).AuditLog(realm.AuditFilter{After: after, Limit: realm.MaxAuditAnswer})
	if err != nil || more {
		t.Fatal(err, more)
	}
	for _, e := range entries {
		line := fmt.Sprintf("%d %s by %v via %s:", e.At, e.Kind, e.By, e.Via)
		for _, x := range []struct {
			name string
			n    int64
		}{{"user", int64(e.User)}, {"channel", int64(e.Channel)}, {"group", int64(e.Group)},
			{"count", int64(e.Count)}} {
			if x.n != 0 {
				line += fmt.Sprintf(" %s %d", x.name, x.n)
			}
		}
		if e.Name != "" {
			line += " " + e.Name
		}
		if e.Old != "" || e.New != "" {
			line += fmt.Sprintf(" from %q to %q", e.Old, e.New)
		}
		lines, last = append(lines, line), e.ID
	}
	return lines, last
}

// A story of permissions is explained line by line, with the author, time and login of each change.
func TestAuditLogExplainsPermissions(t *testing.T) {
	s := New(t)
	Do(s, System, realm.CreateFirstChannels{})
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	_, last := auditLines(t, s, 0)
	send := func(u realm.UserID, text string) realm.MessageID {
		t.Helper()
		return Do(s, u, realm.SendMessage{ToChannel: true, ChannelName: "general", Topic: "plans",
			Body: realm.Body{Text: text}}).ID
	}
	at, role, name, text := s.Now, realm.Moderator, "Ann of the moon", "About the moon"
	Do(s, olive, realm.EditUser{User: ann, Role: &role, Name: &name})
	s.Advance(60)
	Do(s, olive, realm.DeleteMessage{Message: send(ann, "secret words")})
	Do(s, olive, realm.DeleteMessage{Message: send(olive, "my words")})
	Do(s, olive, realm.ChangeOrganization{Description: &text})
	Do(s, olive, realm.SetAuditDays{Days: 30})
	Do(s, olive, realm.AddKey{User: olive, Label: "private label"})
	Do(s, olive, realm.DeactivateUser{User: bo})
	DoAs(s, realm.Operator, realm.Grant{User: ann, CreateUsers: true})
	RunTurn(s, System, func(t *realm.Turn) (any, error) { return realm.NoteFailedLogin{User: ann}.Decide(t) })
	lines, _ := auditLines(t, s, last)
	rights := `from "create-users=false change-emails=false" to "create-users=true change-emails=false"`
	want := []string{
		fmt.Sprintf(`%d user.name by %d via key: user %d`, at, olive, ann),
		fmt.Sprintf(`%d user.role by %d via key: user %d from "role 400" to "role 300"`, at, olive, ann),
		fmt.Sprintf(`%d message.delete by %d via key: channel 1 count 1`, at+60, olive),
		fmt.Sprintf(`%d organization.setting by %d via key: description from "" to "About the moon"`, at+60, olive),
		fmt.Sprintf(`%d retention.audit by %d via key: from "365" to "30"`, at+60, olive),
		fmt.Sprintf(`%d key.add by %d via key: user %d from "" to "key 1"`, at+60, olive, olive),
		fmt.Sprintf(`%d user.deactivate by %d via key: user %d`, at+60, olive, bo),
		fmt.Sprintf(`%d user.rights by 0 via operator: user %d %s`, at+60, ann, rights),
		fmt.Sprintf(`%d login.failed by 0 via server: user %d`, at+60, ann),
	}
	slices.Sort(lines)
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("the log explains\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// Only owners and the operator read the log and say how long it is kept. Older entries are not shown, and removed when
// entries are added.
func TestAuditLogReadersAndRetention(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	for _, role := range []realm.Role{realm.Administrator, realm.Moderator, realm.Member, realm.Guest} {
		u := s.Join(fmt.Sprint("user", role), role)
		if _, _, err := s.ViewAs(u).AuditLog(realm.AuditFilter{}); err == nil {
			t.Errorf("role %d reads the audit log", role)
		}
		ExpectRefusal(s, u, realm.SetAuditDays{Days: 1}, "Must be an organization owner")
	}
	ExpectRefusal(s, olive, realm.SetAuditDays{Days: 0}, "retention_days must be between 1 and 3650")
	ExpectRefusal(s, olive, realm.SetAuditDays{Days: realm.MaxAuditDays + 1},
		"retention_days must be between 1 and 3650")
	Do(s, olive, realm.SetAuditDays{Days: 2})
	s.Advance(3 * 24 * 3600)
	if lines, _ := auditLines(t, s, 0); len(lines) != 0 {
		t.Errorf("the log shows entries of three days ago: %v", lines)
	}
	Do(s, olive, realm.AddKey{User: olive, Label: "key"})
	Do(s, olive, realm.SetAuditDays{Days: 365})
	if lines, _ := auditLines(t, s, 0); len(lines) != 2 || !strings.Contains(lines[len(lines)-1], "retention.audit") {
		t.Errorf("the log is %v", lines)
	}
	entries, more, err := s.ViewAs(olive).AuditLog(realm.AuditFilter{Kind: "retention", By: olive, Limit: 1})
	if err != nil || more || len(entries) != 1 || entries[0].New != "365" {
		t.Errorf("the newest change of the retention is %v, %t, %v", entries, more, err)
	}
}

// An erased person leaves their number and no address.
func TestErasureLeavesPseudonymInAuditLog(t *testing.T) {
	s := New(t)
	s.Join("Olive", realm.Owner)
	ann := s.Join("Ann", realm.Owner)
	DoAs(s, realm.Caller{User: ann, Client: "website", Address: "192.0.2.7"}, realm.SetAuditDays{Days: 100})
	find := func() realm.NumberedEntry {
		entries, _, err := s.ViewAs(System).AuditLog(realm.AuditFilter{Kind: "retention.audit", Limit: 1})
		if err != nil || len(entries) != 1 {
			t.Fatal(entries, err)
		}
		return entries[0]
	}
	if e := find(); e.By != ann || e.Address != "192.0.2.7" || e.Client != "website" {
		t.Errorf("before the erasure: %+v", e)
	}
	Do(s, System, realm.EraseUser{User: ann})
	if e := find(); e.By != ann || e.Address != "" || e.Client != "" {
		t.Errorf("after the erasure: %+v", e)
	}
}

// In a cluster of two releases nothing is recorded that the older one does not know.
func TestAuditLogNeedsItsLevel(t *testing.T) {
	r := realm.New(1)
	run := func(level uint16, cmd realm.Command[realm.Done]) error {
		_, _, _, err := realm.RunTurn(r, realm.System, realm.TurnEnv{Level: level, Now: 1,
			UUID: func() string { return "" }, Token: func(int) string { return "t" }}, cmd.Decide)
		return err
	}
	if err := run(3, realm.FoundRealm{Name: "Old"}); err != nil {
		t.Fatal(err)
	}
	if err := run(3, realm.CloseRealm{}); err != nil {
		t.Fatal(err)
	}
	if entries, _, _ := r.ViewAs(realm.System, 1).AuditLog(realm.AuditFilter{Limit: 10}); len(entries) != 0 {
		t.Errorf("entries at the level before: %v", entries)
	}
	if err := run(3, realm.SetAuditDays{Days: 1}); err == nil {
		t.Error("the retention of the log was set at the level before")
	}
}

// The change of any setting has an entry, wherever the setting is stored: in the table of settings, in a field of its
// own, or in neither.
func TestAuditOfEverySetting(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	values := map[string]any{"name": "Otters", "description": "new", realm.PasswordLoginSetting: false, "no_table": 1}
	for _, x := range realm.OrgSettings {
		values[x.Name] = s.Realm.OrgSetting(x.Name)
	}
	_, last := auditLines(t, s, 0)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		RunTurn(s, olive, func(turn *realm.Turn) (any, error) {
			turn.Record(&realm.OrganizationChanged{Setting: name, Value: values[name]})
			return nil, nil
		})
		var lines []string
		if name == realm.PasswordLoginSetting {
			name = "authentication_methods"
		}
		if lines, last = auditLines(t, s, last); len(lines) != 1 || !strings.Contains(lines[0]+" ", " "+name+" ") {
			t.Errorf("%s: entries %q", name, lines)
		}
	}
}
