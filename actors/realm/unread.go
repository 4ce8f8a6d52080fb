package realm

import "slices"

// MaxUnread is how many unread messages a client is told of when it registers, newest first (protocol).
const MaxUnread = 50000

// Unread is a user's unread messages, sorted by conversation. Lists of ids ascend.
type Unread struct {
	Count    int // direct messages, and channel messages that are not muted
	Direct   []UnreadTalk
	Channels []UnreadTopic
	Groups   []UnreadTalk
	Mentions []MessageID
	Missing  bool // there are more, older ones
}

// UnreadTalk is one direct conversation: Other for two people (oneself alone: one's own id), Members for more.
type UnreadTalk struct {
	Other   UserID
	Members []UserID
	IDs     []MessageID
}

// UnreadTopic is one topic; spellings that differ only in case are one.
type UnreadTopic struct {
	Channel ChannelID
	Topic   string
	IDs     []MessageID
}

// Unread sorts the caller's unread messages. Channels he has left and archived ones do not count.
func (v View) Unread() Unread {
	u := Unread{Direct: []UnreadTalk{}, Channels: []UnreadTopic{}, Groups: []UnreadTalk{}, Mentions: []MessageID{}}
	ids := v.unreadOf(v.User)
	for id, c := range v.chans.rows { // a difference does not depend on the order
		if c.Archived || !v.Realm.Subscribed(v.User, id) {
			ids.Subtract(v.by.channel[id].ids)
		}
	}
	if n := ids.Len(); n > MaxUnread {
		ids.RemoveRange(0, ids.At(n-MaxUnread)-1)
		u.Missing = true
	}
	type place struct {
		channel, talk uint32
		topic         TopicID
	}
	lists := map[place]*[]MessageID{}
	var last place
	var list *[]MessageID
	ids.Each(func(id int64) bool {
		m := v.message(MessageID(id))
		p := place{m.channel, uint32(m.talk), m.topic}
		if p != last || list == nil {
			if list = lists[p]; list == nil {
				list = &[]MessageID{}
				lists[p] = list
			}
			last = p
		}
		*list = append(*list, MessageID(id))
		return true
	})
	type key struct {
		channel ChannelID
		topic   string
	}
	topics := map[key]*UnreadTopic{}
	mutes := v.mutesOf(v.User)
	var muted Set
	for p, list := range lists {
		if p.channel == 0 {
			u.addTalk(v.talks.must(TalkID(p.talk)).Members, v.User, *list)
			u.Count += len(*list)
			continue
		}
		name := v.topics.must(p.topic).Name
		if c := ChannelID(p.channel); mutes.covers(c, name) {
			for _, id := range *list {
				muted.Add(int64(id))
			}
		} else {
			u.Count += len(*list)
		}
		k := key{ChannelID(p.channel), fold(name)}
		t := topics[k]
		if t == nil {
			topics[k] = &UnreadTopic{k.channel, name, *list}
			continue
		}
		if (*list)[len(*list)-1] > t.IDs[len(t.IDs)-1] {
			t.Topic = name // as the newest message spells it
		}
		t.IDs = append(t.IDs, *list...)
		slices.Sort(t.IDs)
	}
	for _, t := range topics {
		u.Channels = append(u.Channels, *t)
	}
	slices.SortFunc(u.Channels, func(a, b UnreadTopic) int {
		if a.Channel != b.Channel {
			return int(a.Channel - b.Channel)
		}
		return compare(fold(a.Topic), fold(b.Topic))
	})
	slices.SortFunc(u.Direct, func(a, b UnreadTalk) int { return int(a.Other - b.Other) })
	slices.SortFunc(u.Groups, func(a, b UnreadTalk) int { return slices.Compare(a.Members, b.Members) })
	u.Mentions = v.unreadMentions(ids, muted)
	return u
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (u *Unread) addTalk(members []UserID, me UserID, ids []MessageID) {
	if len(members) > 2 {
		u.Groups = append(u.Groups, UnreadTalk{Members: slices.Clone(members), IDs: ids})
		return
	}
	t := UnreadTalk{Other: me, IDs: ids}
	for _, m := range members {
		if m != me {
			t.Other = m
		}
	}
	u.Direct = append(u.Direct, t)
}

// unreadMentions is the unread messages that mention the caller: by name or group always, by wildcard unless muted.
func (v View) unreadMentions(ids, muted Set) []MessageID {
	var reached Set
	if s := v.by.mentioned[v.User]; s != nil {
		reached = *s
	}
	out := []MessageID{}
	Both(ids, Either(reached, v.by.wildcard)).Each(func(id int64) bool {
		direct := false
		if e := v.extras.find(MessageID(id)); e != nil {
			direct = e.mentions(v.User)&FlagMentioned != 0
		}
		if direct || !muted.Has(id) {
			out = append(out, MessageID(id))
		}
		return true
	})
	return out
}

// mutes is what one user has muted, prepared for many questions.
type mutes struct {
	channels Set
	policy   map[topicKey]int
}

type topicKey struct {
	channel ChannelID
	topic   string // folded
}

func (r *Realm) mutesOf(u UserID) mutes {
	m := mutes{policy: map[topicKey]int{}}
	if l := r.subs.find(u); l != nil {
		for _, s := range l.List {
			if s.Active && s.Muted {
				m.channels.Add(int64(s.Channel))
			}
		}
	}
	if l := r.prefs.find(u); l != nil {
		for _, p := range l.List {
			m.policy[topicKey{p.Channel, fold(p.Topic)}] = p.Policy
		}
	}
	return m
}

// covers reports whether a topic is muted: by itself, or by its channel and not unmuted or followed.
func (m mutes) covers(c ChannelID, topic string) bool {
	p := 0
	if len(m.policy) > 0 {
		p = m.policy[topicKey{c, fold(topic)}]
	}
	return p == TopicMuted || m.channels.Has(int64(c)) && p != TopicUnmuted && p != TopicFollowed
}

// MaxStarred is how many starred messages a client is told of when it registers, newest first (protocol).
const MaxStarred = 10000

// Starred is the caller's starred messages, ascending.
func (v View) Starred() []MessageID {
	rd := v.reading.find(v.User)
	if rd == nil {
		return []MessageID{}
	}
	s := v.rowsWithin(v.User, &rd.Starred)
	return nonNil(s.slice(max(0, s.Len()-MaxStarred), s.Len()))
}

func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// RecentTalk is a direct conversation and its newest message; Others leaves the caller out.
type RecentTalk struct {
	Newest MessageID
	Others []UserID
}

// recentMessages is of how many direct messages, the newest, the conversations count as recent (protocol).
const recentMessages = 1000

// RecentTalks is the caller's latest direct conversations, newest first.
func (v View) RecentTalks() []RecentTalk {
	var all []Set
	out := []RecentTalk{}
	for _, id := range v.by.talksOf[v.User] {
		ids := v.by.talk[id].ids
		if newest, ok := ids.Max(); ok {
			all = append(all, ids)
			others := nonNil(without(v.talks.must(id).Members, v.User))
			out = append(out, RecentTalk{MessageID(newest), others})
		}
	}
	oldest := MessageID(0)
	if s := Either(all...); s.Len() > recentMessages {
		oldest = MessageID(s.At(s.Len() - recentMessages))
	}
	out = slices.DeleteFunc(out, func(t RecentTalk) bool { return t.Newest < oldest })
	slices.SortFunc(out, func(a, b RecentTalk) int { return int(b.Newest - a.Newest) })
	return out
}
