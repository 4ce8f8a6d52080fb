package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var fieldEndpoints = []Endpoint{
	Get("/realm/profile_fields", func(c *Call, v realm.View, _ none) (Answer, error) {
		return Answer{"custom_fields": fieldObjects(v.ProfileFields())}, nil
	}).Says("{custom_fields: [ProfileField]}"),
	Act("POST", "/realm/profile_fields", createField, func(id int64) Answer { return Answer{"id": id} }).Says("{id: int}"),
	Do("PATCH", "/realm/profile_fields", func(f orderFieldsForm) realm.OrderFields { return realm.OrderFields{IDs: f.Order} }, silent),
	Act("PATCH", "/realm/profile_fields/{field_id}", editField, func(int64) Answer { return Answer{} }),
	Do("DELETE", "/realm/profile_fields/{field_id}", func(f fieldIDForm) realm.RemoveField { return realm.RemoveField{ID: f.ID} }, silent),
}

var fieldEvents = []EventKind{
	Event(func(e *realm.ProfileFieldsTold, to *To) any {
		return obj{"type": "custom_profile_fields", "fields": fieldObjects(e.Fields)}
	}),
}

var profileEndpoints = []Endpoint{
	Act("PATCH", "/users/me/profile_data", func(c *Call, f profileDataForm) (realm.ChangeProfile, error) {
		values, err := profileValues("data", f.Data)
		return realm.ChangeProfile{Values: values}, err
	}, silent),
	Do("DELETE", "/users/me/profile_data", func(f clearProfileForm) realm.ChangeProfile {
		var cmd realm.ChangeProfile
		for _, id := range f.Data {
			cmd.Values = append(cmd.Values, realm.ProfileValue{Field: id})
		}
		return cmd
	}, silent),
}

type profileDataForm struct {
	Data []profileItem `form:"data,required"`
}

type clearProfileForm struct {
	Data []int64 `form:"data,required"`
}

func fieldObjects(list []realm.ProfileField) []any {
	out := []any{}
	for _, f := range list {
		o := obj{"id": f.ID, "type": f.Type, "name": f.Name, "hint": f.Hint, "field_data": f.Data, "order": f.Order, "required": f.Required, "editable_by_user": f.Editable}
		if f.Summary {
			o["display_in_profile_summary"] = true
		}
		if f.Matching {
			o["use_for_user_matching"] = true
		}
		out = append(out, o)
	}
	return out
}

type fieldIDForm struct {
	ID int64 `path:"field_id"`
}

type orderFieldsForm struct {
	Order []int64 `form:"order,required"`
}

type fieldFields struct {
	Name     form.Opt[string] `form:"name"`
	Hint     form.Opt[string] `form:"hint"`
	Data     form.JSONText    `form:"field_data"`
	Summary  *bool            `form:"display_in_profile_summary"`
	Required *bool            `form:"required"`
	Editable *bool            `form:"editable_by_user"`
	Matching *bool            `form:"use_for_user_matching"`
}

type createFieldForm struct {
	Type realm.FieldType `form:"field_type,required"`
	fieldFields
}

type editFieldForm struct {
	fieldIDForm
	fieldFields
}

func (f fieldFields) command() realm.PutField {
	cmd := realm.PutField{Name: given(f.Name), Hint: given(f.Hint), Summary: f.Summary, Required: f.Required, Editable: f.Editable, Matching: f.Matching}
	if data := string(f.Data); data != "" {
		cmd.Data = &data
	}
	return cmd
}

func createField(c *Call, f createFieldForm) (realm.PutField, error) {
	cmd := f.command()
	cmd.New, cmd.Type = true, f.Type
	return cmd, nil
}

func editField(c *Call, f editFieldForm) (realm.PutField, error) {
	cmd := f.command()
	cmd.ID = f.ID
	return cmd, nil
}
