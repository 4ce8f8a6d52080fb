package realm

import (
	"fmt"
	"slices"

	"parley/actors/realm/ids"
)

// maxHiddenPerFact limits how many messages one fact removes from users' views. Old clients get one event per
// message, and a fact may send at most 128 events to a queue.
const maxHiddenPerFact = 100

// hideMovedMessages removes messages, before they move, from users that will not have access to them in the new
// channel.
func (t *Turn) hideMovedMessages(m *MessageMove) {
	to := t.channels.must(m.To)
	var lose []UserID
	hasRow := t.hasRowIn(m.IDs)
	hide := func(hidden ids.Set, users ...UserID) {
		for part := range slices.Chunk(ids.IDs[MessageID](hidden), maxHiddenPerFact) {
			t.Record(&MessagesHidden{IDs: ids.SetOf(part...), Users: users, Channel: m.From, Topic: m.FromTopic})
		}
	}
	for _, u := range t.users.keys() {
		content := t.hasContentAccess(t.users.must(u), to)
		if content && (!t.hasProtectedHistory(to) || t.Subscribed(u, to.ID)) {
			continue
		}
		if t.SubscriptionOf(u, m.From) == nil && !hasRow(u) {
			continue
		}
		// A user with access to a channel with protected history that is not subscribed sees only the messages they
		// have rows of.
		if content {
			if hidden := ids.Difference(m.IDs, t.rowsWithin(u, &m.IDs)); hidden.Len() < m.IDs.Len() {
				hide(hidden, u)
				continue
			}
		}
		lose = append(lose, u)
	}
	if len(lose) > 0 {
		hide(m.IDs, lose...)
	}
}

// MessagesHidden says that users lose their rows of messages that move to a channel where they have no access.
type MessagesHidden struct {
	IDs     ids.Set
	Users   []UserID // ascending
	Channel ChannelID
	Topic   string
}

func (f *MessagesHidden) apply(r *Realm) {
	before := r.savePriorState()
	before.audiences = [][]UserID{r.hiddenMessagesAudience(f)}
	for _, u := range f.Users {
		before.stars.add(r, u, f.IDs, before.audiences[0])
		rd := r.marks.ensure(u)
		rd.Rows.Subtract(f.IDs)
		rd.Given.Subtract(f.IDs)
		rd.Starred.Subtract(f.IDs)
		rd.Lost.Union(f.IDs)
	}
}

func (f *MessagesHidden) notices(r *Realm) []Notice {
	before := r.priorState()
	var out []Notice
	if to := before.audiences[0]; len(to) > 0 {
		e := &MessagesVanished{IDs: ids.IDs[MessageID](f.IDs), Channel: f.Channel, Topic: f.Topic}
		out = append(out, Notice{To: to, Event: e})
	}
	return append(out, before.stars.notices()...)
}

// MessagesVanished is the event delete_message: messages were deleted, or moved where the receiver has no access. It
// has at most 100 messages of one conversation.
type MessagesVanished struct {
	IDs     []MessageID // ascending
	Channel ChannelID   // 0: direct
	Topic   string
}

func (*MessagesVanished) EventType() string { return "delete_message" }

// firstMessageIDs is the first message of each channel before a change; 0: none.
type firstMessageIDs map[ChannelID]MessageID

// firstMessagesOf returns the first message of each channel.
func (t *Turn) firstMessagesOf(channels ...ChannelID) firstMessageIDs {
	f := firstMessageIDs{}
	for _, c := range channels {
		first, _ := t.index.channels[c].ids.Min()
		f[c] = MessageID(first)
	}
	return f
}

// recordFirstMessages records the channels whose first message changed.
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

// HistoryBegins says which message is now the first of a channel; 0 if no message is left. Nothing is stored: it
// follows from other facts.
type HistoryBegins struct {
	Channel ChannelID
	First   MessageID
}

func (*HistoryBegins) apply(*Realm) {}
func (f *HistoryBegins) notices(r *Realm) []Notice {
	c := r.channels.must(f.Channel)
	e := &ChannelActivityChanged{Channel: c.ID, Name: c.Name, First: f.First, FirstChanged: true}
	return []Notice{{To: r.channelAudience(c), Event: e}}
}

// postMoveNotices posts notices in the new and the old place of moved messages. With
// wholeTopic no message stayed in the old topic. With newTopic, besides, the new topic had no other messages.
func (p *messageEdit) postMoveNotices(t *Turn, m *MessageMove, wholeTopic, newTopic bool) {
	mover := t.SilentMention(p.me.ID)
	subject := func(topic bool) string {
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
		t.NotifyChannel(c, topic, text+" by "+mover+".")
	}
	from, to := t.channels.must(m.From), t.channels.must(m.To)
	if p.NotifyNew {
		announce(m.To, m.TopicName, subject(newTopic)+" moved here from "+t.topicLinkFor(to, from, m.FromTopic))
	}
	if p.NotifyOld {
		announce(m.From, m.FromTopic, subject(wholeTopic)+" moved to "+t.topicLinkFor(from, to, m.TopicName))
	}
}

// topicLinkFor returns Markdown that links to a topic of a channel, for a notice in the channel in. The notice has one
// text for all its readers. If some of them must not know that the channel exists, it names neither channel nor topic.
func (r *Realm) topicLinkFor(in, c *Channel, topic string) string {
	if in.ID != c.ID && !r.allReadersKnow(in, c) {
		return "another channel"
	}
	return r.TopicLink(c, topic)
}

// allReadersKnow reports whether every active user and visitor that may read the messages of one channel may know that
// another exists.
func (r *Realm) allReadersKnow(read, known *Channel) bool {
	if r.hasContentAccess(nil, read) && !r.hasMetadataAccess(nil, known) {
		return false
	}
	for id := UserID(0); id < r.Org().NextUser; id++ {
		u := r.users.find(id)
		if u != nil && u.Active && !u.System && r.hasContentAccess(u, read) && !r.hasMetadataAccess(u, known) {
			return false
		}
	}
	return true
}

// resolveUndoSeconds is a time after resolving a topic (protocol). If it is unresolved within this time, the notice
// is deleted and no further one is posted.
const resolveUndoSeconds = 60

// postResolveNotice posts in a topic that it was marked as resolved or unresolved.
func (t *Turn) postResolveNotice(me *User, m *MessageMove) {
	last := t.lastResolveNotice(m.To, m.TopicName)
	if last != 0 && t.Now-int64(t.message(last).time) <= resolveUndoSeconds {
		t.deleteMessages([]MessageID{last}, DeletedByUser, 0)
		return
	}
	text := " has marked this topic as resolved."
	if len(m.TopicName) < len(m.FromTopic) {
		text = " has marked this topic as unresolved."
	}
	t.SendBotMessage(BotMessage{Channel: m.To, Topic: m.TopicName, Text: t.SilentMention(me.ID) + text,
		ReadBy: t.resolveNoticeReaders(m), Kind: resolveNotice})
}

// resolveNotice is the message kind of the bot's messages about resolved topics.
const resolveNotice = "resolve"

// lastResolveNotice returns the topic's newest message if it is a notice about resolving, else 0.
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

// resolveNoticeReaders returns the users whose settings mark such notices as read at once.
func (t *Turn) resolveNoticeReaders(m *MessageMove) []UserID {
	active := t.index.channels[m.To].active
	followers := t.policyUsers(m.To, m.TopicName, TopicFollowed)
	unfollowed := ids.Difference(ids.Intersection(active, t.index.autoReadsUnfollowed), followers)
	return ids.IDs[UserID](ids.Union(ids.Intersection(active, t.index.autoReadsResolved), unfollowed))
}
