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

// fewSources is up to how many channels and conversations the messages of somebody are worked out as one set at once:
// among what he has not read, next to nothing may be his.
const fewSources = 64

// UnreadFound is a user's unread messages as they were found. It holds nothing of the realm that may still change, so
// that they are sorted when the view is over: with 20,000 topics that takes several times as long as finding them.
type UnreadFound struct {
	me       UserID
	messages []placed // newest first
	more     bool
	topics   []*Topic // by id
	talks    map[TalkID][]UserID
	mutes    mutes
	mentions []mention // ascending
}

// placed is a message and where it is.
type placed struct {
	id      MessageID
	channel uint32 // 0: direct
	place   uint32 // the TopicID, or the TalkID
}

// mention is a message that reached the caller by a mention.
type mention struct {
	id    MessageID
	named bool // by name or group; otherwise by a wildcard
}

// Unread finds the caller's unread messages, the newest MaxUnread.
func (v View) Unread() UnreadFound {
	f := UnreadFound{me: v.User, topics: v.by.topics, talks: map[TalkID][]UserID{}, mutes: v.mutesOf(v.User)}
	p := places{View: v, me: v.Me()}
	var all Set
	all.AddRange(1, int64(v.LastMessage()))
	if rd := v.reading.find(v.User); rd != nil {
		all.Subtract(rd.Read)
	}
	sources := len(v.by.talksOf[v.User])
	if l := v.subs.find(v.User); l != nil {
		sources += len(l.List)
	}
	if sources <= fewSources {
		all = v.rowsWithin(v.User, &all)
	}
	f.messages = make([]placed, 0, min(all.Len(), MaxUnread+1))
	if !f.walk(&p, &all, walkUnread) {
		all = v.rowsWithin(v.User, &all)
		for id, c := range v.chans.rows { // a difference does not depend on the order
			if c.Archived || !v.Realm.Subscribed(v.User, id) {
				all.Subtract(v.by.channel[id].ids)
			}
		}
		f.messages = f.messages[:0]
		f.walk(&p, &all, MaxMessageID)
	}
	if f.more = len(f.messages) > MaxUnread; f.more {
		f.messages = f.messages[:MaxUnread]
	}
	if n := len(f.messages); n > 0 {
		f.mentions = v.mentionsAmong(all.Between(int64(f.messages[n-1].id), int64(f.messages[0].id)))
	}
	return f
}

// walk looks at no more messages of a set than it may, from the last to the first, and reports whether that was enough.
func (f *UnreadFound) walk(p *places, among *Set, limit int64) bool {
	near := neighbours{Realm: p.Realm}
	among.eachBackward(func(n int64) bool {
		if limit--; limit < 0 {
			return false
		}
		id := MessageID(n)
		m := near.message(id)
		if m == nil || !p.unread(id, m) {
			return true
		}
		if m.channel != 0 {
			f.messages = append(f.messages, placed{id, m.channel, uint32(m.topic)})
			return len(f.messages) <= MaxUnread
		}
		if f.talks[m.talk] == nil {
			f.talks[m.talk] = slices.Clone(p.View.talks.must(m.talk).Members)
		}
		f.messages = append(f.messages, placed{id, 0, uint32(m.talk)})
		return len(f.messages) <= MaxUnread
	})
	return limit >= 0
}

// mentionsAmong is which of a set's messages mention the caller.
func (v View) mentionsAmong(ids Set) (out []mention) {
	var reached Set
	if s := v.by.mentioned[v.User]; s != nil {
		reached = Both(*s, ids)
	}
	reached.Union(Both(v.by.wildcard, ids))
	reached.Each(func(n int64) bool {
		e := v.extras.find(MessageID(n))
		out = append(out, mention{MessageID(n), e != nil && e.mentions(v.User)&FlagMentioned != 0})
		return true
	})
	return out
}

// Sorted is the messages by conversation.
func (f UnreadFound) Sorted() Unread {
	u := Unread{Direct: []UnreadTalk{}, Channels: []UnreadTopic{}, Groups: []UnreadTalk{}, Missing: f.more}
	var muted Set
	for _, g := range f.byPlace() {
		ids := make([]MessageID, len(g))
		for i, m := range g {
			ids[i] = m.id
		}
		last := g[len(g)-1]
		if last.channel == 0 {
			u.addTalk(f.talks[TalkID(last.place)], f.me, ids)
			u.Count += len(g)
			continue
		}
		topic := f.topics[last.place].Name // as the newest message spells it
		if f.mutes.covers(ChannelID(last.channel), topic) {
			for _, id := range ids {
				muted.Add(int64(id))
			}
		} else {
			u.Count += len(g)
		}
		u.Channels = append(u.Channels, UnreadTopic{Channel: ChannelID(last.channel), Topic: topic, IDs: ids})
	}
	u.Mentions = f.mentioned(muted)
	u.sort()
	return u
}

// sort puts conversations in order and makes topics that differ only in case one.
func (u *Unread) sort() {
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

// byPlace is the messages by conversation, or by channel and spelling of the topic, ascending within each.
func (f UnreadFound) byPlace() [][]placed {
	topics := make([]int32, len(f.topics)) // which group, counted from 1
	talks := map[uint32]int32{}
	var sizes []int
	group := func(known int32) int32 {
		if known == 0 {
			sizes = append(sizes, 0)
			known = int32(len(sizes))
		}
		sizes[known-1]++
		return known
	}
	of := make([]int32, len(f.messages))
	for i, m := range f.messages {
		if m.channel == 0 {
			of[i] = group(talks[m.place])
			talks[m.place] = of[i]
		} else {
			of[i] = group(topics[m.place])
			topics[m.place] = of[i]
		}
	}
	out := make([][]placed, len(sizes))
	all := make([]placed, len(f.messages))
	for g, n := range sizes {
		out[g], all = all[:0:n], all[n:]
	}
	for i, m := range slices.Backward(f.messages) {
		out[of[i]-1] = append(out[of[i]-1], m)
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

// mentioned is which of the messages mention the caller: by name or group always, by wildcard unless muted.
func (f UnreadFound) mentioned(muted Set) []MessageID {
	out := []MessageID{}
	for _, x := range f.mentions {
		_, unread := slices.BinarySearchFunc(f.messages, x.id, func(m placed, id MessageID) int { return int(id - m.id) }) // they descend
		if unread && (x.named || !muted.Has(int64(x.id))) {
			out = append(out, x.id)
		}
	}
	return out
}

// MaxStarred is how many starred messages a client is told of when it registers, newest first (protocol).
const MaxStarred = 10000

// Starred is the caller's starred messages, ascending.
func (v View) Starred() []MessageID {
	rd := v.reading.find(v.User)
	if rd == nil {
		return []MessageID{}
	}
	ids, all := v.newestRows(rd.Starred, MaxStarred, 2*MaxStarred)
	if !all {
		s := v.rowsWithin(v.User, &rd.Starred)
		ids = s.slice(max(0, s.Len()-MaxStarred), s.Len())
	}
	return nonNil(ids)
}

// newestRows is the n newest messages of a set that the caller has rows of, ascending. It looks at no more than limit,
// and reports whether that was enough.
func (v View) newestRows(among Set, n, limit int) (ids []MessageID, enough bool) {
	p := places{View: v, me: v.Me()}
	p.prepare()
	near := neighbours{Realm: v.Realm}
	among.eachBackward(func(x int64) bool {
		if limit--; limit < 0 {
			return false
		}
		if m := near.message(MessageID(x)); m != nil && p.received(MessageID(x), m) {
			ids = append(ids, MessageID(x))
		}
		return len(ids) < n
	})
	slices.Reverse(ids)
	return ids, limit >= 0
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
