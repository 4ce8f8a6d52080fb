package crowd

// order asks to put linkifiers or profile fields into another order, or to change a group of default channels. It
// returns false if there is nothing to order. These requests came later than the named seeds of TestMirrors: WithOrders
// switches them on, so that the stories of those seeds stay as they were.
func (a *Askers) order(x *Ask) bool {
	reversed := func(kind string) []any {
		var ids []any
		for _, t := range a.known[kind] {
			ids = append([]any{t.id}, ids...)
		}
		return ids
	}
	x.User = 0 // the user with the most rights
	switch a.count / orderEvery % 4 {
	case 0:
		a.ask(x, "PATCH /realm/linkifiers", params{"ordered_linkifier_ids": reversed("linkifier")})
		return len(a.known["linkifier"]) > 0
	case 1:
		a.ask(x, "PATCH /realm/profile_fields", params{"order": reversed("field")})
		return len(a.known["field"]) > 0
	}
	id, ok := a.one(x, "defaults", 0)
	if !ok {
		return false
	}
	if a.count/orderEvery%4 == 2 {
		a.ask(x, "PATCH /default_stream_groups/{group_id}",
			params{"group_id": id, "new_description": a.text()})
	} else {
		a.ask(x, "PATCH /default_stream_groups/{group_id}/streams", params{"group_id": id,
			"op": choose(a, "add", "remove"), "stream_names": []string{a.names[a.somewhere()]}})
	}
	return true
}

// orderEvery is how many requests come between two of order.
const orderEvery = 40
