package rocketchat

import (
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"parley/wire/imports"
)

// fieldKind is the kind of a field's value.
type fieldKind int

const (
	textField fieldKind = iota
	timeField
	flagField
	listField
	textsField
	documentField
)

// field is a field of documents that is read.
type field struct {
	name string
	kind fieldKind
}

// fieldsOf are the fields that are read, by collection.
var fieldsOf = map[string][]field{
	"users": {{"_id", textField}, {"username", textField}, {"name", textField}, {"type", textField},
		{"roles", textsField}, {"__rooms", textsField}, {"createdAt", timeField}, {"active", flagField},
		{"emails", listField}},
	"rocketchat_room": {{"_id", textField}, {"t", textField}, {"name", textField}, {"fname", textField},
		{"description", textField}, {"prid", textField}, {"teamId", textField}, {"teamMain", flagField},
		{"ro", flagField}, {"archived", flagField}, {"default", flagField}, {"ts", timeField}, {"uids", textsField},
		{"u", documentField}},
	messageCollection: {{"_id", textField}, {"rid", textField}, {"t", textField}, {"msg", textField},
		{"ts", timeField}, {"u", documentField}, {"u._id", textField}, {"mentions", listField},
		{"channels", listField}, {"reactions", documentField}, {"tmid", textField}, {"replies", textsField},
		{"file", documentField}, {"files", listField}, {"_hidden", flagField}, {"pinned", flagField},
		{"starred", listField}},
	"rocketchat_custom_emoji": {{"name", textField}, {"aliases", textsField}, {"extension", textField}},
	"rocketchat_uploads": {{"_id", textField}, {"name", textField}, {"description", textField},
		{"userId", textField}},
	"instances": {{"_createdAt", timeField}},
}

// checkFields reports the fields of a document whose values are of another kind, and which are left out for that.
func checkFields(d bson.Raw, fields []field, in imports.Reading, at position) {
	if in.Bad == nil {
		return
	}
	for _, f := range fields {
		v := d.Lookup(strings.Split(f.name, ".")...)
		if v.Type == 0 || v.Type == bson.TypeNull || v.Type == bson.TypeUndefined {
			continue
		}
		if why := f.kind.fault(v); why != "" {
			in.Bad("values", why+": the value is left out", at.String()+", "+f.name)
		}
		if f.kind != textsField {
			continue
		}
		for i, x := range list(v) {
			if why := textField.fault(x); why != "" {
				in.Bad("values", why+": the value is left out", at.String()+", "+f.name+"["+strconv.Itoa(i)+"]")
			}
		}
	}
}

// fault returns why a value does not fit; "": it does.
func (k fieldKind) fault(v bson.RawValue) string {
	var fit []bson.Type
	why := ""
	switch k {
	case textField:
		why, fit = "not a text", []bson.Type{bson.TypeString, bson.TypeObjectID, bson.TypeInt32, bson.TypeInt64,
			bson.TypeDouble}
	case timeField:
		if millis(v) > 0 {
			return ""
		}
		why = "not a time"
	case flagField:
		why, fit = "not true or false", []bson.Type{bson.TypeBoolean}
	case listField, textsField:
		why, fit = "not a list", []bson.Type{bson.TypeArray}
	case documentField:
		why, fit = "not a document", []bson.Type{bson.TypeEmbeddedDocument}
	}
	if slices.Contains(fit, v.Type) {
		return ""
	}
	return why
}
