package realm

import (
	"math"
	"strings"
)

// ChangeOrganization asks to change settings of the organization. Values come first, then groups, name and
// description. All checks come before the first change.
type ChangeOrganization struct {
	Values          []SettingValue
	Groups          []GroupChange
	Name            *string
	Description     *string
	DescriptionHTML string
	Passwords       *bool // whether users can log in with a password
	// OtherLogin is true if the same request enables another way to log in that the server offers. Passwords cannot be
	// switched off without one.
	OtherLogin bool
}

// Lengths in code points (protocol).
const (
	maxOrgName        = 40
	maxOrgDescription = 1000
	maxVideoServer    = 200
)

// OrganizationResult answers ChangeOrganization with the settings that changed.
type OrganizationResult struct {
	Changed []*OrganizationChanged
}

func (c ChangeOrganization) Decide(t *Turn) (OrganizationResult, error) {
	facts, err := c.check(t)
	if err != nil {
		return OrganizationResult{}, err
	}
	for _, f := range facts {
		if len(f.Full)+len(f.Waits) > 0 {
			t.trackChannelVisibility(func() { t.Record(f) })
			continue
		}
		t.Record(f)
		if f.Setting == "can_access_all_users_group" {
			t.closeGuestQueues()
		}
	}
	return OrganizationResult{facts}, nil
}

// check returns the refusal of the first change that is not allowed, or the facts of the changes.
func (c ChangeOrganization) check(t *Turn) ([]*OrganizationChanged, error) {
	me, err := t.RequireAdmin()
	if err != nil {
		return nil, err
	}
	switch {
	case c.Passwords == nil:
	case me.Role != Owner:
		return nil, errNotOwner()
	case !*c.Passwords && !c.OtherLogin:
		return nil, BadRequest("At least one authentication method must be enabled.")
	}
	var facts []*OrganizationChanged
	if c.Passwords != nil && *c.Passwords != t.PasswordLogin() {
		facts = append(facts, &OrganizationChanged{Setting: PasswordLoginSetting, Value: *c.Passwords})
	}
	for _, v := range c.Values {
		if orgSettingsByName[v.Name].OwnerOnly && me.Role != Owner {
			return nil, errNotOwner()
		}
		if err := t.checkOrgSetting(v); err != nil {
			return nil, err
		}
		if t.OrgSetting(v.Name) != v.Value {
			f := &OrganizationChanged{Setting: v.Name, Value: v.Value}
			if v.Name == "waiting_period_threshold" {
				f.At = t.Now
				f.Full, f.Waits = t.fullMemberChanges(v.Value.(int64))
			}
			facts = append(facts, f)
		}
	}
	for _, g := range c.Groups {
		rule := orgGroupRulesByName[g.Name]
		if rule.OwnerOnly && me.Role != Owner {
			return nil, errNotOwner()
		}
		if g.Name == CallsSetting && t.Level() < callsLevel {
			return nil, errLowLevel()
		}
		v, err := t.checkGroupChange(rule, t.OrgGroup(g.Name), g)
		if err != nil {
			return nil, err
		}
		if !v.equal(t.OrgGroup(g.Name)) {
			facts = append(facts, &OrganizationChanged{Setting: g.Name, Group: &v})
		}
	}
	if c.Name != nil {
		name := strings.TrimSpace(*c.Name)
		switch {
		case name == "":
			return nil, BadRequest("name cannot be blank")
		case runeCount(name) > maxOrgName:
			return nil, BadRequest("name is too long (limit: %d characters)", maxOrgName)
		}
		if at, ok := findSpoofing(name); !ok {
			return nil, BadRequest("Invalid character in name, at position %d.", at)
		}
		if name != t.Org().Name {
			facts = append(facts, &OrganizationChanged{Setting: "name", Value: name})
		}
	}
	if c.Description != nil && *c.Description != t.Org().Description {
		if runeCount(*c.Description) > maxOrgDescription {
			return nil, BadRequest("description is too long (limit: %d characters)", maxOrgDescription)
		}
		facts = append(
			facts,
			&OrganizationChanged{Setting: "description", Value: *c.Description, HTML: c.DescriptionHTML},
		)
	}
	return facts, nil
}

// PasswordLoginSetting is the setting that the protocol calls authentication_methods, with Email as its only key.
const PasswordLoginSetting = "password_login"

// PasswordLogin reports whether users of the organization can log in with a password.
func (r *Realm) PasswordLogin() bool {
	enabled, changed := r.Org().Settings[PasswordLoginSetting].(bool)
	return enabled || !changed
}

// ErrPasswordLogin is the refusal of a login with a password where the organization has switched them off (protocol).
func ErrPasswordLogin() error {
	return Refuse(Unauthenticated, "PASSWORD_AUTH_DISABLED", "Password authentication is disabled in this organization")
}

// MaxPeriod is the largest period of a setting, in days or seconds: the largest number that Zulip stores, and far below
// the numbers of days that have no number of seconds.
const MaxPeriod = math.MaxInt32

// checkOrgSetting refuses values that the setting's type allows but the protocol does not.
func (t *Turn) checkOrgSetting(v SettingValue) error {
	if closesPlace(v.Name) && t.Level() < placesLevel {
		return errLowLevel()
	}
	switch v.Name {
	case AssistantSetting, MeaningSetting:
		if t.Level() < assistLevel {
			return errLowLevel()
		}
	case "message_content_edit_limit_seconds", "message_content_delete_limit_seconds",
		"move_messages_within_stream_limit_seconds", "move_messages_between_streams_limit_seconds":
		if n, ok := v.Value.(int64); ok && (n <= 0 || n > MaxPeriod) {
			return errBadSetting(v)
		}
	case "message_retention_days":
		if n := v.Value.(int64); n < 1 && n != -1 || n > MaxPeriod {
			return errBadSetting(v)
		}
	case "waiting_period_threshold":
		switch n := v.Value.(int64); {
		case n < 0:
			return BadRequest("waiting_period_threshold is too small")
		case n > MaxPeriod:
			return BadRequest("waiting_period_threshold is too large")
		}
	case "new_stream_announcements_stream_id", "signup_announcements_stream_id", "zulip_update_announcements_stream_id":
		if n := v.Value.(int64); n != -1 {
			if c := t.channels.find(ChannelID(n)); c == nil || c.Archived || !t.hasContentAccess(t.Me(), c) {
				return errInvalidChannel()
			}
		}
	case "moderation_request_channel_id":
		if n := v.Value.(int64); n != -1 {
			c := t.channels.find(ChannelID(n))
			if c == nil || c.Archived || !t.hasMetadataAccess(t.Me(), c) {
				return errInvalidChannel()
			}
			if !c.Private {
				return BadRequest("Moderation request channel must be private.")
			}
		}
	case "default_language":
		if _, ok := Languages[v.Value.(string)]; !ok {
			return BadRequest("Invalid language '%s'", v.Value)
		}
	case "jitsi_server_url":
		if s, ok := v.Value.(string); ok && (!IsWebURL(s, false) || runeCount(s) > maxVideoServer) {
			return BadRequest("jitsi_server_url is not an allowed_type")
		}
	case "video_chat_provider":
		if n := v.Value.(int64); n != 0 && n != 1 {
			return BadRequest("Invalid video_chat_provider %d", n)
		}
	case "gif_rating_policy":
		if n := v.Value.(int64); n < 0 || n > 4 {
			return BadRequest("Invalid gif_rating_policy %d", n)
		}
	}
	return nil
}

func errBadSetting(v SettingValue) error {
	return Refuse(Invalid, "REQUEST_VARIABLE_INVALID", "Bad value for '"+v.Name+"': "+valueText(v.Value)).
		With("var_name", v.Name).With("bad_value", v.Value)
}

// valueText returns a number or text as refusals show it.
func valueText(v any) string {
	if n, ok := v.(int64); ok {
		return UserID(n).String()
	}
	s, _ := v.(string)
	return s
}

// OrganizationChanged says that one setting of the organization changed: a value, or the group of a permission.
type OrganizationChanged struct {
	Setting string
	Value   any
	Group   *GroupValue
	HTML    string   // of the description
	Full    []UserID // with waiting_period_threshold: users that become full members
	Waits   []UserID // the same: users that no longer are full members
	At      int64    // the same: time of the change; 0 in older journals
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
		o.Settings[f.Setting] = normalizeNumber(f.Value)
		if f.Setting == "message_retention_days" {
			r.restartExpirySearch()
		}
	}
	o.FullAt = max(o.FullAt, f.At)
}

func (f *OrganizationChanged) notices(r *Realm) []Notice {
	to := r.everyoneAudience()
	e := *f
	if f.Group != nil {
		shown := r.WithoutDeactivated(*f.Group)
		e.Group = &shown
	}
	out := []Notice{{To: to, Event: &e}}
	if len(f.Full) > 0 && len(to) > 0 {
		e := &GroupMembersChanged{Group: groupFullMembers, Joined: true, Users: f.Full}
		out = append(out, Notice{To: to, Event: e})
	}
	if len(f.Waits) > 0 && len(to) > 0 {
		out = append(out, Notice{To: to, Event: &GroupMembersChanged{Group: groupFullMembers, Users: f.Waits}})
	}
	return out
}

func (*OrganizationChanged) EventType() string { return "realm" }
