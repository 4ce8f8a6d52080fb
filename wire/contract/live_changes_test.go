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

// everyCapability is what the most modern client says it understands.
var everyCapability = map[string]bool{
	"notification_settings_null": true, "bulk_message_deletion": true, "user_avatar_url_field_optional": true,
	"stream_typing_notifications": true, "user_settings_object": true, "linkifier_url_template": true,
	"user_list_incomplete": true, "include_deactivated_groups": true, "archived_channels": true,
	"empty_topic_name": true, "simplified_presence_events": true, "individual_emoji_changes": true,
}

// A listener is one queue and what came through it.
type liveQueue struct {
	name            string
	who             *liveUser
	allCapabilities bool // understands everything there is; else nothing
	queue           string
	last            json.Number    // the event it has acknowledged
	kinds           map[string]int // how often it heard what
	message         int            // the newest message it heard of
}

func (w *liveTest) register(name, who string, pairs ...any) *liveQueue {
	w.Helper()
	got := w.mustCall(who, "POST", "/register", pairs...)
	last, _ := got["last_event_id"].(json.Number)
	return &liveQueue{name: name, who: w.users[who], allCapabilities: slices.Contains(pairs, any("client_capabilities")), queue: text(got["queue_id"]), last: last, kinds: map[string]int{}}
}

// fetchEvents fetches what has come; every event is checked on the way.
func (w *liveTest) fetchEvents(l *liveQueue) {
	w.Helper()
	got := w.call(l.who, "GET", "/events", "queue_id", l.queue, "last_event_id", l.last, "dont_block", true)
	if got["result"] != "success" {
		w.Errorf("%s: %v", l.name, got)
		return
	}
	before, _ := l.last.Int64()
	for _, e := range list(got["events"]) {
		event := e.(map[string]any)
		id, _ := event["id"].(json.Number)
		if n, _ := id.Int64(); n <= before {
			w.Errorf("%s: event %d after %d", l.name, n, before)
		} else {
			before, l.last = n, id
		}
		kind := text(event["type"])
		if op := text(event["op"]); op != "" {
			kind += "/" + op
		}
		l.kinds[kind]++
		if wrong := capabilityError(kind, event, l.allCapabilities); wrong != "" {
			w.Errorf("%s: %s: %s: %s", l.name, kind, wrong, shape.Sample(event))
		}
		if message, ok := event["message"].(map[string]any); ok {
			l.message = number(message["id"])
		}
	}
}

// waitForMessage waits until a listener has waitForMessage of a message.
func (w *liveTest) waitForMessage(l *liveQueue, message int) bool {
	w.Helper()
	for deadline := time.Now().Add(eventWait); time.Now().Before(deadline); {
		if w.fetchEvents(l); l.message == message {
			return true
		}
	}
	return false
}

// A change of every kind there is, heard by clients that understand everything and by clients that understand nothing.
func TestLiveChanges(t *testing.T) {
	w := newLiveTest(t)
	w.populate()
	full := []any{"client_capabilities", everyCapability, "apply_markdown", true, "slim_presence", true, "include_subscribers", "partial", "idle_queue_timeout", 3600}
	old := []any{"client_gravatar", true, "include_subscribers", "true"}
	listeners := []*liveQueue{
		w.register("owner, everything", "owner", full...),
		w.register("owner, nothing", "owner", old...),
		w.register("member, everything", "member", full...),
		w.register("member, nothing", "member", old...),
		w.register("guest, everything", "guest", full...),
		w.register("guest, nothing", "guest", old...),
	}
	for _, part := range []func(){
		w.changeMessages, w.changeDrafts, w.changeChannels, w.changeOwnUser, w.changeGroups, w.changeOrganization, w.changeBots, w.changeUsers,
	} {
		part()
		for _, l := range listeners {
			w.fetchEvents(l)
		}
	}
	w.waitForLastMessage(listeners)

	kinds := map[string]int{}
	for _, l := range listeners {
		for kind, n := range l.kinds {
			kinds[kind] += n
		}
	}
	var silent []string
	for kind := range w.contract.events {
		if kinds[kind] == 0 && !slices.Contains(unreachableEvents, kind) {
			silent = append(silent, kind)
		}
	}
	slices.Sort(silent)
	t.Logf("%d of %d forms of events were heard", len(kinds), len(w.contract.events))
	if len(silent) > 0 {
		t.Errorf("%d were not, though their changes were made:\n  %s", len(silent), strings.Join(silent, "\n  "))
	}

	// A new key ends the queues of the old one, so this comes last.
	w.mustCall("member", "POST", "/users/me/api_key/regenerate")
	if got := w.call(nil, "POST", "/dev_fetch_api_key", "username", w.users["member"].email); got["api_key"] != nil {
		w.users["member"].key = text(got["api_key"])
	}

	// What the organization has become is told anew, to the same kinds of clients.
	for _, who := range []string{"owner", "member", "guest"} {
		w.mustCall(who, "POST", "/register", full...)
		w.mustCall(who, "POST", "/register", old...)
	}
	w.reportFindings()
}

// unreachableEvents are events nothing in this test can bring about.
var unreachableEvents = []string{
	"realm/deactivated",                 // would end the test
	"has_zoom_token", "has_webex_token", // need a service of others
	"web_reload_client", "restart", // need a restart, or an upgrade
	"realm_filters", "realm_bot/remove", // described, never sent
	"realm_emoji/edit", "realm_emoji/update_one", // one of the two; see the amendments
	"heartbeat",         // comes to a poll that waits
	"realm_export",      // when the export is done
	"realm_user/remove", // organizations that hide users from guests
	"device/update",     // needs a push service
}

// waitForLastMessage makes sure that the end of the story has come through each queue.
func (w *liveTest) waitForLastMessage(listeners []*liveQueue) {
	w.Helper()
	id := w.mustCall("owner", "POST", "/messages", "type", "private", "to", []int{w.savedID("member"), w.savedID("guest")}, "content", "the end")["id"]
	if id == nil {
		return
	}
	for _, l := range listeners {
		if !w.waitForMessage(l, number(id)) {
			w.Errorf("%s: the last message did not come in %v", l.name, eventWait)
		}
	}
}

func (w *liveTest) changeMessages() {
	send := func(who string, pairs ...any) int {
		return number(w.mustCall(who, "POST", "/messages", pairs...)["id"])
	}
	put := func(name string, id int) {
		if id != 0 {
			w.saved[name] = fmt.Sprint(id)
		}
	}
	first := send("owner", "type", "stream", "to", "conform", "topic", "", "content", "no topic, @**all**")
	second := send("owner", "type", "channel", "to", w.savedID("stream_id"), "topic", "moving", "content", "/me moves")
	direct := send("owner", "type", "direct", "to", []int{w.savedID("member")}, "content", "direct")
	send("member", "type", "private", "to", []int{w.savedID("owner"), w.savedID("guest")}, "content", "three of us")
	send("guest", "type", "private", "to", []int{w.savedID("guest")}, "content", "to myself")
	put("first", first)
	put("second", second)
	put("direct", direct)
	w.mustCall("member", "POST", "/messages/{first}/reactions", "emoji_name", "heart")
	w.mustCall("member", "DELETE", "/messages/{first}/reactions", "emoji_name", "heart")
	w.mustCall("member", "POST", "/messages/{direct}/reactions", "emoji_name", "zulip")
	w.mustCall("owner", "PATCH", "/messages/{first}", "content", "edited **text**")
	w.mustCall("owner", "PATCH", "/messages/{direct}", "content", "edited directly")
	w.mustCall("owner", "PATCH", "/messages/{second}", "topic", "moved", "propagate_mode", "change_all")
	w.mustCall("owner", "PATCH", "/messages/{second}", "topic", "✔ moved", "propagate_mode", "change_all")
	w.mustCall("owner", "POST", "/users/me/subscriptions", "subscriptions", []any{map[string]any{"name": "elsewhere"}}, "principals", []int{w.savedID("owner"), w.savedID("member")})
	w.saveChannel("elsewhere", "owner", "elsewhere")
	w.mustCall("owner", "PATCH", "/messages/{second}", "stream_id", w.savedID("elsewhere"), "propagate_mode", "change_all")
	w.mustCall("member", "GET", "/messages/{second}/history")
	w.mustCall("member", "GET", "/messages/{first}/read_receipts")
	for _, flag := range []string{"starred", "read"} {
		w.mustCall("member", "POST", "/messages/flags", "messages", []int{first, direct}, "op", "add", "flag", flag)
		w.mustCall("member", "POST", "/messages/flags", "messages", []int{first, direct}, "op", "remove", "flag", flag)
	}
	w.mustCall("guest", "POST", "/messages/flags/narrow", "anchor", "newest", "num_before", 50, "num_after", 0, "op", "add", "flag", "read", "narrow", "[]")
	w.mustCall("guest", "POST", "/messages/flags/narrow", "anchor", "newest", "num_before", 1, "num_after", 0, "op", "remove", "flag", "read", "narrow", "[]")
	w.mustCall("guest", "POST", "/mark_stream_as_read", "stream_id", w.savedID("stream_id"))
	w.mustCall("guest", "POST", "/mark_topic_as_read", "stream_id", w.savedID("stream_id"), "topic_name", "reading")
	w.mustCall("guest", "POST", "/mark_all_as_read")
	for _, op := range []string{"start", "stop"} {
		w.mustCall("owner", "POST", "/typing", "op", op, "type", "direct", "to", []int{w.savedID("member")})
		w.mustCall("owner", "POST", "/typing", "op", op, "type", "stream", "stream_id", w.savedID("stream_id"), "topic", "")
		w.mustCall("owner", "POST", "/messages/{first}/typing", "op", op)
		w.mustCall("owner", "POST", "/messages/{direct}/typing", "op", op)
	}
	w.mustCall("member", "POST", "/messages/render", "content", "*a* :tada: @**all** <time:2030-01-01T00:00:00Z>")
	poll := send("owner", "type", "stream", "to", "conform", "topic", "poll", "content", "/poll Which?\nThis\nThat")
	w.mustCall("member", "POST", "/submessage", "message_id", poll, "msg_type", "widget", "content", `{"type":"vote","key":"canned,0","vote":1}`)
	got := w.mustUpload("owner", "/user_uploads", "c.png", pixel)
	if link := text(got["url"]); link != "" {
		file := send("owner", "type", "stream", "to", "conform", "topic", "files", "content", "["+text(got["filename"])+"]("+link+")")
		put("file", file)
		w.mustCall("owner", "PATCH", "/messages/{file}", "content", "no file any more")
		for _, a := range list(w.mustCall("owner", "GET", "/attachments")["attachments"]) {
			if attachment := a.(map[string]any); "/user_uploads/"+text(attachment["path_id"]) == link {
				w.save("attachment", attachment["id"])
				w.mustCall("owner", "DELETE", "/attachments/{attachment}")
			}
		}
	}
	put("gone", send("owner", "type", "private", "to", []int{w.savedID("member")}, "content", "soon gone"))
	w.mustCall("owner", "DELETE", "/messages/{gone}")
	for range 2 {
		send("owner", "type", "stream", "to", "conform", "topic", "to be deleted", "content", "x")
	}
	w.mustCall("owner", "POST", "/streams/{stream_id}/delete_topic", "topic_name", "to be deleted")
}

func (w *liveTest) changeDrafts() {
	draft := map[string]any{"type": "stream", "to": []int{w.savedID("stream_id")}, "topic": "t", "content": "c", "timestamp": 1700000000}
	if ids := list(w.mustCall("member", "POST", "/drafts", "drafts", []any{draft})["ids"]); len(ids) == 1 {
		w.save("draft", ids[0])
		draft["content"] = "more"
		w.mustCall("member", "PATCH", "/drafts/{draft}", "draft", draft)
		w.mustCall("member", "DELETE", "/drafts/{draft}")
		w.call(w.users["member"], "DELETE", w.path("/drafts/{draft}")) // a 404 with a code
	}
	if w.save("snippet", w.mustCall("member", "POST", "/saved_snippets", "title", "t", "content", "c")["saved_snippet_id"]) {
		w.mustCall("member", "PATCH", "/saved_snippets/{snippet}", "title", "u")
		w.mustCall("member", "DELETE", "/saved_snippets/{snippet}")
	}
	if w.save("scheduled", w.mustCall("member", "POST", "/scheduled_messages", "type", "channel", "to", w.savedID("stream_id"), "topic", "t", "content", "later", "scheduled_delivery_timestamp", farFuture)["scheduled_message_id"]) {
		w.mustCall("member", "PATCH", "/scheduled_messages/{scheduled}", "content", "even later")
		w.mustCall("member", "DELETE", "/scheduled_messages/{scheduled}")
	}
	if w.save("reminder", w.mustCall("member", "POST", "/reminders", "message_id", w.savedID("message_id"), "scheduled_delivery_timestamp", farFuture)["reminder_id"]) {
		w.mustCall("member", "DELETE", "/reminders/{reminder}")
	}
	w.mustCall("member", "POST", "/navigation_views", "fragment", "inbox", "is_pinned", true)
	w.mustCall("member", "PATCH", "/navigation_views/inbox", "is_pinned", false)
	w.mustCall("member", "DELETE", "/navigation_views/inbox")
	w.mustCall("member", "PATCH", "/navigation_views/narrow%2Fis%2Falerted", "name", "Alarms")
	if w.save("device", w.mustCall("member", "POST", "/register_client_device")["device_id"]) {
		w.mustCall("member", "POST", "/remove_client_device", "device_id", w.savedID("device"))
	}
}

func (w *liveTest) changeChannels() {
	named := func(name string) []any { return []any{map[string]any{"name": name, "description": "of " + name}} }
	members := []int{w.savedID("owner"), w.savedID("member")}
	w.mustCall("member", "POST", "/users/me/subscriptions", "subscriptions", named("public"), "announce", true)
	w.mustCall("owner", "POST", "/users/me/subscriptions", "subscriptions", named("private"), "invite_only", true, "principals", members)
	w.mustCall("owner", "POST", "/users/me/subscriptions", "subscriptions", named("for guests"), "principals", append(members, w.savedID("guest")))
	w.saveChannel("public", "member", "public")
	w.saveChannel("private", "owner", "private")
	w.save("created", w.mustCall("owner", "POST", "/channels/create", "name", "created", "subscribers", members)["id"])
	w.mustCall("owner", "POST", "/users/me/subscriptions", "subscriptions", named("public"), "principals", []int{w.savedID("other"), w.savedID("guest")})
	w.mustCall("other", "DELETE", "/users/me/subscriptions", "subscriptions", []string{"public"})
	w.mustCall("owner", "DELETE", "/users/me/subscriptions", "subscriptions", []string{"private"}, "principals", []int{w.savedID("member")})
	w.mustCall("member", "PATCH", "/users/me/subscriptions", "delete", []string{"public"})
	w.mustCall("member", "PATCH", "/users/me/subscriptions", "add", named("public"))

	for _, p := range []struct {
		name  string
		value any
	}{{"color", "#c2c2c2"}, {"is_muted", true}, {"is_muted", false}, {"in_home_view", false}, {"pin_to_top", true}, {"desktop_notifications", true}, {"audible_notifications", false}, {"push_notifications", true}, {"email_notifications", true}, {"wildcard_mentions_notify", false}} {
		w.mustCall("member", "POST", "/users/me/subscriptions/properties", "subscription_data", []any{map[string]any{"stream_id": w.savedID("public"), "property": p.name, "value": p.value}})
	}
	w.mustCall("member", "PATCH", "/users/me/subscriptions/{public}", "property", "color", "value", `"#76ce90"`)
	for _, policy := range []int{1, 2, 3, 0} {
		w.mustCall("member", "POST", "/user_topics", "stream_id", w.savedID("public"), "topic", "t", "visibility_policy", policy)
	}
	w.mustCall("member", "PATCH", "/users/me/subscriptions/muted_topics", "stream_id", w.savedID("public"), "topic", "legacy", "op", "add")
	w.mustCall("member", "PATCH", "/users/me/subscriptions/muted_topics", "stream_id", w.savedID("public"), "topic", "legacy", "op", "remove")

	w.mustCall("owner", "PATCH", "/streams/{public}", "description", "a *new* description")
	w.mustCall("owner", "PATCH", "/streams/{public}", "new_name", "renamed")
	w.mustCall("owner", "PATCH", "/streams/{public}", "message_retention_days", 30)
	w.mustCall("owner", "PATCH", "/streams/{public}", "topics_policy", "disable_empty_topic")
	for _, setting := range []string{"can_add_subscribers_group", "can_remove_subscribers_group", "can_administer_channel_group", "can_send_message_group", "can_subscribe_group", "can_create_topic_group", "can_delete_any_message_group", "can_delete_own_message_group", "can_move_messages_out_of_channel_group", "can_move_messages_within_channel_group", "can_resolve_topics_group"} {
		w.mustCall("owner", "PATCH", "/streams/{public}", setting, map[string]any{"new": map[string]any{"direct_members": members, "direct_subgroups": []int{}}})
	}
	w.mustCall("owner", "PATCH", "/streams/{public}", "is_private", true, "history_public_to_subscribers", true)
	w.mustCall("owner", "PATCH", "/streams/{public}", "is_private", false, "history_public_to_subscribers", true)

	w.mustCall("owner", "POST", "/default_streams", "stream_id", w.savedID("created"))
	w.mustCall("owner", "DELETE", "/default_streams", "stream_id", w.savedID("created"))
	w.mustCall("owner", "POST", "/default_stream_groups/create", "group_name", "pack", "description", "several", "stream_names", []string{"created"})
	if w.save("folder", w.mustCall("owner", "POST", "/channel_folders/create", "name", "Second", "description", "*folder*")["channel_folder_id"]) {
		w.mustCall("owner", "PATCH", "/channel_folders/{folder}", "name", "Drawer", "description", "renamed")
		w.mustCall("owner", "PATCH", "/streams/{created}", "folder_id", w.savedID("folder"))
		w.mustCall("owner", "PATCH", "/streams/{created}", "folder_id", "null")
		var order []any
		for _, f := range list(w.mustCall("owner", "GET", "/channel_folders", "include_archived", true)["channel_folders"]) {
			order = append([]any{f.(map[string]any)["id"]}, order...)
		}
		w.mustCall("owner", "PATCH", "/channel_folders", "order", order)
		w.mustCall("owner", "PATCH", "/channel_folders/{folder}", "is_archived", true)
	}
	w.mustCall("owner", "DELETE", "/streams/{elsewhere}")
	w.mustCall("owner", "PATCH", "/streams/{elsewhere}", "is_archived", false)
	w.mustCall("owner", "DELETE", "/streams/{elsewhere}")
	w.mustCall("owner", "GET", "/streams/{public}/email_address")
}
