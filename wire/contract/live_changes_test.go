package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/wire/shape"
)

// everyCapability holds all client capabilities.
var everyCapability = map[string]bool{
	"notification_settings_null": true, "bulk_message_deletion": true, "user_avatar_url_field_optional": true,
	"stream_typing_notifications": true, "user_settings_object": true, "linkifier_url_template": true,
	"user_list_incomplete": true, "include_deactivated_groups": true, "archived_channels": true,
	"empty_topic_name": true, "simplified_presence_events": true, "individual_emoji_changes": true,
}

// A liveQueue is an event queue and a summary of the events received from it.
type liveQueue struct {
	name            string
	who             *liveUser
	allCapabilities bool // registered with all client capabilities; otherwise with none
	queue           string
	last            json.Number    // the last acknowledged event
	kinds           map[string]int // number of events by type
	message         int            // ID of the newest message received
}

func (lt *liveTest) register(name, who string, pairs ...any) *liveQueue {
	lt.Helper()
	got := lt.mustCall(who, "POST", "/register", pairs...)
	last, _ := got["last_event_id"].(json.Number)
	return &liveQueue{name: name, who: lt.users[who], allCapabilities: slices.Contains(pairs,
		any("client_capabilities")), queue: text(got["queue_id"]), last: last, kinds: map[string]int{}}
}

// fetchEvents gets the available events of a queue and checks each one.
func (lt *liveTest) fetchEvents(l *liveQueue) {
	lt.Helper()
	got := lt.call(l.who, "GET", "/events", "queue_id", l.queue, "last_event_id", l.last, "dont_block", true)
	if got["result"] != "success" {
		lt.Errorf("%s: %v", l.name, got)
		return
	}
	before, _ := l.last.Int64()
	for _, e := range list(got["events"]) {
		event := e.(map[string]any)
		id, _ := event["id"].(json.Number)
		if n, _ := id.Int64(); n <= before {
			lt.Errorf("%s: event %d after %d", l.name, n, before)
		} else {
			before, l.last = n, id
		}
		kind := text(event["type"])
		if op := text(event["op"]); op != "" {
			kind += "/" + op
		}
		l.kinds[kind]++
		if wrong := capabilityError(kind, event, l.allCapabilities); wrong != "" {
			lt.Errorf("%s: %s: %s: %s", l.name, kind, wrong, shape.Sample(event))
		}
		if message, ok := event["message"].(map[string]any); ok {
			l.message = number(message["id"])
		}
	}
}

// waitForMessage waits until a queue has received a message. It reports false after eventWait.
func (lt *liveTest) waitForMessage(l *liveQueue, message int) bool {
	lt.Helper()
	for deadline := time.Now().Add(eventWait); time.Now().Before(deadline); {
		if lt.fetchEvents(l); l.message == message {
			return true
		}
	}
	return false
}

// TestLiveChanges makes a change of every kind. Clients with all capabilities and clients with none receive the
// events.
func TestLiveChanges(t *testing.T) {
	lt := newLiveTest(t)
	lt.populate()
	full := []any{"client_capabilities", everyCapability, "apply_markdown", true, "slim_presence", true,
		"include_subscribers", "partial", "idle_queue_timeout", 3600}
	old := []any{"client_gravatar", true, "include_subscribers", "true"}
	queues := []*liveQueue{
		lt.register("owner, everything", "owner", full...),
		lt.register("owner, nothing", "owner", old...),
		lt.register("member, everything", "member", full...),
		lt.register("member, nothing", "member", old...),
		lt.register("guest, everything", "guest", full...),
		lt.register("guest, nothing", "guest", old...),
	}
	for _, part := range []func(){
		lt.changeMessages, lt.changeDrafts, lt.changeChannels, lt.changeOwnUser, lt.changeGroups,
		lt.changeOrganization, lt.changeBots, lt.changeUsers,
	} {
		part()
		for _, l := range queues {
			lt.fetchEvents(l)
		}
	}
	lt.waitForLastMessage(queues)

	kinds := map[string]int{}
	for _, l := range queues {
		for kind, n := range l.kinds {
			kinds[kind] += n
		}
	}
	var silent []string
	for kind := range lt.contract.events {
		if kinds[kind] == 0 && !slices.Contains(unreachableEvents, kind) {
			silent = append(silent, kind)
		}
	}
	slices.Sort(silent)
	t.Logf("%d of %d forms of events were received", len(kinds), len(lt.contract.events))
	if len(silent) > 0 {
		t.Errorf("%d forms were not received, though their changes were made:\n  %s", len(silent),
			strings.Join(silent, "\n  "))
	}

	// A new key ends the queues of the old one, so this is the last change.
	lt.mustCall("member", "POST", "/users/me/api_key/regenerate")
	if got := lt.call(nil, "POST", "/dev_fetch_api_key", "username", lt.users["member"].email); got["api_key"] != nil {
		lt.users["member"].key = text(got["api_key"])
	}

	// Registrations of the same kinds of clients return the final state.
	for _, who := range []string{"owner", "member", "guest"} {
		lt.mustCall(who, "POST", "/register", full...)
		lt.mustCall(who, "POST", "/register", old...)
	}
	lt.reportFindings()
}

// unreachableEvents are events that this test cannot cause.
var unreachableEvents = []string{
	"realm/deactivated",                 // would end the test
	"has_zoom_token", "has_webex_token", // need services of third parties
	"web_reload_client", "restart", // need a restart or an upgrade
	"realm_filters", "realm_bot/remove", // described, never sent
	"realm_emoji/edit", "realm_emoji/update_one", // one of the two is sent; see the amendments
	"heartbeat",         // sent to a waiting poll
	"realm_export",      // sent when the export is complete
	"realm_user/remove", // in organizations that hide users from guests
	"device/update",     // needs a push service
}

// waitForLastMessage checks that each queue receives all events, up to one last message.
func (lt *liveTest) waitForLastMessage(queues []*liveQueue) {
	lt.Helper()
	id := lt.mustCall("owner", "POST", "/messages", "type", "private", "to",
		[]int{lt.savedID("member"), lt.savedID("guest")}, "content", "the end")["id"]
	if id == nil {
		return
	}
	for _, l := range queues {
		if !lt.waitForMessage(l, number(id)) {
			lt.Errorf("%s: the last message did not arrive in %v", l.name, eventWait)
		}
	}
}

func (lt *liveTest) changeMessages() {
	send := func(who string, pairs ...any) int {
		return number(lt.mustCall(who, "POST", "/messages", pairs...)["id"])
	}
	put := func(name string, id int) {
		if id != 0 {
			lt.saved[name] = fmt.Sprint(id)
		}
	}
	first := send("owner", "type", "stream", "to", "conform", "topic", "", "content", "no topic, @**all**")
	second := send("owner", "type", "channel", "to", lt.savedID("stream_id"), "topic", "moving", "content", "/me moves")
	direct := send("owner", "type", "direct", "to", []int{lt.savedID("member")}, "content", "direct")
	send("member", "type", "private", "to", []int{lt.savedID("owner"), lt.savedID("guest")}, "content", "three of us")
	send("guest", "type", "private", "to", []int{lt.savedID("guest")}, "content", "to myself")
	put("first", first)
	put("second", second)
	put("direct", direct)
	lt.mustCall("member", "POST", "/messages/{first}/reactions", "emoji_name", "heart")
	lt.mustCall("member", "DELETE", "/messages/{first}/reactions", "emoji_name", "heart")
	lt.mustCall("member", "POST", "/messages/{direct}/reactions", "emoji_name", "zulip")
	lt.mustCall("owner", "PATCH", "/messages/{first}", "content", "edited **text**")
	lt.mustCall("owner", "PATCH", "/messages/{direct}", "content", "edited directly")
	lt.mustCall("owner", "PATCH", "/messages/{second}", "topic", "moved", "propagate_mode", "change_all")
	lt.mustCall("owner", "PATCH", "/messages/{second}", "topic", "✔ moved", "propagate_mode", "change_all")
	lt.mustCall("owner", "POST", "/users/me/subscriptions", "subscriptions",
		[]any{map[string]any{"name": "elsewhere"}}, "principals", []int{lt.savedID("owner"), lt.savedID("member")})
	lt.saveChannel("elsewhere", "owner", "elsewhere")
	lt.mustCall("owner", "PATCH", "/messages/{second}", "stream_id", lt.savedID("elsewhere"), "propagate_mode",
		"change_all")
	lt.mustCall("member", "GET", "/messages/{second}/history")
	lt.mustCall("member", "GET", "/messages/{first}/read_receipts")
	for _, flag := range []string{"starred", "read"} {
		lt.mustCall("member", "POST", "/messages/flags", "messages", []int{first, direct}, "op", "add", "flag", flag)
		lt.mustCall("member", "POST", "/messages/flags", "messages", []int{first, direct}, "op", "remove", "flag", flag)
	}
	lt.mustCall("guest", "POST", "/messages/flags/narrow", "anchor", "newest", "num_before", 50, "num_after", 0, "op",
		"add", "flag", "read", "narrow", "[]")
	lt.mustCall("guest", "POST", "/messages/flags/narrow", "anchor", "newest", "num_before", 1, "num_after", 0, "op",
		"remove", "flag", "read", "narrow", "[]")
	lt.mustCall("guest", "POST", "/mark_stream_as_read", "stream_id", lt.savedID("stream_id"))
	lt.mustCall("guest", "POST", "/mark_topic_as_read", "stream_id", lt.savedID("stream_id"), "topic_name", "reading")
	lt.mustCall("guest", "POST", "/mark_all_as_read")
	for _, op := range []string{"start", "stop"} {
		lt.mustCall("owner", "POST", "/typing", "op", op, "type", "direct", "to", []int{lt.savedID("member")})
		lt.mustCall("owner", "POST", "/typing", "op", op, "type", "stream", "stream_id", lt.savedID("stream_id"),
			"topic", "")
		lt.mustCall("owner", "POST", "/messages/{first}/typing", "op", op)
		lt.mustCall("owner", "POST", "/messages/{direct}/typing", "op", op)
	}
	lt.mustCall("member", "POST", "/messages/render", "content", "*a* :tada: @**all** <time:2030-01-01T00:00:00Z>")
	poll := send("owner", "type", "stream", "to", "conform", "topic", "poll", "content", "/poll Which?\nThis\nThat")
	lt.mustCall("member", "POST", "/submessage", "message_id", poll, "msg_type", "widget", "content",
		`{"type":"vote","key":"canned,0","vote":1}`)
	got := lt.mustUpload("owner", "/user_uploads", "c.png", pixel)
	if link := text(got["url"]); link != "" {
		file := send("owner", "type", "stream", "to", "conform", "topic", "files", "content",
			"["+text(got["filename"])+"]("+link+")")
		put("file", file)
		lt.mustCall("owner", "PATCH", "/messages/{file}", "content", "no file any more")
		for _, a := range list(lt.mustCall("owner", "GET", "/attachments")["attachments"]) {
			if attachment := a.(map[string]any); "/user_uploads/"+text(attachment["path_id"]) == link {
				lt.save("attachment", attachment["id"])
				lt.mustCall("owner", "DELETE", "/attachments/{attachment}")
			}
		}
	}
	put("gone", send("owner", "type", "private", "to", []int{lt.savedID("member")}, "content", "soon gone"))
	lt.mustCall("owner", "DELETE", "/messages/{gone}")
	for range 2 {
		send("owner", "type", "stream", "to", "conform", "topic", "to be deleted", "content", "x")
	}
	lt.mustCall("owner", "POST", "/streams/{stream_id}/delete_topic", "topic_name", "to be deleted")
}

func (lt *liveTest) changeDrafts() {
	draft := map[string]any{"type": "stream", "to": []int{lt.savedID("stream_id")}, "topic": "t", "content": "c",
		"timestamp": 1700000000}
	if ids := list(lt.mustCall("member", "POST", "/drafts", "drafts", []any{draft})["ids"]); len(ids) == 1 {
		lt.save("draft", ids[0])
		draft["content"] = "more"
		lt.mustCall("member", "PATCH", "/drafts/{draft}", "draft", draft)
		lt.mustCall("member", "DELETE", "/drafts/{draft}")
		lt.call(lt.users["member"], "DELETE", lt.path("/drafts/{draft}")) // a 404 with a code
	}
	if lt.save("snippet", lt.mustCall("member", "POST", "/saved_snippets", "title", "t", "content",
		"c")["saved_snippet_id"]) {
		lt.mustCall("member", "PATCH", "/saved_snippets/{snippet}", "title", "u")
		lt.mustCall("member", "DELETE", "/saved_snippets/{snippet}")
	}
	if lt.save("scheduled", lt.mustCall("member", "POST", "/scheduled_messages", "type", "channel", "to",
		lt.savedID("stream_id"), "topic", "t", "content", "later", "scheduled_delivery_timestamp",
		farFuture)["scheduled_message_id"]) {
		lt.mustCall("member", "PATCH", "/scheduled_messages/{scheduled}", "content", "even later")
		lt.mustCall("member", "DELETE", "/scheduled_messages/{scheduled}")
	}
	if lt.save("reminder", lt.mustCall("member", "POST", "/reminders", "message_id", lt.savedID("message_id"),
		"scheduled_delivery_timestamp", farFuture)["reminder_id"]) {
		lt.mustCall("member", "DELETE", "/reminders/{reminder}")
	}
	lt.mustCall("member", "POST", "/navigation_views", "fragment", "inbox", "is_pinned", true)
	lt.mustCall("member", "PATCH", "/navigation_views/inbox", "is_pinned", false)
	lt.mustCall("member", "DELETE", "/navigation_views/inbox")
	lt.mustCall("member", "PATCH", "/navigation_views/narrow%2Fis%2Falerted", "name", "Alarms")
	if lt.save("device", lt.mustCall("member", "POST", "/register_client_device")["device_id"]) {
		lt.mustCall("member", "POST", "/remove_client_device", "device_id", lt.savedID("device"))
	}
}

func (lt *liveTest) changeChannels() {
	named := func(name string) []any { return []any{map[string]any{"name": name, "description": "of " + name}} }
	members := []int{lt.savedID("owner"), lt.savedID("member")}
	lt.mustCall("member", "POST", "/users/me/subscriptions", "subscriptions", named("public"), "announce", true)
	lt.mustCall("owner", "POST", "/users/me/subscriptions", "subscriptions", named("private"), "invite_only", true,
		"principals", members)
	lt.mustCall("owner", "POST", "/users/me/subscriptions", "subscriptions", named("for guests"), "principals",
		append(members, lt.savedID("guest")))
	lt.saveChannel("public", "member", "public")
	lt.saveChannel("private", "owner", "private")
	lt.save("created", lt.mustCall("owner", "POST", "/channels/create", "name", "created", "subscribers",
		members)["id"])
	lt.mustCall("owner", "POST", "/users/me/subscriptions", "subscriptions", named("public"), "principals",
		[]int{lt.savedID("other"), lt.savedID("guest")})
	lt.mustCall("other", "DELETE", "/users/me/subscriptions", "subscriptions", []string{"public"})
	lt.mustCall("owner", "DELETE", "/users/me/subscriptions", "subscriptions", []string{"private"}, "principals",
		[]int{lt.savedID("member")})
	lt.mustCall("member", "PATCH", "/users/me/subscriptions", "delete", []string{"public"})
	lt.mustCall("member", "PATCH", "/users/me/subscriptions", "add", named("public"))

	for _, p := range []struct {
		name  string
		value any
	}{{"color", "#c2c2c2"}, {"is_muted", true}, {"is_muted", false}, {"in_home_view", false}, {"pin_to_top", true},
		{"desktop_notifications", true}, {"audible_notifications", false}, {"push_notifications", true},
		{"email_notifications", true}, {"wildcard_mentions_notify", false}} {
		lt.mustCall("member", "POST", "/users/me/subscriptions/properties", "subscription_data",
			[]any{map[string]any{"stream_id": lt.savedID("public"), "property": p.name, "value": p.value}})
	}
	lt.mustCall("member", "PATCH", "/users/me/subscriptions/{public}", "property", "color", "value", `"#76ce90"`)
	for _, policy := range []int{1, 2, 3, 0} {
		lt.mustCall("member", "POST", "/user_topics", "stream_id", lt.savedID("public"), "topic", "t",
			"visibility_policy", policy)
	}
	lt.mustCall("member", "PATCH", "/users/me/subscriptions/muted_topics", "stream_id", lt.savedID("public"), "topic",
		"legacy", "op", "add")
	lt.mustCall("member", "PATCH", "/users/me/subscriptions/muted_topics", "stream_id", lt.savedID("public"), "topic",
		"legacy", "op", "remove")

	lt.mustCall("owner", "PATCH", "/streams/{public}", "description", "a *new* description")
	lt.mustCall("owner", "PATCH", "/streams/{public}", "new_name", "renamed")
	lt.mustCall("owner", "PATCH", "/streams/{public}", "message_retention_days", 30)
	lt.mustCall("owner", "PATCH", "/streams/{public}", "topics_policy", "disable_empty_topic")
	for _, setting := range []string{"can_add_subscribers_group", "can_remove_subscribers_group",
		"can_administer_channel_group", "can_send_message_group", "can_subscribe_group", "can_create_topic_group",
		"can_delete_any_message_group", "can_delete_own_message_group", "can_move_messages_out_of_channel_group",
		"can_move_messages_within_channel_group", "can_resolve_topics_group"} {
		lt.mustCall("owner", "PATCH", "/streams/{public}", setting,
			map[string]any{"new": map[string]any{"direct_members": members, "direct_subgroups": []int{}}})
	}
	lt.mustCall("owner", "PATCH", "/streams/{public}", "is_private", true, "history_public_to_subscribers", true)
	lt.mustCall("owner", "PATCH", "/streams/{public}", "is_private", false, "history_public_to_subscribers", true)

	lt.mustCall("owner", "POST", "/default_streams", "stream_id", lt.savedID("created"))
	lt.mustCall("owner", "DELETE", "/default_streams", "stream_id", lt.savedID("created"))
	lt.mustCall("owner", "POST", "/default_stream_groups/create", "group_name", "pack", "description", "several",
		"stream_names", []string{"created"})
	if lt.save("folder", lt.mustCall("owner", "POST", "/channel_folders/create", "name", "Second", "description",
		"*folder*")["channel_folder_id"]) {
		lt.mustCall("owner", "PATCH", "/channel_folders/{folder}", "name", "Drawer", "description", "renamed")
		lt.mustCall("owner", "PATCH", "/streams/{created}", "folder_id", lt.savedID("folder"))
		lt.mustCall("owner", "PATCH", "/streams/{created}", "folder_id", "null")
		var order []any
		for _, f := range list(lt.mustCall("owner", "GET", "/channel_folders", "include_archived",
			true)["channel_folders"]) {
			order = append([]any{f.(map[string]any)["id"]}, order...)
		}
		lt.mustCall("owner", "PATCH", "/channel_folders", "order", order)
		lt.mustCall("owner", "PATCH", "/channel_folders/{folder}", "is_archived", true)
	}
	lt.mustCall("owner", "DELETE", "/streams/{elsewhere}")
	lt.mustCall("owner", "PATCH", "/streams/{elsewhere}", "is_archived", false)
	lt.mustCall("owner", "DELETE", "/streams/{elsewhere}")
	lt.mustCall("owner", "GET", "/streams/{public}/email_address")
}
