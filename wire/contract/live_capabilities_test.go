package contract

import "strings"

// capabilityError returns an error text if an event has the wrong form for a client with all capabilities, or
// with none. The contract allows both forms of an event, but each client only the one it asked for.
func capabilityError(kind string, event map[string]any, modern bool) string {
	has := func(name string) bool { _, ok := event[name]; return ok }
	empty := func(v any) bool { s, ok := v.(string); return ok && s == "" }
	if modern {
		switch {
		case kind == "delete_message" && has("message_id"):
			return "one message_id, with bulk_message_deletion"
		case kind == "presence" && !has("presences"):
			return "not the simplified form"
		case kind == "realm_emoji/update":
			return "the whole map, with individual_emoji_changes"
		case kind == "user_group/remove":
			return "with include_deactivated_groups, a group is only marked"
		}
		return ""
	}
	switch {
	case kind == "message":
		message := event["message"].(map[string]any)
		if message["type"] == "stream" && empty(message["subject"]) {
			return "an empty topic"
		}
	case kind == "delete_message" && has("message_ids"):
		return "message_ids, without bulk_message_deletion"
	case kind == "presence" && has("presences"):
		return "the simplified form"
	case kind == "realm_emoji/add", kind == "realm_emoji/edit", kind == "realm_emoji/update_one":
		return "a single emoji, without individual_emoji_changes"
	case strings.HasPrefix(kind, "typing/") && event["message_type"] == "stream":
		return "typing in a channel, without stream_typing_notifications"
	case kind == "stream/update" && event["property"] == "is_archived":
		return "is_archived, without archived_channels"
	case kind == "user_group/update" && event["data"].(map[string]any)["deactivated"] != nil:
		return "deactivated, without include_deactivated_groups"
	case kind == "realm_linkifiers":
		return "linkifiers, without linkifier_url_template"
	case kind == "update_message" && (empty(event["subject"]) || empty(event["orig_subject"])):
		return "an empty topic"
	case (kind == "delete_message" || kind == "typing") && empty(event["topic"]):
		return "an empty topic"
	case kind == "user_topic" && empty(event["topic_name"]):
		return "an empty topic"
	case kind == "update_message_flags/remove":
		details, _ := event["message_details"].(map[string]any)
		for _, d := range details {
			if empty(d.(map[string]any)["topic"]) {
				return "an empty topic"
			}
		}
	case kind == "subscription/add":
		for _, s := range list(event["subscriptions"]) {
			for name, v := range s.(map[string]any) {
				if v == nil && strings.HasSuffix(name, "_notifications") {
					return name + " is null, without notification_settings_null"
				}
			}
		}
	}
	return ""
}
