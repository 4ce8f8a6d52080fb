package realm

import "slices"

// maxUsersPerSettingsChange is how many accounts one request may change: each change is a fact of the same turn.
const maxUsersPerSettingsChange = 10_000

// privateSettings are the settings that an administrator cannot change for other users (protocol). They concern consent
// and privacy.
var privateSettings = map[string]bool{
	"allow_private_data_export":         true,
	"email_address_visibility":          true,
	"enable_digest_emails":              true,
	"enable_login_emails":               true,
	"enable_marketing_emails":           true,
	"presence_enabled":                  true,
	"send_private_typing_notifications": true,
	"send_read_receipts":                true,
	"send_stream_typing_notifications":  true,
}

// IsPrivateSetting reports whether only the user may change the setting.
func IsPrivateSetting(name string) bool { return privateSettings[name] }

// ChangeOthersSettings asks to change settings of other accounts, given by id or by group.
type ChangeOthersSettings struct {
	Users      []UserID
	Groups     []GroupID
	SkipEdited bool // skip settings that the user has changed
	Values     []SettingValue
}

func (c ChangeOthersSettings) Decide(t *Turn) (Done, error) {
	me, err := t.RequireHuman()
	if err != nil {
		return Done{}, err
	}
	if !me.IsAdmin() {
		return Done{}, errNotAdmin()
	}
	users, err := c.targets(t)
	if err != nil {
		return Done{}, err
	}
	if err := CheckUserSettings(c.Values); err != nil {
		return Done{}, err
	}
	var facts []Fact
	for _, u := range users {
		for _, v := range c.Values {
			_, edited := u.Settings[v.Name]
			if u.Setting(v.Name) != v.Value && !(edited && c.SkipEdited) {
				facts = append(facts, t.planSettingChange(u, v))
			}
		}
	}
	for _, f := range facts {
		t.Record(f)
	}
	return Done{}, nil
}

// targets returns the accounts to change, each once.
func (c ChangeOthersSettings) targets(t *Turn) (out []*User, err error) {
	for _, id := range c.Users {
		u := t.Find(id)
		switch {
		case u == nil || u.System:
			return nil, errNoUser()
		case !u.Active:
			return nil, errDeactivated()
		case u.IsBot():
			return nil, BadRequest("Bots have no settings")
		}
	}
	for _, id := range c.Groups {
		if g := t.groups.find(id); g == nil || g.Deactivated {
			return nil, BadRequest("Invalid user group")
		}
	}
	named := sortUnique(slices.Clone(c.Users))
	for _, u := range t.activeHumans() {
		meant := containsSorted(named, u.ID)
		for _, g := range c.Groups {
			meant = meant || t.InGroup(u, g)
		}
		if meant {
			out = append(out, u)
		}
	}
	if len(out) > maxUsersPerSettingsChange {
		return nil, BadRequest("Too many users: at most %d", maxUsersPerSettingsChange)
	}
	return out, nil
}
