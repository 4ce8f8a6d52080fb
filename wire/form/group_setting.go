package form

// GroupSetting is who a permission is for: a user group, or people and groups named one by one.
type GroupSetting struct {
	Group     int64
	Direct    bool // Members and Subgroups say it, not Group
	Members   []int64
	Subgroups []int64
}

// GroupSettingUpdate is the changing form: Old, when given, is what the client believes the value to be.
type GroupSettingUpdate struct {
	New GroupSetting  `form:"new,required"`
	Old *GroupSetting `form:"old"`
}

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

func (g *GroupSetting) ParamSchema() map[string]any {
	ids := map[string]any{"type": "array", "items": map[string]any{"type": "integer"}}
	return oneOf(
		map[string]any{"type": "integer"},
		map[string]any{"type": "object", "required": []string{"direct_members", "direct_subgroups"},
			"properties":           map[string]any{"direct_members": ids, "direct_subgroups": ids},
			"additionalProperties": false},
	)
}
