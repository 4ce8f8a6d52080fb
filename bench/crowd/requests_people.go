package crowd

import "fmt"

// people makes a request about accounts, bots or user groups.
func (a *RequestGenerator) people(x *Request) {
	u := a.userID()
	switch a.rng.IntN(20) {
	case 0:
		a.create(x, "user", "POST /users", params{"email": fmt.Sprintf("joined%d@example.org", a.count),
			"password": "some password", "full_name": a.numbered("Joined")})
	case 1:
		if u != a.People[0] {
			x.User = 0
			a.set(x, "DELETE /users/{user_id}", params{"user_id": u})
		}
	case 2, 3:
		x.User = 0
		a.set(x, "POST /users/{user_id}/reactivate", params{"user_id": u})
	case 4, 5:
		if u != a.People[0] {
			x.User = 0
			a.set(x, "PATCH /users/{user_id}", params{"user_id": u, "role": choose(a, 100, 200, 300, 400, 600)})
		}
	case 6:
		a.set(x, "PATCH /users/{user_id}", params{"user_id": u, "full_name": a.numbered("Called")})
	case 7:
		a.set(x, "PATCH /users/{user_id}", params{"user_id": u, "new_email": fmt.Sprintf("new%d@example.org", a.count)})
	case 8:
		a.create(x, "user", "POST /bots", params{"full_name": a.numbered("Bot"),
			"short_name": fmt.Sprintf("bot%d", a.count), "bot_type": choose(a, 1, 2, 3),
			"payload_url": `"https://example.org/hook"`})
	case 9:
		p := params{"bot_id": u}
		switch a.rng.IntN(6) {
		case 0:
			p["full_name"] = a.numbered("Robot")
		case 1:
			p["bot_owner_id"] = a.userID()
		case 2:
			p["role"] = choose(a, 200, 400, 600)
		case 3:
			p["default_sending_stream"] = a.names[a.channelID()]
		case 4:
			p["default_all_public_streams"] = a.coin()
		default:
			p["service_payload_url"] = `"https://example.org/other"`
		}
		a.set(x, "PATCH /bots/{bot_id}", p)
	case 10:
		a.set(x, "DELETE /bots/{bot_id}", params{"bot_id": u})
	case 11:
		a.set(x, "POST /bots/{bot_id}/api_key/regenerate", params{"bot_id": u})
	case 12:
		a.create(x, "group", "POST /user_groups/create",
			params{"name": a.numbered("group"), "description": "group", "members": a.userIDs(3),
				"subgroups": []any{a.group()}})
	case 13, 14:
		a.set(x, "POST /user_groups/{user_group_id}/members",
			params{"user_group_id": a.group(), choose(a, "add", "delete"): a.userIDs(2)})
	case 15:
		a.set(x, "POST /user_groups/{user_group_id}/subgroups",
			params{"user_group_id": a.group(), choose(a, "add", "delete"): []any{a.group()}})
	case 16:
		p := params{"user_group_id": a.group()}
		switch a.rng.IntN(4) {
		case 0:
			p["name"] = a.numbered("regroup")
		case 1:
			p["description"] = a.numbered("about")
		case 2:
			p["deactivated"] = a.coin()
		default:
			p[choose(a, "can_manage_group", "can_join_group", "can_leave_group", "can_mention_group",
				"can_add_members_group", "can_remove_members_group")] = params{"new": a.groupValue()}
		}
		a.set(x, "PATCH /user_groups/{user_group_id}", p)
	case 17:
		a.set(x, "POST /user_groups/{user_group_id}/deactivate", params{"user_group_id": a.group()})
	case 18:
		if id, ok := a.pick(x, "field", 0); ok {
			a.set(x, "PATCH /users/me/profile_data", params{"data": []params{{"id": id, "value": a.numbered("value")}}})
			if a.rng.IntN(3) == 0 {
				a.set(x, "DELETE /users/me/profile_data", params{"data": []any{id}})
			}
		}
	case 19:
		a.set(x, "POST /users/{user_id}/status", params{"user_id": u, "status_text": "set by others"})
	}
}
