package crowd

// reorder makes a request that reorders linkifiers or profile fields, or changes a group of default channels.
func (a *RequestGenerator) reorder(x *Request) {
	reversed := func(kind string) []any {
		var ids []any
		for _, t := range a.created[kind] {
			ids = append([]any{t.id}, ids...)
		}
		return ids
	}
	x.User = 0 // the user with the most rights
	switch kind := a.rng.IntN(4); kind {
	case 0:
		if ids := reversed("linkifier"); len(ids) > 0 {
			a.set(x, "PATCH /realm/linkifiers", params{"ordered_linkifier_ids": ids})
		}
	case 1:
		if ids := reversed("field"); len(ids) > 0 {
			a.set(x, "PATCH /realm/profile_fields", params{"order": ids})
		}
	default:
		id, ok := a.pick(x, "defaults", 0)
		if ok && kind == 2 {
			a.set(x, "PATCH /default_stream_groups/{group_id}",
				params{"group_id": id, "new_description": a.text()})
		} else if ok {
			a.set(x, "PATCH /default_stream_groups/{group_id}/streams", params{"group_id": id,
				"op": choose(a, "add", "remove"), "stream_names": []string{a.names[a.channelID()]}})
		}
	}
}
