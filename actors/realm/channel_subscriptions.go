package realm

import (
	"cmp"
	"math/bits"
	"slices"

	"parley/actors/realm/ids"
)

// Subscriptions is the row of all present and past subscriptions of one user, ordered by channel id.
type Subscriptions struct {
	List  []Subscription
	Used  uint64 `msgpack:"-"` // the palette colors in List, one bit each
	Stale bool   `msgpack:"-"` // Used must be computed again
}

// Subscription is one user's relation to one channel. It remains when the user leaves.
type Subscription struct {
	Channel                                 ChannelID
	Active                                  bool
	Color                                   string
	Muted                                   bool
	Pinned                                  bool
	Desktop, Audible, Push, Email, Wildcard *bool  // nil inherits the user's setting
	Spans                                   []Span // the messages of the channel that the user received
}

// Span is a range of message ids. If To is 0 it is still open.
type Span struct{ From, To MessageID }

// covers reports whether a span contains the message.
func (s *Subscription) covers(id MessageID) bool {
	for i := len(s.Spans) - 1; i >= 0; i-- {
		if id >= s.Spans[i].From {
			return s.Spans[i].To == 0 || id <= s.Spans[i].To
		}
	}
	return false
}

// find returns the subscription to a channel, or nil. l may be nil.
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

// position returns the index of a channel in the list, or the index where it would be inserted. It is the most frequent
// lookup of all; slices.BinarySearchFunc would copy each row it compares.
func (l *Subscriptions) position(c ChannelID) (int, bool) {
	lo, hi := 0, len(l.List)
	if hi > 0 && l.List[hi-1].Channel < c {
		return hi, false // a new channel always comes last
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

// ensureAll inserts rows for those of the channels, in ascending order, that have none yet. It moves the rows only
// once, from the end to the front.
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

// ensure returns the subscription to a channel. It creates one if there is none.
func (l *Subscriptions) ensure(c ChannelID) *Subscription {
	i, ok := l.position(c)
	if !ok {
		l.List = slices.Insert(l.List, i, Subscription{Channel: c})
	}
	return &l.List[i]
}

// SubscriptionOf returns a user's present or past subscription to a channel, or nil.
func (r *Realm) SubscriptionOf(u UserID, c ChannelID) *Subscription {
	return r.subscriptions.find(u).find(c)
}

// subscribedChannelSet returns the channels a user is subscribed to.
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

// indexAccountActive updates the active subscribers of the user's channels after the account was opened or closed.
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

// Palette is the colors of new subscriptions, in the order in which they are assigned.
var Palette = []string{
	"#76ce90", "#fae589", "#a6c7e5", "#e79ab5", "#bfd56f", "#f4ae55", "#b0a5fd", "#addfe5", "#f5ce6e", "#c2726a",
	"#94c849", "#bd86e5", "#ee7e4a", "#a6dcbf", "#95a5fd", "#53a063", "#9987e1", "#e4523d", "#c2c2c2", "#4f8de4",
	"#c6a8ad", "#e7cc4d", "#c8bebf", "#a47462",
}

// colorFor returns the color of a new subscription: the color the user had for this channel before, else the first
// unused color of the palette. planned has a bit for each color that the same turn has already assigned. If all are
// used, the channel's recipient id selects one.
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

// setColor sets the color of a subscription in the list.
func (l *Subscriptions) setColor(s *Subscription, color string) {
	old := s.Color
	switch s.Color = color; old {
	case color:
	case "":
		l.Used |= paletteBits[color]
	default:
		// Another subscription may have the old color, too. Used is computed when it is needed, not after each of a
		// thousand changes.
		l.Stale = true
	}
}

// usedColors returns the palette colors in the list, one bit each.
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

// paletteBits has one bit for each color of the palette, which has fewer than 64. A request that subscribes 10,000
// users needs the used colors of each, so every list caches them.
var paletteBits = func() map[string]uint64 {
	m := map[string]uint64{}
	for i, p := range Palette {
		m[p] = 1 << i
	}
	return m
}()

// Subscribed says that users joined a channel.
type Subscribed struct {
	Channel ChannelID
	Users   []UserID  // ascending
	Colors  []string  // one for each user
	From    MessageID // first message id they may receive
	Appears []UserID  // the users who could not see the channel before
}

func (f *Subscribed) apply(r *Realm) {
	ix := r.index.channels[f.Channel]
	spans := make([]Span, len(f.Users)) // one allocation for all: most of these users have no span yet
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

func (f *Subscribed) notices(r *Realm) []Notice {
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
		out = append(out, Notice{To: to, Event: &PeersChanged{
			Joined: true, Channels: []ChannelID{f.Channel}, Users: f.Users,
			Archived: r.archivedAmong([]ChannelID{f.Channel}),
		}})
	}
	return out
}

// withoutUsers returns an audience without some users. Both lists are ascending.
func withoutUsers(to, users []UserID) []UserID {
	return slices.DeleteFunc(slices.Clone(to), func(u UserID) bool {
		_, is := slices.BinarySearch(users, u)
		return is
	})
}

// UserMaySeeSubscribers is MaySeeSubscribers for another user than the caller.
func (r *Realm) UserMaySeeSubscribers(u UserID, c *Channel) bool {
	return r.ViewAs(Caller{User: u}, r.index.clock).MaySeeSubscribers(c)
}

// Unsubscribed says that users left a channel.
type Unsubscribed struct {
	Channel ChannelID
	Users   []UserID  // ascending
	Last    MessageID // last message id they may have received
	Job     int64     // the job that marks the channel's messages as read for them; see channel_leave.go
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

// closeSpan ends the open span, if there is one, at last. It removes a span that would be empty.
func (s *Subscription) closeSpan(last MessageID) {
	if n := len(s.Spans); n > 0 && s.Spans[n-1].To == 0 {
		if s.Spans[n-1].From > last {
			s.Spans = s.Spans[:n-1]
		} else {
			s.Spans[n-1].To = last
		}
	}
}

func (f *Unsubscribed) notices(r *Realm) []Notice {
	c := r.channels.must(f.Channel)
	var out []Notice
	for _, u := range r.usersAudience(f.Users...) {
		out = append(out, Notice{To: []UserID{u}, Event: &SubscriptionRemoved{f.Channel, c.Name, c.Archived}})
		if !r.hasMetadataAccess(r.users.must(u), c) {
			out = append(out, Notice{To: []UserID{u}, Event: &ChannelVanished{
				Channels: []ChannelID{f.Channel}, Shut: r.archivedAmong([]ChannelID{f.Channel}),
			}})
		}
	}
	if to := r.subscriberChangeAudience(c, f.Users); len(to) > 0 {
		out = append(out, Notice{To: to, Event: &PeersChanged{
			Channels: []ChannelID{f.Channel}, Users: f.Users, Archived: r.archivedAmong([]ChannelID{f.Channel}),
		}})
	}
	return out
}

// SubscriptionInfo is a subscription as its user sees it.
type SubscriptionInfo struct {
	ChannelInfo
	Subscription
	Members      ids.Set // subscribers, if the user may see them
	Here         ids.Set // see SubscriptionAdded.Present
	KnowsMembers bool
	Inherited    ChannelNotifications // the values used where the subscription's own settings are unset
}

// ChannelNotifications says which notifications a user gets for channel messages, unless a subscription says otherwise.
type ChannelNotifications struct {
	Desktop, Audible, Push, Email, Wildcard bool
}

// inheritedNotifications returns the notification settings that a user's subscriptions inherit. Visitors have none.
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

// PersonalSubscription returns a user's personal settings of a channel, without the channel's own properties.
func (r *Realm) PersonalSubscription(u UserID, c ChannelID) SubscriptionInfo {
	i := SubscriptionInfo{Inherited: r.inheritedNotifications(u)}
	if s := r.SubscriptionOf(u, c); s != nil {
		i.Subscription = *s
		i.Spans = nil
	}
	return i
}

// SubscriptionAdded is the event subscription/add. Each subscriber gets its own version. Data that is the same for all
// is stored once, however many users join together.
type SubscriptionAdded struct {
	Info      ChannelInfo
	Members   []UserID               // subscribers, in old events without Roster
	Own       []Subscription         // one for each of Users
	Users     []UserID               // ascending
	Knows     []bool                 // for each of Users: may see the subscribers
	Inherited []ChannelNotifications // for each of Users
	// Back says that the channel was archived before. Only queues without archived_channels had lost it.
	Back   bool
	Here   []UserID // the part of Members that Present is of Roster
	Roster ids.Set  // subscribers
	// Present is the part of Roster that are bots or have a queue. It is set if there are so many subscribers that a
	// client may be sent only a part.
	Present ids.Set
}

// FullSubscriberListLimit is the number of subscribers below which every client gets the full list (protocol).
const FullSubscriberListLimit = 250

func (r *Realm) newSubscriptionAdded(c *Channel, users []UserID) SubscriptionAdded {
	var x subscriptionAddedBuilder
	return x.event(r, c, users)
}

// subscriptionAddedBuilder builds the events subscription/add of several channels. One request may join hundreds of
// channels, so the events share equal data, and small slices are allocated together.
type subscriptionAddedBuilder struct {
	own       slab[Subscription]
	knows     slab[bool]
	ids       slab[uint32]
	users     []UserID // users and inherited are those of the last event
	inherited []ChannelNotifications
}

// event returns the event for one channel and these new subscribers, who all have a queue.
func (x *subscriptionAddedBuilder) event(r *Realm, c *Channel, users []UserID) SubscriptionAdded {
	if x.users == nil || !equalUsers(x.users, users) {
		x.users, x.inherited = users, make([]ChannelNotifications, len(users))
		for i, u := range users {
			x.inherited[i] = r.inheritedNotifications(u)
		}
	}
	active := r.index.channels[c.ID].active
	e := SubscriptionAdded{
		Info: r.ChannelInfo(c), Users: x.users, Roster: active.CloneInto(x.ids.alloc), Own: x.own.alloc(len(users)),
		Knows: x.knows.alloc(len(users)), Inherited: x.inherited,
	}
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

// For returns the subscription as one of the users gets it.
func (e *SubscriptionAdded) For(u UserID) SubscriptionInfo {
	i, ok := slices.BinarySearch(e.Users, u)
	if !ok {
		panic("BUG: the event subscription/add reached user " + u.String() + ", who did not subscribe")
	}
	s := SubscriptionInfo{
		ChannelInfo: e.Info, Subscription: e.Own[i], KnowsMembers: e.Knows[i], Inherited: e.Inherited[i],
	}
	if e.Knows[i] {
		s.Members, s.Here = e.Roster, e.Present
		if len(e.Members) > 0 {
			s.Members, s.Here = ids.SetOf(e.Members...), ids.SetOf(e.Here...)
		}
	}
	return s
}

// SubscriptionRemoved is the event subscription/remove, for the user who left.
type SubscriptionRemoved struct {
	Channel  ChannelID
	Name     string
	Archived bool // only queues with archived_channels know the channel
}

// PeersChanged is the events subscription/peer_add and peer_remove, for other users.
type PeersChanged struct {
	Joined   bool
	Channels []ChannelID
	Users    []UserID
	Archived []ChannelID // the archived ones: only queues with archived_channels know them
}

func (*SubscriptionAdded) EventType() string   { return "subscription" }
func (*SubscriptionRemoved) EventType() string { return "subscription" }
func (*PeersChanged) EventType() string        { return "subscription" }

// planJoin returns the fact that the users join a channel, or nil if all of them are subscribed already. Each user is
// listed once. color is the requested color, or "". used has the palette colors that each user already got for other
// channels in the same turn; nil if there are none.
func (t *Turn) planJoin(c *Channel, users []*User, color string, used map[UserID]uint64) *Subscribed {
	in := t.index.channels[c.ID].subscribers
	n := len(users)
	f := &Subscribed{
		Channel: c.ID, From: t.Org().NextMessage, Users: make([]UserID, 0, n), Colors: make([]string, 0, n),
	}
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

// planLeave returns the fact that the users leave a channel, or nil if none of them is subscribed. job is the index of
// the fact among those of the same turn, from 0.
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

// Limits of the message history that a new account gets (protocol).
const (
	newUserHistory = 1000 // newest messages of the first channels that the account gets rows of
	newUserUnread  = 20   // how many of them are unread
)

// joinFirstChannels subscribes a new account to its first channels and gives it rows of their newest messages.
func (t *Turn) joinFirstChannels(u *User, channels []ChannelID) {
	channels = slices.Clone(channels)
	slices.Sort(channels)
	var joined []*Channel
	var facts []Subscribed
	used := map[UserID]uint64{}
	for _, id := range slices.Compact(channels) {
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

// newestIDs returns the n highest ids of a set.
func newestIDs(s ids.Set, n int) ids.Set {
	if s.Len() <= n {
		return s.Clone()
	}
	return s.Between(s.At(s.Len()-n), MaxMessageID)
}

// HistoryGiven says that a user got rows of messages that were sent before the account existed.
type HistoryGiven struct {
	User UserID
	Rows ids.Set
	Read ids.Set // the part of Rows that counts as read
}

func (f *HistoryGiven) apply(r *Realm) {
	rd := r.marks.ensure(f.User)
	rd.Rows.Union(f.Rows)
	rd.Read.Union(f.Read)
}

func (f *HistoryGiven) notices(*Realm) []Notice { return nil }
