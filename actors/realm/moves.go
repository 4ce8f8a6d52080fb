package realm

import (
	"fmt"
	"slices"
)

// hiddenAtOnce is how many messages one fact takes out of somebody's sight: old clients hear one event for each, and a
// fact may tell a queue at most 128.
const hiddenAtOnce = 100

// hideFrom takes messages from those who will not see them where they go, before they go.
func (t *Turn) hideFrom(m *MessageMove) {
	to := t.chans.must(m.To)
	var lose []UserID
	holds := t.holder(m.IDs)
	hide := func(ids Set, users ...UserID) {
		for part := range slices.Chunk(IDs[MessageID](ids), hiddenAtOnce) {
			t.Record(&MessagesHidden{IDs: SetOf(part...), Users: users, Channel: m.From, Topic: m.FromTopic})
		}
	}
	for _, u := range t.users.keys() {
		content := t.hasContent(t.users.must(u), to)
		if content && (!t.protected(to) || t.Subscribed(u, to.ID)) || t.SubscriptionOf(u, m.From) == nil && !holds(u) {
			continue
		}
		// Who may enter a channel with protected history, but is not in it, sees there only what he has rows of.
		if content {
			if ids := Without(m.IDs, t.rowsWithin(u, &m.IDs)); ids.Len() < m.IDs.Len() {
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
	IDs     Set
	Users   []UserID // ascending
	Channel ChannelID
	Topic   string

	to    []UserID  `msgpack:"-"` // who hears of it, settled by apply: those who saw them
	stars lostStars `msgpack:"-"`
}

func (*MessagesHidden) calm() {}

func (f *MessagesHidden) apply(r *Realm) {
	c, holds := r.chans.must(f.Channel), r.holder(f.IDs)
	for _, u := range r.only(f.Users...) {
		if r.hasContent(r.users.must(u), c) && (!r.protected(c) || holds(u)) {
			f.to = append(f.to, u)
		}
	}
	for _, u := range f.Users {
		f.stars.add(r, u, f.IDs, f.to)
		rd := r.reading.open(u)
		rd.Rows.Subtract(f.IDs)
		rd.Given.Subtract(f.IDs)
		rd.Starred.Subtract(f.IDs)
		rd.Lost.Union(f.IDs)
	}
}

func (f *MessagesHidden) tell(r *Realm) []Notice {
	var out []Notice
	if len(f.to) > 0 {
		out = append(out, Notice{To: f.to, Event: &MessagesGone{IDs: IDs[MessageID](f.IDs), Channel: f.Channel, Topic: f.Topic}})
	}
	return append(out, f.stars.tell()...)
}

// MessagesGone is the event delete_message: deleted, or moved out of somebody's sight. At most 100 of one conversation.
type MessagesGone struct {
	IDs     []MessageID // ascending
	Channel ChannelID   // 0: direct
	Topic   string
}

func (*MessagesGone) EventType() string { return "delete_message" }

// firsts is where channels' histories began before a change.
type firsts map[ChannelID]MessageID

func (t *Turn) firstMessages(channels ...ChannelID) firsts {
	f := firsts{}
	for _, c := range channels {
		first, _ := t.by.channel[c].ids.Min()
		f[c] = MessageID(first)
	}
	return f
}

// tellFirst records where histories begin now, if elsewhere.
func (t *Turn) tellFirst(before firsts) {
	channels := make([]ChannelID, 0, len(before))
	for c := range before {
		channels = append(channels, c)
	}
	slices.Sort(channels)
	for _, c := range channels {
		if now := t.firstMessages(c)[c]; now != before[c] {
			t.Record(&HistoryBegins{c, now})
		}
	}
}

// HistoryBegins says which message is a channel's first now; 0 if none is left.
type HistoryBegins struct {
	Channel ChannelID
	First   MessageID
}

func (*HistoryBegins) calm()        {}
func (*HistoryBegins) apply(*Realm) {}
func (f *HistoryBegins) tell(r *Realm) []Notice {
	c := r.chans.must(f.Channel)
	return []Notice{{To: r.knowers(c), Event: &ChannelStirred{Channel: c.ID, Name: c.Name, First: f.First, FirstChanged: true}}}
}

// breadcrumbs leaves notices where messages went and where they came from: left, that no message of the old topic stayed;
// alone, that besides they found none where they came. Who moved them knows, and has the notices read.
func (p *editing) breadcrumbs(t *Turn, m *MessageMove, left, alone bool) {
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
		t.Announce(c, topic, text+" by "+who+".", readBy...)
	}
	from, to := t.chans.must(m.From), t.chans.must(m.To)
	if p.NotifyOld {
		announce(m.From, m.FromTopic, what(left)+" moved to "+t.TopicLink(to, m.TopicName))
	}
	if p.NotifyNew {
		announce(m.To, m.TopicName, what(alone)+" moved here from "+t.TopicLink(from, m.FromTopic))
	}
}

// undoResolve is how long after marking a topic its undoing takes the notice back instead of adding one, in seconds
// (protocol).
const undoResolve = 60

// noticeResolve tells a topic that it was marked as resolved, or no longer is.
func (t *Turn) noticeResolve(me *User, m *MessageMove) {
	if last := t.lastNotice(m.To, m.TopicName); last != 0 && t.Now-int64(t.message(last).time) <= undoResolve {
		t.deleteMessages([]MessageID{last}, 0)
		return
	}
	text := " has marked this topic as resolved."
	if len(m.TopicName) < len(m.FromTopic) {
		text = " has marked this topic as unresolved."
	}
	t.Say(BotMessage{Channel: m.To, Topic: m.TopicName, Text: t.SilentMention(me.ID) + text, ReadBy: t.readsNotices(m), Kind: resolveNotice})
}

// resolveNotice marks the bot's message about a topic that was resolved or not.
const resolveNotice = "resolve"

// lastNotice is a topic's newest message if it is such a notice.
func (t *Turn) lastNotice(c ChannelID, topic string) MessageID {
	ix := t.by.channel[c].topics[fold(topic)]
	if ix == nil {
		return 0
	}
	last, _ := ix.ids.Max()
	if t.extraOf(MessageID(last)).Notice != resolveNotice {
		return 0
	}
	return MessageID(last)
}

// readsNotices is whose settings take such notices for read at once.
func (t *Turn) readsNotices(m *MessageMove) []UserID {
	active := t.by.channel[m.To].active
	unfollowed := Without(Both(active, t.by.readsUnfollowed), t.policyUsers(m.To, m.TopicName, TopicFollowed))
	return IDs[UserID](Either(Both(active, t.by.readsResolved), unfollowed))
}
