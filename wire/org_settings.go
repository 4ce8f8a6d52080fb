package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

var realmEndpoints = []Endpoint{
	settingsTableEndpoint("PATCH", "/realm", realm.OrgSettings, nil, changeOrganization).Returns(changedSettings()),
}

// changedSettings declares the answer of a change: any of the settings.
func changedSettings() string {
	names := []string{"authentication_methods", "description", "name"}
	for _, s := range realm.OrgSettings {
		names = append(names, s.Name)
	}
	for _, s := range realm.OrgGroupSettings {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return "{" + strings.Join(slices.Compact(names), "?: any, ") + "?: any}"
}

var realmEvents = []EventKind{EventOneOf(organizationChanged)}

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
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Row%d", i),
			Type: reflect.TypeFor[*form.GroupSettingUpdate](), Tag: reflect.StructTag(`form:"` + r.Name + `"`)})
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

func changeOrganization(c *Call, f organizationForm, values []realm.SettingValue) (Answer, error) {
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
	a := organizationAnswer(result)
	if _, changed := a[realm.PasswordLoginSetting]; changed {
		delete(a, realm.PasswordLoginSetting)
		a["authentication_methods"] = f.Methods
	}
	return a, nil
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

// authenticationMethods is the value of authentication_methods (protocol). The operator's configuration enables the
// methods of login providers.
func authenticationMethods(passwords any, s Site) obj {
	methods := obj{"Email": obj{"enabled": passwords, "available": true}}
	for _, p := range s.Providers() {
		methods[methodNames[p.Type]] = obj{"enabled": true, "available": true}
	}
	return methods
}

// historyVisibilities are the values of historyVisibilitySetting. The answer to its change has the number of the new
// value, counted from 1, as in Zulip; events and registrations have the name.
var historyVisibilities = []string{"all", "moves", "none"}

const historyVisibilitySetting = "message_edit_history_visibility_policy"

// organizationAnswer returns the changed settings with their new values. The reference server says only "updated" of
// another setting that is a string.
func organizationAnswer(r realm.OrganizationResult) Answer {
	a := Answer{}
	for _, f := range r.Changed {
		a[f.Setting] = f.Value
		switch _, text := f.Value.(string); {
		case f.Group != nil:
			a[f.Setting] = groupValue(*f.Group)
		case f.Setting == historyVisibilitySetting:
			a[f.Setting] = slices.Index(historyVisibilities, f.Value.(string)) + 1
		case text:
			a[f.Setting] = "updated"
		}
	}
	return a
}

// organizationChanged renders one changed setting as realm/update, or as realm/update_dict where the protocol
// requires it.
func organizationChanged(e *realm.OrganizationChanged, to *Recipient) any {
	dict := func(data obj) any {
		return obj{"type": "realm", "op": "update_dict", "property": "default", "data": data}
	}
	switch {
	case e.Group != nil:
		return dict(obj{e.Setting: groupValue(*e.Group)})
	case e.Setting == "description":
		return dict(obj{"description": e.Value, "rendered_description": e.HTML})
	case e.Setting == realm.PasswordLoginSetting:
		return dict(obj{"authentication_methods": authenticationMethods(e.Value, to.Site)})
	case e.Setting == "topics_policy":
		return dict(obj{e.Setting: e.Value, "mandatory_topics": e.Value == "disable_empty_topic"})
	case realm.UsesUpdateDict(e.Setting):
		return dict(obj{e.Setting: e.Value})
	}
	return obj{"type": "realm", "op": "update", "property": e.Setting, "value": e.Value}
}
