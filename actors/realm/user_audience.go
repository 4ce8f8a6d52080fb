package realm

import "parley/actors/realm/ids"

// The audiences of events about users and bots. All users can see each other, unless the organization limits what
// guests see: then canSeeUserAudience and cannotSeeUserAudience differ.

// canSeeUserAudience returns the connected users that are allowed to see u.
func (r *Realm) canSeeUserAudience(u *User) []UserID {
	if !r.GuestsLimited() {
		return r.everyoneAudience()
	}
	return r.matchingAudience(func(v *User) bool { return r.maySeeUser(v, u) })
}

// cannotSeeUserAudience returns the connected users that are not allowed to see u: only guests, and only if the
// organization limits what guests see.
func (r *Realm) cannotSeeUserAudience(u *User) []UserID {
	if !r.GuestsLimited() {
		return nil
	}
	return r.matchingAudience(func(v *User) bool { return !r.maySeeUser(v, u) })
}

// botAudience returns the connected users that receive the events of a bot: its owner and the administrators.
func (r *Realm) botAudience(owner UserID) []UserID {
	return r.matchingAudience(func(u *User) bool { return u.IsAdmin() || u.ID == owner })
}

// humanAdminsAudience returns the connected administrators that are not bots.
func (r *Realm) humanAdminsAudience() []UserID {
	return r.matchingAudience(func(u *User) bool { return u.IsAdmin() && !u.IsBot() })
}

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
	case *MessagesArchived:
		for _, g := range f.Groups {
			if g.Channel == 0 {
				concerned.Union(ids.SetOf(r.conversations.must(r.message(g.IDs[0]).conversation).Members...))
			}
		}
	case *MessagesRestored:
		r.emptyConversations(f).Each(func(c int64) bool {
			concerned.Union(ids.SetOf(r.conversations.must(DirectConversationID(c)).Members...))
			return true
		})
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
