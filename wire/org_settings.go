package wire

import (
	"fmt"
	"reflect"
	"slices"

	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/shape"
)

var realmEndpoints = []Endpoint{
	settingsTableEndpoint("PATCH", "/realm", realm.OrgSettings, map[string]string{
		realm.AssistantSetting: "owners agree to summaries and translations by other services",
		realm.MeaningSetting:   "owners agree that a service gets the texts of messages for search by meaning",

		"allow_browser_push":      placeReason,
		"allow_external_pictures": placeReason,
		"allow_livekit_calls":     placeReason,
		"allow_message_emails":    placeReason,
		"allow_mobile_push":       placeReason,
		"allow_outgoing_webhooks": placeReason,
	}, changeOrganization),
}

// placeReason is why settings exist that close a place; see realm.Places.
const placeReason = "owners decide to which services data of the organization goes"

var realmEvents = []EventKind{
	EventOneOf(organizationChanged).sends(slices.Concat(
		settingForms(formOf[organizationUpdate](), slices.Concat(organizationSettings(false),
			[]realm.Setting{{Name: "name", Default: ""}})),
		[]*shape.Shape{formOf[organizationDict]()})...),
}

// changedOrganizationAnswer is the answer to a change.
type changedOrganizationAnswer struct{ Changed changedSettings }

// changedSettings is the new values of the changed settings, by name.
type changedSettings map[string]any

// changeableSettings is the names of all settings that a request can change.
var changeableSettings = slices.Concat([]string{"authentication_methods", "description", "name"},
	settingNames(realm.OrgSettings), ruleNames(realm.OrgGroupSettings))

// JSONFields returns a field for each setting.
func (changedSettings) JSONFields() []shape.TableField {
	return each(changeableSettings, func(name string) shape.TableField {
		return shape.TableField{Name: name, Shape: &shape.Shape{Nullable: true}, Optional: true}
	})
}

// JSONField returns the value of a setting, Absent if it has not changed.
func (s changedSettings) JSONField(i int) any { return valueOrAbsent(s, changeableSettings[i]) }

func valueOrAbsent(values map[string]any, name string) any {
	if v, ok := values[name]; ok {
		return v
	}
	return shape.Absent{}
}

// organizationUpdate is one changed setting.
type organizationUpdate struct {
	_        struct{} `const:"type=realm op=update"`
	Property string   `json:"property"`
	Value    any      `json:"value"`
}

// organizationDict is one changed setting with the older fields that are derived from it.
type organizationDict struct {
	_    struct{} `const:"type=realm op=update_dict property=default"`
	Data struct {
		Changed         changedDictSettings
		Description     *string             `json:"description,omitzero"`
		HTML            *string             `json:"rendered_description,omitzero"`
		MandatoryTopics *bool               `json:"mandatory_topics,omitzero"`
		LoginMethods    map[string]loginWay `json:"authentication_methods,omitzero"`
	} `json:"data"`
}

// changedDictSettings is the changed setting, by name; empty if one that is not in the table has changed.
type changedDictSettings map[string]any

var dictSettings = changedDictSettings{}.JSONFields()

// JSONFields returns a field for each setting of update_dict.
func (changedDictSettings) JSONFields() []shape.TableField {
	return slices.Concat(settingFields(organizationSettings(true), true),
		ruleTableFields(realm.OrgGroupSettings, true))
}

// JSONField returns the value of a setting, Absent if it has not changed.
func (s changedDictSettings) JSONField(i int) any { return valueOrAbsent(s, dictSettings[i].Name) }

// organizationSettings returns the settings that events realm/update_dict contain (dict), or those of realm/update.
func organizationSettings(dict bool) []realm.Setting {
	bundled := []string{"topics_policy"} // see organizationChanged
	return slices.DeleteFunc(slices.Clone(realm.OrgSettings), func(s realm.Setting) bool {
		return dict != (realm.UsesUpdateDict(s.Name) || slices.Contains(bundled, s.Name))
	})
}

// settingFields returns the fields of a table of settings.
func settingFields(table []realm.Setting, optional bool) []shape.TableField {
	return each(table, func(s realm.Setting) shape.TableField {
		return shape.TableField{Name: s.Name, Shape: settingShape(s), Optional: optional}
	})
}

func settingShape(s realm.Setting) *shape.Shape {
	out := &shape.Shape{Kind: "string", Nullable: s.Null}
	switch s.Default.(type) {
	case bool:
		out.Kind = "boolean"
	case int64:
		out.Kind = "integer"
	}
	return out
}

func settingNames(table []realm.Setting) []string {
	return each(table, func(s realm.Setting) string { return s.Name })
}

func ruleNames(rules []realm.GroupSettingRule) []string {
	return each(rules, func(r realm.GroupSettingRule) string { return r.Name })
}

// settingForms returns the shapes of an event with the fields property and value: one for all settings of a type.
func settingForms(event *shape.Shape, table []realm.Setting) (out []*shape.Shape) {
	for _, kind := range []string{"boolean", "integer", "string"} {
		for _, null := range []bool{false, true} {
			of := slices.DeleteFunc(slices.Clone(table), func(s realm.Setting) bool {
				x := settingShape(s)
				return x.Kind != kind || x.Nullable != null
			})
			if len(of) > 0 {
				form := withValues(event, "property", settingNames(of)...)
				form.Fields["value"] = shape.Field{Shape: settingShape(of[0]), ListedRequired: true}
				out = append(out, form)
			}
		}
	}
	return out
}

type organizationForm struct {
	Name        form.Opt[string] `form:"name"`
	Description form.Opt[string] `form:"description"`
	Methods     map[string]bool  `form:"authentication_methods"`
}

// orgGroupForm is the form of the organization's permission settings.
var orgGroupForm = groupSettingsForm(realm.OrgGroupSettings)

// groupSettingsForm returns a form with one {new, old} parameter for each permission setting.
func groupSettingsForm(rules []realm.GroupSettingRule) *form.Form {
	return form.OfType(groupSettingsFormType(rules))
}

func groupSettingsFormType(rules []realm.GroupSettingRule) reflect.Type {
	var fields []reflect.StructField
	for i, r := range rules {
		tag := r.Name
		if r.Name == realm.CallsSetting {
			tag += ",extension=the permission to start calls at a LiveKit server"
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Row%d", i),
			Type: reflect.TypeFor[*form.GroupSettingUpdate](), Tag: reflect.StructTag(`form:"` + tag + `"`)})
	}
	return reflect.StructOf(fields)
}

// groupChanges returns the permission settings that were sent.
func groupChanges(f *form.Form, rules []realm.GroupSettingRule, v *form.Values) ([]realm.GroupChange, error) {
	decoded := reflect.New(groupSettingsFormType(rules))
	if err := f.Decode(v, decoded.Interface()); err != nil {
		return nil, err
	}
	var out []realm.GroupChange
	for i, r := range rules {
		u := decoded.Elem().Field(i).Interface().(*form.GroupSettingUpdate)
		if u == nil {
			continue
		}
		c := realm.GroupChange{Name: r.Name, New: groupValueFromForm(u.New)}
		if u.Old != nil {
			old := groupValueFromForm(*u.Old)
			c.Old = &old
		}
		out = append(out, c)
		v.Consume(r.Name)
	}
	return out, nil
}

// groupValueFromForm converts a permission setting. An impossible group id becomes -1, which the command refuses as
// unknown.
func groupValueFromForm(g form.GroupSetting) realm.GroupValue {
	if !g.Direct {
		if g.Group <= 0 {
			return realm.GroupValue{Group: -1} // an id that no group has
		}
		return realm.GroupValue{Group: realm.GroupID(g.Group)}
	}
	v := realm.GroupValue{}
	for _, m := range g.Members {
		v.Members = append(v.Members, realm.UserID(m))
	}
	for _, s := range g.Subgroups {
		v.Subgroups = append(v.Subgroups, realm.GroupID(s))
	}
	return v
}

func changeOrganization(
	c *Call, f organizationForm, values []realm.SettingValue,
) (*changedOrganizationAnswer, error) {
	groups, err := groupChanges(orgGroupForm, realm.OrgGroupSettings, c.Params)
	if err != nil {
		return nil, err
	}
	cmd := realm.ChangeOrganization{Values: values, Groups: groups}
	if f.Methods != nil {
		passwords := f.Methods["Email"]
		cmd.Passwords, cmd.OtherLogin = &passwords, c.otherLogin(f.Methods)
	}
	if f.Name.Set {
		cmd.Name = &f.Name.Value
	}
	if f.Description.Set {
		cmd.Description = &f.Description.Value
		cmd.DescriptionHTML, err = Read(c, func(v realm.View) (string, error) {
			return c.Tools.Renderer.RenderDescription(f.Description.Value, v, c.Site), nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, g := range groups {
		c.markConsumed(g.Name)
	}
	result, err := Execute(c, cmd)
	if err != nil {
		return nil, err
	}
	changed := newChangedSettings(result)
	if _, ok := changed[realm.PasswordLoginSetting]; ok {
		changed["authentication_methods"] = f.Methods
	}
	return &changedOrganizationAnswer{changed}, nil
}

// otherLogin reports whether a list of enabled methods has one without a password that this server offers: login
// providers, development logins, or login tokens.
func (c *Call) otherLogin(methods map[string]bool) bool {
	for _, p := range c.Site.Providers() {
		if methods[methodNames[p.Type]] {
			return true
		}
	}
	return methods["Dev"] && c.Tools.Dev || methods["JWT"] && c.Tools.JWTKeys[c.Site.Name] != ""
}

// loginWay says whether users can log in with a method.
type loginWay struct {
	Enabled   bool `json:"enabled"`
	Available bool `json:"available"`
}

// loginMethods is the value of authentication_methods (protocol). The operator's configuration enables the methods of
// login providers.
func loginMethods(passwords bool, s Site) map[string]loginWay {
	methods := map[string]loginWay{"Email": {passwords, true}}
	for _, p := range s.Providers() {
		methods[methodNames[p.Type]] = loginWay{true, true}
	}
	return methods
}

// historyVisibilities are the values of historyVisibilitySetting. The answer to its change has the number of the new
// value, counted from 1, as in Zulip; events and registrations have the name.
var historyVisibilities = []string{"all", "moves", "none"}

const historyVisibilitySetting = "message_edit_history_visibility_policy"

// newChangedSettings returns the changed settings with their new values. The reference server says only "updated" of
// another setting that is a string.
func newChangedSettings(r realm.OrganizationResult) changedSettings {
	out := changedSettings{}
	for _, f := range r.Changed {
		out[f.Setting] = f.Value
		switch _, text := f.Value.(string); {
		case f.Group != nil:
			out[f.Setting] = groupValueJSON{*f.Group}
		case f.Setting == historyVisibilitySetting:
			out[f.Setting] = slices.Index(historyVisibilities, f.Value.(string)) + 1
		case text:
			out[f.Setting] = "updated"
		}
	}
	return out
}

// organizationChanged renders one changed setting as realm/update, or as realm/update_dict where the protocol
// requires it.
func organizationChanged(e *realm.OrganizationChanged, to *Recipient) any {
	dict := &organizationDict{}
	switch d := &dict.Data; {
	case e.Group != nil:
		d.Changed = changedDictSettings{e.Setting: groupValueJSON{*e.Group}}
	case e.Setting == "description":
		text, _ := e.Value.(string)
		d.Description, d.HTML = &text, &e.HTML
	case e.Setting == realm.PasswordLoginSetting:
		enabled, _ := e.Value.(bool)
		d.LoginMethods = loginMethods(enabled, to.Site)
	case e.Setting == "topics_policy":
		d.Changed = changedDictSettings{e.Setting: e.Value}
		d.MandatoryTopics = ptr(e.Value == "disable_empty_topic")
	case realm.UsesUpdateDict(e.Setting):
		d.Changed = changedDictSettings{e.Setting: e.Value}
	default:
		return &organizationUpdate{Property: e.Setting, Value: e.Value}
	}
	return dict
}
