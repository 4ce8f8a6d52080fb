package contract

import (
	"slices"
	"strings"
	"testing"

	"parley/wire/shape"
)

const channelKeys = `stream_id name is_archived description date_created creator_id invite_only rendered_description
		is_web_public stream_post_policy message_retention_days history_public_to_subscribers topics_policy
		first_message_id folder_id is_recently_active is_announcement_only subscriber_count
		stream_weekly_traffic is_default subscribers partial_subscribers can_add_subscribers_group
		can_remove_subscribers_group can_administer_channel_group can_delete_any_message_group
		can_delete_own_message_group can_move_messages_out_of_channel_group
		can_move_messages_within_channel_group can_send_message_group can_subscribe_group
		can_resolve_topics_group can_create_topic_group`

// strictKeys are all keys of an object that strict clients know. One more key makes such a client reject the
// whole answer, so the contract must not allow any other.
var strictKeys = map[string]string{
	"GET /streams/{stream_id} stream": channelKeys,
	"POST /register realm_user_groups[]": `
		description id date_created creator_id members direct_subgroup_ids name is_system_group deactivated
		can_add_members_group can_join_group can_leave_group can_manage_group can_mention_group
		can_remove_members_group`,
	"GET /streams streams[]": channelKeys,
	"GET /messages/{message_id}/history message_history[]": `
		topic prev_topic stream prev_stream content rendered_content prev_content prev_rendered_content
		user_id content_html_diff timestamp`,
	// local_message_id only if a local_id was sent
	"event message":                     `id type message flags local_message_id`,
	"event reaction/add":                `id type op emoji_name emoji_code reaction_type user_id message_id user`,
	"event reaction/remove":             `id type op emoji_name emoji_code reaction_type user_id message_id user`,
	"event delete_message":              `id type message_ids message_id message_type stream_id topic`,
	"event typing/start":                `id type op message_type sender recipients stream_id topic`,
	"event typing/stop":                 `id type op message_type sender recipients stream_id topic`,
	"event update_message_flags/add":    `id type op operation flag messages all`,
	"event update_message_flags/remove": `id type op operation flag messages all message_details`,
}

func TestStrictClientsKnowEveryKey(t *testing.T) {
	c := load(t)
	for where, allowed := range strictKeys {
		s := c.at(t, where)
		if !s.Closed {
			t.Errorf("%s allows any key", where)
		}
		for name := range s.Fields {
			if !slices.Contains(strings.Fields(allowed), name) {
				t.Errorf("%s: %s would fail the answer in a strict client", where, name)
			}
		}
	}
}

// at returns the shape at a place, written as in the amendments.
func (c *Contract) at(t *testing.T, where string) *shape.Shape {
	t.Helper()
	words := strings.Fields(where)
	for _, r := range c.routes {
		if len(words) > 1 && r.name == words[0]+" "+words[1] {
			s, err := r.answer.Find(strings.Join(words[2:], ""))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	if words[0] == "event" && len(c.events[words[1]]) > 0 {
		return c.events[words[1]][0]
	}
	t.Fatalf("%s: no such place", where)
	return nil
}
