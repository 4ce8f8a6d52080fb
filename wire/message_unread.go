package wire

import (
	"strings"

	"parley/actors/realm"
)

// unreadMessagesJSON is the unread messages of a user by conversation.
type unreadMessagesJSON struct {
	Count    int               `json:"count"`
	Direct   []unreadDirect    `json:"pms"`
	Channels []unreadTopic     `json:"streams"`
	Groups   []unreadGroup     `json:"huddles"`
	Mentions []realm.MessageID `json:"mentions"`
	Missing  bool              `json:"old_unreads_missing"`
}

type unreadDirect struct {
	Other  realm.UserID      `json:"other_user_id"`
	Sender realm.UserID      `json:"sender_id"` // older name of other_user_id
	IDs    []realm.MessageID `json:"unread_message_ids"`
}

type unreadTopic struct {
	Channel realm.ChannelID   `json:"stream_id"`
	Topic   string            `json:"topic"`
	IDs     []realm.MessageID `json:"unread_message_ids"`
}

type unreadGroup struct {
	Users string            `json:"user_ids_string"`
	IDs   []realm.MessageID `json:"unread_message_ids"`
}

// conversationJSON is a direct conversation with the newest message.
type conversationJSON struct {
	Newest realm.MessageID `json:"max_message_id"`
	Users  []realm.UserID  `json:"user_ids"`
}

// unreadSection adds unread_msgs to a registration. The messages are collected in the turn and sorted after it.
func unreadSection(s *initialState) {
	var found realm.UnreadMessages
	if s.Me() != nil {
		found = s.Unread()
	}
	s.afterTurn(func() { s.answer.Unread = newUnreadMessages(found.Sorted(), s.Client) })
}

func newUnreadMessages(u realm.Unread, to Client) *unreadMessagesJSON {
	out := &unreadMessagesJSON{Count: u.Count, Mentions: u.Mentions, Missing: u.Missing}
	for _, t := range u.Direct {
		out.Direct = append(out.Direct, unreadDirect{t.Other, t.Other, t.IDs})
	}
	for _, t := range u.Channels {
		out.Channels = append(out.Channels, unreadTopic{t.Channel, to.Topic(t.Topic), t.IDs})
	}
	for _, t := range u.Groups {
		out.Groups = append(out.Groups, unreadGroup{userList(t.Members), t.IDs})
	}
	return out
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
	s.answer.Starred = []realm.MessageID{}
	if s.Me() != nil {
		s.answer.Starred = nonNil(s.Starred())
	}
}

func recentDirectConversationsSection(s *initialState) {
	var talks []realm.RecentConversation
	if s.Me() != nil {
		talks = s.RecentConversations()
	}
	s.afterTurn(func() {
		s.answer.Conversations = each(talks, func(t realm.RecentConversation) conversationJSON {
			return conversationJSON{t.Newest, t.Others(s.User)}
		})
	})
}
