package realm

import (
	"slices"
	"strings"
)

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
	folded  string
}

// walkUnread is how many messages are looked at one by one in search of unread ones before whole sets are worked out.
const walkUnread = 3 * MaxUnread

// unreadMessages is the caller's newest unread messages, ascending, and whether there are more.
func (v View) unreadMessages() (ids []MessageID, more bool) {
	p := places{View: v, me: v.Me()}
	var all Set
	all.AddRange(1, int64(v.LastMessage()))
	if rd := v.reading.find(v.User); rd != nil {
		all.Subtract(rd.Read)
	}
	left, gaveUp := walkUnread, false
	ids = make([]MessageID, 0, min(all.Len(), MaxUnread+1))
	near := neighbours{Realm: v.Realm}
	all.eachBackward(func(id int64) bool {
		if left--; left < 0 {
			gaveUp = true
			return false
		}
		if m := near.message(MessageID(id)); m != nil && p.unread(MessageID(id), m) {
			ids = append(ids, MessageID(id))
		}
		return len(ids) <= MaxUnread
	})
	if gaveUp {
		rows := v.rowsWithin(v.User, &all)
		for id, c := range v.chans.rows { // a difference does not depend on the order
			if c.Archived || !v.Realm.Subscribed(v.User, id) {
				rows.Subtract(v.by.channel[id].ids)
			}
		}
		ids = rows.backward(NewestAnchor, MaxUnread+1, nil)
	}
	if len(ids) > MaxUnread {
		ids, more = ids[:MaxUnread], true
	}
	slices.Reverse(ids)
	return ids, more
}

// Unread is the caller's unread messages. They are his own, and Sort puts them in order when the view is over: with
// 20,000 topics that takes longer than finding them.
func (v View) Unread() Unread {
	u := Unread{Direct: []UnreadTalk{}, Channels: []UnreadTopic{}, Groups: []UnreadTalk{}, Mentions: []MessageID{}}
	ids, more := v.unreadMessages()
	u.Missing = more
	mutes := v.mutesOf(v.User)
	var muted Set
	groups := v.byPlace(ids)
	u.Channels = make([]UnreadTopic, 0, len(groups))
	for _, g := range groups {
		m := v.message(g[len(g)-1])
		if m.channel == 0 {
			u.addTalk(v.talks.must(m.talk).Members, v.User, g)
			u.Count += len(g)
			continue
		}
		topic := v.topics.must(m.topic).Name // as the newest message spells it
		if mutes.covers(ChannelID(m.channel), topic) {
			for _, id := range g {
				muted.Add(int64(id))
			}
		} else {
			u.Count += len(g)
		}
		u.Channels = append(u.Channels, UnreadTopic{Channel: ChannelID(m.channel), Topic: topic, IDs: g})
	}
	u.Mentions = v.unreadMentions(ids, muted)
	return u
}

// Sort puts conversations in order and makes topics that differ only in case one.
func (u *Unread) Sort() {
	for i := range u.Channels {
		u.Channels[i].folded = fold(u.Channels[i].Topic)
	}
	slices.SortFunc(u.Channels, func(a, b UnreadTopic) int {
		if a.Channel != b.Channel {
			return int(a.Channel - b.Channel)
		}
		return strings.Compare(a.folded, b.folded)
	})
	u.Channels = oneSpelling(u.Channels)
	slices.SortFunc(u.Direct, func(a, b UnreadTalk) int { return int(a.Other - b.Other) })
	slices.SortFunc(u.Groups, func(a, b UnreadTalk) int { return slices.Compare(a.Members, b.Members) })
}

// byPlace sorts messages by conversation, or by channel and spelling of the topic, keeping their order within each.
func (v View) byPlace(ids []MessageID) [][]MessageID {
	topics := make([]int32, v.Org().NextTopic) // which group, counted from 1
	talks := map[TalkID]int32{}
	var sizes []int
	of := make([]int32, len(ids))
	group := func(known int32) int32 {
		if known == 0 {
			sizes = append(sizes, 0)
			known = int32(len(sizes))
		}
		sizes[known-1]++
		return known
	}
	near := neighbours{Realm: v.Realm}
	for i, id := range ids {
		if m := near.message(id); m.channel == 0 {
			of[i] = group(talks[m.talk])
			talks[m.talk] = of[i]
		} else {
			of[i] = group(topics[m.topic])
			topics[m.topic] = of[i]
		}
	}
	out := make([][]MessageID, len(sizes))
	all := make([]MessageID, len(ids))
	for g, n := range sizes {
		out[g], all = all[:0:n], all[n:]
	}
	for i, id := range ids {
		out[of[i]-1] = append(out[of[i]-1], id)
	}
	return out
}

// oneSpelling makes topics that differ only in case one; they lie side by side.
func oneSpelling(list []UnreadTopic) []UnreadTopic {
	out := list[:0]
	for _, t := range list {
		if n := len(out); n > 0 && out[n-1].Channel == t.Channel && out[n-1].folded == t.folded {
			last := &out[n-1]
			if t.IDs[len(t.IDs)-1] > last.IDs[len(last.IDs)-1] {
				last.Topic = t.Topic
			}
			last.IDs = slices.Concat(last.IDs, t.IDs)
			slices.Sort(last.IDs)
			continue
		}
		out = append(out, t)
	}
	return out
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

// unreadMentions is which of the unread messages mention the caller: by name or group always, by wildcard unless muted.
func (v View) unreadMentions(ids []MessageID, muted Set) []MessageID {
	out := []MessageID{}
	if len(ids) == 0 {
		return out
	}
	var reached Set
	if s := v.by.mentioned[v.User]; s != nil {
		reached = *s
	}
	reached = Either(reached, v.by.wildcard).Between(int64(ids[0]), int64(ids[len(ids)-1]))
	reached.Each(func(n int64) bool {
		id := MessageID(n)
		if _, unread := slices.BinarySearch(ids, id); !unread {
			return true
		}
		e := v.extras.find(id)
		if direct := e != nil && e.mentions(v.User)&FlagMentioned != 0; direct || !muted.Has(n) {
			out = append(out, id)
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
