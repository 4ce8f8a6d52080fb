package realm

import (
	"slices"
	"strings"
)

// Subscriptions is the row of everything one user is, or was, subscribed to, by ascending channel.
type Subscriptions struct{ List []Subscription }

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
	i, ok := slices.BinarySearchFunc(l.List, c, func(s Subscription, c ChannelID) int { return int(s.Channel - c) })
	if !ok {
		return nil
	}
	return &l.List[i]
}

func (l *Subscriptions) open(c ChannelID) *Subscription {
	i, ok := slices.BinarySearchFunc(l.List, c, func(s Subscription, c ChannelID) int { return int(s.Channel - c) })
	if !ok {
		l.List = slices.Insert(l.List, i, Subscription{Channel: c})
	}
	return &l.List[i]
}

// SubscriptionOf is a user's relation to a channel, past or present, or nil.
func (r *Realm) SubscriptionOf(u UserID, c ChannelID) *Subscription { return r.subs.find(u).find(c) }

// channelsOf is the channels a user is subscribed to.
func (r *Realm) channelsOf(u UserID) Set {
	var s Set
	if l := r.subs.find(u); l != nil {
		for _, x := range l.List {
			if x.Active {
				s.Add(int64(x.Channel))
			}
		}
	}
	return s
}

// indexActive keeps the channels' active subscribers in step with the account.
func (r *Realm) indexActive(u *User) {
	r.channelsOf(u.ID).Each(func(c int64) bool {
		if ix := r.by.channel[ChannelID(c)]; u.Active {
			ix.active.Add(int64(u.ID))
		} else {
			ix.active.Remove(int64(u.ID))
		}
		return true
	})
}

// Palette is the colours new subscriptions take, in order.
var Palette = strings.Fields("#76ce90 #fae589 #a6c7e5 #e79ab5 #bfd56f #f4ae55 #b0a5fd #addfe5 #f5ce6e #c2726a #94c849 #bd86e5 #ee7e4a #a6dcbf #95a5fd #53a063 #9987e1 #e4523d #c2c2c2 #4f8de4 #c6a8ad #e7cc4d #c8bebf #a47462")

// colorFor is the colour a new subscription gets: the user's old one for the channel, or the first palette entry the
// user has not used, also counting the ones just planned.
func (r *Realm) colorFor(u UserID, c ChannelID, planned []string) string {
	l := r.subs.find(u)
	if s := l.find(c); s != nil && s.Color != "" {
		return s.Color
	}
	used := map[string]bool{}
	for _, p := range planned {
		used[p] = true
	}
	if l != nil {
		for _, s := range l.List {
			used[s.Color] = true
		}
	}
	for _, p := range Palette {
		if !used[p] {
			return p
		}
	}
	return Palette[int(c)%len(Palette)]
}

// Subscribed says users joined a channel.
type Subscribed struct {
	Channel ChannelID
	Users   []UserID  // ascending
	Colors  []string  // one each
	From    MessageID // first message id they may receive
	Appears []UserID  // the ones that could not see the channel before
}

func (f *Subscribed) apply(r *Realm) {
	ix := r.by.channel[f.Channel]
	for i, u := range f.Users {
		s := r.subs.open(u).open(f.Channel)
		s.Active, s.Color = true, f.Colors[i]
		s.Spans = append(s.Spans, Span{From: f.From})
		ix.subscribers.Add(int64(u))
		if r.users.must(u).Active {
			ix.active.Add(int64(u))
		}
	}
	ix.heardKnown = false
}

func (f *Subscribed) tell(r *Realm) []Notice {
	c := r.chans.must(f.Channel)
	var out []Notice
	if to := r.only(f.Appears...); len(to) > 0 {
		out = append(out, Notice{To: to, Event: r.appear(f.Channel)})
	}
	for _, u := range r.only(f.Users...) {
		out = append(out, Notice{To: []UserID{u}, Event: &SubscriptionAdded{[]SubscriptionInfo{r.SubscriptionInfo(u, c, r.MayKnowSubscribers(u, c))}}})
	}
	if to := without(r.peers(c), f.Users...); len(to) > 0 {
		out = append(out, Notice{To: to, Event: &PeersChanged{Joined: true, Channels: []ChannelID{f.Channel}, Users: f.Users}})
	}
	return out
}

// MayKnowSubscribers is MaySeeSubscribers for a user who is not the caller.
func (r *Realm) MayKnowSubscribers(u UserID, c *Channel) bool {
	return r.ViewAs(Caller{User: u}, r.by.clock).MaySeeSubscribers(c)
}

// Unsubscribed says users left a channel.
type Unsubscribed struct {
	Channel ChannelID
	Users   []UserID
	Last    MessageID // last message id they may have received
}

func (f *Unsubscribed) apply(r *Realm) {
	ix := r.by.channel[f.Channel]
	for _, u := range f.Users {
		s := r.subs.change(u).find(f.Channel)
		s.Active = false
		s.close(f.Last)
		ix.subscribers.Remove(int64(u))
		ix.active.Remove(int64(u))
	}
	ix.heardKnown = false
}

func (s *Subscription) close(last MessageID) {
	if n := len(s.Spans); n > 0 && s.Spans[n-1].To == 0 {
		if s.Spans[n-1].From > last {
			s.Spans = s.Spans[:n-1]
		} else {
			s.Spans[n-1].To = last
		}
	}
}

func (f *Unsubscribed) tell(r *Realm) []Notice {
	c := r.chans.must(f.Channel)
	var out []Notice
	for _, u := range r.only(f.Users...) {
		out = append(out, Notice{To: []UserID{u}, Event: &SubscriptionRemoved{f.Channel, c.Name}})
		if !r.hasMetadata(r.users.must(u), c) {
			out = append(out, Notice{To: []UserID{u}, Event: &ChannelVanished{Channels: []ChannelID{f.Channel}}})
		}
	}
	if to := without(r.peers(c), f.Users...); len(to) > 0 {
		out = append(out, Notice{To: to, Event: &PeersChanged{Channels: []ChannelID{f.Channel}, Users: f.Users}})
	}
	return out
}

// SubscriptionInfo is a subscription as its owner is told of it.
type SubscriptionInfo struct {
	ChannelInfo
	Subscription
	Members      []UserID // subscribers, if they may be known
	KnowsMembers bool
	Inherited    ChannelNotifications // what the subscription's own settings are while unset
}

// ChannelNotifications is when a user is notified of channel messages, unless a subscription says otherwise.
type ChannelNotifications struct {
	Desktop, Audible, Push, Email, Wildcard bool
}

func (u *User) channelNotifications() ChannelNotifications {
	return ChannelNotifications{
		Desktop:  u.Flag("enable_stream_desktop_notifications"),
		Audible:  u.Flag("enable_stream_audible_notifications"),
		Push:     u.Flag("enable_stream_push_notifications"),
		Email:    u.Flag("enable_stream_email_notifications"),
		Wildcard: u.Flag("wildcard_mentions_notify"),
	}
}

// SubscriptionInfo copies a user's subscription out of the realm.
func (r *Realm) SubscriptionInfo(u UserID, c *Channel, members bool) SubscriptionInfo {
	i := SubscriptionInfo{ChannelInfo: r.ChannelInfo(c), KnowsMembers: members, Inherited: r.users.must(u).channelNotifications()}
	if s := r.SubscriptionOf(u, c.ID); s != nil {
		i.Subscription = *s
		i.Spans = nil
	}
	if members {
		i.Members = r.Subscribers(c.ID)
	}
	return i
}

// SubscriptionAdded is the event subscription/add, to the subscriber.
type SubscriptionAdded struct{ List []SubscriptionInfo }

// SubscriptionRemoved is the event subscription/remove, to the one who left.
type SubscriptionRemoved struct {
	Channel ChannelID
	Name    string
}

// PeersChanged is the events subscription/peer_add and peer_remove, to the others.
type PeersChanged struct {
	Joined   bool
	Channels []ChannelID
	Users    []UserID
}

func (*SubscriptionAdded) EventType() string   { return "subscription" }
func (*SubscriptionRemoved) EventType() string { return "subscription" }
func (*PeersChanged) EventType() string        { return "subscription" }

// subscribe records that users join a channel; those who are in it already are left out. It returns who joined.
func (t *Turn) subscribe(c *Channel, users []UserID, color string) []UserID {
	f := &Subscribed{Channel: c.ID, From: t.Org().NextMessage}
	slices.Sort(users)
	for _, u := range slices.Compact(users) {
		if t.Realm.Subscribed(u, c.ID) {
			continue
		}
		f.Users = append(f.Users, u)
		col := color
		if col == "" {
			col = t.colorFor(u, c.ID, nil)
		}
		f.Colors = append(f.Colors, col)
		if !t.hasMetadata(t.users.must(u), c) {
			f.Appears = append(f.Appears, u)
		}
	}
	if len(f.Users) > 0 {
		t.Record(f)
	}
	return f.Users
}

// unsubscribe records that users leave a channel and returns who left.
func (t *Turn) unsubscribe(c *Channel, users []UserID) []UserID {
	f := &Unsubscribed{Channel: c.ID, Last: t.Org().NextMessage - 1}
	slices.Sort(users)
	for _, u := range slices.Compact(users) {
		if t.Realm.Subscribed(u, c.ID) {
			f.Users = append(f.Users, u)
		}
	}
	if len(f.Users) > 0 {
		t.Record(f)
	}
	return f.Users
}

// joinChannels subscribes a new account to its first channels.
func (t *Turn) joinChannels(u *User, ids []ChannelID) {
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if c := t.chans.find(id); c != nil && !c.Archived {
			t.subscribe(c, []UserID{u.ID}, "")
		}
	}
}

// Subscribe asks to join channels, creating the ones that do not exist, for oneself or for others.
type Subscribe struct {
	Channels   []Joining
	Principals []Principal // empty: the caller
	New        NewChannel  // what channels that do not exist are created with; the name comes from Channels
	Fatal      bool        // refuse everything when one channel may not be joined
	Announce   bool
	Notify     bool // tell people who were subscribed by somebody else
}

// Joining is one channel to join.
type Joining struct {
	Name, Color                  string
	Description, DescriptionHTML string
}

// Principal is a user named by id or address.
type Principal struct {
	ID    UserID
	Email string
}

// Joined answers Subscribe.
type Joined struct {
	Subscribed, Already map[UserID][]string
	Unauthorized        []string
	Notified            bool
	Created             []ChannelID
}

func (v View) principals(list []Principal) ([]*User, error) {
	if len(list) == 0 {
		return []*User{v.Me()}, nil
	}
	var out []*User
	for _, p := range list {
		u := v.Find(p.ID)
		if p.ID == 0 {
			u = v.FindByEmail(p.Email)
			if u == nil {
				if id, ok := v.dummyAddress(p.Email); ok {
					u = v.Find(id)
				}
			}
		}
		if u == nil || u.System || !v.MaySee(u) {
			return nil, errNoUser()
		}
		if !u.Active {
			return nil, errDeactivated()
		}
		if !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	return out, nil
}

func (c Subscribe) Decide(t *Turn) (Joined, error) {
	a := Joined{Subscribed: map[UserID][]string{}, Already: map[UserID][]string{}, Unauthorized: []string{}}
	me := t.Me()
	if me == nil {
		return a, errMember()
	}
	if me.IsGuest() {
		return a, errGuest()
	}
	users, err := t.principals(c.Principals)
	if err != nil {
		return a, err
	}
	ids := make([]UserID, len(users))
	others := false
	for i, u := range users {
		ids[i] = u.ID
		others = others || u.ID != me.ID
	}
	type join struct {
		existing *Channel
		plan     *Channel
		color    string
	}
	var joins []join
	var created int
	for _, j := range c.Channels {
		if old := t.FindChannelByName(j.Name); old != nil {
			if old.Archived || !t.mayJoin(me, old) {
				a.Unauthorized = append(a.Unauthorized, old.Name)
				continue
			}
			if others && !t.mayAdd(me, old) {
				return a, errPermission()
			}
			joins = append(joins, join{existing: old, color: j.Color})
			continue
		}
		n := c.New
		n.Name, n.Description, n.DescriptionHTML = j.Name, j.Description, j.DescriptionHTML
		p, err := t.planChannel(n)
		if err != nil {
			return a, err
		}
		if slices.ContainsFunc(joins, func(o join) bool { return o.plan != nil && fold(o.plan.Name) == fold(p.Name) }) {
			continue // the same new name twice is one channel
		}
		p.ID += ChannelID(created)
		created++
		joins = append(joins, join{plan: p, color: j.Color})
	}
	if c.Fatal && len(a.Unauthorized) > 0 {
		return a, Bad("Unable to access channel (%s).", strings.Join(a.Unauthorized, ", "))
	}
	if others && created > 0 && !t.May(me, "can_add_subscribers_group") && !me.IsAdmin() && !t.May(me, "can_create_public_channel_group") {
		return a, errPermission()
	}
	for _, j := range joins {
		ch := j.existing
		if ch == nil {
			t.Record(&ChannelCreated{Channel: *j.plan})
			ch = t.chans.must(j.plan.ID)
			a.Created = append(a.Created, ch.ID)
		}
		joined := t.subscribe(ch, slices.Clone(ids), j.color)
		for _, u := range ids {
			if slices.Contains(joined, u) {
				a.Subscribed[u] = append(a.Subscribed[u], ch.Name)
			} else {
				a.Already[u] = append(a.Already[u], ch.Name)
			}
		}
	}
	return a, nil
}

// mayJoin: who may subscribe himself. Whoever may read; administrators of a private channel may not.
func (r *Realm) mayJoin(u *User, c *Channel) bool { return r.hasContent(u, c) && !u.IsGuest() }

// mayAdd: who may subscribe others to a channel he can access.
func (r *Realm) mayAdd(u *User, c *Channel) bool {
	return !u.IsGuest() && (u.IsAdmin() || r.May(u, "can_add_subscribers_group") || r.administers(u, c) || r.channelAllows(u, c, "can_add_subscribers_group"))
}

// Unsubscribe asks that oneself or others leave channels.
type Unsubscribe struct {
	Names      []string
	Principals []Principal
}

// Left answers Unsubscribe.
type Left struct{ Removed, NotRemoved []string }

func (c Unsubscribe) Decide(t *Turn) (Left, error) {
	a := Left{Removed: []string{}, NotRemoved: []string{}}
	me := t.Me()
	if me == nil {
		return a, errMember()
	}
	users, err := t.principals(c.Principals)
	if err != nil {
		return a, err
	}
	var channels []*Channel
	var unknown []string
	for _, n := range c.Names {
		ch := t.FindChannelByName(n)
		if ch == nil || !t.hasMetadata(me, ch) {
			unknown = append(unknown, n)
			continue
		}
		channels = append(channels, ch)
	}
	if len(unknown) > 0 {
		return a, Bad("Channel(s) (%s) do not exist", strings.Join(unknown, ", "))
	}
	var ids []UserID
	for _, u := range users {
		ids = append(ids, u.ID)
		for _, ch := range channels {
			if u.ID != me.ID && u.BotOwner != me.ID && !t.administers(me, ch) && !t.channelAllows(me, ch, "can_remove_subscribers_group") {
				return a, errPermission()
			}
		}
	}
	for _, ch := range channels {
		if len(t.unsubscribe(ch, slices.Clone(ids))) > 0 {
			a.Removed = append(a.Removed, ch.Name)
		} else {
			a.NotRemoved = append(a.NotRemoved, ch.Name)
		}
	}
	return a, nil
}
