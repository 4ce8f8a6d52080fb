package realm

import "strings"

// SettingValue is one setting and what it should be: bool, int64, string or nil.
type SettingValue struct {
	Name  string
	Value any
}

// ChangeSettings asks to change the caller's own preferences and account data.
type ChangeSettings struct {
	Values   []SettingValue
	Name     *string
	Email    *string
	Timezone *string
	Password *string // new one, as Argon2id in PHC form; the old one was checked
}

// ChangedSettings answers ChangeSettings: what the server must do outside the realm.
type ChangedSettings struct {
	Hide, Show bool // presence was switched off, or on
}

func (c ChangeSettings) Decide(t *Turn) (a ChangedSettings, err error) {
	me, err := t.Human()
	if err != nil {
		return a, err
	}
	var facts []Fact
	for _, v := range c.Values {
		if err := checkUserSetting(v); err != nil {
			return a, err
		}
		if me.Setting(v.Name) == v.Value {
			continue
		}
		facts = append(facts, t.settingChange(me, v))
		if v.Name == "presence_enabled" {
			a.Hide, a.Show = v.Value == false, v.Value == true
		}
	}
	if c.Name != nil && strings.TrimSpace(*c.Name) != me.Name {
		if t.OrgBool("name_changes_disabled") && !me.IsAdmin() {
			return a, Bad("Name changes are disabled in this organization.")
		}
		if err := t.checkName(*c.Name, me.ID); err != nil {
			return a, err
		}
		name := strings.TrimSpace(*c.Name)
		facts = append(facts, &UserChanged{ID: me.ID, Name: &name, OldName: me.Name})
	}
	if c.Timezone != nil && *c.Timezone != me.Timezone {
		person := t.Person(me.ID)
		facts = append(facts, &UserChanged{ID: me.ID, Timezone: c.Timezone, Person: &person})
	}
	if c.Email != nil && !strings.EqualFold(*c.Email, me.Email) {
		if t.OrgBool("email_changes_disabled") && !me.IsAdmin() {
			return a, Bad("Email address changes are disabled in this organization.")
		}
		if !ValidEmail(*c.Email) {
			return a, Bad("Invalid address.")
		}
		if t.FindByEmail(*c.Email) != nil {
			return a, Bad("Already has an account.")
		}
		if err := t.checkDomain(*c.Email); err != nil {
			return a, err
		}
		facts = append(facts, &UserChanged{ID: me.ID, Email: c.Email})
	}
	if c.Password != nil {
		facts = append(facts, &PasswordChanged{me.ID, *c.Password})
	}
	for _, f := range facts {
		t.Record(f)
	}
	return a, nil
}

// Bounds of settings that are not lists of values (protocol).
const maxBatching = 604800 // seconds

func checkUserSetting(v SettingValue) error {
	switch v.Name {
	case "email_notifications_batching_period_seconds":
		if n := v.Value.(int64); n < 1 || n > maxBatching {
			return Bad("Invalid email batching period: %d seconds", n)
		}
	case "notification_sound":
		if s := v.Value.(string); s != "none" && s != "zulip" {
			return Bad("Invalid notification sound '%s'", s)
		}
	case "default_language":
		if _, ok := Languages[v.Value.(string)]; !ok {
			return Bad("Invalid default_language")
		}
	}
	return nil
}

// Languages are the codes of the interface languages clients bring, with their names.
var Languages = map[string]string{"ar": "العربية", "be": "Беларуская", "bg": "Български", "bn": "বাংলা", "ca": "Català", "cs": "Čeština", "cy": "Cymraeg", "da": "Dansk",
	"de": "Deutsch", "el": "Ελληνικά", "en": "English", "en-gb": "British English", "eo": "Esperanto", "es": "Español", "eu": "Euskara", "fa": "فارسی", "fi": "Suomi", "fr": "Français",
	"gl": "Galego", "gu": "ગુજરાતી", "he": "עברית", "hi": "हिन्दी", "hu": "Magyar", "id": "Bahasa Indonesia", "it": "Italiano", "ja": "日本語", "ko": "한국어", "lt": "Lietuvių", "lv": "Latviešu",
	"ml": "മലയാളം", "mn": "Монгол", "nl": "Nederlands", "no": "Norsk", "pl": "Polski", "pt": "Português", "pt-br": "Português Brasileiro", "pt-pt": "Português (Portugal)", "ro": "Română", "ru": "Русский",
	"si": "සිංහල", "sk": "Slovenčina", "sl": "Slovenščina", "sr": "Српски", "sv": "Svenska", "ta": "தமிழ்", "tl": "Tagalog", "tr": "Türkçe", "uk": "Українська", "uz": "Oʻzbekcha", "vi": "Tiếng Việt",
	"zh-hans": "简体中文", "zh-hant": "繁體中文", "zh-tw": "繁體中文 (台灣)"}

// settingChange is the fact of one changed preference, with whose sight of the address it changes.
func (t *Turn) settingChange(u *User, v SettingValue) *UserSettingChanged {
	f := &UserSettingChanged{User: u.ID, Name: v.Name, Value: v.Value}
	if v.Name == "email_address_visibility" {
		then := *u
		then.Settings = cloneMap(u.Settings)
		then.Settings[v.Name] = v.Value
		t.EachUser(func(w *User) {
			if w.ID == u.ID || w.System || !w.Active || !t.maySee(w, u) {
				return
			}
			before, after := t.SeesEmail(w, u), t.SeesEmail(w, &then)
			if after && !before {
				f.See = append(f.See, w.ID)
			} else if before && !after {
				f.Blind = append(f.Blind, w.ID)
			}
		})
		f.WasPublic, f.Public = u.Int(v.Name) == 1, v.Value == int64(1)
	}
	return f
}

// UserSettingChanged says one preference of a user is another one now.
type UserSettingChanged struct {
	User              UserID
	Name              string
	Value             any
	See, Blind        []UserID // who may, and may no longer, know the real address
	WasPublic, Public bool     // whether it was, and is, the address shown to everyone
}

func (f *UserSettingChanged) apply(r *Realm) {
	u := r.users.change(f.User)
	if u.Settings == nil {
		u.Settings = map[string]any{}
	}
	u.Settings[f.Name] = plain(f.Value)
	r.by.settings(u)
	if f.Name == "enable_drafts_synchronization" && f.Value == false {
		r.dropDrafts(f.User)
	}
}

func (f *UserSettingChanged) tell(r *Realm) (out []Notice) {
	add := func(to []UserID, e Event) {
		if len(to) > 0 {
			out = append(out, Notice{To: to, Event: e})
		}
	}
	add(r.only(f.User), f)
	if f.Name == "presence_enabled" {
		away := f.Value == false
		add(r.whoSee(r.users.must(f.User)), &StatusChanged{User: f.User, Away: &away})
	}
	if f.Name == "allow_private_data_export" {
		add(r.humanAdmins(), &ConsentTold{f.User, f.Value == true})
	}
	if len(f.See)+len(f.Blind) > 0 {
		u := r.users.must(f.User)
		add(r.only(f.See...), &DeliveryEmailSeen{User: u.ID, Email: u.Email})
		add(r.only(f.Blind...), &DeliveryEmailSeen{User: u.ID})
	}
	if f.WasPublic != f.Public {
		add(r.whoSee(r.users.must(f.User)), &ShownEmailChanged{r.Person(f.User)})
	}
	return out
}

func (*UserSettingChanged) EventType() string { return "user_settings" }

// DeliveryEmailSeen is the event that a real address came into somebody's sight, or with "" went out of it.
type DeliveryEmailSeen struct {
	User  UserID
	Email string
}

func (*DeliveryEmailSeen) EventType() string { return "realm_user" }

// ShownEmailChanged is the event that the address everyone is shown is another one.
type ShownEmailChanged struct{ Person PersonInfo }

func (*ShownEmailChanged) EventType() string { return "realm_user" }

// ChangeUserDefaults asks to change what new accounts start with.
type ChangeUserDefaults struct{ Values []SettingValue }

func (c ChangeUserDefaults) Decide(t *Turn) (Done, error) {
	if _, err := t.Admin(); err != nil {
		return Done{}, err
	}
	defaults := User{Settings: t.Org().UserDefaults}
	var facts []Fact
	for _, v := range c.Values {
		if err := checkUserSetting(v); err != nil {
			return Done{}, err
		}
		if defaults.Setting(v.Name) != v.Value {
			facts = append(facts, &UserDefaultChanged{v.Name, v.Value})
		}
	}
	for _, f := range facts {
		t.Record(f)
	}
	return Done{}, nil
}

// UserDefaultChanged says new accounts start with another value of a preference.
type UserDefaultChanged struct {
	Name  string
	Value any
}

func (f *UserDefaultChanged) apply(r *Realm)         { r.org.change(0).UserDefaults[f.Name] = plain(f.Value) }
func (f *UserDefaultChanged) tell(r *Realm) []Notice { return []Notice{{To: r.everyone(), Event: f}} }
func (*UserDefaultChanged) EventType() string        { return "realm_user_settings_defaults" }
