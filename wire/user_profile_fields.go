package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var profileFieldEndpoints = []Endpoint{
	Get("/realm/profile_fields", func(c *Call, v realm.View, _ noParameters) (*profileFieldsAnswer, error) {
		return &profileFieldsAnswer{newProfileFields(v.ProfileFields())}, nil
	}),
	CommandFromCall("POST", "/realm/profile_fields", createField, newIDAnswer),
	CommandFromForm("PATCH", "/realm/profile_fields", func(f orderFieldsForm) realm.OrderProfileFields {
		return realm.OrderProfileFields{IDs: f.Order}
	}, emptyAnswer),
	CommandFromCall("PATCH", "/realm/profile_fields/{field_id}", editField, func(int64) noFields { return noFields{} }),
	CommandFromForm("DELETE", "/realm/profile_fields/{field_id}", func(f fieldIDForm) realm.RemoveProfileField {
		return realm.RemoveProfileField{ID: f.ID}
	}, emptyAnswer),
}

var profileFieldEvents = []EventKind{
	Event(func(e *realm.ProfileFieldsUpdated, to *Recipient) *profileFieldsEvent {
		return &profileFieldsEvent{Fields: newProfileFields(e.Fields)}
	}),
	Event(func(e *realm.ProfileChanged, to *Recipient) *personEvent[personProfileValue] {
		p := personProfileValue{User: e.User}
		p.Field.ID, p.Field.Value, p.Field.HTML = e.Field, e.Value, e.HTML
		return &personEvent[personProfileValue]{Person: p}
	}),
}

type profileFieldsAnswer struct {
	Fields []profileFieldJSON `json:"custom_fields"`
}

type profileFieldsEvent struct {
	_      struct{}           `const:"type=custom_profile_fields"`
	Fields []profileFieldJSON `json:"fields"`
}

type personProfileValue struct {
	User  realm.UserID `json:"user_id"`
	Field struct {
		ID    int64  `json:"id"`
		Value string `json:"value" zero:"null"`
		HTML  string `json:"rendered_value,omitzero"`
	} `json:"custom_profile_field"`
}

type profileFieldJSON struct {
	ID       int64           `json:"id"`
	Type     realm.FieldType `json:"type"`
	Name     string          `json:"name"`
	Hint     string          `json:"hint"`
	Data     string          `json:"field_data"`
	Order    int             `json:"order"`
	Required bool            `json:"required"`
	Editable bool            `json:"editable_by_user"`
	Summary  bool            `json:"display_in_profile_summary,omitzero"`
	Matching bool            `json:"use_for_user_matching,omitzero"`
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

func newProfileFields(list []realm.ProfileField) []profileFieldJSON {
	out := make([]profileFieldJSON, len(list))
	for i, f := range list {
		out[i] = profileFieldJSON{f.ID, f.Type, f.Name, f.Hint, f.Data, f.Order, f.Required, f.Editable, f.Summary,
			f.Matching}
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
