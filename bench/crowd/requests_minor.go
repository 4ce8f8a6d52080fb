package crowd

import "math/rand/v2"

// minorSteps are requests that hardly affect later requests. A new kind of request is a new step, as in requestSteps.
var minorSteps = []Step[requestStep]{{"minor", 18, (*RequestGenerator).minor}}

// NextMinor returns a request that hardly affects later requests: typing, presence, attachments, settings. It may be
// empty. It draws from dice if OneSource is set, else each step draws from its own source.
func (a *RequestGenerator) NextMinor(dice *rand.Rand) (x Request) {
	defer func(r *rand.Rand) { a.rng = r }(a.rng)
	a.minorTurns++
	do := (*RequestGenerator).minor
	if a.rng = dice; !a.OneSource {
		first := Draw(a.seed, a.minorTurns, minorSteps)[0]
		a.rng, do = first.Random, first.Do
	}
	x.User = a.rng.IntN(len(a.People))
	do(a, &x)
	return x
}

func (a *RequestGenerator) minor(x *Request) {
	switch a.rng.IntN(18) {
	case 0:
		a.set(x, "POST /typing", params{"op": choose(a, "start", "stop"), "type": "direct", "to": a.userIDs(2)})
	case 1:
		a.set(x, "POST /typing", params{"op": choose(a, "start", "stop"), "type": "stream",
			"stream_id": a.channelID(), "topic": a.topic()})
	case 2:
		if id, ok := a.pick(x, "message", 90); ok {
			a.set(x, "POST /messages/{message_id}/typing", params{"message_id": id, "op": choose(a, "start", "stop")})
		}
	case 3:
		a.set(x, "POST /users/me/presence", params{"status": choose(a, "active", "idle"), "last_update_id": -1})
	case 4, 5:
		a.create(x, "attachment", "GET /attachments", params{})
	case 6:
		if id, ok := a.pick(x, "attachment", 90); ok {
			a.set(x, "DELETE /attachments/{attachment_id}", params{"attachment_id": id})
		}
	case 7:
		if id, ok := a.pick(x, "message", 95); ok { // edits that change the attachments of a message
			a.set(x, "PATCH /messages/{message_id}", params{"message_id": id, "content": a.text() + " " + a.text()})
		}
	case 8:
		a.set(x, "PATCH /settings", params{"send_read_receipts": a.coin()})
	case 9:
		x.User = 0
		a.set(x, "PATCH /realm", params{"message_edit_history_visibility_policy": choose(a, "all", "all", "moves",
			"none")})
	case 10:
		x.File = a.numbered("content")
		a.create(x, "file", "POST /user_uploads", params{})
	case 11:
		a.set(x, "POST /zcommand", params{"command": choose(a, "/dark", "/light", "/fluid-width")})
	case 12:
		a.set(x, "POST /users/me/subscriptions/properties",
			params{"subscription_data": []params{{"stream_id": a.channelID(), "property": "color",
				"value": choose(a, "#aabbcc", "#112233")}}})
	case 13: // a recent message has few reactions, so that removing one sometimes succeeds
		if list := a.created["message"]; len(list) > 0 {
			a.set(x, choose(a, "POST", "DELETE")+" /messages/{message_id}/reactions",
				params{"message_id": list[len(list)-1].id, "emoji_name": "tada"})
			x.User = choose(a, 0, 1, 2)
		}
	case 14:
		x.User = 0
		a.set(x, "PATCH /realm/user_settings_defaults",
			choose(a, params{"color_scheme": choose(a, 1, 2, 3)},
				params{"twenty_four_hour_time": choose[any](a, true, false, nil)},
				params{"emojiset": choose(a, "google", "twitter")}))
	case 15:
		x.User = 0
		a.set(x, "PATCH /realm", choose(a, params{"jitsi_server_url": choose(a, `"https://meet.example.org"`,
			`"default"`)}, params{"message_content_delete_limit_seconds": choose[any](a, 60, `"unlimited"`)},
			params{"move_messages_within_stream_limit_seconds": choose[any](a, 60, `"unlimited"`)},
			params{"move_messages_between_streams_limit_seconds": choose[any](a, 60, `"unlimited"`)}))
	case 16:
		x.User = 0
		g := a.group()
		a.set(x, "POST /user_groups/{user_group_id}/subgroups",
			params{"user_group_id": choose(a, a.created["group"]...).id, choose(a, "add", "delete"): []any{g}})
		if a.rng.IntN(3) == 0 {
			a.set(x, "PATCH /user_groups/{user_group_id}", params{"user_group_id": g, "deactivated": a.coin()})
		}
	case 17:
		x.User = 0
		if id, ok := a.pick(x, "folder", 0); ok {
			order := []any{}
			for _, f := range a.created["folder"] {
				order = append([]any{f.id}, order...)
			}
			a.set(x, "PATCH /channel_folders", params{"order": order})
			if a.coin() {
				a.set(x, "PATCH /channel_folders/{channel_folder_id}",
					params{"channel_folder_id": id, "description": a.text(), "name": a.numbered("folder")})
			}
		}
	}
}
