package realm

import "slices"

// manyMentions is from how many people on a wildcard mention needs permission.
const manyMentions = 15

// mayMention decides wildcard and group mentions in a channel.
func (t *Turn) mayMention(me *User, c *Channel, topic string, x Content) error {
	if x.ChannelWildcard && t.SubscriberCount(c.ID) > manyMentions && !t.May(me, "can_mention_many_users_group") {
		return Refuse(Invalid, "STREAM_WILDCARD_MENTION_NOT_ALLOWED", "You do not have permission to use channel wildcard mentions in this channel.")
	}
	if x.TopicWildcard && !t.May(me, "can_mention_many_users_group") {
		if ix := t.by.channel[c.ID].topics[fold(topic)]; ix != nil && ix.others(me.ID)+1 > manyMentions {
			return Refuse(Invalid, "TOPIC_WILDCARD_MENTION_NOT_ALLOWED", "You do not have permission to use topic wildcard mentions in this topic.")
		}
	}
	return t.mayMentionGroups(me, x)
}

// others counts a topic's participants beside one.
func (x *topicIndex) others(u UserID) int {
	if x.participants[uint32(u)] > 0 {
		return len(x.participants) - 1
	}
	return len(x.participants)
}

func (t *Turn) mayMentionGroups(me *User, x Content) error {
	for _, id := range x.Groups {
		g := t.FindGroup(id)
		if g == nil || me.System {
			continue
		}
		if !t.allowed(me, t.GroupSettingOf(g, "can_mention_group"), true) {
			return Bad("You are not allowed to mention user group '%s'.", GroupDisplayName(g))
		}
	}
	return nil
}

// GroupDisplayName is a group's name as people read it.
func GroupDisplayName(g *Group) string {
	if g.System && int(g.ID) <= len(SystemGroups) {
		return SystemGroups[g.ID-1].Display
	}
	return g.Name
}

// reach settles whom a message's content flags, of those who have a row of it.
func (t *Turn) reach(f *MessageSent, has func(UserID) bool) {
	for _, u := range f.Content.Users {
		if t.Find(u) != nil && has(u) {
			f.Mentioned = append(f.Mentioned, u)
		}
	}
	f.Mentioned = ascending(f.Mentioned)
	if len(f.Content.Groups) > 0 {
		f.GroupMentioned = t.grouped(t.recipients(f), f.Content.Groups, has)
	}
	if f.Content.TopicWildcard {
		f.TopicMentioned = t.participants(f, has)
	}
	if len(f.Content.AlertWords) > 0 {
		f.Alerted = ascending(t.alerted(f))
	}
}

// grouped is who of ascending users is in one of some groups and has a row.
func (t *Turn) grouped(users []UserID, groups []GroupID, has func(UserID) bool) (out []UserID) {
	direct := make([]ascent, len(groups))
	var further []GroupID // with members by role or by subgroup
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
		if (in || len(further) > 0 && t.inSome(t.Find(u), further)) && has(u) {
			out = append(out, u)
		}
	}
	return out
}

func (t *Turn) inSome(u *User, groups []GroupID) bool {
	return slices.ContainsFunc(groups, func(g GroupID) bool { return t.inGroup(u, g, 0) })
}

func ascending[T ~int64](ids []T) []T {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// recipients is everyone who gets a row of a message when it is sent.
func (t *Turn) recipients(f *MessageSent) []UserID {
	if f.Channel != 0 {
		return t.Subscribers(f.Channel)
	}
	return f.People
}

// gets reports whether a user will have a row: participants, subscribers, and generic bots that are mentioned.
func (t *Turn) gets(f *MessageSent, u UserID) bool {
	if f.Channel == 0 {
		return slices.Contains(f.People, u)
	}
	return t.Realm.Subscribed(u, f.Channel) || t.Find(u).Bot == GenericBot && t.Find(u).Active
}

// participants is whom a topic wildcard reaches: the sender, and who sent or reacted in the topic.
func (t *Turn) participants(f *MessageSent, has func(UserID) bool) []UserID {
	if f.Channel == 0 {
		return slices.Clone(f.People)
	}
	var out []UserID
	if has(f.Sender) {
		out = append(out, f.Sender)
	}
	if ix := t.by.channel[f.Channel].topics[fold(f.TopicName)]; ix != nil {
		for p := range ix.participants {
			if u := UserID(p); u != f.Sender && t.Realm.Subscribed(u, f.Channel) && has(u) {
				out = append(out, u)
			}
		}
	}
	return ascending(out)
}
