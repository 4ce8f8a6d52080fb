package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// userVisibilityAudience returns the connected users for whom a fact may change which users they see, each once.
func (r *Realm) userVisibilityAudience(f Fact) []UserID {
	var concerned ids.Set // its guests are affected
	switch f := f.(type) {
	case *Subscribed:
		concerned = ids.Union(r.index.channels[f.Channel].subscribers, ids.SetOf(f.Users...))
	case *Unsubscribed:
		concerned = r.index.channels[f.Channel].subscribers
	case *JoinedChannels:
		for i := range f.Each {
			concerned.Union(r.index.channels[f.Each[i].Channel].subscribers)
			concerned.Union(ids.SetOf(f.Each[i].Users...))
		}
	case *LeftChannels:
		for i := range f.Each {
			concerned.Union(r.index.channels[f.Each[i].Channel].subscribers)
		}
	case *UserDeactivated:
		concerned = r.activeSubscribersOf(f.Channels)
	case *UserReactivated:
		concerned = r.activeSubscribersOf(f.Channels)
	case *MessageSent:
		concerned = ids.SetOf(f.People...)
	case *MessagesDeleted:
		concerned = ids.SetOf(r.conversations.must(DirectConversationID(r.message(f.IDs[0]).conversation)).Members...)
	case *UserChanged:
		return r.usersAudience(f.ID)
	}
	var out []UserID
	ids.Intersection(concerned, r.index.usersWithQueues).Each(func(u int64) bool {
		if r.users.must(UserID(u)).IsGuest() {
			out = append(out, UserID(u))
		}
		return true
	})
	return out
}

// typingAudience returns those of the users that want typing notifications.
func (r *Realm) typingAudience(to []UserID) []UserID {
	return slices.DeleteFunc(slices.Clone(to), func(u UserID) bool {
		return !r.users.must(u).BoolSetting("receives_typing_notifications")
	})
}
