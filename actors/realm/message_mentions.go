package realm

import "slices"

// wildcardLimit is the number of subscribers or participants above which a wildcard mention needs permission
// (protocol).
const wildcardLimit = 15

// checkMentions refuses wildcard and group mentions in a channel that need a permission the sender lacks.
func (t *Turn) checkMentions(me *User, c *Channel, topic string, x ContentInfo) error {
	if x.ChannelWildcard && t.SubscriberCount(c.ID) > wildcardLimit &&
		!t.HasPermission(me, "can_mention_many_users_group") {
		return Refuse(Invalid, "STREAM_WILDCARD_MENTION_NOT_ALLOWED",
			"You do not have permission to use channel wildcard mentions in this channel.")
	}
	if x.TopicWildcard && !t.HasPermission(me, "can_mention_many_users_group") {
		ix := t.index.channels[c.ID].topics[fold(topic)]
		if ix != nil && ix.otherParticipants(me.ID)+1 > wildcardLimit {
			return Refuse(Invalid, "TOPIC_WILDCARD_MENTION_NOT_ALLOWED",
				"You do not have permission to use topic wildcard mentions in this topic.")
		}
	}
	return t.checkGroupMentions(me, x)
}

// otherParticipants counts the topic's participants without one user.
func (x *topicIndex) otherParticipants(u UserID) int {
	if x.participants[uint32(u)] > 0 {
		return len(x.participants) - 1
	}
	return len(x.participants)
}

// checkGroupMentions refuses mentions of user groups that the sender may not mention.
func (t *Turn) checkGroupMentions(me *User, x ContentInfo) error {
	for _, id := range x.Groups {
		g := t.FindGroup(id)
		if g == nil || me.System {
			continue
		}
		if !t.allowed(me, t.GroupSettingOf(g, "can_mention_group"), true) {
			return BadRequest("You are not allowed to mention user group '%s'.", g.Name)
		}
	}
	return nil
}

// GroupDisplayName returns a group's name for display. System groups have a separate display name.
func GroupDisplayName(g *Group) string {
	if g.System && int(g.ID) <= len(SystemGroups) {
		return SystemGroups[g.ID-1].Display
	}
	return g.Name
}

// resolveMentions fills in the users that the message's mentions and alert words flag. has reports whether a user
// gets a row of the message; users without a row are left out.
func (t *Turn) resolveMentions(f *MessageSent, has func(UserID) bool) {
	for _, u := range f.Content.Users {
		if t.Find(u) != nil && has(u) {
			f.Mentioned = append(f.Mentioned, u)
		}
	}
	f.Mentioned = sortUnique(f.Mentioned)
	if len(f.Content.Groups) > 0 {
		f.GroupMentioned = t.groupMembersAmong(t.recipients(f), f.Content.Groups, has)
	}
	if f.Content.TopicWildcard {
		f.TopicMentioned = t.topicWildcardRecipients(f, has)
	}
	if len(f.Content.AlertWords) > 0 {
		f.Alerted = sortUnique(t.alertedUsers(f))
	}
}

// groupMembersAmong returns those of users (ascending) that are in one of the groups and get a row of the message.
func (t *Turn) groupMembersAmong(users []UserID, groups []GroupID, has func(UserID) bool) (out []UserID) {
	direct := make([]sortedCursor, len(groups))
	var further []GroupID // whose members may be members by role or through a subgroup
	for i, id := range groups {
		g := t.groups.find(id)
		if g == nil {
			continue
		}
		if direct[i] = g.Members; g.System || len(g.Subgroups) > 0 {
			further = append(further, id)
		}
	}
	for _, u := range users {
		in := false
		for i := range direct {
			in = in || direct[i].has(u)
		}
		if (in || len(further) > 0 && t.inAnyGroup(t.Find(u), further)) && has(u) {
			out = append(out, u)
		}
	}
	return out
}

// inAnyGroup reports whether a user is in one of the groups, directly, by role or through a subgroup.
func (t *Turn) inAnyGroup(u *User, groups []GroupID) bool {
	return slices.ContainsFunc(groups, func(g GroupID) bool { return t.inGroup(u, g, 0) })
}

// sortUnique sorts ids ascending and removes duplicates, in place.
func sortUnique[T ~int64](ids []T) []T {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// recipients returns all users that get a row of a message when it is sent.
func (t *Turn) recipients(f *MessageSent) []UserID {
	if f.Channel != 0 {
		return t.Subscribers(f.Channel)
	}
	return f.People
}

// isRecipient reports whether a user gets a row: participants, subscribers, and mentioned generic bots.
func (t *Turn) isRecipient(f *MessageSent, u UserID) bool {
	if f.Channel == 0 {
		return slices.Contains(f.People, u)
	}
	return t.Realm.Subscribed(u, f.Channel) || t.Find(u).Bot == GenericBot && t.Find(u).Active
}

// topicWildcardRecipients returns the users that a topic wildcard mentions: the sender and the topic's participants.
// Participants have sent a message in the topic or reacted to one.
func (t *Turn) topicWildcardRecipients(f *MessageSent, has func(UserID) bool) []UserID {
	if f.Channel == 0 {
		return slices.Clone(f.People)
	}
	var out []UserID
	if has(f.Sender) {
		out = append(out, f.Sender)
	}
	if ix := t.index.channels[f.Channel].topics[fold(f.TopicName)]; ix != nil {
		for p := range ix.participants {
			if u := UserID(p); u != f.Sender && t.Realm.Subscribed(u, f.Channel) && has(u) {
				out = append(out, u)
			}
		}
	}
	return sortUnique(out)
}
