package server

import (
	"fmt"
	"slices"
	"testing"

	"parley/actors/realm"
)

// ownerSettings are the settings that only owners may change. All other settings of an organization are open to its
// administrators.
var ownerSettings = []string{
	"assistant_enabled",
	"allow_browser_push", "allow_external_pictures", "allow_livekit_calls", "allow_message_emails", "allow_mobile_push",
	"allow_outgoing_webhooks",
	"can_create_groups", "can_invite_users_group", "can_manage_all_groups", "can_manage_billing_group",
	"create_multiuse_invite_group", "disallow_disposable_email_addresses", "emails_restricted_to_domains",
	"invite_required", "meaning_search_enabled", "message_retention_days", "waiting_period_threshold",
}

// matrixSettings asks every setting of the organization as every role: with the value that it has, so that no refusal
// of a value hides that of the role.
func matrixSettings(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	values := map[string]any{}
	for _, x := range realm.OrgSettings {
		if x.Hidden {
			continue
		}
		values[x.Name] = x.Default
		switch {
		case x.Default == nil:
			values[x.Name] = "default"
		case x.Name == "message_retention_days":
			values[x.Name] = `"unlimited"`
		}
	}
	now := s.must(s.keeper, "POST", "/register", "fetch_event_types", []string{"realm"}).body
	for _, x := range realm.OrgGroupSettings {
		values[x.Name] = map[string]any{"new": now["realm_"+x.Name]}
	}
	for name, value := range values {
		for _, p := range append(s.people, s.outsiders()...) {
			want := loginError(p, false)
			if want == "" && !p.isVisitor() {
				want = admins(p)
			}
			if want == "" && slices.Contains(ownerSettings, name) {
				want = owners(p)
			}
			s.check(s.call(p, "PATCH", "/realm", name, value).msg(), want, "%s: setting %s", p.name, name)
		}
	}
	s.summary()
}

// rankedBot is a bot whose rank the matrix varies.
type rankedBot struct {
	name   string
	role   realm.Role
	grants realm.Grant
}

// matrixBotRanks asks all users to manage bots of every rank. Each of the bots belongs to the member.
func matrixBotRanks(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	system := realm.Caller{System: true, Client: "Internal"}
	bots := []rankedBot{
		{"owner bot", realm.Owner, realm.Grant{}}, {"administrator bot", realm.Administrator, realm.Grant{}},
		{"moderator bot", realm.Moderator, realm.Grant{}}, {"member bot", realm.Member, realm.Grant{}},
		{
			"guest bot",
			realm.Guest,
			realm.Grant{},
		}, {"bot that creates users", realm.Member, realm.Grant{CreateUsers: true}},
		{"bot that changes emails", realm.Member, realm.Grant{ChangeEmails: true}},
	}
	rank := map[string]realm.Role{"owner": realm.Owner, "admin": realm.Administrator, "member": realm.Member}
	requests := []struct {
		method, path string
		params       pairs
		adminsOnly   bool // not even the owner of the bot
	}{
		{"PATCH", "/bots/%d", pairs{"full_name", "Robot #"}, false},
		{"PATCH", "/bots/%d", pairs{"bot_owner_id", s.by["member"].id}, false},
		{"PATCH", "/bots/%d", pairs{"role", 300}, true},
		{"PATCH", "/users/%d", pairs{"full_name", "Robot too #"}, true},
		{"GET", "/bots/%d/api_key", nil, false},
		{"POST", "/bots/%d/api_key/regenerate", nil, false},
		{"GET", "/users/%d/api_keys", nil, false},
		{"POST", "/users/%d/api_keys", pairs{"label", "script"}, false},
		{"DELETE", "/bots/%d", nil, false},
		{"POST", "/users/%d/reactivate", nil, false},
	}
	n := 0
	for _, b := range bots {
		for _, p := range append(s.people, s.outsiders()...) {
			for _, q := range requests {
				n++
				bot := s.join(ours, ourHost, fmt.Sprintf("robot %d", n), b.role, realm.GenericBot, s.by["member"].id)
				grants := b.grants
				grants.User = realm.UserID(bot.id)
				if _, err := realm.Execute(s.orgs, ours, system, grants); err != nil {
					t.Fatal(err)
				}
				if q.path == "/users/%d/reactivate" {
					gone := realm.DeactivateUser{User: realm.UserID(bot.id), Bot: true}
					if _, err := realm.Execute(s.orgs, ours, system, gone); err != nil {
						t.Fatal(err)
					}
				}
				want := loginError(p, false)
				if want == "" && !p.isVisitor() {
					want = botRefusal(p, rank[p.name], b, q.adminsOnly)
				}
				r := s.call(p, q.method, fmt.Sprintf(q.path, bot.id), with(q.params...)(s, n)...)
				call := q.method + " " + q.path
				s.checkAnswer(s.question(call), r.msg(), want, "%s: %s of the %s", p.name, call, b.name)
			}
		}
	}
	s.summary()
}

// botRefusal returns the refusal that a user of a role gets who manages a bot. The users that may manage none have no
// role here.
func botRefusal(p *matrixUser, role realm.Role, b rankedBot, adminsOnly bool) string {
	switch {
	case role == 0, adminsOnly && role > realm.Administrator:
		return noPermission
	case b.role == realm.Owner && role == realm.Administrator:
		return ownersOnly
	case b.role < role, b.grants.CreateUsers, b.grants.ChangeEmails:
		return noPermission
	}
	return ""
}
