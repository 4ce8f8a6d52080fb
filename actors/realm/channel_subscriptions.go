package realm

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// Subscriptions is the row of everything one user is, or was, subscribed to, by ascending channel.
type Subscriptions struct {
	List  []Subscription
	Used  uint64 `msgpack:"-"` // the colours of the palette in List, a bit each,
	Stale bool   `msgpack:"-"` // unless they have to be found again
}

// Subscription is one user's relation to one channel; it stays when the user leaves.
type Subscription struct {
	Channel                                 ChannelID
	Active                                  bool
	Color                                   string
	Muted                                   bool
	Pinned                                  bool
	Desktop, Audible, Push, Email, Wildcard *bool  // nil inherits the user's setting
	Spans                                   []Span // which messages of the channel the user received
}

// Span is a stretch of message ids; To 0 is open.
type Span struct{ From, To MessageID }

func (s *Subscription) covers(id MessageID) bool {
	for i := len(s.Spans) - 1; i >= 0; i-- {
		if id >= s.Spans[i].From {
			return s.Spans[i].To == 0 || id <= s.Spans[i].To
		}
	}
	return false
}

func (l *Subscriptions) find(c ChannelID) *Subscription {
	if l == nil {
		return nil
	}
	i, ok := l.position(c)
	if !ok {
		return nil
	}
	return &l.List[i]
}

// position is where in the list a channel is, or would be. The library's search would copy each row it looks at, and this is
// asked more than anything else.
func (l *Subscriptions) position(c ChannelID) (int, bool) {
	lo, hi := 0, len(l.List)
	if hi > 0 && l.List[hi-1].Channel < c {
		return hi, false // a new channel is the last one of everybody
	}
	for lo < hi {
		if mid := (lo + hi) / 2; l.List[mid].Channel < c {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(l.List) && l.List[lo].Channel == c
}

// ensureAll makes rows for channels, which ascend, as far as there are none, all at once: behind each other from the end, so
// that what is before them stays where it is.
func (l *Subscriptions) ensureAll(channels []Subscribed) {
	n := 0
	for _, f := range channels {
		if l.find(f.Channel) == nil {
			n++
		}
	}
	from := len(l.List)
	to := from + n
	l.List = slices.Grow(l.List, n)[:to]
	for i := len(channels) - 1; from < to; i-- {
		c := channels[i].Channel
		for ; from > 0 && l.List[from-1].Channel > c; from-- {
			to--
			l.List[to] = l.List[from-1]
		}
		if from == 0 || l.List[from-1].Channel != c {
			to--
			l.List[to] = Subscription{Channel: c}
		}
	}
}

func (l *Subscriptions) ensure(c ChannelID) *Subscription {
	i, ok := l.position(c)
	if !ok {
		l.List = slices.Insert(l.List, i, Subscription{Channel: c})
	}
	return &l.List[i]
}

// SubscriptionOf is a user's relation to a channel, past or present, or nil.
func (r *Realm) SubscriptionOf(u UserID, c ChannelID) *Subscription {
	return r.subscriptions.find(u).find(c)
}

// subscribedChannelSet is the channels a user is subscribed to.
func (r *Realm) subscribedChannelSet(u UserID) ids.Set {
	var s ids.Set
	if l := r.subscriptions.find(u); l != nil {
		for _, x := range l.List {
			if x.Active {
				s.Add(int64(x.Channel))
			}
		}
	}
	return s
}

// indexAccountActive keeps the channels' active subscribers in step with the account.
func (r *Realm) indexAccountActive(u *User) {
	r.index.groupDisplayVersion++
	r.subscribedChannelSet(u.ID).Each(func(c int64) bool {
		if ix := r.index.channels[ChannelID(c)]; u.Active {
			ix.active.Add(int64(u.ID))
		} else {
			ix.active.Remove(int64(u.ID))
		}
		r.index.channels[ChannelID(c)].activeChanges++
		return true
	})
}

// Palette is the colours new subscriptions take, in order.
var Palette = strings.Fields("#76ce90 #fae589 #a6c7e5 #e79ab5 #bfd56f #f4ae55 #b0a5fd #addfe5 #f5ce6e #c2726a #94c849 #bd86e5 #ee7e4a #a6dcbf #95a5fd #53a063 #9987e1 #e4523d #c2c2c2 #4f8de4 #c6a8ad #e7cc4d #c8bebf #a47462")

// colorFor is the colour a new subscription gets: the one the user had for the channel before, else the first of the palette
// that he has not used. planned is a bit for each colour that the same turn has given him already. When all are used, the
// channel's recipient id decides.
func (l *Subscriptions) colorFor(c *Channel, planned uint64) string {
	if s := l.find(c.ID); s != nil && s.Color != "" {
		return s.Color
	}
	if l != nil {
		planned |= l.usedColors()
	}
	if i := bits.TrailingZeros64(^planned); i < len(Palette) {
		return Palette[i]
	}
	return Palette[c.ID.Recipient()%int64(len(Palette))]
}

// setColor sets the colour of a subscription in the list.
func (l *Subscriptions) setColor(s *Subscription, color string) {
	old := s.Color
	switch s.Color = color; old {
	case color:
	case "":
		l.Used |= paletteBits[color]
	default:
		l.Stale = true // another subscription may have the old one, too: it is found out when somebody asks, not with each of a thousand
	}
}

// usedColors is the colours of the palette that are used, a bit each.
func (l *Subscriptions) usedColors() uint64 {
	if l.Stale {
		l.rebuildUsedColors()
	}
	return l.Used
}

func (l *Subscriptions) rebuildUsedColors() {
	l.Used, l.Stale = 0, false
	for i := range l.List {
		l.Used |= paletteBits[l.List[i].Color]
	}
}

// paletteBits is a bit for each colour of the palette, which has fewer than 64. Who subscribes ten thousand users asks ten
// thousand times which colours are used, so every list remembers it.
var paletteBits = func() map[string]uint64 {
	m := map[string]uint64{}
	for i, p := range Palette {
		m[p] = 1 << i
	}
	return m
}()

// Subscribed says users joined a channel.
type Subscribed struct {
	Channel ChannelID
	Users   []UserID  // sortUnique
	Colors  []string  // one each
	From    MessageID // noticeRank message id they may receive
	Appears []UserID  // the ones that could not see the channel before
}

func (f *Subscribed) apply(r *Realm) {
	ix := r.index.channels[f.Channel]
	spans := make([]Span, len(f.Users)) // one piece of memory for all: most of them are somebody's first
	for i, u := range f.Users {
		l := r.subscriptions.ensure(u)
		s := l.ensure(f.Channel)
		s.Active = true
		l.setColor(s, f.Colors[i])
		if spans[i].From = f.From; s.Spans == nil {
			s.Spans = spans[i : i+1 : i+1]
		} else {
			s.Spans = append(s.Spans, spans[i])
		}
		ix.everSubscribed.Add(int64(u))
		ix.addOpenSpan(u, f.From)
		ix.subscribers.Add(int64(u))
		if r.users.must(u).Active {
			ix.active.Add(int64(u))
		}
	}
	ix.connectedSubscribersValid = false
	ix.activeChanges++
}

func (f *Subscribed) tell(r *Realm) []Notice {
	c := r.channels.must(f.Channel)
	var out []Notice
	if to := r.usersAudience(f.Appears...); len(to) > 0 {
		out = append(out, Notice{To: to, Event: r.channelsAppeared(f.Channel)})
	}
	if to := r.usersAudience(f.Users...); len(to) > 0 {
		e := r.newSubscriptionAdded(c, to)
		out = append(out, Notice{To: to, Event: &e})
	}
	if to := r.subscriberChangeAudience(c, f.Users); len(to) > 0 {
		out = append(out, Notice{To: to, Event: &PeersChanged{Joined: true, Channels: []ChannelID{f.Channel}, Users: f.Users, Archived: r.archivedAmong([]ChannelID{f.Channel})}})
	}
	return out
}

// withoutUsers is an audience without some users; both are ascending.
func withoutUsers(to, users []UserID) []UserID {
	return slices.DeleteFunc(slices.Clone(to), func(u UserID) bool {
		_, is := slices.BinarySearch(users, u)
		return is
	})
}

// UserMaySeeSubscribers is MaySeeSubscribers for a user who is not the caller.
func (r *Realm) UserMaySeeSubscribers(u UserID, c *Channel) bool {
	return r.ViewAs(Caller{User: u}, r.index.clock).MaySeeSubscribers(c)
}

// Unsubscribed says users left a channel.
type Unsubscribed struct {
	Channel ChannelID
	Users   []UserID  // sortUnique
	Last    MessageID // last message id they may have received
	Job     int64     // under which its messages are marked read for them; see leaving.go
}

func (f *Unsubscribed) apply(r *Realm) {
	ix := r.index.channels[f.Channel]
	for _, u := range f.Users {
		s := r.subscriptions.change(u).find(f.Channel)
		s.Active = false
		s.closeSpan(f.Last)
		ix.receiving.Remove(int64(u))
		ix.subscribers.Remove(int64(u))
		ix.active.Remove(int64(u))
	}
	r.startLeaving(f.Job, f.Channel, ids.SetOf(f.Users...))
	ix.connectedSubscribersValid = false
	ix.activeChanges++
}

func (s *Subscription) closeSpan(last MessageID) {
	if n := len(s.Spans); n > 0 && s.Spans[n-1].To == 0 {
		if s.Spans[n-1].From > last {
			s.Spans = s.Spans[:n-1]
		} else {
			s.Spans[n-1].To = last
		}
	}
}

func (f *Unsubscribed) tell(r *Realm) []Notice {
	c := r.channels.must(f.Channel)
	var out []Notice
	for _, u := range r.usersAudience(f.Users...) {
		out = append(out, Notice{To: []UserID{u}, Event: &SubscriptionRemoved{f.Channel, c.Name, c.Archived}})
		if !r.hasMetadataAccess(r.users.must(u), c) {
			out = append(out, Notice{To: []UserID{u}, Event: &ChannelVanished{Channels: []ChannelID{f.Channel}, Shut: r.archivedAmong([]ChannelID{f.Channel})}})
		}
	}
	if to := r.subscriberChangeAudience(c, f.Users); len(to) > 0 {
		out = append(out, Notice{To: to, Event: &PeersChanged{Channels: []ChannelID{f.Channel}, Users: f.Users, Archived: r.archivedAmong([]ChannelID{f.Channel})}})
	}
	return out
}

// SubscriptionInfo is a subscription as its owner is told of it.
type SubscriptionInfo struct {
	ChannelInfo
	Subscription
	Members      ids.Set // subscribers, if they may be known
	Here         ids.Set // see Present of SubscriptionAdded
	KnowsMembers bool
	Inherited    ChannelNotifications // what the subscription's own settings are while unset
}

// ChannelNotifications is when a user is notified of channel messages, unless a subscription says otherwise.
type ChannelNotifications struct {
	Desktop, Audible, Push, Email, Wildcard bool
}

// inheritedNotifications is what somebody's subscriptions inherit; visitors are never notified.
func (r *Realm) inheritedNotifications(u UserID) ChannelNotifications {
	if x := r.users.find(u); x != nil {
		return x.channelNotifications()
	}
	return ChannelNotifications{}
}

func (u *User) channelNotifications() ChannelNotifications {
	return ChannelNotifications{
		Desktop:  u.BoolSetting("enable_stream_desktop_notifications"),
		Audible:  u.BoolSetting("enable_stream_audible_notifications"),
		Push:     u.BoolSetting("enable_stream_push_notifications"),
		Email:    u.BoolSetting("enable_stream_email_notifications"),
		Wildcard: u.BoolSetting("wildcard_mentions_notify"),
	}
}

// PersonalSubscription is a user's own settings of a channel, without what everybody is told of it.
func (r *Realm) PersonalSubscription(u UserID, c ChannelID) SubscriptionInfo {
	i := SubscriptionInfo{Inherited: r.inheritedNotifications(u)}
	if s := r.SubscriptionOf(u, c); s != nil {
		i.Subscription = *s
		i.Spans = nil
	}
	return i
}

// SubscriptionAdded is the event subscription/add, to each subscriber of his own. What is the same for all is in it once,
// however many join together.
type SubscriptionAdded struct {
	Info      ChannelInfo
	Members   []UserID               // subscribers, in events of before Roster
	Own       []Subscription         // one for each of Users
	Users     []UserID               // sortUnique
	Knows     []bool                 // one each: may know the subscribers
	Inherited []ChannelNotifications // one each
	// Back: the channel was archived. Only queues without archived_channels had lost it.
	Back   bool
	Here   []UserID // those of Members as in Present
	Roster ids.Set  // subscribers
	// Present is those of Roster who are bots or have a queue, where there are so many that a client may be told of a part.
	Present ids.Set
}

// FullSubscriberListLimit is below how many subscribers everybody who wants to know them is told all (protocol).
const FullSubscriberListLimit = 250

func (r *Realm) newSubscriptionAdded(c *Channel, users []UserID) SubscriptionAdded {
	var x subscriptionAddedBuilder
	return x.event(r, c, users)
}

// subscriptionAddedBuilder puts together the events subscription/add of several channels. One request may join hundreds, so what is the same
// is in them once, and what is small has its memory together.
type subscriptionAddedBuilder struct {
	own       slab[Subscription]
	knows     slab[bool]
	ids       slab[uint32]
	users     []UserID // those of the last event
	inherited []ChannelNotifications
}

func (x *subscriptionAddedBuilder) event(r *Realm, c *Channel, users []UserID) SubscriptionAdded {
	if x.users == nil || !sameAudience(x.users, users) {
		x.users, x.inherited = users, make([]ChannelNotifications, len(users))
		for i, u := range users {
			x.inherited[i] = r.inheritedNotifications(u)
		}
	}
	active := r.index.channels[c.ID].active
	e := SubscriptionAdded{Info: r.ChannelInfo(c), Users: x.users, Roster: active.CloneInto(x.ids.alloc), Own: x.own.alloc(len(users)), Knows: x.knows.alloc(len(users)), Inherited: x.inherited}
	if active.Len() >= FullSubscriberListLimit {
		e.Present = ids.Union(ids.Intersection(active, r.index.bots), ids.Intersection(active, r.index.usersWithQueues))
	}
	for i, u := range users {
		e.Own[i] = *r.SubscriptionOf(u, c.ID)
		e.Own[i].Spans = nil
		e.Knows[i] = r.UserMaySeeSubscribers(u, c)
	}
	return e
}

// For is the subscription as one of the users is told of it.
func (e *SubscriptionAdded) For(u UserID) SubscriptionInfo {
	i, ok := slices.BinarySearch(e.Users, u)
	if !ok {
		panic("BUG: the event subscription/add reached user " + u.String() + ", who did not subscribe")
	}
	s := SubscriptionInfo{ChannelInfo: e.Info, Subscription: e.Own[i], KnowsMembers: e.Knows[i], Inherited: e.Inherited[i]}
	if e.Knows[i] {
		s.Members, s.Here = e.Roster, e.Present
		if len(e.Members) > 0 {
			s.Members, s.Here = ids.SetOf(e.Members...), ids.SetOf(e.Here...)
		}
	}
	return s
}

// SubscriptionRemoved is the event subscription/remove, to the one who left.
type SubscriptionRemoved struct {
	Channel  ChannelID
	Name     string
	Archived bool // only queues with archived_channels know of it
}

// PeersChanged is the events subscription/peer_add and peer_remove, to the others.
type PeersChanged struct {
	Joined   bool
	Channels []ChannelID
	Users    []UserID
	Archived []ChannelID // those of Channels that are archived: only queues with archived_channels know of them
}

func (*SubscriptionAdded) EventType() string   { return "subscription" }
func (*SubscriptionRemoved) EventType() string { return "subscription" }
func (*PeersChanged) EventType() string        { return "subscription" }

// planJoin is the fact that users, each named once, join a channel, nil if all of them are in it already. color is what they asked for, or
// ""; used says which colours of the palette each has been given for other channels in the same turn, nil if there are none.
func (t *Turn) planJoin(c *Channel, users []*User, color string, used map[UserID]uint64) *Subscribed {
	in := t.index.channels[c.ID].subscribers
	n := len(users)
	f := &Subscribed{Channel: c.ID, From: t.Org().NextMessage, Users: make([]UserID, 0, n), Colors: make([]string, 0, n)}
	byUser := func(a, b *User) int { return cmp.Compare(a.ID, b.ID) }
	if !slices.IsSortedFunc(users, byUser) {
		users = slices.Clone(users)
		slices.SortFunc(users, byUser)
	}
	for _, u := range users {
		if in.Has(int64(u.ID)) {
			continue
		}
		col := color
		if col == "" {
			col = t.subscriptions.find(u.ID).colorFor(c, used[u.ID])
		}
		if used != nil {
			used[u.ID] |= paletteBits[col]
		}
		f.Users, f.Colors = append(f.Users, u.ID), append(f.Colors, col)
		if !t.hasMetadataAccess(u, c) {
			f.Appears = append(f.Appears, u.ID)
		}
	}
	if len(f.Users) == 0 {
		return nil
	}
	return f
}

// planLeave is the fact that users leave a channel, nil if none of them is in it. job is its place among the leavings of
// the same turn, from 0.
func (t *Turn) planLeave(c *Channel, users []UserID, job int) *Unsubscribed {
	f := &Unsubscribed{Channel: c.ID, Last: t.Org().NextMessage - 1, Job: t.nextID("leaving") + int64(job)}
	for _, u := range sortUnique(slices.Clone(users)) {
		if t.Realm.Subscribed(u, c.ID) {
			f.Users = append(f.Users, u)
		}
	}
	if len(f.Users) == 0 {
		return nil
	}
	return f
}

// Limits of the history a new account starts with; the numbers are the protocol's.
const (
	newUserHistory = 1000 // newestIDs messages of the first channels that the account has rows of
	newUserUnread  = 20   // how many of them are unread
)

// joinFirstChannels subscribes a new account to its first channels, and gives it the newest part of their history.
func (t *Turn) joinFirstChannels(u *User, idList []ChannelID) {
	idList = slices.Clone(idList)
	slices.Sort(idList)
	var joined []*Channel
	var facts []Subscribed
	used := map[UserID]uint64{}
	for _, id := range slices.Compact(idList) {
		if c := t.channels.find(id); c != nil && !c.Archived {
			if f := t.planJoin(c, []*User{u}, "", used); f != nil {
				facts = append(facts, *f)
			}
			joined = append(joined, c)
		}
	}
	t.recordSubscribed(facts)
	if u.IsBot() {
		return
	}
	var recent []ids.Set
	for _, c := range joined {
		if c.History {
			recent = append(recent, newestIDs(t.index.channels[c.ID].ids, newUserHistory))
		}
	}
	if rows := newestIDs(ids.Union(recent...), newUserHistory); !rows.Empty() {
		t.Record(&HistoryGiven{User: u.ID, Rows: rows, Read: ids.Difference(rows, newestIDs(rows, newUserUnread))})
	}
}

// newestIDs is the n highest ids of a set.
func newestIDs(s ids.Set, n int) ids.Set {
	if s.Len() <= n {
		return s.Clone()
	}
	return s.Between(s.At(s.Len()-n), MaxMessageID)
}

// HistoryGiven says a user has rows of messages sent before he came.
type HistoryGiven struct {
	User UserID
	Rows ids.Set
	Read ids.Set // those of them that count as read
}

func (f *HistoryGiven) apply(r *Realm) {
	rd := r.marks.ensure(f.User)
	rd.Rows.Union(f.Rows)
	rd.Read.Union(f.Read)
}

func (f *HistoryGiven) tell(*Realm) []Notice { return nil }
