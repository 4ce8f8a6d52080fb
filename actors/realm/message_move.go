package realm

import (
	"fmt"
	"slices"

	"parley/actors/realm/ids"
)

// maxHiddenPerFact is how many messages one fact takes out of somebody's sight: old clients hear one event for each, and a
// fact may tell a queue at most 128.
const maxHiddenPerFact = 100

// hideMovedMessages takes messages from those who will not see them where they go, before they go.
func (t *Turn) hideMovedMessages(m *MessageMove) {
	to := t.channels.must(m.To)
	var lose []UserID
	holds := t.hasRowIn(m.IDs)
	hide := func(idSet ids.Set, users ...UserID) {
		for part := range slices.Chunk(ids.IDs[MessageID](idSet), maxHiddenPerFact) {
			t.Record(&MessagesHidden{IDs: ids.SetOf(part...), Users: users, Channel: m.From, Topic: m.FromTopic})
		}
	}
	for _, u := range t.users.keys() {
		content := t.hasContentAccess(t.users.must(u), to)
		if content && (!t.hasProtectedHistory(to) || t.Subscribed(u, to.ID)) || t.SubscriptionOf(u, m.From) == nil && !holds(u) {
			continue
		}
		// Who may enter a channel with protected history, but is not in it, sees there only what he has rows of.
		if content {
			if ids := ids.Difference(m.IDs, t.rowsWithin(u, &m.IDs)); ids.Len() < m.IDs.Len() {
				hide(ids, u)
				continue
			}
		}
		lose = append(lose, u)
	}
	if len(lose) > 0 {
		hide(m.IDs, lose...)
	}
}

// MessagesHidden says people have no row of messages any more that go where they cannot follow.
type MessagesHidden struct {
	IDs     ids.Set
	Users   []UserID // sortUnique
	Channel ChannelID
	Topic   string

	to    []UserID     `msgpack:"-"` // who hears of it, settled by apply: those who saw them
	stars removedStars `msgpack:"-"`
}

func (*MessagesHidden) keepsMarkdownConfig() {}

func (f *MessagesHidden) apply(r *Realm) {
	c, holds := r.channels.must(f.Channel), r.hasRowIn(f.IDs)
	for _, u := range r.usersAudience(f.Users...) {
		if r.hasContentAccess(r.users.must(u), c) && (!r.hasProtectedHistory(c) || holds(u)) {
			f.to = append(f.to, u)
		}
	}
	for _, u := range f.Users {
		f.stars.add(r, u, f.IDs, f.to)
		rd := r.marks.ensure(u)
		rd.Rows.Subtract(f.IDs)
		rd.Given.Subtract(f.IDs)
		rd.Starred.Subtract(f.IDs)
		rd.Lost.Union(f.IDs)
	}
}

func (f *MessagesHidden) tell(r *Realm) []Notice {
	var out []Notice
	if len(f.to) > 0 {
		out = append(out, Notice{To: f.to, Event: &MessagesVanished{IDs: ids.IDs[MessageID](f.IDs), Channel: f.Channel, Topic: f.Topic}})
	}
	return append(out, f.stars.tell()...)
}

// MessagesVanished is the event delete_message: deleted, or moved out of somebody's sight. At most 100 of one conversation.
type MessagesVanished struct {
	IDs     []MessageID // sortUnique
	Channel ChannelID   // 0: direct
	Topic   string
}

func (*MessagesVanished) EventType() string { return "delete_message" }

// firstMessageIDs is where channels' histories began before a change.
type firstMessageIDs map[ChannelID]MessageID

func (t *Turn) firstMessagesOf(channels ...ChannelID) firstMessageIDs {
	f := firstMessageIDs{}
	for _, c := range channels {
		first, _ := t.index.channels[c].ids.Min()
		f[c] = MessageID(first)
	}
	return f
}

// recordFirstMessages records where histories begin now, if elsewhere.
func (t *Turn) recordFirstMessages(before firstMessageIDs) {
	channels := make([]ChannelID, 0, len(before))
	for c := range before {
		channels = append(channels, c)
	}
	slices.Sort(channels)
	for _, c := range channels {
		if now := t.firstMessagesOf(c)[c]; now != before[c] {
			t.Record(&HistoryBegins{c, now})
		}
	}
}

// HistoryBegins says which message is a channel's first now; 0 if none is left.
type HistoryBegins struct {
	Channel ChannelID
	First   MessageID
}

func (*HistoryBegins) keepsMarkdownConfig() {}
func (*HistoryBegins) apply(*Realm)         {}
func (f *HistoryBegins) tell(r *Realm) []Notice {
	c := r.channels.must(f.Channel)
	return []Notice{{To: r.channelAudience(c), Event: &ChannelActivityChanged{Channel: c.ID, Name: c.Name, First: f.First, FirstChanged: true}}}
}

// postMoveNotices leaves notices where messages went and where they came from: left, that no message of the old topic stayed;
// alone, that besides they found none where they came. Who moved them knows, and has the notices read.
func (p *messageEdit) postMoveNotices(t *Turn, m *MessageMove, left, alone bool) {
	who := t.SilentMention(p.me.ID)
	what := func(topic bool) string {
		switch n := m.IDs.Len(); {
		case topic:
			return "This topic was"
		case n == 1:
			return "1 message was"
		default:
			return fmt.Sprintf("%d messages were", n)
		}
	}
	announce := func(c ChannelID, topic, text string) {
		var readBy []UserID
		if t.Subscribed(p.me.ID, c) {
			readBy = append(readBy, p.me.ID)
		}
		t.NotifyChannel(c, topic, text+" by "+who+".", readBy...)
	}
	from, to := t.channels.must(m.From), t.channels.must(m.To)
	if p.NotifyOld {
		announce(m.From, m.FromTopic, what(left)+" moved to "+t.TopicLink(to, m.TopicName))
	}
	if p.NotifyNew {
		announce(m.To, m.TopicName, what(alone)+" moved here from "+t.TopicLink(from, m.FromTopic))
	}
}

// resolveUndoSeconds is how long after marking a topic its undoing takes the notice back instead of adding one, in seconds
// (protocol).
const resolveUndoSeconds = 60

// postResolveNotice tells a topic that it was marked as resolved, or no longer is.
func (t *Turn) postResolveNotice(me *User, m *MessageMove) {
	if last := t.lastResolveNotice(m.To, m.TopicName); last != 0 && t.Now-int64(t.message(last).time) <= resolveUndoSeconds {
		t.deleteMessages([]MessageID{last}, 0)
		return
	}
	text := " has marked this topic as resolved."
	if len(m.TopicName) < len(m.FromTopic) {
		text = " has marked this topic as unresolved."
	}
	t.SendBotMessage(BotMessage{Channel: m.To, Topic: m.TopicName, Text: t.SilentMention(me.ID) + text, ReadBy: t.resolveNoticeReaders(m), Kind: resolveNotice})
}

// resolveNotice marks the bot's message about a topic that was resolved or not.
const resolveNotice = "resolve"

// lastResolveNotice is a topic's newest message if it is such a notice.
func (t *Turn) lastResolveNotice(c ChannelID, topic string) MessageID {
	ix := t.index.channels[c].topics[fold(topic)]
	if ix == nil {
		return 0
	}
	last, _ := ix.ids.Max()
	if t.extraOrEmpty(MessageID(last)).Notice != resolveNotice {
		return 0
	}
	return MessageID(last)
}

// resolveNoticeReaders is whose settings take such notices for read at once.
func (t *Turn) resolveNoticeReaders(m *MessageMove) []UserID {
	active := t.index.channels[m.To].active
	unfollowed := ids.Difference(ids.Intersection(active, t.index.autoReadsUnfollowed), t.policyUsers(m.To, m.TopicName, TopicFollowed))
	return ids.IDs[UserID](ids.Union(ids.Intersection(active, t.index.autoReadsResolved), unfollowed))
}
