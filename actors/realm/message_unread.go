package realm

import (
	"math"
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// MaxUnread is how many unread messages a registration contains, the newest ones (protocol).
const MaxUnread = 50000

// Unread is a user's unread messages, grouped by conversation. Lists of ids are ascending.
type Unread struct {
	Count    int // direct messages, and channel messages that are not muted
	Direct   []UnreadConversation
	Channels []UnreadTopic
	Groups   []UnreadConversation
	Mentions []MessageID
	Missing  bool // there are more, older ones
}

// UnreadConversation is one direct conversation. Other is set for two participants (the user's own id for notes to
// oneself), Members for more.
type UnreadConversation struct {
	Other   UserID
	Members []UserID
	IDs     []MessageID
}

// UnreadTopic is one topic. Spellings that differ only in case are the same topic.
type UnreadTopic struct {
	Channel ChannelID
	Topic   string
	IDs     []MessageID
}

// maxUnreadScan is how many messages Unread tests one by one. After that it computes the set of candidates first.
const maxUnreadScan = 3 * MaxUnread

// unreadScanStep is how many ids scan copies out of the set at once.
const unreadScanStep = 4096

// fewConversations is the number of a user's channels and conversations up to which Unread first limits the candidates
// to messages the user received. Such a user has received few of the organization's messages.
const fewConversations = 64

// UnreadMessages is the result of Unread, not yet grouped. It refers to nothing in the realm that may change, so it can
// be grouped after the view ends. With 20,000 topics, grouping takes several times as long as the search.
type UnreadMessages struct {
	me            UserID
	messages      []locatedMessage // newest first
	more          bool
	topics        []topicSpelling // by id
	conversations map[DirectConversationID][]UserID
	mutes         muteSettings
	mentions      []mention // ascending
}

// locatedMessage is a message with its topic or conversation.
type locatedMessage struct {
	id        MessageID
	channel   uint32 // 0: direct message
	container uint32 // the TopicID or the DirectConversationID
}

// mention is a message that mentions the caller.
type mention struct {
	id    MessageID
	named bool // by name or group; otherwise by a wildcard
}

// Unread finds the newest MaxUnread unread messages of the caller.
func (v View) Unread() UnreadMessages {
	f := UnreadMessages{
		me: v.User, topics: v.index.topicSpellings, conversations: map[DirectConversationID][]UserID{},
		mutes: v.muteSettingsOf(v.User),
	}
	p := readerAccess{View: v, reader: v.Me()}
	var all ids.Set
	all.AddRange(1, int64(v.LastMessageID()))
	all.Subtract(v.readSet(v.marks.find(v.User)))
	if v.countSources(v.User) <= fewConversations {
		all = v.rowsWithin(v.User, &all)
	}
	f.messages = make([]locatedMessage, 0, min(all.Len(), MaxUnread+1))
	if !f.scan(&p, &all, maxUnreadScan) {
		all = v.rowsWithin(v.User, &all)
		for id, c := range v.channels.all() { // the order does not matter for a difference of sets
			if c.Archived || !v.Realm.Subscribed(v.User, id) {
				all.Subtract(v.index.channels[id].ids)
			}
		}
		f.messages = f.messages[:0]
		f.scan(&p, &all, math.MaxInt)
	}
	if f.more = len(f.messages) > MaxUnread; f.more {
		f.messages = f.messages[:MaxUnread]
	}
	if n := len(f.messages); n > 0 {
		f.mentions = v.mentionsIn(all.Between(int64(f.messages[n-1].id), int64(f.messages[0].id)))
	}
	return f
}

// scan tests the messages of a set, newest first, at most limit of them. It reports whether it found enough or tested
// all.
func (f *UnreadMessages) scan(p *readerAccess, candidates *ids.Set, limit int) bool {
	messages := messageLookup{Realm: p.Realm}
	end := candidates.Len()
	for lo, hi := 0, end; hi > 0; hi = lo {
		if lo = max(0, hi-unreadScanStep, end-limit); lo == hi {
			return false
		}
		for _, id := range slices.Backward(candidates.Slice(lo, hi)) {
			m := messages.message(id)
			if m == nil || !p.countsAsUnread(id, m) {
				continue
			}
			x := locatedMessage{id, m.channel, uint32(m.topic)}
			if m.channel == 0 {
				if x.container = uint32(m.conversation); f.conversations[m.conversation] == nil {
					f.conversations[m.conversation] = p.View.conversations.must(m.conversation).Members // never change
				}
			}
			if f.messages = append(f.messages, x); len(f.messages) > MaxUnread {
				return true
			}
		}
	}
	return true
}

// mentionsIn returns the messages of a set that mention the caller.
func (v View) mentionsIn(messages ids.Set) (out []mention) {
	mentioning := ids.Intersection(v.index.messagesMentioning(v.User), messages)
	wildcards := ids.Intersection(v.index.channelWildcards, messages)
	if rd := v.marks.find(v.User); rd != nil {
		wildcards.Subtract(rd.Rows)
	}
	mentioning.Union(wildcards)
	mentioning.Each(func(n int64) bool {
		e := v.extras.find(MessageID(n))
		out = append(out, mention{MessageID(n), e != nil && e.mentionFlags(v.User)&FlagMentioned != 0})
		return true
	})
	return out
}

// Sorted groups the messages by conversation.
func (f UnreadMessages) Sorted() Unread {
	u := Unread{
		Direct: []UnreadConversation{}, Channels: []UnreadTopic{}, Groups: []UnreadConversation{}, Missing: f.more,
	}
	groups, ids := f.group()
	var last *unreadGroup
	for _, i := range groupOrder(groups) {
		g := &groups[i]
		own := ids[g.from:g.to:g.to]
		switch {
		case g.channel == 0:
			u.addConversation(f.conversations[DirectConversationID(g.container)], f.me, own)
			u.Count += len(own)
			continue
		case !f.muted(g.channel, g.container):
			u.Count += len(own)
		}
		if last == nil {
			u.Channels = make([]UnreadTopic, 0, len(groups))
		}
		topic := UnreadTopic{ChannelID(g.channel), f.topics[g.container].name, own}
		if last != nil && last.channel == g.channel && last.folded == g.folded {
			u.Channels[len(u.Channels)-1].merge(topic)
		} else {
			u.Channels = append(u.Channels, topic)
		}
		last = g
	}
	u.Mentions = f.mentioned()
	slices.SortFunc(u.Direct, func(a, b UnreadConversation) int { return int(a.Other - b.Other) })
	slices.SortFunc(u.Groups, func(a, b UnreadConversation) int { return slices.Compare(a.Members, b.Members) })
	return u
}

// merge adds the messages of another spelling of the topic. The spelling of the newest message wins.
func (t *UnreadTopic) merge(o UnreadTopic) {
	if o.IDs[len(o.IDs)-1] > t.IDs[len(t.IDs)-1] {
		t.Topic = o.Topic
	}
	t.IDs = slices.Concat(t.IDs, o.IDs)
	slices.Sort(t.IDs)
}

// unreadGroup is a range of ids: the messages of one conversation, or of one spelling of a topic.
type unreadGroup struct {
	channel, container uint32 // see locatedMessage
	from, to           int32
	folded             string // the topic's name in folded form
}

// group returns the ids so that those of one conversation, or one spelling of a topic, are adjacent and ascending.
// groups are the ranges, ordered by newest message, newest first.
func (f UnreadMessages) group() (groups []unreadGroup, ids []MessageID) {
	topics := make([]int32, len(f.topics)) // group number, from 1
	conversations := map[uint32]int32{}
	groupOf := make([]int32, len(f.messages))
	groups = make([]unreadGroup, 0, min(len(f.messages), len(f.topics)+len(f.conversations)))
	for i, m := range f.messages {
		var g int32
		if m.channel == 0 {
			g = conversations[m.container]
		} else {
			g = topics[m.container]
		}
		if g == 0 {
			groups = append(groups, unreadGroup{channel: m.channel, container: m.container})
			if g = int32(len(groups)); m.channel == 0 {
				conversations[m.container] = g
			} else {
				topics[m.container] = g
				groups[g-1].folded = f.topics[m.container].folded
			}
		}
		groups[g-1].to++
		groupOf[i] = g - 1
	}
	at := int32(0)
	for g := range groups {
		at += groups[g].to
		groups[g].from, groups[g].to = at, at
	}
	ids = make([]MessageID, len(f.messages))
	for i, m := range f.messages { // newest first, so each range is filled from its end
		g := &groups[groupOf[i]]
		g.from--
		ids[g.from] = m.id
	}
	return groups, ids
}

// groupOrder returns the order in which the groups are shown: direct conversations, then topics by channel and name. It
// separates channels by counting, which is faster than comparing.
func groupOrder(groups []unreadGroup) []int32 {
	most := uint32(0)
	for i := range groups {
		most = max(most, groups[i].channel)
	}
	next := make([]int32, most+2) // index for the next group of each channel, once the counts are summed up
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
			slices.SortFunc(out[from:to], func(a, b int32) int {
				return strings.Compare(groups[a].folded, groups[b].folded)
			})
		}
		from = to
	}
	return out
}

// muted reports whether the user muted a topic.
func (f UnreadMessages) muted(channel, topic uint32) bool {
	return f.mutes.isMuted(ChannelID(channel), f.topics[topic].name)
}

// addConversation adds a direct conversation to Groups if it has more than two members, else to Direct.
func (u *Unread) addConversation(members []UserID, me UserID, ids []MessageID) {
	if len(members) > 2 {
		u.Groups = append(u.Groups, UnreadConversation{Members: slices.Clone(members), IDs: ids})
		return
	}
	t := UnreadConversation{Other: me, IDs: ids}
	for _, m := range members {
		if m != me {
			t.Other = m
		}
	}
	u.Direct = append(u.Direct, t)
}

// mentioned returns the messages that mention the caller: by name or group, or by wildcard in topics that are not
// muted.
func (f UnreadMessages) mentioned() []MessageID {
	out := []MessageID{}
	for _, x := range f.mentions {
		i, unread := slices.BinarySearchFunc(f.messages, x.id, func(m locatedMessage, id MessageID) int {
			return int(id - m.id) // descending order
		})
		if !unread {
			continue
		}
		if m := f.messages[i]; x.named || m.channel == 0 || !f.muted(m.channel, m.container) {
			out = append(out, x.id)
		}
	}
	return out
}

// MaxStarred is how many starred messages a registration contains, the newest ones (protocol).
const MaxStarred = 10000

// Starred returns the caller's starred messages, ascending.
func (v View) Starred() []MessageID {
	rd := v.marks.find(v.User)
	if rd == nil {
		return []MessageID{}
	}
	ids, all := v.newestWithRows(rd.Starred, MaxStarred, 2*MaxStarred)
	if !all {
		s := v.rowsWithin(v.User, &rd.Starred)
		ids = s.Slice(max(0, s.Len()-MaxStarred), s.Len())
	}
	return nonNil(ids)
}

// newestWithRows returns the n newest messages of a set that the caller has rows of, ascending. It tests at most limit
// messages, and reports whether that was enough.
func (v View) newestWithRows(candidates ids.Set, n, limit int) (ids []MessageID, enough bool) {
	p := readerAccess{View: v, reader: v.Me()}
	p.load()
	messages := messageLookup{Realm: v.Realm}
	candidates.EachBackward(func(x int64) bool {
		if limit--; limit < 0 {
			return false
		}
		if m := messages.message(MessageID(x)); m != nil && p.hasRow(MessageID(x), m) {
			ids = append(ids, MessageID(x))
		}
		return len(ids) < n
	})
	slices.Reverse(ids)
	return ids, limit >= 0
}

// nonNil returns an empty slice instead of nil, so that the JSON is [] and not null.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// RecentConversation is a direct conversation and its newest message. Members never change, so the list may leave the
// view.
type RecentConversation struct {
	Newest  MessageID
	Members []UserID
}

// Others returns the members other than me.
func (t RecentConversation) Others(me UserID) []UserID { return nonNil(excludeUsers(t.Members, me)) }

// recentDirectMessages is how many of the newest direct messages are searched for recent conversations (protocol).
const recentDirectMessages = 1000

// RecentConversations returns the caller's most recent direct conversations, newest first.
func (v View) RecentConversations() []RecentConversation {
	direct := findSet(v.index.directMessages, v.User)
	n := direct.Len()
	ids := direct.Slice(max(0, n-recentDirectMessages), n)
	out, seen := make([]RecentConversation, 0, len(ids)), make(map[DirectConversationID]bool, len(ids))
	messages := messageLookup{Realm: v.Realm}
	for _, id := range slices.Backward(ids) {
		if conversation := messages.message(id).conversation; !seen[conversation] {
			seen[conversation] = true
			out = append(out, RecentConversation{id, v.conversations.must(conversation).Members})
		}
	}
	return out
}
