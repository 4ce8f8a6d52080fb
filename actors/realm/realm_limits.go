package realm

import "slices"

// Limits are the operator's limits of the objects that users create. A field that is 0 has its default.
type Limits struct {
	Channels         int // in the organization, archived ones included
	ChannelsPerDay   int // created by a user below administrator, together with the bots of that user
	ChannelsPerCall  int // created by one request
	JoinsPerCall     int // subscriptions made or ended by one request: users times channels
	Groups           int // in the organization, deactivated ones included
	GroupsPerDay     int // created by a user below administrator
	BotsPerUser      int // deactivated ones included
	Users            int // accounts in the organization, bots and deactivated ones included
	ShortListFrom    int // accounts above which clients that can do so get a short list of users
	RegistrationSize int // bytes of lists in a registration; see Realm.ListsSize and Realm.UserListsSize
}

// DefaultLimits are the limits that no operator has changed. They are larger than any organization needs, and small
// enough that no user can make the organization slow for others.
var DefaultLimits = Limits{
	Channels:         10_000,
	ChannelsPerDay:   100,
	ChannelsPerCall:  100,
	JoinsPerCall:     MaxSubscriptionsPerRequest,
	Groups:           5000,
	GroupsPerDay:     100,
	BotsPerUser:      100,
	Users:            2_000_000,
	ShortListFrom:    10_000,
	RegistrationSize: 64 << 20,
}

// withDefaults replaces fields that are 0.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits
	for _, x := range []struct{ field, value *int }{
		{&l.Channels, &d.Channels}, {&l.ChannelsPerDay, &d.ChannelsPerDay}, {&l.ChannelsPerCall, &d.ChannelsPerCall},
		{&l.JoinsPerCall, &d.JoinsPerCall}, {&l.Groups, &d.Groups}, {&l.GroupsPerDay, &d.GroupsPerDay},
		{&l.BotsPerUser, &d.BotsPerUser}, {&l.Users, &d.Users}, {&l.ShortListFrom, &d.ShortListFrom},
		{&l.RegistrationSize, &d.RegistrationSize},
	} {
		if *x.field == 0 {
			*x.field = *x.value
		}
	}
	return l
}

// SetLimits sets the limits of later commands. Rows and facts of before stay as they are.
func (r *Realm) SetLimits(l Limits) { r.limits = l.withDefaults() }

// checkNewChannels refuses the creation of channels beyond the limits of the organization, of the caller and of one
// request. subscriptions is how many subscriptions the request makes. System callers have no limits.
func (t *Turn) checkNewChannels(planned []*Channel, subscriptions int) error {
	me := t.Me()
	if me == nil || t.System || len(planned) == 0 && subscriptions <= fewSubscriptions {
		return nil
	}
	if len(planned) > t.limits.ChannelsPerCall {
		return BadRequest("Too many new channels in one request (limit: %d)", t.limits.ChannelsPerCall)
	}
	if t.channels.size()+len(planned) > t.limits.Channels {
		return BadRequest("This organization cannot have more channels (limit: %d)", t.limits.Channels)
	}
	if len(planned) > 0 && !me.IsAdmin() &&
		t.channelsCreatedToday(me.ID)+len(planned) > t.limits.ChannelsPerDay {
		return BadRequest("You cannot create more channels today (limit: %d a day)", t.limits.ChannelsPerDay)
	}
	more := subscriptions * registeredSubscriberBytes
	for _, c := range planned {
		more += channelSize(c)
	}
	return t.checkRegistrationSize(more)
}

// fewSubscriptions is how many subscriptions a request can make without a check of the registration's size, which takes
// a millisecond in a large organization.
const fewSubscriptions = 100

// maxOwnerChain limits the owners of owners that ChargedUser follows. The server lets no bot own a bot; imported data
// can have chains, and cycles.
const maxOwnerChain = 16

// ChargedUser returns the account under which every bound counts the requests and data of an account: for a bot its
// owner, through chains of owners, also if the owner is deactivated. Otherwise a member would multiply each bound by
// the number of the member's bots. It returns the account itself for a person, and for a bot without an owner. Of a
// cycle it returns the lowest id, so that all its bots count together.
func (r *Realm) ChargedUser(id UserID) UserID {
	seen := make([]UserID, 0, maxOwnerChain)
	for at := id; len(seen) < maxOwnerChain; {
		u := r.users.find(at)
		if u == nil || !u.IsBot() || u.BotOwner == 0 || r.users.find(u.BotOwner) == nil {
			return at
		}
		if i := slices.Index(seen, at); i >= 0 {
			return slices.Min(seen[i:])
		}
		seen = append(seen, at)
		at = u.BotOwner
	}
	return seen[len(seen)-1]
}

// SharesBounds reports whether two accounts count as one in every bound: see ChargedUser.
func (r *Realm) SharesBounds(a, b UserID) bool { return a == b || r.ChargedUser(a) == r.ChargedUser(b) }

// accountsChargedWith returns the accounts that count as one with an account in every bound: a person and the person's
// bots.
func (r *Realm) accountsChargedWith(id UserID) []UserID {
	charged := r.ChargedUser(id)
	out := []UserID{charged}
	r.EachBot(func(u *User) {
		if u.ID != charged && r.ChargedUser(u.ID) == charged {
			out = append(out, u.ID)
		}
	})
	return out
}

// sumCharged adds up a number of each account that counts as one with an account.
func (r *Realm) sumCharged(id UserID, of func(UserID) int) (n int) {
	for _, u := range r.accountsChargedWith(id) {
		n += of(u)
	}
	return n
}

// channelsCreatedToday returns how many channels the accounts that count as one with a user have created in the last 24
// hours.
func (v View) channelsCreatedToday(u UserID) (n int) {
	for id := v.Org().NextChannel - 1; id > 0; id-- {
		c := v.channels.find(id)
		if c == nil {
			continue
		}
		if c.Created <= v.Now-secondsPerDay {
			break
		}
		if v.SharesBounds(c.Creator, u) {
			n++
		}
	}
	return n
}

// checkNewGroup refuses the creation of a group beyond the limits.
func (t *Turn) checkNewGroup(g *Group) error {
	me := t.Me()
	if t.groups.size() >= t.limits.Groups {
		return BadRequest("This organization cannot have more user groups (limit: %d)", t.limits.Groups)
	}
	if !t.System && !me.IsAdmin() {
		today := 0
		for id := t.Org().NextGroup - 1; id > 0; id-- {
			other := t.groups.find(id)
			if other != nil && other.Created <= t.Now-secondsPerDay {
				break
			}
			if other != nil && t.SharesBounds(other.Creator, me.ID) {
				today++
			}
		}
		if today >= t.limits.GroupsPerDay {
			return BadRequest("You cannot create more user groups today (limit: %d a day)", t.limits.GroupsPerDay)
		}
	}
	return t.checkRegistrationSize(groupSize(g))
}

// checkNewBot refuses a bot beyond the limit of its owner.
func (t *Turn) checkNewBot(owner UserID) error {
	if err := t.checkBotCount(owner); err != nil {
		return err
	}
	return t.checkUserCount()
}

// checkUserCount refuses a further account of an organization beyond the limit.
func (v View) checkUserCount() error {
	if v.users.size() >= v.limits.Users {
		return BadRequest("This organization cannot have more users (limit: %d)", v.limits.Users)
	}
	return nil
}

// checkBotCount refuses a further bot of an owner beyond the limit, whether it is created or given to the owner.
func (t *Turn) checkBotCount(owner UserID) error {
	n := 0
	t.EachBot(func(u *User) {
		if t.SharesBounds(u.ID, owner) {
			n++
		}
	})
	if n >= t.limits.BotsPerUser {
		return BadRequest("You cannot have more bots (limit: %d)", t.limits.BotsPerUser)
	}
	return nil
}

// Approximate sizes in a registration, in bytes of JSON: the fixed part of each entry.
const (
	registeredChannelBytes    = 2 * 1700 // in the list of channels and in one of the lists by subscription
	registeredOwnSettings     = 300      // a user's settings of a channel
	registeredSubscriberBytes = 7        // the id in the list of subscribers
	registeredIDBytes         = 7
	registeredUserBytes       = 700
	registeredGroupBytes      = 900
	registeredRowBytes        = 300 // emoji, linkifier and other small rows
)

// ListsSize returns about how many bytes of a registration are channels, groups, and the lists that administrators
// keep. All users get them. Of subscribers and members it contains as many as a client with a short list of users can
// get. The lists of one user have limits of their own.
func (r *Realm) ListsSize() (n int) {
	for id, c := range r.channels.all() {
		n += channelSize(c) + registeredSubscriberBytes*min(r.index.channels[id].active.Len(), FullSubscriberListLimit)
	}
	for _, g := range r.groups.all() {
		n += groupSize(g) - registeredIDBytes*max(len(g.Members)-FullMemberListLimit, 0)
	}
	return n + r.small.registrationSize()
}

// UserLists are the lists of a registration that grow with the users.
type UserLists struct {
	Accounts, Members, Subscribers bool // Members are those of groups
}

// UserListsSize returns about how many bytes complete lists have.
func (r *Realm) UserListsSize(of UserLists) (n int) {
	census := r.Census()
	if of.Accounts {
		n += census.Bytes
	}
	if of.Members {
		for g := groupOwners; g <= groupEveryone; g++ {
			n += registeredIDBytes * census.Direct(g)
		}
		for _, g := range r.groups.all() {
			n += registeredIDBytes * len(g.Members)
		}
	}
	if of.Subscribers {
		for id := range r.channels.all() {
			n += registeredSubscriberBytes * r.index.channels[id].active.Len()
		}
	}
	return n
}

// CheckUserLists refuses a registration with complete lists that would be larger than the limit. Such a client cannot
// use the organization; trying again does not help.
func (v View) CheckUserLists(of UserLists) error {
	if n := v.UserListsSize(of); n > v.limits.RegistrationSize {
		return BadRequest("This organization has too many users for this client: their lists have about %d MB (limit: "+
			"%d MB, registration-size). Use a client that gets a short list of users, or register with "+
			"fetch_event_types without realm_user and realm_user_groups, and without all subscribers",
			n>>20, v.limits.RegistrationSize>>20)
	}
	return nil
}

// GetsShortList reports whether a client with some capabilities gets a short list of users.
func (r *Realm) GetsShortList(c Caps) bool {
	return c&CapShortUserList != 0 && r.users.size() > r.limits.ShortListFrom
}

// registrationSize is the part of the small tables.
func (n *smallTables) registrationSize() (size int) {
	for _, e := range n.emoji.all() {
		size += registeredRowBytes + 2*len(e.Name)
	}
	for _, f := range n.folders.all() {
		size += registeredRowBytes + len(f.Name) + len(f.Description) + len(f.DescriptionHTML)
	}
	for _, l := range n.linkifiers.all() {
		size += l.size()
	}
	for _, p := range n.playgrounds.all() {
		size += registeredRowBytes + len(p.Name) + len(p.Language) + len(p.Template)
	}
	for _, f := range n.profileFields.all() {
		size += registeredRowBytes + len(f.Name) + len(f.Hint) + len(f.Data)
	}
	for _, g := range n.defaultGroups.all() {
		size += registeredRowBytes + len(g.Name) + len(g.Description) + registeredIDBytes*len(g.Channels)
	}
	return size
}

func channelSize(c *Channel) int {
	texts := len(c.Name) + len(c.Description) + len(c.DescriptionHTML) + c.Settings.size()
	return registeredChannelBytes + registeredOwnSettings + 2*texts
}

func groupSize(g *Group) int {
	return registeredGroupBytes + len(g.Name) + len(g.Description) + g.Settings.size() +
		registeredIDBytes*(len(g.Members)+len(g.Subgroups))
}

func (l *Linkifier) size() int {
	n := registeredRowBytes + len(l.Pattern) + len(l.Template)
	for _, text := range []*string{l.Example, l.Reverse} {
		if text != nil {
			n += len(*text)
		}
	}
	for _, a := range l.Alternatives {
		n += len(a)
	}
	return n
}

// size returns the bytes of the values that are not a named group.
func (g GroupValues) size() (n int) {
	for _, v := range g {
		n += registeredIDBytes * (len(v.Members) + len(v.Subgroups))
	}
	return n
}

// size returns the bytes of the values.
func (p Profile) size() (n int) {
	for _, text := range p {
		n += registeredIDBytes + len(text)
	}
	return n
}

// checkRegistrationSize refuses a change that would make the shared part of registrations larger than the limit, by
// more bytes. It takes up to a millisecond or two in a large organization. System callers have no limit.
func (t *Turn) checkRegistrationSize(more int) error {
	if t.System || more <= 0 {
		return nil
	}
	if t.ListsSize()+more > t.limits.RegistrationSize {
		return BadRequest("The lists of channels and groups of this organization cannot become larger "+
			"(limit: %d bytes)", t.limits.RegistrationSize)
	}
	return nil
}

// MaxOwnTexts is how many bytes, with HTML, a user's drafts can have together, and likewise the user's snippets,
// scheduled messages and reminders: the user's registrations contain all of them.
const MaxOwnTexts = 4 << 20

// checkOwnTexts refuses a list of texts that would become too large. name is the plural noun for the texts.
func checkOwnTexts(name string, bytes int) error {
	if bytes > MaxOwnTexts {
		return BadRequest("Too much text in %s (limit: %d bytes)", name, MaxOwnTexts)
	}
	return nil
}
