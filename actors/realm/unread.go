package realm

import (
	"math"
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
}

// walkUnread is how many messages are looked at one by one in search of unread ones before whole sets are worked out.
const walkUnread = 3 * MaxUnread

// walkStep is how many of them are taken out of their set at once.
const walkStep = 4096

// fewSources is up to how many channels and conversations of a user what is unread is first narrowed to the messages he has
// received: who is in few of them has received few of an organization's messages, and the rest need no look.
const fewSources = 64

// UnreadFound is a user's unread messages as they were found. It holds nothing of the realm that may still change, so
// that they are sorted when the view is over: with 20,000 topics that takes several times as long as finding them.
type UnreadFound struct {
	me       UserID
	messages []placed // newest first
	more     bool
	topics   []spelling // by id
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
	all.Subtract(v.readOf(v.reading.find(v.User)))
	if v.sources(v.User) <= fewSources {
		all = v.rowsWithin(v.User, &all)
	}
	f.messages = make([]placed, 0, min(all.Len(), MaxUnread+1))
	if !f.walk(&p, &all, walkUnread) {
		all = v.rowsWithin(v.User, &all)
		for id, c := range v.chans.all() { // a difference does not depend on the order
			if c.Archived || !v.Realm.Subscribed(v.User, id) {
				all.Subtract(v.by.channel[id].ids)
			}
		}
		f.messages = f.messages[:0]
		f.walk(&p, &all, math.MaxInt)
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
func (f *UnreadFound) walk(p *places, among *Set, limit int) bool {
	near := neighbours{Realm: p.Realm}
	end := among.Len()
	for lo, hi := 0, end; hi > 0; hi = lo {
		if lo = max(0, hi-walkStep, end-limit); lo == hi {
			return false
		}
		for _, id := range slices.Backward(among.slice(lo, hi)) {
			m := near.message(id)
			if m == nil || !p.unread(id, m) {
				continue
			}
			x := placed{id, m.channel, uint32(m.topic)}
			if m.channel == 0 {
				if x.place = uint32(m.talk); f.talks[m.talk] == nil {
					f.talks[m.talk] = p.View.talks.must(m.talk).Members // they never change
				}
			}
			if f.messages = append(f.messages, x); len(f.messages) > MaxUnread {
				return true
			}
		}
	}
	return true
}

// mentionsAmong is which of a set's messages mention the caller.
func (v View) mentionsAmong(ids Set) (out []mention) {
	reached := Both(v.by.mentioning(v.User), ids)
	wild := Both(v.by.wildcard, ids)
	if rd := v.reading.find(v.User); rd != nil {
		wild.Subtract(rd.Rows)
	}
	reached.Union(wild)
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
	groups, ids := f.byPlace()
	var last *unreadPlace
	for _, i := range inOrder(groups) {
		g := &groups[i]
		own := ids[g.from:g.to:g.to]
		switch {
		case g.channel == 0:
			u.addTalk(f.talks[TalkID(g.place)], f.me, own)
			u.Count += len(own)
			continue
		case !f.muted(g.channel, g.place):
			u.Count += len(own)
		}
		if last == nil {
			u.Channels = make([]UnreadTopic, 0, len(groups))
		}
		topic := UnreadTopic{ChannelID(g.channel), f.topics[g.place].name, own}
		if last != nil && last.channel == g.channel && last.folded == g.folded {
			u.Channels[len(u.Channels)-1].join(topic)
		} else {
			u.Channels = append(u.Channels, topic)
		}
		last = g
	}
	u.Mentions = f.mentioned()
	slices.SortFunc(u.Direct, func(a, b UnreadTalk) int { return int(a.Other - b.Other) })
	slices.SortFunc(u.Groups, func(a, b UnreadTalk) int { return slices.Compare(a.Members, b.Members) })
	return u
}

// join adds the messages of another spelling of the topic; it is spelled as its newest message spells it.
func (t *UnreadTopic) join(o UnreadTopic) {
	if o.IDs[len(o.IDs)-1] > t.IDs[len(t.IDs)-1] {
		t.Topic = o.Topic
	}
	t.IDs = slices.Concat(t.IDs, o.IDs)
	slices.Sort(t.IDs)
}

// unreadPlace is the messages of one conversation, or of one spelling of a topic: a stretch of all.
type unreadPlace struct {
	channel, place uint32 // as in placed
	from, to       int32
	folded         string // the topic's name
}

// byPlace is the messages' ids, those of one conversation or one spelling of a topic together and ascending, and where
// each stretch is, in the order of their newest messages.
func (f UnreadFound) byPlace() (groups []unreadPlace, ids []MessageID) {
	topics := make([]int32, len(f.topics)) // which group, counted from 1
	talks := map[uint32]int32{}
	of := make([]int32, len(f.messages))
	groups = make([]unreadPlace, 0, min(len(f.messages), len(f.topics)+len(f.talks)))
	for i, m := range f.messages {
		var g int32
		if m.channel == 0 {
			g = talks[m.place]
		} else {
			g = topics[m.place]
		}
		if g == 0 {
			groups = append(groups, unreadPlace{channel: m.channel, place: m.place})
			if g = int32(len(groups)); m.channel == 0 {
				talks[m.place] = g
			} else {
				topics[m.place] = g
				groups[g-1].folded = f.topics[m.place].folded
			}
		}
		groups[g-1].to++
		of[i] = g - 1
	}
	at := int32(0)
	for g := range groups {
		at += groups[g].to
		groups[g].from, groups[g].to = at, at
	}
	ids = make([]MessageID, len(f.messages))
	for i, m := range f.messages { // newest first, so each stretch is filled from its end
		g := &groups[of[i]]
		g.from--
		ids[g.from] = m.id
	}
	return groups, ids
}

// inOrder is which places come one after the other: direct conversations, then topics by channel and name. Counting tells
// the channels apart sooner than comparing.
func inOrder(groups []unreadPlace) []int32 {
	most := uint32(0)
	for i := range groups {
		most = max(most, groups[i].channel)
	}
	next := make([]int32, most+2) // where the next of each channel goes; a channel's own begin where the one before ends
	for i := range groups {
		next[groups[i].channel+1]++
	}
	for c := range most {
		next[c+1] += next[c]
	}
	out := make([]int32, len(groups))
	for i := range groups {
		c := groups[i].channel
		out[next[c]] = int32(i)
		next[c]++
	}
	from := int32(0)
	for c, to := range next[:most+1] {
		if c > 0 {
			slices.SortFunc(out[from:to], func(a, b int32) int { return strings.Compare(groups[a].folded, groups[b].folded) })
		}
		from = to
	}
	return out
}

// muted is whether the user muted a topic.
func (f UnreadFound) muted(channel, place uint32) bool {
	return f.mutes.covers(ChannelID(channel), f.topics[place].name)
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
func (f UnreadFound) mentioned() []MessageID {
	out := []MessageID{}
	for _, x := range f.mentions {
		i, unread := slices.BinarySearchFunc(f.messages, x.id, func(m placed, id MessageID) int { return int(id - m.id) }) // they descend
		if unread && (x.named || f.messages[i].channel == 0 || !f.muted(f.messages[i].channel, f.messages[i].place)) {
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

// RecentTalk is a direct conversation and its newest message. Its members never change: they may leave the view.
type RecentTalk struct {
	Newest  MessageID
	Members []UserID
}

// Others is its members but for one.
func (t RecentTalk) Others(me UserID) []UserID { return nonNil(without(t.Members, me)) }

// recentMessages is of how many direct messages, the newest, the conversations count as recent (protocol).
const recentMessages = 1000

// RecentTalks is the caller's latest direct conversations, newest first.
func (v View) RecentTalks() []RecentTalk {
	direct := setIn(v.by.direct, v.User)
	n := direct.Len()
	ids := direct.slice(max(0, n-recentMessages), n)
	out, seen := make([]RecentTalk, 0, len(ids)), make(map[TalkID]bool, len(ids))
	near := neighbours{Realm: v.Realm}
	for _, id := range slices.Backward(ids) {
		if talk := near.message(id).talk; !seen[talk] {
			seen[talk] = true
			out = append(out, RecentTalk{id, v.talks.must(talk).Members})
		}
	}
	return out
}
