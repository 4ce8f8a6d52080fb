package form

// GroupSetting is the value of a permission: a user group, or an anonymous set of users and groups.
type GroupSetting struct {
	Group     int64
	Direct    bool // the set is in Members and Subgroups; Group is not used
	Members   []int64
	Subgroups []int64
}

// GroupSettingUpdate changes a GroupSetting. Old, if given, is the value that the client expects to replace.
type GroupSettingUpdate struct {
	New GroupSetting  `form:"new,required"`
	Old *GroupSetting `form:"old"`
}

// DecodeValue accepts the ID of a group, or an object with members and subgroups.
func (g *GroupSetting) DecodeValue(v Value) (err *Error) {
	if v.kind != KindObject {
		g.Group, err = v.ID()
		return err
	}
	g.Direct = true
	for _, part := range []struct {
		key string
		ids *[]int64
	}{{"direct_members", &g.Members}, {"direct_subgroups", &g.Subgroups}} {
		list, sent := v.Get(part.key)
		if !sent {
			return fieldMissing().Key(part.key)
		}
		if *part.ids, err = list.Ints(); err != nil {
			return err.Key(part.key)
		}
	}
	for i := range v.list {
		if key := v.list[i].key; key != "direct_members" && key != "direct_subgroups" {
			return unexpected(key)
		}
	}
	return nil
}

// ParamSchema returns the JSON schema for the API description.
func (g *GroupSetting) ParamSchema() map[string]any {
	ids := map[string]any{"type": "array", "items": map[string]any{"type": "integer"}}
	return oneOf(
		map[string]any{"type": "integer"},
		map[string]any{"type": "object", "required": []string{"direct_members", "direct_subgroups"},
			"properties":           map[string]any{"direct_members": ids, "direct_subgroups": ids},
			"additionalProperties": false},
	)
}
