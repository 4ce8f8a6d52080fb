package server

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"parley/actors/realm"
)

// settingValue is a value of a permission setting and the users that it contains.
type settingValue struct {
	name   string
	set    any
	names  []string
	system string // the system group, if it is one: some settings reject some groups
	guests bool   // the setting allows guests: otherwise a guest has no right, even if the value contains the guest
}

func (v settingValue) means(p *matrixUser) bool {
	return slices.Contains(v.names, p.name) && (v.guests || !p.isGuest())
}

// permissionSetting is a setting and an action that it controls.
type permissionSetting struct {
	setting          string
	nobody, everyone bool // whether the setting accepts these groups
	ask              func(p *matrixUser) reply
	want             func(p *matrixUser, v settingValue) string
}

// onlyMembers allows only the users of the value; the others get the given error.
func onlyMembers(otherwise string) func(*matrixUser, settingValue) string {
	return func(p *matrixUser, v settingValue) string {
		if v.means(p) {
			return ""
		}
		return otherwise
	}
}

// membersOr also allows users whatever the setting is.
func membersOr(may func(*matrixUser) bool, otherwise string) func(*matrixUser, settingValue) string {
	return func(p *matrixUser, v settingValue) string {
		if may(p) {
			return ""
		}
		return onlyMembers(otherwise)(p, v)
	}
}

// first refuses a class of callers before the setting is looked at.
func first(class expectedError, then func(*matrixUser, settingValue) string) func(*matrixUser, settingValue) string {
	return func(p *matrixUser, v settingValue) string { return cmp.Or(class(p), then(p, v)) }
}

func noGuest(p *matrixUser) string {
	if p.isGuest() {
		return noGuests
	}
	return ""
}

// matrixPermissionSettings sets each permission to every kind of value and has every user do the action: system groups,
// including full members after the waiting period, a custom group, nested groups, single users, no user.
func matrixPermissionSettings(t *testing.T, l *coverage) {
	s := &rightsStage{matrixStage: newMatrixStage(t, l)}
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	s.people = slices.DeleteFunc(s.people, func(p *matrixUser) bool { return p.name == "gone" })
	s.extra = s.join(ours, ourHost, "extra", realm.Guest, 0, 0)
	// The users of the values: member and guest directly or in a group, newcomer in a group within that group.
	chosen := []int64{s.by["member"].id, s.by["guest"].id}
	group := func(name string, members []int64, below ...int64) int64 {
		return s.must(s.keeper, "POST", "/user_groups/create", "name", name, "description", "", "members", members,
			"subgroups", append([]int64{}, below...)).int("group_id")
	}
	inner := group("inner", []int64{s.by["newcomer"].id})
	outer := group("outer", chosen, inner)
	shut := group("shut", chosen)
	s.must(s.keeper, "POST", fmt.Sprintf("/user_groups/%d/deactivate", shut))
	seniors := group("seniors", []int64{}, s.groups["role:fullmembers"])
	const margin = 200  // more groups than are created below
	foreign := int64(0) // a group of the other organization, with an id that no group here has
	for n := 0; foreign <= seniors+margin; n++ {
		foreign = s.must(s.outsider, "POST", "/user_groups/create", "name", fmt.Sprint("foreign ", n), "description",
			"", "members", []int64{}).int("group_id")
	}
	roles := []string{"owner", "admin", "moderator"}
	full := append(slices.Clone(roles), "member", "bot")
	byName := func(members []int64, groups ...int64) map[string]any {
		return map[string]any{"direct_members": append([]int64{}, members...),
			"direct_subgroups": append([]int64{}, groups...)}
	}
	s.values = []settingValue{
		{name: "no user", set: byName(nil), system: "role:nobody"},
		{name: "a group within a group", set: outer, names: []string{"member", "guest", "newcomer"}},
		{name: "full members within a group", set: seniors, names: full},
		{name: "people by name", set: byName(chosen), names: []string{"member", "guest"}},
		{name: "people by name, and a group", set: byName([]int64{s.by["bot"].id}, inner),
			names: []string{"bot", "newcomer"}},
		{name: "people by name, and full members",
			set:   byName([]int64{s.by["newcomer"].id}, s.groups["role:fullmembers"]),
			names: append(slices.Clone(full), "newcomer")},
	}
	for name, who := range map[string][]string{
		"role:nobody": nil, "role:owners": roles[:1], "role:administrators": roles[:2], "role:moderators": roles,
		"role:fullmembers": full,
		"role:members":     append(slices.Clone(full), "newcomer"),
		"role:everyone":    append(slices.Clone(full), "newcomer", "guest"), "role:internet": nil,
	} {
		s.values = append(s.values, settingValue{name: name, set: s.groups[name], names: who, system: name})
	}
	slices.SortStableFunc(s.values, func(a, b settingValue) int { return cmp.Compare(a.name, b.name) })
	s.invalid = []struct {
		name   string
		set    any
		reason string
	}{
		{"a group of another organization", foreign, "Invalid user group"},
		{"what is within a group of another organization", byName(nil, foreign, inner),
			fmt.Sprintf("Invalid user group ID: %d", foreign)},
		{"a group out of use", shut, "User group is deactivated."},
		{"what is within a group out of use", byName(nil, shut, inner), "User group is deactivated."},
		{"users that do not exist", byName([]int64{missingID}), fmt.Sprintf("Invalid user ID: %d", missingID)},
	}
	home, target := s.targetChannel(), s.channel("target", s.people, false)
	for _, q := range s.ofOrganization(home, target) {
		before := s.must(s.keeper, "POST", "/register", "fetch_event_types", []string{"realm"}).body["realm_"+q.setting]
		s.checkSetting("/realm", q)
		s.must(s.keeper, "PATCH", "/realm", q.setting, map[string]any{"new": before})
	}
	// Permissions of channels are added to those of the organization, which are given to no user here.
	for _, setting := range []string{"can_resolve_topics_group", "can_delete_any_message_group",
		"can_delete_own_message_group", "can_move_messages_between_topics_group",
		"can_move_messages_between_channels_group", "can_add_subscribers_group"} {
		s.must(s.keeper, "PATCH", "/realm", setting, map[string]any{"new": s.groups["role:nobody"]})
	}
	for _, setting := range []string{"can_send_message_group", "can_create_topic_group", "can_resolve_topics_group",
		"can_delete_any_message_group", "can_delete_own_message_group", "can_move_messages_within_channel_group",
		"can_move_messages_out_of_channel_group", "can_add_subscribers_group", "can_remove_subscribers_group",
		"can_subscribe_group", "can_administer_channel_group"} {
		hidden := setting == "can_subscribe_group"
		who := s.people
		if hidden { // members of the channel need no permission
			who = nil
		}
		id := s.channel(setting, who, hidden)
		s.checkSetting(fmt.Sprintf("/streams/%d", id), s.ofChannel(setting, id, target))
	}
	s.summary()
}

// rightsStage is the stage of the table of permission settings.
type rightsStage struct {
	*matrixStage
	values  []settingValue
	invalid []struct { // values that no setting accepts
		name   string
		set    any
		reason string
	}
	extra *matrixUser // a guest for other users to act on
	n     int         // number of things created so far
}

// channel creates a channel with these members.
func (s *rightsStage) channel(name string, who []*matrixUser, private bool) int64 {
	in := []int64{s.keeper.id}
	for _, p := range who {
		in = append(in, p.id)
	}
	return s.must(s.keeper, "POST", "/channels/create", "name", name, "subscribers", in, "invite_only", private,
		"send_new_subscription_messages", false).int("id")
}

// checkSetting sets a permission to every value and has every user do the action.
func (s *rightsStage) checkSetting(where string, q permissionSetting) {
	s.Helper()
	for _, v := range s.invalid {
		s.check(s.call(s.keeper, "PATCH", where, q.setting, map[string]any{"new": v.set}).msg(), v.reason,
			"%s: sets %s to %s", "keeper", q.setting, v.name)
	}
	for _, v := range s.values {
		v.guests = q.everyone
		m := s.call(s.keeper, "PATCH", where, q.setting, map[string]any{"new": v.set}).msg()
		if v.system == "role:internet" || v.system == "role:nobody" && !q.nobody || v.system == "role:everyone" &&
			!q.everyone {
			s.check(m, fmt.Sprintf("'%s' setting cannot be set to '%s' group.", q.setting, v.system),
				"%s: sets %s to %s", "keeper", q.setting, v.name)
			continue
		}
		s.check(m, "", "%s: sets %s to %s", "keeper", q.setting, v.name)
		for _, p := range s.people {
			s.checkAnswer(s.question(q.setting), q.ask(p).msg(), q.want(p, v), "%s: %s is %s", p.name, q.setting,
				v.name)
		}
	}
}

// another returns a new number.
func (s *rightsStage) another() int { s.n++; return s.n }

// post starts a topic as a user.
func (s *rightsStage) post(p *matrixUser, channel int64) int64 {
	s.Helper()
	return s.must(p, "POST", "/messages", "type", "channel", "to", channel, "topic", fmt.Sprint("topic ", s.another()),
		"content", "x").int("id")
}

func (s *rightsStage) onMessage(p *matrixUser, method string, id int64, params ...any) reply {
	return s.call(p, method, fmt.Sprintf("/messages/%d", id), params...)
}

// Refusals of changes to messages.
const (
	noDeletion = "You don't have permission to delete this message"
	noEditing  = "You don't have permission to edit this message"
	noMoving   = "You don't have permission to move this message"
	noSolving  = "You don't have permission to resolve topics."
)

func (s *rightsStage) ofOrganization(home, target int64) []permissionSetting {
	makes := func(method, path string, params func(n int) pairs) func(*matrixUser) reply {
		return func(p *matrixUser) reply { return s.call(p, method, path, params(s.another())...) }
	}
	channel := func(private bool) func(*matrixUser) reply {
		return makes("POST", "/channels/create", func(n int) pairs {
			return pairs{"name", fmt.Sprint("channel ", n), "subscribers", []int64{}, "invite_only", private}
		})
	}
	crowd := s.channel("crowd", s.people, false)
	var many []int64
	for n := range 16 {
		many = append(many, s.join(ours, ourHost, fmt.Sprint("one of many ", n), realm.Member, 0, 0).id)
	}
	s.must(s.keeper, "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]string{"name": "crowd"}},
		"principals", many)
	policies := s.channel("policies", s.people, false) // with all users as administrators
	var all []int64
	for _, p := range s.people {
		all = append(all, p.id)
	}
	s.must(s.keeper, "PATCH", fmt.Sprintf("/streams/%d", policies), "can_administer_channel_group",
		map[string]any{"new": map[string]any{"direct_members": all, "direct_subgroups": []int64{}}})
	managed := s.must(s.keeper, "POST", "/user_groups/create", "name", "managed", "description", "", "members",
		[]int64{}).int("group_id")
	return []permissionSetting{
		{"can_create_public_channel_group", true, false, channel(false), first(noGuest, onlyMembers(noPermission))},
		{"can_create_private_channel_group", true, false, channel(true), first(noGuest, onlyMembers(noPermission))},
		{"can_add_custom_emoji_group", true, false, func(p *matrixUser) reply {
			return s.call(p, "POST", fmt.Sprintf("/realm/emoji/emoji%d", s.another()), "file", picture)
		}, first(members, onlyMembers(noPermission))},
		{"can_create_groups", true, false, makes("POST", "/user_groups/create", func(n int) pairs {
			return pairs{"name", fmt.Sprint("group ", n), "description", "", "members", []int64{}}
		}), first(members, onlyMembers(noPermission))},
		{"can_manage_all_groups", false, false,
			makes("PATCH", fmt.Sprintf("/user_groups/%d", managed),
				func(n int) pairs { return pairs{"description", fmt.Sprint(n)} }),
			first(members, onlyMembers(noPermission))},
		{"can_create_bots_group", true, false, makes("POST", "/bots", func(n int) pairs {
			return pairs{"full_name", fmt.Sprint("Robot ", n), "short_name", fmt.Sprint("robot", n)}
		}), first(members, onlyMembers(noPermission))},
		{"can_invite_users_group", true, false, makes("POST", "/invites", func(n int) pairs {
			return pairs{"invitee_emails", fmt.Sprintf("r%d@a.example", n), "stream_ids", []int64{}}
		}), first(inviters, onlyMembers(noPermission))},
		{"create_multiuse_invite_group", true, false,
			makes("POST", "/invites/multiuse", func(int) pairs { return nil }),
			first(inviters, onlyMembers(noPermission))},
		{"can_add_subscribers_group", true, false, s.adding("target"),
			first(noGuest, membersOr((*matrixUser).isAdmin, noPermission))},
		{"can_set_delete_message_policy_group", true, false, func(p *matrixUser) reply {
			at, name, to := fmt.Sprintf("/streams/%d", policies), "can_delete_own_message_group",
				s.groups["role:nobody"]
			// an unchanged value needs no permission
			if now, _ := s.must(s.keeper, "GET", at).body["stream"].(map[string]any); num(now[name]) == to {
				to = s.groups["role:owners"]
			}
			return s.call(p, "PATCH", at, name, map[string]any{"new": to})
		}, first(func(p *matrixUser) string {
			if p.isGuest() {
				return noAdministration
			}
			return ""
		}, membersOr((*matrixUser).isAdmin, noPermission))},
		{"can_move_messages_between_topics_group", true, true, func(p *matrixUser) reply {
			return s.onMessage(p, "PATCH", s.post(s.keeper, home), "topic", fmt.Sprint("moved ", s.n))
		}, onlyMembers(noEditing)},
		{"can_move_messages_between_channels_group", true, false, func(p *matrixUser) reply {
			return s.onMessage(p, "PATCH", s.post(s.keeper, home), "stream_id", target)
		}, onlyMembers(noMoving)},
		{"can_resolve_topics_group", true, true, s.resolving(home), onlyMembers(noSolving)},
		{"can_delete_any_message_group", true, false,
			func(p *matrixUser) reply { return s.onMessage(p, "DELETE", s.post(s.keeper, home)) },
			onlyMembers(noDeletion)},
		// Users who may delete all messages need no permission for their own.
		{"can_delete_own_message_group", true, true,
			func(p *matrixUser) reply { return s.onMessage(p, "DELETE", s.post(p, home)) },
			membersOr((*matrixUser).isAdmin, noDeletion)},
		{"can_mention_many_users_group", true, true, makes("POST", "/messages", func(int) pairs {
			return pairs{"type", "channel", "to", crowd, "topic", "x", "content", "@**all**"}
		}), onlyMembers("You do not have permission to use channel wildcard mentions in this channel.")},
		// Bots may write to every user.
		{"direct_message_initiator_group", true, true, func(p *matrixUser) reply {
			who := s.join(ours, ourHost, fmt.Sprint("partner ", s.another()), realm.Member, 0, 0)
			return s.call(p, "POST", "/messages", "type", "direct", "to", []int64{who.id}, "content", "x")
		}, membersOr(isBot, "You do not have permission to initiate direct message conversations.")},
		{"direct_message_permission_group", true, true, func(p *matrixUser) reply {
			return s.call(p, "POST", "/messages", "type", "direct", "to", []int64{s.extra.id}, "content", "x")
		}, func(p *matrixUser, v settingValue) string {
			refused := "This conversation does not include any users who can authorize it."
			if v.system == "role:nobody" {
				refused = "Direct messages are disabled in this organization."
			}
			return membersOr(isBot, refused)(p, v)
		}},
	}
}

func isBot(p *matrixUser) bool { return p.name == "bot" }

// adding returns an action: a user subscribes another user.
func (s *rightsStage) adding(channel string) func(*matrixUser) reply {
	return func(p *matrixUser) reply {
		s.must(s.keeper, "DELETE", "/users/me/subscriptions", "subscriptions", []string{channel}, "principals",
			[]int64{s.extra.id})
		return s.call(p, "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]string{"name": channel}},
			"principals", []int64{s.extra.id})
	}
}

func (s *rightsStage) resolving(channel int64) func(*matrixUser) reply {
	return func(p *matrixUser) reply {
		id := s.post(s.keeper, channel)
		return s.onMessage(p, "PATCH", id, "topic", fmt.Sprintf("✔ topic %d", s.n), "propagate_mode", "change_all")
	}
}

// ofChannel returns the action that a setting of a channel controls. The channel has the name of the setting; the
// keeper has created it, so only the keeper and administrators can administer it.
func (s *rightsStage) ofChannel(setting string, id, target int64) permissionSetting {
	q := permissionSetting{setting: setting, nobody: true, everyone: true}
	kept := s.post(s.keeper, id)
	// A bot may send where its owner may.
	writes := func(otherwise string) func(*matrixUser, settingValue) string {
		return func(p *matrixUser, v settingValue) string {
			if isBot(p) && v.means(s.by["member"]) {
				return ""
			}
			return onlyMembers(otherwise)(p, v)
		}
	}
	switch setting {
	case "can_send_message_group":
		old := fmt.Sprint("topic ", s.n)
		q.ask = func(p *matrixUser) reply {
			return s.call(p, "POST", "/messages", "type", "channel", "to", id, "topic", old, "content", "x")
		}
		q.want = writes("You do not have permission to post in this channel.")
	case "can_create_topic_group":
		q.ask = func(p *matrixUser) reply {
			return s.call(p, "POST", "/messages", "type", "channel", "to", id, "topic",
				fmt.Sprint("topic ", s.another()), "content", "x")
		}
		q.want = writes("You do not have permission to create new topics in this channel.")
	case "can_resolve_topics_group":
		q.ask, q.want = s.resolving(id), onlyMembers(noSolving)
	case "can_delete_any_message_group":
		q.ask, q.want = func(p *matrixUser) reply { return s.onMessage(p, "DELETE", s.post(s.keeper, id)) },
			onlyMembers(noDeletion)
	case "can_delete_own_message_group":
		q.ask, q.want = func(p *matrixUser) reply { return s.onMessage(p, "DELETE", s.post(p, id)) },
			onlyMembers(noDeletion)
	case "can_move_messages_within_channel_group":
		q.ask = func(p *matrixUser) reply {
			return s.onMessage(p, "PATCH", kept, "topic", fmt.Sprint("moved ", s.another()))
		}
		q.want = onlyMembers(noEditing)
	case "can_move_messages_out_of_channel_group":
		q.ask = func(p *matrixUser) reply { return s.onMessage(p, "PATCH", s.post(s.keeper, id), "stream_id", target) }
		q.want = onlyMembers(noMoving)
	case "can_add_subscribers_group":
		q.everyone = false
		q.ask, q.want = s.adding(setting), first(noGuest, membersOr((*matrixUser).isAdmin, noPermission))
	case "can_remove_subscribers_group":
		q.ask = func(p *matrixUser) reply {
			s.must(s.keeper, "POST", "/users/me/subscriptions", "subscriptions",
				[]any{map[string]string{"name": setting}}, "principals", []int64{s.extra.id})
			return s.call(p, "DELETE", "/users/me/subscriptions", "subscriptions", []string{setting}, "principals",
				[]int64{s.extra.id})
		}
		q.want = membersOr((*matrixUser).isAdmin, noPermission)
	case "can_subscribe_group":
		q.everyone = false
		q.ask = func(p *matrixUser) reply {
			r := s.call(p, "POST", "/users/me/subscriptions", "subscriptions",
				[]any{map[string]string{"name": setting}})
			s.must(s.keeper, "DELETE", "/users/me/subscriptions", "subscriptions", []string{setting}, "principals",
				[]int64{p.id})
			return r
		}
		q.want = first(noGuest, onlyMembers("Unable to access channel ("+setting+")."))
	case "can_administer_channel_group":
		q.everyone = false
		q.ask = func(p *matrixUser) reply {
			return s.call(p, "PATCH", fmt.Sprintf("/streams/%d", id), "description", fmt.Sprint(s.another()))
		}
		q.want = membersOr((*matrixUser).isAdmin, noAdministration)
	}
	return q
}
