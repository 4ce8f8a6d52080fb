package scim

import (
	"maps"
	"slices"
	"strings"

	"github.com/elimity-com/scim"
	scimerrors "github.com/elimity-com/scim/errors"
	scimfilter "github.com/elimity-com/scim/filter"
	"github.com/elimity-com/scim/schema"
	parser "github.com/scim2/filter-parser/v2"
)

// patched returns the attributes of a resource after operations, and the names of those that they are about.
func patched(before scim.Resource, operations []scim.PatchOperation, s schema.Schema) (
	after scim.ResourceAttributes, touched map[string]bool, err error,
) {
	after = scim.ResourceAttributes{}
	maps.Copy(after, before.Attributes)
	if before.ExternalID.Present() {
		after["externalId"] = before.ExternalID.Value()
	}
	touched, err = applyPatch(after, operations, s)
	return after, touched, err
}

// chosen returns the attributes with some names; those that are missing are nil.
func chosen(a scim.ResourceAttributes, names map[string]bool) scim.ResourceAttributes {
	out := scim.ResourceAttributes{}
	for name := range names {
		out[name] = a[name]
	}
	return out
}

// applyPatch applies operations, which the library has checked, to the attributes of a resource (RFC 7644, section
// 3.5.2). It returns the names of the attributes that they are about. Values inside of a are not modified.
func applyPatch(a scim.ResourceAttributes, operations []scim.PatchOperation, s schema.Schema) (map[string]bool, error) {
	touched := map[string]bool{}
	for _, o := range operations {
		if o.Path == nil {
			values, ok := o.Value.(map[string]any)
			if !ok {
				return nil, scimerrors.ScimErrorInvalidSyntax
			}
			for _, key := range slices.Sorted(maps.Keys(values)) {
				path, err := parser.ParsePath([]byte(key))
				if err != nil {
					return nil, scimerrors.ScimErrorInvalidPath
				}
				if err := applyOne(a, touched, o.Op, path, values[key], s); err != nil {
					return nil, err
				}
			}
			continue
		}
		if err := applyOne(a, touched, o.Op, *o.Path, o.Value, s); err != nil {
			return nil, err
		}
	}
	return touched, nil
}

// attributeNamed returns the attribute of a schema with a name in any case; false for externalId, which all have.
func attributeNamed(s schema.Schema, name string) (schema.CoreAttribute, string, bool) {
	for _, x := range s.Attributes {
		if strings.EqualFold(x.Name(), name) {
			return x, x.Name(), true
		}
	}
	if strings.EqualFold(name, schema.CommonAttributeExternalID) {
		return schema.CoreAttribute{}, schema.CommonAttributeExternalID, false
	}
	return schema.CoreAttribute{}, "", false
}

// applyOne applies one operation to one path.
func applyOne(
	a scim.ResourceAttributes, touched map[string]bool, op string, path parser.Path, value any, s schema.Schema,
) error {
	attribute, name, known := attributeNamed(s, path.AttributePath.AttributeName)
	if name == "" {
		return scimerrors.ScimErrorInvalidPath
	}
	if known && attribute.Mutability() == "readOnly" {
		return scimerrors.ScimErrorMutability
	}
	touched[name] = true
	sub := path.SubAttributeName()
	if sub == "" {
		sub = path.AttributePath.SubAttributeName()
	}
	if sub != "" {
		for _, x := range attribute.SubAttributes() {
			if strings.EqualFold(x.Name(), sub) {
				sub = x.Name()
			}
		}
	}
	switch {
	case !known || !attribute.MultiValued():
		return applySingle(a, op, name, sub, value)
	case path.ValueExpression != nil:
		return applyMatching(a, op, name, sub, value, path, attribute)
	}
	list, _ := a[name].([]any)
	list = append([]any(nil), list...)
	values, isList := value.([]any)
	if !isList && value != nil {
		values = []any{value}
	}
	switch {
	case op == scim.PatchOperationRemove && value == nil:
		delete(a, name)
		return nil
	case op == scim.PatchOperationRemove: // Microsoft Entra names the members to remove in the value
		a[name] = without(list, values)
		return nil
	case sub != "": // all values get the same part
		for i, x := range list {
			list[i] = withPart(x, sub, value)
		}
		if len(list) == 0 {
			list = []any{map[string]any{sub: value}}
		}
		a[name] = list
		return nil
	case op == scim.PatchOperationReplace:
		a[name] = values
		return nil
	}
	for _, x := range values {
		if m, ok := x.(map[string]any); ok && m["primary"] == true { // at most one value is the primary one
			for i := range list {
				list[i] = withPart(list[i], "primary", false)
			}
		}
	}
	a[name] = append(without(list, values), values...)
	return nil
}

// applySingle applies an operation to an attribute with one value.
func applySingle(a scim.ResourceAttributes, op, name, sub string, value any) error {
	parts := map[string]any{}
	if before, ok := a[name].(map[string]any); ok {
		for k, v := range before {
			parts[k] = v
		}
	}
	values, isComplex := value.(map[string]any)
	switch {
	case op == scim.PatchOperationRemove && sub == "":
		delete(a, name)
	case op == scim.PatchOperationRemove:
		delete(parts, sub)
		a[name] = parts
	case sub != "":
		parts[sub] = value
		a[name] = parts
	case isComplex: // the parts that are not named stay
		for k, v := range values {
			parts[k] = v
		}
		a[name] = parts
	default:
		a[name] = value
	}
	return nil
}

// applyMatching applies an operation to the values that a filter in brackets finds.
func applyMatching(
	a scim.ResourceAttributes, op, name, sub string, value any, path parser.Path, attribute schema.CoreAttribute,
) error {
	filter := scimfilter.NewFilterValidator(path.ValueExpression, schema.Schema{Attributes: attribute.SubAttributes()})
	list, _ := a[name].([]any)
	var out []any
	found := false
	for _, x := range list {
		m, _ := x.(map[string]any)
		if filter.PassesFilter(m) != nil {
			out = append(out, x)
			continue
		}
		found = true
		switch parts, isComplex := value.(map[string]any); {
		case op == scim.PatchOperationRemove && sub == "":
		case op == scim.PatchOperationRemove:
			y := withPart(x, sub, nil)
			delete(y, sub)
			out = append(out, y)
		case sub != "":
			out = append(out, withPart(x, sub, value))
		case isComplex:
			y := withPart(x, "", nil)
			for k, v := range parts {
				y[k] = v
			}
			out = append(out, y)
		default:
			return scimerrors.ScimErrorInvalidValue
		}
	}
	switch {
	case found || op == scim.PatchOperationRemove:
	case op == scim.PatchOperationReplace && name != "emails":
		return scimerrors.ScimErrorNoTarget
	case sub != "": // Microsoft Entra sets the part of a value that does not exist yet
		out = []any{map[string]any{sub: value}}
	default:
		out = append(out, value)
	}
	a[name] = out
	return nil
}

// withPart returns a copy of a complex value with a part set; with the name "", an unchanged copy.
func withPart(x any, name string, value any) map[string]any {
	out := map[string]any{}
	m, _ := x.(map[string]any)
	for k, v := range m {
		out[k] = v
	}
	if name != "" {
		out[name] = value
	}
	return out
}

// without returns the values of a list whose part "value" no other value has.
func without(list, others []any) []any {
	gone := map[any]bool{}
	for _, x := range others {
		if m, ok := x.(map[string]any); ok {
			gone[m["value"]] = true
		}
	}
	out := []any{}
	for _, x := range list {
		if m, ok := x.(map[string]any); !ok || !gone[m["value"]] {
			out = append(out, x)
		}
	}
	return out
}
