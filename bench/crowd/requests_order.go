package crowd

// reorder makes a request that reorders linkifiers or profile fields, or changes a group of default channels. It
// returns false if there is nothing to reorder. These requests came later than the named seeds of TestMirrors:
// WithReordering switches them on, so that the sequences of those seeds stay the same.
func (a *RequestGenerator) reorder(x *Request) bool {
	reversed := func(kind string) []any {
		var ids []any
		for _, t := range a.created[kind] {
			ids = append([]any{t.id}, ids...)
		}
		return ids
	}
	x.User = 0 // the user with the most rights
	switch a.count / orderEvery % 4 {
	case 0:
		a.set(x, "PATCH /realm/linkifiers", params{"ordered_linkifier_ids": reversed("linkifier")})
		return len(a.created["linkifier"]) > 0
	case 1:
		a.set(x, "PATCH /realm/profile_fields", params{"order": reversed("field")})
		return len(a.created["field"]) > 0
	}
	id, ok := a.pick(x, "defaults", 0)
	if !ok {
		return false
	}
	if a.count/orderEvery%4 == 2 {
		a.set(x, "PATCH /default_stream_groups/{group_id}",
			params{"group_id": id, "new_description": a.text()})
	} else {
		a.set(x, "PATCH /default_stream_groups/{group_id}/streams", params{"group_id": id,
			"op": choose(a, "add", "remove"), "stream_names": []string{a.names[a.channelID()]}})
	}
	return true
}

// orderEvery is the number of requests from one reordering to the next.
const orderEvery = 40
