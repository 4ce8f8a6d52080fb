package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var profileFieldEndpoints = []Endpoint{
	Get("/realm/profile_fields", func(c *Call, v realm.View, _ noParameters) (Answer, error) {
		return Answer{"custom_fields": profileFieldObjects(v.ProfileFields())}, nil
	}).Returns("{custom_fields: [ProfileField]}"),
	CommandFromCall("POST", "/realm/profile_fields", createField, func(id int64) Answer {
		return Answer{"id": id}
	}).Returns("{id: int}"),
	CommandFromForm("PATCH", "/realm/profile_fields", func(f orderFieldsForm) realm.OrderProfileFields {
		return realm.OrderProfileFields{IDs: f.Order}
	}, emptyAnswer),
	CommandFromCall("PATCH", "/realm/profile_fields/{field_id}", editField, func(int64) Answer { return Answer{} }),
	CommandFromForm("DELETE", "/realm/profile_fields/{field_id}", func(f fieldIDForm) realm.RemoveProfileField {
		return realm.RemoveProfileField{ID: f.ID}
	}, emptyAnswer),
}

var profileFieldEvents = []EventKind{
	Event(func(e *realm.ProfileFieldsUpdated, to *Recipient) any {
		return obj{"type": "custom_profile_fields", "fields": profileFieldObjects(e.Fields)}
	}),
	Event(func(e *realm.ProfileChanged, to *Recipient) any {
		f := obj{"id": e.Field, "value": e.Value}
		if e.Value == "" {
			f["value"] = nil
		}
		if e.HTML != "" {
			f["rendered_value"] = e.HTML
		}
		return obj{"type": "realm_user", "op": "update", "person": obj{"user_id": e.User, "custom_profile_field": f}}
	}),
}

var profileEndpoints = []Endpoint{
	CommandFromCall("PATCH", "/users/me/profile_data", func(c *Call, f profileDataForm) (realm.ChangeProfile, error) {
		values, err := profileValues("data", f.Data)
		return realm.ChangeProfile{Values: values}, err
	}, emptyAnswer),
	CommandFromForm("DELETE", "/users/me/profile_data", func(f clearProfileForm) realm.ChangeProfile {
		var cmd realm.ChangeProfile
		for _, id := range f.Data {
			cmd.Values = append(cmd.Values, realm.ProfileValue{Field: id})
		}
		return cmd
	}, emptyAnswer),
}

type profileDataForm struct {
	Data []profileItem `form:"data,required"`
}

type clearProfileForm struct {
	Data []int64 `form:"data,required"`
}

func profileFieldObjects(list []realm.ProfileField) []any {
	out := []any{}
	for _, f := range list {
		o := obj{"id": f.ID, "type": f.Type, "name": f.Name, "hint": f.Hint, "field_data": f.Data, "order": f.Order,
			"required": f.Required, "editable_by_user": f.Editable}
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

type profileFieldOptions struct {
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
	profileFieldOptions
}

type editFieldForm struct {
	fieldIDForm
	profileFieldOptions
}

func (f profileFieldOptions) command() realm.SaveProfileField {
	cmd := realm.SaveProfileField{Name: pointerIfSet(f.Name), Hint: pointerIfSet(f.Hint), Summary: f.Summary,
		Required: f.Required, Editable: f.Editable, Matching: f.Matching}
	if data := string(f.Data); data != "" {
		cmd.Data = &data
	}
	return cmd
}

func createField(c *Call, f createFieldForm) (realm.SaveProfileField, error) {
	cmd := f.command()
	cmd.New, cmd.Type = true, f.Type
	return cmd, nil
}

func editField(c *Call, f editFieldForm) (realm.SaveProfileField, error) {
	cmd := f.command()
	cmd.ID = f.ID
	return cmd, nil
}
