package realm

import (
	"strings"
)

// ChangeOrganization asks to change the organization's settings.
type ChangeOrganization struct {
	Values          []SettingValue
	Groups          []GroupChange
	Name            *string
	Description     *string
	DescriptionHTML string
	Passwords       *bool // log people in; nothing else does
}

// Lengths in code points (protocol).
const (
	maxOrgName        = 40
	maxOrgDescription = 1000
	maxVideoServer    = 200
)

func (c ChangeOrganization) Decide(t *Turn) (Done, error) {
	me, err := t.Admin()
	if err != nil {
		return Done{}, err
	}
	switch {
	case c.Passwords == nil:
	case me.Role != Owner:
		return Done{}, errOwner()
	case !*c.Passwords:
		return Done{}, Bad("At least one authentication method must be enabled.")
	}
	f := &OrganizationChanged{}
	var facts []Fact
	for _, v := range c.Values {
		if orgSettings[v.Name].Owner && me.Role != Owner {
			return Done{}, errOwner()
		}
		if err := t.checkOrgSetting(v); err != nil {
			return Done{}, err
		}
		if t.OrgSetting(v.Name) != v.Value {
			f := &OrganizationChanged{Setting: v.Name, Value: v.Value}
			if v.Name == "waiting_period_threshold" {
				f.At = t.Now
				f.Full, f.Waits = t.fullBy(v.Value.(int64))
			}
			facts = append(facts, f)
		}
	}
	for _, g := range c.Groups {
		v, err := t.resettle(orgGroups[g.Name], t.OrgGroup(g.Name), g)
		if err != nil {
			return Done{}, err
		}
		if g.Name == "can_create_groups" || g.Name == "can_invite_users_group" || g.Name == "can_manage_all_groups" {
			if me.Role != Owner {
				return Done{}, errOwner()
			}
		}
		if !v.equal(t.OrgGroup(g.Name)) {
			facts = append(facts, &OrganizationChanged{Setting: g.Name, Group: &v})
		}
	}
	if c.Name != nil {
		name := strings.TrimSpace(*c.Name)
		switch {
		case name == "":
			return Done{}, Bad("name cannot be blank")
		case length(name) > maxOrgName:
			return Done{}, Bad("name is too long (limit: %d characters)", maxOrgName)
		}
		if name != t.Org().Name {
			facts = append(facts, &OrganizationChanged{Setting: "name", Value: name})
		}
	}
	if c.Description != nil && *c.Description != t.Org().Description {
		if length(*c.Description) > maxOrgDescription {
			return Done{}, Bad("description is too long (limit: %d characters)", maxOrgDescription)
		}
		f.Setting, f.Value, f.HTML = "description", *c.Description, c.DescriptionHTML
		facts = append(facts, f)
	}
	for _, f := range facts {
		if o := f.(*OrganizationChanged); len(o.Full)+len(o.Waits) > 0 {
			t.keepSight(func() { t.Record(f) })
			continue
		}
		t.Record(f)
	}
	return Done{}, nil
}

func (t *Turn) checkOrgSetting(v SettingValue) error {
	switch v.Name {
	case "message_content_edit_limit_seconds", "message_content_delete_limit_seconds", "move_messages_within_stream_limit_seconds", "move_messages_between_streams_limit_seconds":
		if n, ok := v.Value.(int64); ok && n <= 0 {
			return badSetting(v)
		}
	case "message_retention_days":
		if n := v.Value.(int64); n < 1 && n != -1 {
			return badSetting(v)
		}
	case "waiting_period_threshold":
		if v.Value.(int64) < 0 {
			return Bad("waiting_period_threshold is too small")
		}
	case "new_stream_announcements_stream_id", "signup_announcements_stream_id", "zulip_update_announcements_stream_id":
		if n := v.Value.(int64); n != -1 {
			if c := t.chans.find(ChannelID(n)); c == nil || c.Archived || !t.hasContent(t.Me(), c) {
				return errChannelID()
			}
		}
	case "moderation_request_channel_id":
		if n := v.Value.(int64); n != -1 {
			c := t.chans.find(ChannelID(n))
			if c == nil || c.Archived || !t.hasMetadata(t.Me(), c) {
				return errChannelID()
			}
			if !c.Private {
				return Bad("Moderation request channel must be private.")
			}
		}
	case "default_language":
		if _, ok := Languages[v.Value.(string)]; !ok {
			return Bad("Invalid language '%s'", v.Value)
		}
	case "jitsi_server_url":
		if s, ok := v.Value.(string); ok && (!webAddress(s) || length(s) > maxVideoServer) {
			return Bad("jitsi_server_url is not an allowed_type")
		}
	case "video_chat_provider":
		if n := v.Value.(int64); n != 0 && n != 1 {
			return Bad("Invalid video_chat_provider %d", n)
		}
	case "gif_rating_policy":
		if n := v.Value.(int64); n < 0 || n > 4 {
			return Bad("Invalid gif_rating_policy %d", n)
		}
	}
	return nil
}

func badSetting(v SettingValue) error {
	return Refuse(Invalid, "REQUEST_VARIABLE_INVALID", "Bad value for '"+v.Name+"': "+valueText(v.Value)).With("var_name", v.Name).With("bad_value", v.Value)
}

func valueText(v any) string {
	if n, ok := v.(int64); ok {
		return UserID(n).String()
	}
	s, _ := v.(string)
	return s
}

// OrganizationChanged says one setting of the organization is another one now: a value, or a permission's group.
type OrganizationChanged struct {
	Setting string
	Value   any
	Group   *GroupValue
	HTML    string   // of the description
	Full    []UserID // with waiting_period_threshold: who is listed as a full member by it,
	Waits   []UserID // and who is not any more,
	At      int64    // and when; 0 in older journals
}

func (f *OrganizationChanged) apply(r *Realm) {
	o := r.org.change(0)
	switch {
	case f.Group != nil:
		o.GroupSettings[f.Setting] = *f.Group
	case f.Setting == "name":
		o.Name, _ = f.Value.(string)
	case f.Setting == "description":
		o.Description, _ = f.Value.(string)
		o.DescriptionHTML = f.HTML
	default:
		o.Settings[f.Setting] = plain(f.Value)
	}
	o.FullAt = max(o.FullAt, f.At)
}

func (f *OrganizationChanged) tell(r *Realm) []Notice {
	to := r.everyone()
	e := *f
	if f.Group != nil {
		shown := r.Shown(*f.Group)
		e.Group = &shown
	}
	out := []Notice{{To: to, Event: &e}}
	if len(f.Full) > 0 && len(to) > 0 {
		out = append(out, Notice{To: to, Event: &GroupMembersChanged{Group: groupFullMembers, Joined: true, Users: f.Full}})
	}
	if len(f.Waits) > 0 && len(to) > 0 {
		out = append(out, Notice{To: to, Event: &GroupMembersChanged{Group: groupFullMembers, Users: f.Waits}})
	}
	return out
}

func (*OrganizationChanged) EventType() string { return "realm" }
