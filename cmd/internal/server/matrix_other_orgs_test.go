package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/wire"
)

// matrixOtherOrganizations requests objects of one organization at the other, as its owner. The answer must be the same
// as for an object that never existed. Every endpoint with a parameter in its path is asked.
func matrixOtherOrganizations(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	p := s.outsider
	up := strings.TrimPrefix(s.must(s.keeper, "POST", "/user_uploads", "file", "ours").body["url"].(string),
		"/user_uploads/")
	realmPart, filePart, _ := strings.Cut(up, "/")
	begun := s.must(s.keeper, "POST", "/tus", "Tus-Resumable", "1.0.0", "Upload-Length", "5").at
	s.register(s.keeper)
	// Create more of everything than the other organization has, so that it does not have the same ids.
	var message, channel, group int64
	for n := range 40 {
		message = s.must(s.keeper, "POST", "/messages", "type", "direct", "to", []int64{s.keeper.id}, "content",
			"x").int("id")
		channel = s.must(s.keeper, "POST", "/channels/create", "name", fmt.Sprintf("c %d", n), "subscribers",
			[]int64{s.keeper.id}).int("id")
		group = s.must(s.keeper, "POST", "/user_groups/create", "name", fmt.Sprintf("g %d", n), "description", "",
			"members", []int64{}).int("group_id")
	}
	member := s.by["newcomer"]
	s.must(s.keeper, "POST", "/realm/emoji/ours", "file", picture)
	s.must(s.keeper, "POST", "/realm/domains", "domain", "ours.example", "allow_subdomains", false)
	s.must(s.keeper, "POST", "/navigation_views", "fragment", "ours", "is_pinned", true, "name", "ours")
	ids := map[string][2]string{ // an id of ours, and an id of nothing
		"message_id": {fmt.Sprint(message), "1999999"}, "stream_id": {fmt.Sprint(channel), "1999999"},
		"user_group_id": {fmt.Sprint(group), "1999999"},
		"user_id":       {fmt.Sprint(member.id), "1999999"}, "bot_id": {fmt.Sprint(s.by["bot"].id), "1999999"},
		"muted_user_id": {fmt.Sprint(member.id), "1999999"},
		"email":         {member.email, "nobody@" + ourHost}, "user_id_or_email": {member.email, "nobody@" + ourHost},
		"realm_id_str": {realmPart, realmPart},
		"filename:*":   {filePart, "none/none.txt"}, "emoji_name": {"ours", "nothing"},
		"domain": {"ours.example", "none.example"}, "fragment:*": {"ours", "nothing"}, "upload": {begun, "nothing"},
	}
	others := func(name string) [2]string { // kinds of objects that the other organization does not have
		if x, ok := ids[name]; ok {
			return x
		}
		return [2]string{"1", "1999999"}
	}
	params := pairs{"chart_name", "messages_sent_by_stream", "emoji_name", "wave", "op", "start", "report_type", "spam",
		"topic_name", "t", "property", "color",
		"value", `"#76ce90"`, "content", "x", "status_text", "x", "full_name", "X Y",
		"description", "x", "add", "[]", "pattern", "x", "url_template", "https://a.example/", "draft",
		map[string]any{"type": "private", "to": []int64{}, "topic": "", "content": "x"}, "title", "x",
		"is_pinned", true, "name", "xx", "hint", "x", "allow_subdomains", true, "new_description", "x", "stream_names",
		[]string{}}
	for _, e := range wire.Endpoints() {
		if !strings.Contains(e.Path, "{") || e.Dev || e.Open || e.APIKeyInQuery {
			continue
		}
		path, values := [2]string{e.Path, e.Path}, [2][]string{}
		for strings.Contains(path[0], "{") {
			name := path[0][strings.Index(path[0], "{")+1 : strings.Index(path[0], "}")]
			for i, x := range others(name) {
				path[i] = strings.Replace(path[i], "{"+name+"}", x, 1)
				values[i] = append(values[i], x)
			}
		}
		send := paramsFor(e, params)
		if e.Resumable() {
			send = pairs{"Tus-Resumable", "1.0.0", "Upload-Offset", "0"}
		}
		if e.Path == "/realm/emoji/{emoji_name}" && e.Method == "POST" {
			continue // creates an emoji
		}
		got, void := s.call(p, e.Method, path[0], send...), s.call(p, e.Method, path[1], send...)
		show := func(r reply, i int) string {
			raw := r.raw
			for _, x := range values[i] {
				if len(x) == 1 {
					raw = strings.NewReplacer("'"+x+"'", "'#'", " "+x+" ", " # ").Replace(raw)
				} else {
					raw = strings.ReplaceAll(raw, x, "#")
				}
			}
			return fmt.Sprint(r.status, " ", raw)
		}
		s.check(show(got, 0), show(void, 1), "%s: %s %s", p.name, e.Method, e.Path)
		s.check(shownOrAbsent(got.msg() == ""), "absent", "%s: %s %s succeeds", p.name, e.Method, e.Path)
	}
	for _, q := range []struct {
		name string
		got  reply
		want string
	}{
		{"events of our queue", s.call(p, "DELETE", "/events", "queue_id", s.keeper.queue),
			"Bad event queue ID: " + s.keeper.queue},
		{"writing to a user of ours", s.call(p, "POST", "/messages", "type", "direct", "to", []int64{member.id},
			"content", "x"), fmt.Sprintf("Invalid user ID %d", member.id)},
		{"writing to an address of ours", s.call(p, "POST", "/messages", "type", "direct", "to", []string{member.email},
			"content", "x"), "Invalid email '" + member.email + "'"},
		{"writing in a channel of ours", s.call(p, "POST", "/messages", "type", "channel", "to", channel, "topic", "t",
			"content", "x"), fmt.Sprintf("Channel with ID '%d' does not exist", channel)},
		{"adding a user of ours", s.call(p, "POST", "/channels/create", "name", "mine", "subscribers",
			[]int64{member.id}), "No such user"},
		{"our key at theirs",
			s.call(&matrixUser{name: "keeper elsewhere", email: s.keeper.email, key: s.keeper.key, host: theirHost},
				"GET", "/users/me"), "Account is not associated with this subdomain"},
		{"reading by list", s.call(p, "GET", "/messages", "message_ids", []int64{message}), ""},
	} {
		s.check(q.got.msg(), q.want, "%s: %s", p.name, q.name)
		s.check(shownOrAbsent(strings.Contains(q.got.raw, `"id":`+fmt.Sprint(message))), "absent", "%s: %s shows it",
			p.name, q.name)
	}
	s.check(s.call(s.keeper, "PATCH", "/tus/"+begun, "Tus-Resumable", "1.0.0", "Upload-Offset", "1").msg(), "",
		"%s: PATCH /tus/{upload} afterwards", s.keeper.name)
	s.summary()
}

// paramsFor returns the parameters of an endpoint: those of all endpoints, and what this one needs besides.
func paramsFor(e wire.Endpoint, params pairs) pairs {
	switch e.Method + " " + e.Path {
	case "POST /users/{user_id}/api_keys":
		return append(slices.Clone(params), "label", "x")
	case "POST /compliance_exports/{request_id}":
		return append(slices.Clone(params), "approve", true)
	case "PUT /bots/{bot_id}/commands":
		return append(slices.Clone(params), "commands", []any{})
	case "PATCH /default_stream_groups/{group_id}/streams":
		return append(slices.Clone(params), "op", "add")
	}
	return params
}

// matrixMissingObjects requests deleted objects, and ids that no object ever had. The answer must be the same as for an
// object that never existed, and no id may be mistaken for another one because it was truncated.
func matrixMissingObjects(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	k := s.keeper
	channel := s.must(k, "POST", "/channels/create", "name", "here", "subscribers", []int64{k.id}).int("id")
	draft := map[string]any{"type": "private", "to": []int64{}, "topic": "", "content": "x"}
	soon := s.now.Load() + day
	said := func() int64 {
		return s.must(k, "POST", "/messages", "type", "direct", "to", []int64{k.id}, "content", "x").int("id")
	}
	there := said()
	s.must(k, "POST", "/user_uploads", "file", "x")
	gone := map[string]string{}
	for _, x := range []struct {
		name, remove string
		id           int64
	}{
		{"message_id", "/messages/%d", said()},
		{"draft_id", "/drafts/%d", nums(s.must(k, "POST", "/drafts", "drafts", []any{draft}).body["ids"])[0]},
		{"scheduled_message_id", "/scheduled_messages/%d",
			s.must(k, "POST", "/scheduled_messages", "type", "direct", "to", []int64{k.id}, "content", "x",
				"scheduled_delivery_timestamp", soon).int("scheduled_message_id")},
		{"reminder_id", "/reminders/%d", s.must(k, "POST", "/reminders", "message_id", there,
			"scheduled_delivery_timestamp", soon).int("reminder_id")},
		{"saved_snippet_id", "/saved_snippets/%d",
			s.must(k, "POST", "/saved_snippets", "title", "x", "content", "x").int("saved_snippet_id")},
		{"attachment_id", "/attachments/%d",
			num(objects(s.must(k, "GET", "/attachments").body["attachments"])[0]["id"])},
		{"field_id", "/realm/profile_fields/%d",
			s.must(k, "POST", "/realm/profile_fields", "name", "x", "field_type", 1).int("id")},
		{"filter_id", "/realm/filters/%d", s.must(k, "POST", "/realm/filters", "pattern", "x(?P<id>[0-9]+)",
			"url_template", "https://a.example/{id}").int("id")},
		{"playground_id", "/realm/playgrounds/%d",
			s.must(k, "POST", "/realm/playgrounds", "name", "x", "pygments_language", "Go", "url_template",
				"https://a.example/{code}").int("id")},
	} {
		s.must(k, "DELETE", fmt.Sprintf(x.remove, x.id))
		gone[x.name] = fmt.Sprint(x.id)
	}
	here := map[string]int64{"message_id": there, "stream_id": channel, "user_id": k.id,
		"muted_user_id": s.by["member"].id, "bot_id": s.by["bot"].id, "user_group_id": int64(s.groups["role:members"])}
	params := pairs{"chart_name", "messages_sent_by_stream", "emoji_name", "wave", "op", "start", "report_type", "spam",
		"topic_name", "t", "property", "color",
		"value", `"#76ce90"`, "content", "x", "status_text", "x", "full_name", "X Y",
		"description", "x", "add", "[]", "pattern", "x", "url_template", "https://a.example/", "draft", draft, "title",
		"x", "name", "xx", "hint", "x", "new_description", "x", "stream_names", []string{}}
	for _, e := range wire.Endpoints() {
		if strings.Count(e.Path, "{") != 1 || e.Dev || e.Open || e.APIKeyInQuery || e.Resumable() {
			continue
		}
		from, to := strings.Index(e.Path, "{"), strings.Index(e.Path, "}")
		name := e.Path[from+1 : to]
		numbers := []string{"9007199254740993", "9223372036854775807", "4294967297"}
		switch {
		case here[name] != 0:
			numbers = append(numbers, fmt.Sprint(1<<32+here[name]))
		case gone[name] == "" && !strings.HasSuffix(name, "_id"):
			continue
		}
		if gone[name] != "" {
			numbers = append(numbers, gone[name])
		}
		ask := func(id string) string {
			r := s.call(k, e.Method, e.Path[:from]+id+e.Path[to+1:], paramsFor(e, params)...)
			s.check(shownOrAbsent(r.msg() == ""), "absent", "%s: %s %s of %s succeeds", k.name, e.Method, e.Path, id)
			return fmt.Sprint(r.status, " ", strings.ReplaceAll(r.raw, id, "#"))
		}
		void := ask("1999999")
		for _, id := range numbers {
			s.check(ask(id), void, "%s: %s %s of %s", k.name, e.Method, e.Path, id)
		}
	}
	s.summary()
}
