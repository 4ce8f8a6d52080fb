package realm

import (
	"slices"
	"strings"
)

// Subscribe asks to join channels, creating the ones that do not exist, for oneself or for others.
type Subscribe struct {
	Channels   []Joining
	Principals []Principal // empty: the caller
	New        NewChannel  // what channels that do not exist are created with; the name comes from Channels
	Fatal      bool        // refuse everything when one channel may not be joined
	Announce   bool
	Notify     bool // tell people who were subscribed by somebody else
	AtOnce     int  // how many subscriptions one turn may make, 0: all; see Joined.Work
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
	Said  string // the id as it was written, where nobody can have it
}

// Joined answers Subscribe.
type Joined struct {
	Subscribed, Already map[UserID][]string
	Unauthorized        []string
	Fatal, Asked        bool // as the request was: one refusal refuses all; people were to be told
	Notified            bool
	Created             []ChannelID
	Crowds              []Crowd // who joins, instead of Subscribed and Already, if it takes several turns
	Work                int64   // what remains of it, 0: nothing
}

// maxJoining is how many channels one request may join or leave: each is a fact and its events.
const maxJoining = 1000

// MaxSubscriptionsAsked is how many subscriptions one request may make or end, users times channels: at a millisecond a
// thousand a fifth of a second of the organization's turns, spread among those of others.
const MaxSubscriptionsAsked = 200_000

// checkPairs refuses requests for more subscriptions than one may make or end.
func checkPairs(users, channels int) error {
	if users*channels > MaxSubscriptionsAsked {
		return Bad("Too many subscriptions in one request (limit: %d)", MaxSubscriptionsAsked)
	}
	return nil
}

// principals are the users a request acts for. Each must exist, be known to the caller and be active.
func (v View) principals(list []Principal) ([]*User, error) {
	if len(list) == 0 {
		return []*User{v.Me()}, nil
	}
	out := make([]*User, 0, len(list))
	var seen Set
	for _, p := range list {
		u := v.Find(p.ID)
		if p.ID == 0 {
			u = v.FindAddress(p.Email)
		}
		if u == nil || u.System || !v.MaySee(u) {
			return nil, errNoUser()
		}
		if !u.Active {
			return nil, errDeactivated()
		}
		if seen.Add(int64(u.ID)) {
			out = append(out, u)
		}
	}
	return out, nil
}

// join is one channel of a request: there already, or about to be created.
type join struct {
	existing, plan *Channel
	color          string
}

// joining is a Subscribe being checked.
type joining struct {
	me     *User
	users  []*User
	others bool // somebody else than the caller is meant
	joins  []join
	there  Set // the channels of joins that exist
	denied []string
}

func (c Subscribe) Decide(t *Turn) (Joined, error) {
	j, err := c.check(t)
	if err != nil {
		return Joined{}, err
	}
	a := Joined{Subscribed: make(map[UserID][]string, len(j.users)), Already: map[UserID][]string{}, Unauthorized: j.denied, Fatal: c.Fatal, Asked: c.Notify}
	a.Notified = c.Notify && len(j.users) <= MaxNewSubscriptionMessages
	var created []*Channel
	for i, x := range j.joins {
		if x.plan != nil {
			t.Record(&ChannelCreated{Channel: *x.plan})
			j.joins[i].existing = t.chans.must(x.plan.ID)
			created = append(created, j.joins[i].existing)
			a.Created = append(a.Created, x.plan.ID)
		}
	}
	if c.takesTurns(j) {
		w := c.work(j, a.Created)
		a.Crowds = t.crowds(j, w.Rest)
		if a.Notified {
			w.Invited = make([]Set, len(j.joins))
			for i, x := range a.Crowds {
				if j.joins[i].plan == nil {
					w.Invited[i] = x.Joins
				}
			}
		}
		a.Work = t.begin(w)
		return a, nil
	}
	invited := a.name(j, t.join(j))
	t.welcomeNew(created, c.Announce)
	if a.Notified {
		t.tellSubscribed(invited, j.users)
	}
	return a, nil
}

// takesTurns reports whether each turn takes a part of what is asked for.
func (c Subscribe) takesTurns(j *joining) bool {
	return takesTurns(len(j.users), len(j.joins), c.AtOnce)
}

// work is a joining of channels that are all there.
func (c Subscribe) work(j *joining, created []ChannelID) Work {
	w := Work{Kind: JoinWork, AtOnce: c.AtOnce, Rest: j.set(), Created: created, Announce: c.Announce}
	for _, x := range j.joins {
		w.Channels, w.Colors = append(w.Channels, x.existing.ID), append(w.Colors, x.color)
	}
	return w
}

// crowds is who will have joined the channels, and who is in them already.
func (t *Turn) crowds(j *joining, users Set) (out []Crowd) {
	for _, x := range j.joins {
		ch := x.existing
		in := t.by.channel[ch.ID].subscribers
		out = append(out, Crowd{ch.Name, Without(users, in), Both(users, in)})
	}
	return out
}

func (j *joining) set() Set {
	ids := make([]uint32, len(j.users))
	for i, u := range j.users {
		ids[i] = uint32(u.ID)
	}
	return unordered(ids)
}

// welcomeNew has the notification bot write what begins a channel.
func (t *Turn) welcomeNew(created []*Channel, announce bool) {
	for _, ch := range created {
		t.noticeOfNew(ch)
	}
	if announce {
		t.announceNew(created)
	}
}

// join records that the users join the channels, by ascending channel, in whose order colours are given out, and says who
// was not in which before.
func (t *Turn) join(j *joining) map[ChannelID][]UserID {
	joins := slices.Clone(j.joins)
	slices.SortFunc(joins, func(a, b join) int { return int(a.existing.ID - b.existing.ID) })
	var used map[UserID]uint64
	if len(joins) > 1 {
		used = map[UserID]uint64{}
	}
	facts := make([]Subscribed, 0, len(joins))
	came := make(map[ChannelID][]UserID, len(joins))
	for _, x := range joins {
		if f := t.planJoin(x.existing, j.users, x.color, used); f != nil {
			facts = append(facts, *f)
			came[x.existing.ID] = f.Users
		}
	}
	t.joinTogether(facts)
	return came
}

// name names who came to which channels in the answer, and who was there already. It says who came to which of the
// channels that were there before.
func (a *Joined) name(j *joining, came map[ChannelID][]UserID) map[UserID][]*Channel {
	invited := map[UserID][]*Channel{}
	for _, x := range j.joins {
		ch := x.existing
		for _, u := range j.users {
			if !contains(came[ch.ID], u.ID) {
				a.Already[u.ID] = append(a.Already[u.ID], ch.Name)
				continue
			}
			a.Subscribed[u.ID] = append(a.Subscribed[u.ID], ch.Name)
			if x.plan == nil && a.Asked {
				invited[u.ID] = append(invited[u.ID], ch)
			}
		}
	}
	return invited
}

// check refuses, or says what to record.
func (c Subscribe) check(t *Turn) (j *joining, err error) {
	j = &joining{me: t.Me(), denied: []string{}}
	if j.me == nil {
		return nil, errMember()
	}
	if j.me.IsGuest() {
		return nil, errGuest()
	}
	if len(c.Channels) > maxJoining {
		return nil, Bad("Too many channels in one request (limit: %d)", maxJoining)
	}
	if err := checkPairs(len(c.Principals), len(c.Channels)); err != nil {
		return nil, err
	}
	j.users, err = t.principals(c.Principals)
	if err != nil {
		return nil, err
	}
	for _, u := range j.users {
		j.others = j.others || u.ID != j.me.ID
	}
	for _, x := range c.Channels {
		if err := c.checkOne(t, j, x); err != nil {
			return nil, err
		}
	}
	if c.Fatal && len(j.denied) > 0 {
		return nil, Bad("Unable to access channel (%s).", strings.Join(j.denied, ", "))
	}
	for _, x := range j.joins {
		ch := x.existing
		if ch == nil {
			ch = x.plan
		}
		if j.others && !t.mayAdd(j.me, ch) {
			return nil, errPermission()
		}
	}
	if c.takesTurns(j) {
		return j, t.mayBegin()
	}
	return j, nil
}

func (c Subscribe) checkOne(t *Turn, j *joining, x Joining) error {
	name, err := checkChannelName(x.Name)
	if err != nil {
		return err
	}
	if old := t.FindChannelByName(name); old != nil {
		switch {
		case old.Archived || !t.hasContent(j.me, old):
			j.denied = append(j.denied, old.Name)
		case j.there.Add(int64(old.ID)):
			j.joins = append(j.joins, join{existing: old, color: x.Color})
		}
		return nil
	}
	if slices.ContainsFunc(j.joins, func(o join) bool { return o.plan != nil && fold(o.plan.Name) == fold(name) }) {
		return nil // the same new name twice is one channel
	}
	n := c.New
	n.Name, n.Description, n.DescriptionHTML = name, x.Description, x.DescriptionHTML
	p, err := t.planChannel(n)
	if err != nil {
		return err
	}
	for _, o := range j.joins {
		if o.plan != nil {
			p.ID++
		}
	}
	j.joins = append(j.joins, join{plan: p, color: x.Color})
	return nil
}

// mayAdd: who may subscribe others to a channel he can access.
func (r *Realm) mayAdd(u *User, c *Channel) bool {
	return !u.IsGuest() && (u.IsAdmin() || r.May(u, "can_add_subscribers_group") || r.administers(u, c) || r.channelAllows(u, c, "can_add_subscribers_group"))
}

// CreateChannel asks for one new channel with its first subscribers.
type CreateChannel struct {
	New         NewChannel
	Subscribers []Principal
	Announce    bool
	Notify      bool
	AtOnce      int // as in Subscribe
}

// ChannelMade answers CreateChannel.
type ChannelMade struct {
	ID   ChannelID
	Work int64 // who is still to be subscribed, 0: nobody
}

func (c CreateChannel) Decide(t *Turn) (ChannelMade, error) {
	if me := t.Me(); me != nil && me.IsGuest() {
		return ChannelMade{}, errGuest()
	}
	name, err := checkChannelName(c.New.Name)
	if err != nil {
		return ChannelMade{}, err
	}
	if t.FindChannelByName(name) != nil {
		return ChannelMade{}, Bad("Channel '%s' already exists", name)
	}
	if len(c.Subscribers) == 0 {
		id, err := c.empty(t)
		return ChannelMade{ID: id}, err
	}
	s := Subscribe{Channels: []Joining{{Name: name, Description: c.New.Description}}, Principals: c.Subscribers, New: c.New, Fatal: true, Announce: c.Announce, Notify: c.Notify, AtOnce: c.AtOnce}
	a, err := s.Decide(t)
	if err != nil {
		return ChannelMade{}, err
	}
	return ChannelMade{a.Created[0], a.Work}, nil
}

// empty creates a channel nobody is subscribed to yet.
func (c CreateChannel) empty(t *Turn) (ChannelID, error) {
	ch, err := t.newChannel(c.New)
	if err != nil {
		return 0, err
	}
	t.noticeOfNew(ch)
	if c.Announce {
		t.announceNew([]*Channel{ch})
	}
	return ch.ID, nil
}

// Unsubscribe asks that oneself or others leave channels.
type Unsubscribe struct {
	Names      []string
	Principals []Principal
	AtOnce     int // how many subscriptions one turn may end, 0: all; see Left.Work
}

// Left answers Unsubscribe. A channel counts as removed that anybody has left.
type Left struct {
	Removed, NotRemoved []string
	Work                int64 // what remains to be done, 0: nothing
}

func (c Unsubscribe) Decide(t *Turn) (Left, error) {
	channels, users, err := c.check(t)
	if err != nil {
		return Left{}, err
	}
	if !takesTurns(len(users), len(channels), c.AtOnce) {
		return t.leaveChannels(channels, users), nil
	}
	if err := t.mayBegin(); err != nil {
		return Left{}, err
	}
	a := Left{Removed: []string{}, NotRemoved: []string{}}
	w := Work{Kind: LeaveWork, AtOnce: c.AtOnce, Rest: SetOf(users...)}
	for _, ch := range channels {
		w.Channels = append(w.Channels, ch.ID)
		if t.by.channel[ch.ID].subscribers.Meets(w.Rest) {
			a.Removed = append(a.Removed, ch.Name)
		} else {
			a.NotRemoved = append(a.NotRemoved, ch.Name)
		}
	}
	a.Work = t.begin(w)
	return a, nil
}

func (t *Turn) leaveChannels(channels []*Channel, users []UserID) Left {
	a := Left{Removed: []string{}, NotRemoved: []string{}}
	facts := make([]Unsubscribed, 0, len(channels))
	for _, ch := range channels {
		if f := t.planLeave(ch, users, len(facts)); f != nil {
			facts = append(facts, *f)
			a.Removed = append(a.Removed, ch.Name)
		} else {
			a.NotRemoved = append(a.NotRemoved, ch.Name)
		}
	}
	t.leaveTogether(facts)
	return a
}

func (c Unsubscribe) check(t *Turn) (channels []*Channel, ids []UserID, err error) {
	me := t.Me()
	if me == nil {
		return nil, nil, errMember()
	}
	if len(c.Names) > maxJoining {
		return nil, nil, Bad("Too many channels in one request (limit: %d)", maxJoining)
	}
	if err := checkPairs(len(c.Principals), len(c.Names)); err != nil {
		return nil, nil, err
	}
	users, err := t.principals(c.Principals)
	if err != nil {
		return nil, nil, err
	}
	var unknown []string
	var known Set
	for _, n := range c.Names {
		ch := t.FindChannelByName(n)
		if ch == nil || !t.hasMetadata(me, ch) {
			unknown = append(unknown, n)
		} else if known.Add(int64(ch.ID)) {
			channels = append(channels, ch)
		}
	}
	if len(unknown) > 0 {
		return nil, nil, Bad("Channel(s) (%s) do not exist", strings.Join(unknown, ", "))
	}
	others := false
	for _, u := range users {
		ids = append(ids, u.ID)
		others = others || u.ID != me.ID && u.BotOwner != me.ID
	}
	for _, ch := range channels {
		if others && !t.mayRemove(me, ch) {
			return nil, nil, errPermission()
		}
	}
	return channels, ids, nil
}

// mayRemove: who may unsubscribe others from a channel he may know.
func (r *Realm) mayRemove(u *User, c *Channel) bool {
	return r.administers(u, c) || r.channelAllows(u, c, "can_remove_subscribers_group")
}

// Resubscribe asks to leave some channels and join others at once, for oneself.
type Resubscribe struct {
	Add    []Joining
	Delete []string
}

// Resubscribed answers Resubscribe.
type Resubscribed struct {
	Joined
	Left
}

func (c Resubscribe) Decide(t *Turn) (Resubscribed, error) {
	if len(c.Add) == 0 && len(c.Delete) == 0 {
		return Resubscribed{}, Bad(`Nothing to do. Specify at least one of "add" or "delete".`)
	}
	a := Resubscribed{Joined: Joined{Subscribed: map[UserID][]string{}, Already: map[UserID][]string{}}, Left: Left{Removed: []string{}, NotRemoved: []string{}}}
	channels, ids, err := Unsubscribe{Names: c.Delete}.check(t)
	if err == nil && len(c.Add) > 0 {
		a.Joined, err = Subscribe{Channels: c.Add, Fatal: true}.Decide(t) // refuses, if it does, before its first fact
	}
	if err != nil {
		return a, err
	}
	a.Left = t.leaveChannels(channels, ids)
	return a, nil
}
