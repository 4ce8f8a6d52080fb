package wire

import (
	"strings"

	"parley/actors/realm"
)

// unreadSection adds unread_msgs to a registration. The messages are collected in the turn and sorted after it.
func unreadSection(s *initialState) {
	var found realm.UnreadMessages
	if s.Me() != nil {
		found = s.Unread()
	}
	s.afterTurn(func() { s.answer["unread_msgs"] = unreadObject(found.Sorted(), s.Client) })
}

func unreadObject(u realm.Unread, to Client) obj {
	pms, streams, huddles := []any{}, []any{}, []any{}
	for _, t := range u.Direct {
		pms = append(pms, obj{"other_user_id": t.Other, "sender_id": t.Other, "unread_message_ids": t.IDs})
	}
	for _, t := range u.Channels {
		streams = append(streams, obj{"stream_id": t.Channel, "topic": to.Topic(t.Topic), "unread_message_ids": t.IDs})
	}
	for _, t := range u.Groups {
		huddles = append(huddles, obj{"user_ids_string": userList(t.Members), "unread_message_ids": t.IDs})
	}
	return obj{"count": u.Count, "pms": pms, "streams": streams, "huddles": huddles, "mentions": nonNil(u.Mentions),
		"old_unreads_missing": u.Missing}
}

// userList joins ids with commas in their given order, which is ascending.
func userList(users []realm.UserID) string {
	parts := make([]string, len(users))
	for i, u := range users {
		parts[i] = u.String()
	}
	return strings.Join(parts, ",")
}

func starredSection(s *initialState) {
	s.answer["starred_messages"] = []any{}
	if s.Me() != nil {
		s.answer["starred_messages"] = s.Starred()
	}
}

func recentDirectConversationsSection(s *initialState) {
	var talks []realm.RecentConversation
	if s.Me() != nil {
		talks = s.RecentConversations()
	}
	s.afterTurn(func() {
		out := make([]any, len(talks))
		for i, t := range talks {
			out[i] = obj{"max_message_id": t.Newest, "user_ids": t.Others(s.User)}
		}
		s.answer["recent_private_conversations"] = out
	})
}
