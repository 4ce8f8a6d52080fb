package wire

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/shape"
)

var settingEndpoints = []Endpoint{
	settingsEndpoint("/settings"),
	settingsEndpoint("/settings/display"),
	settingsEndpoint("/settings/notifications"),
	settingsTableEndpoint("PATCH", "/realm/user_settings_defaults", realm.UserSettings, ownDefaults,
		func(c *Call, _ noParameters, values []realm.SettingValue) (noFields, error) {
			_, err := Execute(c, realm.ChangeUserDefaults{Values: values})
			return noFields{}, err
		}),
}

// everyDefault is why the parameters in ownDefaults exist.
const everyDefault = "an organization has a default for each setting of its users"

// ownDefaults are the settings of users for which the protocol has no default that an organization can change.
var ownDefaults = map[string]string{"allow_private_data_export": everyDefault, "default_language": everyDefault,
	"enable_login_emails": everyDefault, "enable_marketing_emails": everyDefault}

var settingEvents = []EventKind{
	EventOneOf(func(e *realm.UserSettingChanged, _ *Recipient) any {
		if e.Name == "default_language" {
			code := e.Value.(string)
			return &userLanguageEvent{Value: code, Name: realm.Languages[code]}
		}
		return &userSettingEvent{Property: e.Name, Value: e.Value}
	}).sends(slices.Concat(settingForms(formOf[userSettingEvent](), settingsWithoutLanguage),
		[]*shape.Shape{formOf[userLanguageEvent]()})...),
	EventOneOf(func(e *realm.UserDefaultChanged, _ *Recipient) any {
		return &userDefaultEvent{Property: e.Name, Value: e.Value}
	}).sends(settingForms(formOf[userDefaultEvent](), realm.UserSettings)...),
	Event(func(e *realm.DeliveryEmailSeen, to *Recipient) *personEvent[personDeliveryEmail] {
		return &personEvent[personDeliveryEmail]{Person: personDeliveryEmail{e.User, e.Email}}
	}),
	Event(func(e *realm.ShownEmailChanged, to *Recipient) *personEvent[personShownEmail] {
		return &personEvent[personShownEmail]{Person: personShownEmail{e.Person.ID, apiEmail(e.Person, to.Site)}}
	}),
}

// settingsWithoutLanguage is the settings of events user_settings that have no further fields.
var settingsWithoutLanguage = append(slices.DeleteFunc(slices.Clone(realm.UserSettings), func(s realm.Setting) bool {
	return s.Name == "default_language"
}), realm.Setting{Name: "timezone", Default: ""})

type userSettingEvent struct {
	_        struct{} `const:"type=user_settings op=update"`
	Property string   `json:"property"`
	Value    any      `json:"value"`
}

type userLanguageEvent struct {
	_     struct{} `const:"type=user_settings op=update property=default_language"`
	Value string   `json:"value"` // the code
	Name  string   `json:"language_name"`
}

type userDefaultEvent struct {
	_        struct{} `const:"type=realm_user_settings_defaults op=update"`
	Property string   `json:"property"`
	Value    any      `json:"value"`
}

type personDeliveryEmail struct {
	User  realm.UserID `json:"user_id"`
	Email string       `json:"delivery_email" zero:"null"`
}

type personShownEmail struct {
	User  realm.UserID `json:"user_id"`
	Email string       `json:"new_email"`
}

type settingsAnswer struct {
	Key string `json:"api_key,omitzero"` // the new key, if the password and so the caller's key changed
}

type settingsForm struct {
	Name        form.Opt[string] `form:"full_name"`
	Email       form.Opt[string] `form:"email,strip"`
	OldPassword string           `form:"old_password"`
	NewPassword string           `form:"new_password"`
	KeepKeys    bool             `form:"keep_api_keys,extension=a new password revokes the API keys otherwise"`
	Timezone    form.Opt[string] `form:"timezone"`
	Target      *targetUsersForm `form:"target_users"`
}

// targetUsersForm selects the users whose preferences an administrator changes.
type targetUsersForm struct {
	Users      []realm.UserID  `form:"user_ids"`
	Groups     []realm.GroupID `form:"group_ids"`
	SkipEdited bool            `form:"skip_if_already_edited"`
}

// changeOthers changes preferences of other users. Other parameters, and preferences that only their owner can
// change, are refused.
func changeOthers(c *Call, f settingsForm, values []realm.SettingValue) (*settingsAnswer, error) {
	refuse := func(name string) error {
		return realm.BadRequest("Unsupported parameter combination: target_users, %s", name).With("parameters",
			"target_users, "+name)
	}
	for _, x := range []struct {
		name string
		set  bool
	}{{"full_name", f.Name.Set}, {"email", f.Email.Set}, {"old_password", f.OldPassword != ""},
		{"new_password", f.NewPassword != ""}, {"timezone", f.Timezone.Set}} {
		if x.set {
			return nil, refuse(x.name)
		}
	}
	for _, v := range values {
		if realm.IsPrivateSetting(v.Name) {
			return nil, refuse(v.Name)
		}
	}
	if f.Target.Users == nil == (f.Target.Groups == nil) {
		return nil, realm.BadRequest("target_users needs either user_ids or group_ids")
	}
	_, err := Execute(c, realm.ChangeOthersSettings{Users: f.Target.Users, Groups: f.Target.Groups,
		SkipEdited: f.Target.SkipEdited, Values: values})
	return nil, err
}

func settingsEndpoint(path string) Endpoint {
	return settingsTableEndpoint("PATCH", path, realm.UserSettings, nil, changeSettings)
}

func changeSettings(c *Call, f settingsForm, values []realm.SettingValue) (*settingsAnswer, error) {
	err := checkPermission(c, func(v realm.View) error {
		_, err := v.RequireHuman()
		return err
	})
	if err != nil {
		return nil, err
	}
	if f.Target != nil {
		return changeOthers(c, f, values)
	}
	if err := realm.CheckUserSettings(values); err != nil { // before checking the password, which is expensive
		return nil, err
	}
	cmd := realm.ChangeSettings{Values: values}
	if f.Name.Set {
		cmd.Name = &f.Name.Value
	}
	if f.Email.Set && f.Email.Value != "" && !strings.EqualFold(f.Email.Value, c.Account.Email) {
		cmd.Email, cmd.Confirm = &f.Email.Value, c.addressConfirmation()
		if err := c.CountAddressChange(strconv.Itoa(int(c.Realm)) + "/" + c.Caller.User.String()); err != nil {
			return nil, err
		}
	}
	if f.Timezone.Set {
		if !validTimezone(f.Timezone.Value) {
			return nil, form.Invalid("Not a recognized time zone").Named("timezone")
		}
		cmd.Timezone = &f.Timezone.Value
	}
	if f.NewPassword != "" {
		hash, err := hashNewPassword(c, f.OldPassword, f.NewPassword)
		if err != nil {
			return nil, err
		}
		cmd.Password, cmd.KeepKeys = &hash, f.KeepKeys
	}
	a, err := Execute(c, cmd)
	if err != nil {
		return nil, err
	}
	c.NewSecret = a.Session
	return &settingsAnswer{Key: a.Key}, updatePresence(c, a)
}

// hashNewPassword checks the old password and hashes the new one. Both are slow, so they run outside the realm.
func hashNewPassword(c *Call, old, password string) (string, error) {
	var disabled *realm.Refusal
	if err := CheckPasswordLogin(c); errors.As(err, &disabled) && disabled.Code == "PASSWORD_AUTH_DISABLED" {
		return "", realm.BadRequest("Wrong password!") // no password is right (protocol)
	} else if err != nil {
		return "", err
	}
	right, err := c.checkPassword(c.Account.Email, old, c.Account.Password)
	if err != nil {
		return "", err
	}
	if !right {
		return "", realm.BadRequest("Wrong password!")
	}
	hash, err := c.Tools.HashPassword(c.Realm, password)
	if errors.Is(err, ErrWeakPassword) {
		err = realm.BadRequest("New password is too weak!")
	}
	return hash, err
}

// updatePresence shows or hides the presence of a user who just changed the presence setting, and announces it.
func updatePresence(c *Call, a realm.ChangeSettingsResult) error {
	if !a.PresenceOff && !a.PresenceOn {
		return nil
	}
	var row presence.Row
	if a.PresenceOn {
		row, _ = c.Server.ReportPresence(c.Realm, c.Caller.User, true)
	} else {
		row = c.Server.HidePresence(c.Realm, c.Caller.User)
	}
	_, err := Execute(c, realm.AnnouncePresence{User: row.User, Active: row.Active, Connected: row.Connected,
		Max: presence.MaxAudience})
	return err
}
