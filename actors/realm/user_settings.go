package realm

import (
	"slices"
	"strings"
)

// EmailChangeValidity is for how many seconds a new email address can be confirmed (protocol).
const EmailChangeValidity = secondsPerDay

// EmailChange is a requested change of a user's email address. It is stored only in the link of the email to the new
// address, signed by the server. The link is valid as long as From is the user's address, at most until Until.
type EmailChange struct {
	User     UserID
	From, To string
	Until    int64
}

// SettingValue is a setting and its new value: bool, int64, string or nil.
type SettingValue struct {
	Name  string
	Value any
}

// ChangeSettings asks to change the caller's personal settings and account data.
type ChangeSettings struct {
	Values   []SettingValue
	Name     *string
	Email    *string
	Timezone *string
	Password *string // the new one, as Argon2id in PHC form; the old one was already checked
	KeepKeys bool    // a new password does not revoke the API keys

	// Confirm returns the email that asks the new address for confirmation. If it is nil, the address changes at once.
	Confirm func(EmailChange, Letterhead) Email
}

// ChangeSettingsResult answers ChangeSettings. The server uses it to update presence, which is outside the realm.
type ChangeSettingsResult struct {
	PresenceOff, PresenceOn bool // presence was switched off or on

	Key string // the new API key if a new password revoked the old ones, or ""
	// Session is the new secret of the browser session that the request was sent with, or "". A new password ends all
	// other sessions.
	Session string
}

func (c ChangeSettings) Decide(t *Turn) (a ChangeSettingsResult, err error) {
	me, err := t.RequireHuman()
	if err != nil {
		return a, err
	}
	var facts []Fact
	var emails []Email
	if err := CheckUserSettings(c.Values); err != nil {
		return a, err
	}
	for _, v := range c.Values {
		if me.Setting(v.Name) == v.Value {
			continue
		}
		f := t.planSettingChange(me, v)
		facts = append(facts, f)
		if v.Name == "presence_enabled" {
			a.PresenceOff, a.PresenceOn = v.Value == false, v.Value == true
		}
	}
	// A name that must not change is ignored: clients send it with the other values of a form (protocol).
	mayRename := !t.OrgBool("name_changes_disabled") || me.IsAdmin()
	if c.Name != nil && strings.TrimSpace(*c.Name) != me.Name && mayRename {
		if err := t.checkName(*c.Name, me.ID); err != nil {
			return a, err
		}
		name := strings.TrimSpace(*c.Name)
		facts = append(facts, &UserChanged{ID: me.ID, Name: &name, OldName: me.Name})
	}
	if c.Timezone != nil && *c.Timezone != me.Timezone {
		person := t.UserInfo(me.ID)
		facts = append(facts, &UserChanged{ID: me.ID, Timezone: c.Timezone, Person: &person})
	}
	if c.Email != nil && !strings.EqualFold(*c.Email, me.Email) {
		if err := t.checkNewEmail(me, *c.Email); err != nil {
			return a, err
		}
		if c.Confirm == nil {
			facts = append(facts, &UserChanged{ID: me.ID, Email: c.Email})
		} else {
			change := EmailChange{User: me.ID, From: me.Email, To: *c.Email, Until: t.Now + EmailChangeValidity}
			emails = append(emails, c.Confirm(change, t.LetterheadFor(me)))
		}
	}
	if c.Password != nil {
		facts = append(facts, &PasswordChanged{me.ID, *c.Password})
	}
	for _, f := range facts {
		t.Record(f)
	}
	if c.Password != nil {
		a.Session = t.renewOwnBrowserSession()
	}
	if c.Password != nil && !c.KeepKeys {
		a.Key = t.issueKey(me, true)
	}
	t.SendEmails(emails...)
	return a, nil
}

// checkNewEmail refuses an address that the user may not choose.
func (t *Turn) checkNewEmail(u *User, to string) error {
	switch {
	case t.OrgBool("email_changes_disabled") && !u.IsAdmin():
		return BadRequest("Email address changes are disabled in this organization.")
	case !ValidEmail(to):
		return BadRequest("Invalid address.")
	case t.FindByEmail(to) != nil:
		return BadRequest("Already has an account.")
	}
	return t.checkEmailDomain(to)
}

// ConfirmEmailChange asks to use an address that its user has confirmed. The server sends it for the visitor that
// opened the link.
type ConfirmEmailChange struct {
	EmailChange
	Notice func(EmailChange, Letterhead) Email // email to the old address; nil: none
}

func (c ConfirmEmailChange) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	switch {
	case !t.System:
		return Done{}, errPermission()
	case u == nil || !u.Active || u.Email != c.From || t.Now > c.Until:
		return Done{}, Missing("This link is not valid, or not any longer.")
	case t.Org().Deactivated:
		return Done{}, Missing("This organization has been deactivated.")
	}
	if err := t.checkNewEmail(u, c.To); err != nil {
		return Done{}, err
	}
	t.Record(&UserChanged{ID: u.ID, Email: &c.To})
	if c.Notice != nil {
		t.SendEmails(c.Notice(c.EmailChange, t.LetterheadFor(u)))
	}
	return Done{}, nil
}

// maxEmailBatchingPeriod is the longest email batching period in seconds (protocol).
const maxEmailBatchingPeriod = 604800

// CheckUserSettings refuses invalid values, in the protocol's order. The result does not depend on the caller.
func CheckUserSettings(values []SettingValue) error {
	by := make(map[string]any, len(values))
	for _, v := range values {
		by[v.Name] = v.Value
	}
	if language, ok := by["default_language"].(string); ok {
		if _, known := Languages[language]; !known {
			return BadRequest("Invalid default_language")
		}
	}
	if sound, ok := by["notification_sound"].(string); ok && sound != "none" &&
		!slices.Contains(NotificationSounds, sound) {
		return BadRequest("Invalid notification sound '%s'", sound)
	}
	if n, ok := by["email_notifications_batching_period_seconds"].(int64); ok && (n < 1 || n > maxEmailBatchingPeriod) {
		return BadRequest("Invalid email batching period: %d seconds", n)
	}
	return nil
}

// NotificationSounds are the names of the sounds that clients have, sorted. The server only stores the name: clients
// bring the files.
var NotificationSounds = []string{"ascend", "beep_boop", "bink", "bright", "brlip", "chime", "deep tom", "ding",
	"double tap", "down", "dry bongos", "dutdut", "fast ascend", "flute", "friendly", "kick roll", "loud tintong",
	"metallic snare", "pan", "shaker", "simple", "stairs", "subtle", "swish", "tintong", "up", "wood block", "zaping",
	"zing", "zulip"}

// Languages are the codes and names of the interface languages that clients support.
var Languages = map[string]string{
	"ar": "العربية", "be": "Беларуская", "bg": "Български", "bn": "বাংলা", "ca": "Català", "cs": "Čeština",
	"cy": "Cymraeg", "da": "Dansk", "de": "Deutsch", "el": "Ελληνικά", "en": "English",
	"en-gb": "British English", "eo": "Esperanto", "es": "Español", "eu": "Euskara", "fa": "فارسی",
	"fi": "Suomi", "fr": "Français", "gl": "Galego", "gu": "ગુજરાતી", "he": "עברית", "hi": "हिन्दी",
	"hu": "Magyar", "id": "Bahasa Indonesia", "it": "Italiano", "ja": "日本語", "ko": "한국어", "lt": "Lietuvių",
	"lv": "Latviešu", "ml": "മലയാളം", "mn": "Монгол", "nl": "Nederlands", "no": "Norsk", "pl": "Polski",
	"pt": "Português", "pt-br": "Português Brasileiro", "pt-pt": "Português (Portugal)", "ro": "Română",
	"ru": "Русский", "si": "සිංහල", "sk": "Slovenčina", "sl": "Slovenščina", "sr": "Српски", "sv": "Svenska",
	"ta": "தமிழ்", "tl": "Tagalog", "tr": "Türkçe", "uk": "Українська", "uz": "Oʻzbekcha", "vi": "Tiếng Việt",
	"zh-hans": "简体中文", "zh-hant": "繁體中文", "zh-tw": "繁體中文 (台灣)",
}

// planSettingChange returns the fact of one changed setting. For email_address_visibility it contains the users whose
// view of the address changes.
func (t *Turn) planSettingChange(u *User, v SettingValue) *UserSettingChanged {
	f := &UserSettingChanged{User: u.ID, Name: v.Name, Value: v.Value}
	if v.Name == "email_address_visibility" {
		then := *u
		then.Settings = cloneMap(u.Settings)
		then.Settings[v.Name] = v.Value
		t.EachUser(func(w *User) {
			if w.ID == u.ID || w.System || !w.Active || !t.maySeeUser(w, u) {
				return
			}
			before, after := t.SeesEmail(w, u), t.SeesEmail(w, &then)
			if after && !before {
				f.See = append(f.See, w.ID)
			} else if before && !after {
				f.Blind = append(f.Blind, w.ID)
			}
		})
		f.WasPublic, f.Public = u.IntSetting(v.Name) == 1, v.Value == int64(1)
	}
	return f
}

// UserSettingChanged says that a user's personal setting has a new value.
type UserSettingChanged struct {
	User              UserID
	Name              string
	Value             any
	See, Blind        []UserID // users who may now, or may no longer, see the email address
	WasPublic, Public bool     // whether everyone could, and can, see the email address
	AsStatus          bool     // in older facts: the change of presence_enabled is also an event user_status
}

func (f *UserSettingChanged) apply(r *Realm) {
	u := r.users.change(f.User)
	if u.Settings == nil {
		u.Settings = map[string]any{}
	}
	u.Settings[f.Name] = normalizeNumber(f.Value)
	r.index.indexUserSettings(u)
	if f.Name == "enable_drafts_synchronization" && f.Value == false {
		r.removeDrafts(f.User)
	}
}

func (f *UserSettingChanged) notices(r *Realm) (out []Notice) {
	add := func(to []UserID, e Event) {
		if len(to) > 0 {
			out = append(out, Notice{To: to, Event: e})
		}
	}
	add(r.usersAudience(f.User), f)
	if f.Name == "presence_enabled" && f.AsStatus {
		away := f.Value == false
		add(r.canSeeUserAudience(r.users.must(f.User)), &StatusChanged{User: f.User, Away: &away})
	}
	if f.Name == "allow_private_data_export" {
		add(r.humanAdminsAudience(), &ExportConsentEvent{f.User, f.Value == true})
	}
	if len(f.See)+len(f.Blind) > 0 {
		u := r.users.must(f.User)
		add(r.usersAudience(f.See...), &DeliveryEmailSeen{User: u.ID, Email: u.Email})
		add(r.usersAudience(f.Blind...), &DeliveryEmailSeen{User: u.ID})
	}
	if f.WasPublic != f.Public {
		add(r.canSeeUserAudience(r.users.must(f.User)), &ShownEmailChanged{r.UserInfo(f.User)})
	}
	return out
}

func (*UserSettingChanged) EventType() string { return "user_settings" }

// DeliveryEmailSeen is the event that an email address became visible to some users, or invisible if Email is "".
type DeliveryEmailSeen struct {
	User  UserID
	Email string
}

func (*DeliveryEmailSeen) EventType() string { return "realm_user" }

// ShownEmailChanged is the event that the address shown to everyone changed.
type ShownEmailChanged struct{ Person UserInfo }

func (*ShownEmailChanged) EventType() string { return "realm_user" }

// ChangeUserDefaults asks to change the settings that new accounts start with.
type ChangeUserDefaults struct{ Values []SettingValue }

func (c ChangeUserDefaults) Decide(t *Turn) (Done, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return Done{}, err
	}
	defaults := User{Settings: t.Org().UserDefaults}
	var facts []Fact
	if err := CheckUserSettings(c.Values); err != nil {
		return Done{}, err
	}
	for _, v := range c.Values {
		if defaults.Setting(v.Name) != v.Value {
			facts = append(facts, &UserDefaultChanged{v.Name, v.Value})
		}
	}
	for _, f := range facts {
		t.Record(f)
	}
	return Done{}, nil
}

// UserDefaultChanged says that new accounts start with another value of a setting.
type UserDefaultChanged struct {
	Name  string
	Value any
}

func (f *UserDefaultChanged) apply(r *Realm) {
	r.org.change(0).UserDefaults[f.Name] = normalizeNumber(f.Value)
}
func (f *UserDefaultChanged) notices(r *Realm) []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: f}}
}
func (*UserDefaultChanged) EventType() string { return "realm_user_settings_defaults" }
