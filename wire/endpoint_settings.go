package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

// settingsTableEndpoint is an endpoint whose parameters are the rows of a settings table, in addition to a fixed
// form. extensions has the reason for each row that the protocol does not have at this endpoint.
func settingsTableEndpoint[F, A any](
	method, path string, table []realm.Setting, extensions map[string]string,
	run func(*Call, F, []realm.SettingValue) (A, error),
) Endpoint {
	fixed, rows := form.Of[F](), newSettingsTableForm(table, extensions)
	return Endpoint{
		Method:     method,
		Path:       path,
		Form:       fixed,
		Settings:   rows.form,
		name:       method + " " + path,
		answerType: reflect.TypeFor[A](),
		run: func(c *Call) (any, error) {
			var in F
			if err := fixed.Decode(c.Params, &in); err != nil {
				return nil, err
			}
			values, err := rows.decode(c.Params)
			if err != nil {
				return nil, err
			}
			known := rows.form.Ignored(c.Params)
			for _, name := range fixed.Ignored(c.Params) {
				if slices.Contains(known, name) {
					c.ignored = append(c.ignored, name)
				}
			}
			return run(c, in, values)
		},
	}
}

// settingsTableForm is a form made from a settings table, with one optional parameter per row.
type settingsTableForm struct {
	table      []realm.Setting
	structType reflect.Type
	form       *form.Form
}

func newSettingsTableForm(table []realm.Setting, extensions map[string]string) *settingsTableForm {
	var fields []reflect.StructField
	r := &settingsTableForm{}
	for _, s := range table {
		if s.Hidden {
			continue
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Row%d", len(fields)), Type: paramType(s),
			Tag: reflect.StructTag(`form:"` + paramTag(s, extensions[s.Name]) + `"`)})
		r.table = append(r.table, s)
	}
	r.structType = reflect.StructOf(fields)
	r.form = form.OfType(r.structType)
	return r
}

func paramType(s realm.Setting) reflect.Type {
	if strings.HasSuffix(s.Name, "_limit_seconds") || s.Name == "message_retention_days" {
		return reflect.TypeFor[form.NumberOrWord]()
	}
	switch s.Default.(type) {
	case bool:
		if s.Null {
			return reflect.TypeFor[form.Null[bool]]()
		}
		return reflect.TypeFor[form.Opt[bool]]()
	case int64:
		return reflect.TypeFor[form.Opt[int64]]()
	}
	return reflect.TypeFor[form.Opt[string]]()
}

func paramTag(s realm.Setting, extension string) string {
	tag := s.Name
	if s.Allowed != nil {
		var in []string
		for _, v := range s.Allowed {
			in = append(in, fmt.Sprint(v))
		}
		tag += ",in=" + strings.Join(in, "|")
	}
	if s.MaxLength > 0 {
		tag += fmt.Sprintf(",maxlen=%d", s.MaxLength)
	}
	if extension != "" {
		tag += ",extension=" + extension
	}
	return tag
}

// decode returns the settings that were sent, in the order of the table.
func (r *settingsTableForm) decode(v *form.Values) ([]realm.SettingValue, error) {
	into := reflect.New(r.structType)
	if err := r.form.Decode(v, into.Interface()); err != nil {
		return nil, err
	}
	var out []realm.SettingValue
	for i, s := range r.table {
		var value any
		sent := false
		switch x := into.Elem().Field(i).Interface().(type) {
		case form.Opt[bool]:
			value, sent = x.Value, x.Set
		case form.Opt[int64]:
			value, sent = x.Value, x.Set
		case form.Opt[string]:
			value, sent = x.Value, x.Set
			if s.Null { // JSON, or plain text from older clients
				text := x.Value
				_ = json.Unmarshal([]byte(x.Value), &text)
				if value = text; text == "" || text == "default" || x.Value == "null" {
					value = nil
				}
			}
		case form.Null[bool]:
			sent = x.Set
			if !x.IsNull {
				value = x.Value
			}
		case form.NumberOrWord:
			sent = x.Set
			switch {
			// retention in days; -1 is stored for unlimited but clients must send the word
			case x.Set && !x.IsWord && !s.Null && x.Number < 1:
				return nil, form.BadValue(s.Name, x.Number)
			case !x.IsWord:
				value = x.Number
			case x.Word != "unlimited":
				return nil, form.BadValue(s.Name, x.Word)
			case !s.Null:
				value = int64(-1)
			}
		}
		if sent {
			out = append(out, realm.SettingValue{Name: s.Name, Value: value})
		}
	}
	return out, nil
}
