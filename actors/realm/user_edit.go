package realm

import (
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// EditUser asks an administrator's change of another account. Only owners may give or take the owner role.
type EditUser struct {
	User     UserID
	Email    string  // identifies the user if User is 0
	Name     *string // a blank name is ignored
	Role     *Role
	NewEmail *string
	Profile  []ProfileValue
}

// ProfileValue is a custom profile value to set. nil or "" removes the value.
type ProfileValue struct {
	Field int64
	Value *string
	Users []UserID // for fields of type user
	HTML  string   // rendered value, for fields that have one
}

// ManagedUser returns an account that the caller may change: for administrators, any account except system bots and
// bots that outrank the caller.
func (v View) ManagedUser(id UserID, email string) (*User, error) {
	if !v.System {
		if me := v.Me(); me == nil || !me.IsAdmin() {
			return nil, errPermission()
		}
	}
	u := v.Find(id)
	if id == 0 {
		u = v.FindByShownEmail(email)
	}
	if u == nil || u.System {
		return nil, errNoUser()
	}
	if u.IsBot() {
		return u, v.checkRank(u)
	}
	return u, nil
}

func (c EditUser) Decide(t *Turn) (Done, error) {
	u, err := t.ManagedUser(c.User, c.Email)
	if err != nil {
		return Done{}, err
	}
	var facts []Fact
	if c.Role != nil && *c.Role != u.Role {
		if err := t.checkRoleChange(u, *c.Role); err != nil {
			return Done{}, err
		}
		facts = append(facts, t.planRoleChange(u, *c.Role)...)
	}
	if c.Name != nil {
		name := strings.TrimSpace(*c.Name)
		if name != "" && name != u.Name {
			if err := t.checkName(name, u.ID); err != nil {
				return Done{}, err
			}
			facts = append(facts, &UserChanged{ID: u.ID, Name: &name, OldName: u.Name})
		}
	}
	if c.NewEmail != nil && *c.NewEmail != u.Email {
		f, err := t.planEmailChange(u, *c.NewEmail)
		if err != nil {
			return Done{}, err
		}
		facts = append(facts, f)
	}
	values, err := t.profileChanges(u, c.Profile, true)
	if err != nil {
		return Done{}, err
	}
	for _, f := range append(facts, values...) {
		t.recordWithVisibility(f)
	}
	return Done{}, nil
}

// checkRoleChange refuses role changes that the caller may not make. The order of the refusals is the protocol's.
func (t *Turn) checkRoleChange(u *User, to Role) error {
	me := t.Me()
	if (u.Role == Owner || to == Owner) && !t.System && me.Role != Owner {
		return errNotOwner()
	}
	if u.Role == Guest && to <= Administrator {
		return BadRequest("Guests cannot be organization administrators")
	}
	if u.Role == Owner && t.isLastOwner(u) {
		return BadRequest("The owner permission cannot be removed from the only organization owner.")
	}
	return nil
}

// isLastOwner reports whether u is an owner and no other active human is one.
func (r *Realm) isLastOwner(u *User) bool {
	for _, o := range r.activeUsers() {
		if o.ID != u.ID && o.Role == Owner && !o.IsBot() {
			return false
		}
	}
	return u.Role == Owner
}

// planEmailChange returns the fact of a new email address. Only the server and owners with the operator's grant may
// change it.
func (t *Turn) planEmailChange(u *User, to string) (Fact, error) {
	me := t.Me()
	if !t.System && (me.Role != Owner || !me.MayChangeEmails) {
		return nil, BadRequest("User not authorized to change user emails")
	}
	to = strings.TrimSpace(to)
	if !ValidEmail(to) {
		return nil, BadRequest("Invalid new email address.")
	}
	if o := t.FindByEmail(to); o != nil && o.ID != u.ID {
		return nil, BadRequest("New email value error: Already has an account.")
	}
	if fault := t.addressProblem(to); fault != "" {
		return nil, BadRequest("New email value error: %s", fault)
	}
	return &UserChanged{ID: u.ID, Email: &to}, nil
}

// planRoleChange returns the facts of a new role: the change itself, with channels that become invisible, then the
// channels that become visible.
func (t *Turn) planRoleChange(u *User, to Role) []Fact {
	f := &UserChanged{ID: u.ID, Role: &to, OldRole: u.Role}
	then := *u
	then.Role = to
	f.WasFull, f.IsFull = t.listedAsFullMember(u), t.listedAsFullMember(&then)
	var appear []ChannelID
	t.EachChannel(func(c *Channel) {
		before, after := t.hasMetadataAccess(u, c), t.hasMetadataAccess(&then, c)
		if before && !after {
			f.Vanish = append(f.Vanish, c.ID)
		} else if after && !before {
			appear = append(appear, c.ID)
		}
	})
	facts := []Fact{f}
	for ids := range slices.Chunk(appear, maxUsersPerVisibilityFact) {
		facts = append(facts, &ChannelsShown{u.ID, ids})
	}
	return facts
}

// GroupMembersChanged is the events user_group/add_members and user_group/remove_members.
type GroupMembersChanged struct {
	Group       GroupID
	Joined      bool
	Users       []UserID
	Deactivated bool // the group is deactivated; many clients do not know it then
}

func (*GroupMembersChanged) EventType() string { return "user_group" }

// roleNotices returns the events about system groups and channels that follow from a new role.
func (f *UserChanged) roleNotices(r *Realm) (out []Notice) {
	everyone := r.everyoneAudience()
	if !r.users.must(f.ID).Active { // clients treat deactivated accounts as members of no system group
		everyone = nil
	}
	if from, to := groupOfRole(f.OldRole), groupOfRole(*f.Role); from != to {
		out = append(out, Notice{To: everyone, Event: &GroupMembersChanged{Group: from, Users: []UserID{f.ID}}},
			Notice{To: everyone, Event: &GroupMembersChanged{Group: to, Joined: true, Users: []UserID{f.ID}}})
	}
	if f.WasFull != f.IsFull {
		out = append(out, Notice{To: everyone, Event: &GroupMembersChanged{
			Group: groupFullMembers, Joined: f.IsFull, Users: []UserID{f.ID},
		}})
	}
	me := r.usersAudience(f.ID)
	if len(f.Vanish) > 0 {
		out = append(out, Notice{To: me, Event: &ChannelVanished{Channels: f.Vanish, Shut: r.archivedAmong(f.Vanish)}})
	}
	if len(f.Appear) > 0 {
		out = append(out, Notice{To: me, Event: r.channelsAppeared(f.Appear...)})
	}
	return slices.DeleteFunc(out, func(n Notice) bool { return len(n.To) == 0 })
}

// DeactivateUser asks to deactivate an account and the bots it owns.
type DeactivateUser struct {
	User UserID
	Self bool // the caller's own account
	Bot  bool // User must be a bot; otherwise a human

	Actions       DeactivationActions
	FarewellEmail func(*User, Letterhead) Email // nil: no email
}

func (c DeactivateUser) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	if c.Self {
		var err error
		if u, err = t.RequireHuman(); err != nil {
			return Done{}, err
		}
		if t.isLastOwner(u) {
			entity := "organization owner"
			if len(t.activeHumans()) == 1 {
				entity = "user"
			}
			return Done{}, Refuse(Invalid, "CANNOT_DEACTIVATE_LAST_USER", "Cannot deactivate the only "+entity+".").
				With("is_last_owner", entity != "user").With("entity", entity)
		}
	} else if err := t.checkDeactivate(u, c.Bot, c.Actions == DeactivationActions{}); err != nil {
		return Done{}, err
	}
	if u.Active {
		var farewell *Email
		if c.FarewellEmail != nil && !u.IsBot() {
			email := c.FarewellEmail(u, t.LetterheadFor(u))
			farewell = &email
		}
		t.deactivate(u)
		for _, b := range t.activeUsers() {
			if b.IsBot() && b.BotOwner == u.ID {
				t.deactivate(b)
			}
		}
		if farewell != nil {
			t.SendEmails(*farewell)
		}
	}
	t.startPurge(u, c.Actions)
	return Done{}, nil
}

// checkDeactivate refuses callers that are not allowed to deactivate the account. bot says that the request is for a
// bot, plain that it deletes no data of the account: then an account must be active. The order of the refusals is the
// protocol's.
func (t *Turn) checkDeactivate(u *User, bot, plain bool) error {
	me := t.Me()
	switch {
	case bot && (u == nil || !u.IsBot() || u.System):
		return BadRequest("No such bot")
	case u == nil || u.System:
		return errNoUser()
	case t.System:
		return nil
	case u.IsBot() && !bot: // bots have their own endpoint, which their owners may use too
		return errNoUser()
	case !bot && plain && !u.Active && t.MaySeeUser(u):
		return errDeactivated()
	case me == nil, !me.IsAdmin() && !(bot && u.BotOwner == me.ID):
		return errPermission()
	case u.IsBot():
		return t.checkRank(u)
	case u.Role == Owner && me.Role != Owner:
		return errNotOwner()
	case u.Role == Owner && t.isLastOwner(u):
		return BadRequest("Cannot deactivate the only organization owner")
	}
	return nil
}

// activeHumans returns all active accounts that are not bots.
func (r *Realm) activeHumans() (out []*User) {
	for _, u := range r.activeUsers() {
		if !u.IsBot() {
			out = append(out, u)
		}
	}
	return out
}

// deactivate records that an account is closed: first its queues, invitations and devices, then the account, then
// settings that are shown differently without it.
func (t *Turn) deactivate(u *User) {
	var ends []QueueID
	for id, q := range t.queues.all() {
		if q.User == u.ID {
			ends = append(ends, id)
		}
	}
	slices.Sort(ends)
	for _, id := range ends { // first, so that a deactivated account gets no events about itself
		t.Record(&QueueClosed{id, u.ID})
	}
	t.endAccess(u)
	channels := ids.IDs[ChannelID](t.subscribedChannelSet(u.ID))
	t.recordWithVisibility(&UserDeactivated{
		ID: u.ID, Last: t.Org().NextMessage - 1, Channels: channels, Full: t.listedAsFullMember(u),
	})
	t.recordValuesShown(u.ID)
}

// endAccess ends what gives access in the name of an account: sessions, invitations, additional keys and devices.
func (t *Turn) endAccess(u *User) {
	t.endBrowserSessions(u.ID)
	t.revokeInvitesOf(u.ID)
	t.revokeAdditionalKeys(u)
	t.removeAllDevices(u.ID)
}

// UserDeactivated says that an account was deactivated. It receives no more messages, but keeps its subscriptions.
type UserDeactivated struct {
	ID       UserID
	Last     MessageID
	Channels []ChannelID
	Full     bool // was listed as a full member
}

func (f *UserDeactivated) apply(r *Realm) {
	u := r.users.change(f.ID)
	u.Active = false
	if len(f.Channels) > 0 {
		l := r.subscriptions.change(f.ID)
		for _, c := range f.Channels {
			l.find(c).closeSpan(f.Last)
			r.index.channels[c].receiving.Remove(int64(f.ID))
		}
	}
	r.indexAccountActive(u)
}

func (f *UserDeactivated) notices(r *Realm) []Notice {
	return r.accountNotices(f.ID, f.Channels, false, f.Full)
}

// accountNotices returns the events after an account was deactivated or reactivated: first for other
// subscribers of its channels, then for all users.
func (r *Realm) accountNotices(id UserID, channels []ChannelID, reactivated, full bool) (out []Notice) {
	out = r.peerNotices(channels, []UserID{id}, reactivated)
	u := r.users.must(id)
	canSee := r.canSeeUserAudience(u)
	group := &GroupMembersChanged{Group: groupOfRole(u.Role), Joined: reactivated, Users: []UserID{id}}
	if len(canSee) > 0 {
		out = append(out, Notice{To: canSee, Event: &UserChanged{ID: id, Active: &reactivated}})
	}
	to := r.everyoneAudience() // registrations show group members to everyone
	if !reactivated {
		// clients that get the deactivation remove the account from its groups themselves
		to = r.cannotSeeUserAudience(u)
	}
	if len(to) > 0 {
		if full {
			out = append(out, Notice{To: to, Event: &GroupMembersChanged{
				Group: groupFullMembers, Joined: reactivated, Users: []UserID{id},
			}})
		}
		out = append(out, Notice{To: to, Event: group})
	}
	return out
}

// peerNotices returns the events to other users that users joined or left channels. One event covers the channels that
// all members can see. Guests and members of private channels get further events, one per set of channels they share
// with the users. This matters because one fact can send a queue only a limited number of events.
func (r *Realm) peerNotices(channels []ChannelID, users []UserID, joined bool) (out []Notice) {
	addNotice := func(to []UserID, list []ChannelID) {
		if len(list) > 0 && len(to) > 0 {
			out = append(out, Notice{To: to, Event: &PeersChanged{
				Joined: joined, Channels: list, Users: users, Archived: r.archivedAmong(list),
			}})
		}
	}
	l := r.connectedUsers()
	var public []ChannelID
	var shared sharedChannels
	for _, c := range channels {
		switch ch, ix := r.channels.must(c), r.index.channels[c]; {
		case ch.WebPublic:
			public = append(public, c)
			shared.add(c, l.guests)
		case !ch.Private:
			public = append(public, c)
			if l.guests.Intersects(ix.subscribers) {
				shared.add(c, ids.Intersection(l.guests, ix.subscribers))
			}
		default:
			shared.add(c, r.channelAudienceSet(ch))
		}
	}
	if len(public) > 0 {
		addNotice(l.membersExcept(users), public)
	}
	shared.each(func(to ids.Set, list []ChannelID) { addNotice(withoutUsers(ids.IDs[UserID](to), users), list) })
	return out
}

// sharedChannels finds the users that share exactly the same channels. It is a trie of channel lists: nodeOf gives
// each user's node, and users with equal lists have the same node. Slices indexed by user id are fast and small enough.
type sharedChannels struct {
	nodeOf      []int32 // by user id: the node, an index in nodes plus 1; 0: no channel
	nodes       []sharedChannel
	newestChild []int32 // by node, 0 included: the newest child node
}

// sharedChannel is a node of the trie: the last channel of a list, and the node of the list before it, 0: empty.
type sharedChannel struct {
	parent  int32
	channel ChannelID
}

// add appends a channel to the lists of the users.
func (x *sharedChannels) add(c ChannelID, users ids.Set) {
	last, _ := users.Max()
	if n := int(last) + 1 - len(x.nodeOf); n > 0 {
		x.nodeOf = append(x.nodeOf, make([]int32, n)...)
	}
	if x.newestChild == nil {
		x.newestChild = make([]int32, 1)
	}
	users.Each(func(u int64) bool {
		parent := x.nodeOf[u]
		at := x.newestChild[parent]
		if at == 0 || x.nodes[at-1].channel != c { // the first user with this list and this channel
			x.nodes, x.newestChild = append(x.nodes, sharedChannel{parent, c}), append(x.newestChild, 0)
			at = int32(len(x.nodes))
			x.newestChild[parent] = at
		}
		x.nodeOf[u] = at
		return true
	})
}

// each calls fn once for every list of channels that some users share exactly. The users of each call are ascending.
func (x *sharedChannels) each(fn func(users ids.Set, channels []ChannelID)) {
	number, n := make([]int32, len(x.nodes)+1), int32(0) // nodes that are some user's whole list, numbered from 1
	for _, at := range x.nodeOf {
		number[at] = 1
	}
	number[0] = 0
	for at := range number {
		if number[at] != 0 {
			n++
			number[at] = n
		}
	}
	users := make([]ids.Set, n+1)
	for u, at := range x.nodeOf {
		if at != 0 {
			users[number[at]].AppendSorted(int64(u))
		}
	}
	for at := range number {
		if number[at] == 0 {
			continue
		}
		var channels []ChannelID
		for i := int32(at); i > 0; i = x.nodes[i-1].parent {
			channels = append(channels, x.nodes[i-1].channel)
		}
		slices.Reverse(channels)
		s := &users[number[at]]
		s.FinishAppending()
		fn(*s, channels)
	}
}

// archivedAmong returns those of the channels that are archived.
func (r *Realm) archivedAmong(channels []ChannelID) (out []ChannelID) {
	for _, c := range channels {
		if r.channels.must(c).Archived {
			out = append(out, c)
		}
	}
	return out
}

func (f *UserDeactivated) Accounts() []UserID { return []UserID{f.ID} }

// ReactivateUser asks to reactivate an account.
type ReactivateUser struct{ User UserID }

func (c ReactivateUser) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	me := t.Me()
	switch {
	case u == nil || u.System || u.Deleted:
		return Done{}, errNoUser()
	case !t.System && (me == nil || !me.IsAdmin() && !(u.IsBot() && u.BotOwner == me.ID)):
		return Done{}, errPermission()
	case u.IsBot() && t.checkRank(u) != nil:
		return Done{}, t.checkRank(u)
	case u.Role == Owner && !t.System && me.Role != Owner:
		return Done{}, errNotOwner()
	case u.IsBot() && !t.System && !t.mayCreateBot(me, u.Bot):
		return Done{}, errPermission()
	case u.IsBot() && (u.Active || t.nameTaken(u.Name, u.ID)): // an active bot has its own name (protocol)
		return Done{}, BadRequest(`There is already an active bot named "%s" in this organization. `+
			`To reactivate this bot, you must rename or deactivate the other one first.`, u.Name)
	case u.Active: // a client may send the request again
		return Done{}, nil
	}
	if u.IsBot() && u.BotOwner != 0 && !t.System {
		if o := t.Find(u.BotOwner); o == nil || !o.Active {
			t.Record(&UserChanged{ID: u.ID, Owner: &me.ID})
		}
	}
	channels := ids.IDs[ChannelID](t.subscribedChannelSet(u.ID))
	t.recordWithVisibility(&UserReactivated{
		ID: u.ID, From: t.Org().NextMessage, Channels: channels, Full: t.listedAsFullMember(u),
	})
	t.recordValuesShown(u.ID)
	return Done{}, nil
}

// UserReactivated says that an account was reactivated and receives messages from From on.
type UserReactivated struct {
	ID       UserID
	From     MessageID
	Channels []ChannelID
	Full     bool // is listed as a full member
}

func (f *UserReactivated) apply(r *Realm) {
	u := r.users.change(f.ID)
	u.Active = true
	if len(f.Channels) > 0 {
		l := r.subscriptions.change(f.ID)
		for _, c := range f.Channels {
			s := l.find(c)
			s.Spans = append(s.Spans, Span{From: f.From})
			r.index.channels[c].addOpenSpan(f.ID, f.From)
		}
	}
	r.indexAccountActive(u)
}

func (f *UserReactivated) notices(r *Realm) []Notice {
	notices := r.accountNotices(f.ID, f.Channels, true, f.Full)
	slices.SortStableFunc(notices, func(a, b Notice) int { return noticeRank(b) - noticeRank(a) })
	u := r.users.must(f.ID)
	account := slices.IndexFunc(notices, func(n Notice) bool { _, is := n.Event.(*UserChanged); return is })
	notices = slices.Insert(notices, account+1, r.consentNotices(u)...)
	return append(notices, r.statusNotices(u)...) // clients do not get this of deactivated accounts
}

// noticeRank puts the event about the account before those about its subscriptions when it is reactivated.
func noticeRank(n Notice) int {
	if _, ok := n.Event.(*UserChanged); ok {
		return 1
	}
	return 0
}

func (f *UserReactivated) Accounts() []UserID { return []UserID{f.ID} }
