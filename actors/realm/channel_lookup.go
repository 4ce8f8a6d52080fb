package realm

import (
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// Channel is the row of one channel.
type Channel struct {
	ID              ChannelID
	Name            string
	Description     string
	DescriptionHTML string
	Created         int64
	Creator         UserID // 0: none
	Private         bool
	WebPublic       bool
	History         bool // new subscribers can read older messages
	Archived        bool
	Retention       *int64 // days; nil: as the organization; -1: no limit
	Folder          int64  // 0: none
	TopicsPolicy    string // inherit, allow_empty_topic, disable_empty_topic, empty_topic_only
	Default         bool   // copy of the organization's list of default channels
	LastActive      int64  // time of the last message, or of creation
	Settings        GroupValues
	Quiet           bool // inactive: clients know that it is no longer recently active
}

// ChannelRules are the permission settings that every channel has.
var ChannelRules = []GroupSettingRule{
	{Name: "can_add_subscribers_group", Default: "role:nobody", NobodyOK: true},
	{Name: "can_administer_channel_group", Default: "channel_creator", NobodyOK: true},
	{Name: "can_create_topic_group", Default: "role:everyone", NobodyOK: true, EveryoneOK: true},
	{Name: "can_delete_any_message_group", Default: "role:nobody", NobodyOK: true, EveryoneOK: true},
	{Name: "can_delete_own_message_group", Default: "role:nobody", NobodyOK: true, EveryoneOK: true},
	{Name: "can_move_messages_out_of_channel_group", Default: "role:nobody", NobodyOK: true, EveryoneOK: true},
	{Name: "can_move_messages_within_channel_group", Default: "role:nobody", NobodyOK: true, EveryoneOK: true},
	{Name: "can_remove_subscribers_group", Default: "role:administrators", NobodyOK: true, EveryoneOK: true},
	{Name: "can_resolve_topics_group", Default: "role:nobody", NobodyOK: true, EveryoneOK: true},
	{Name: "can_send_message_group", Default: "role:everyone", NobodyOK: true, EveryoneOK: true},
	{Name: "can_subscribe_group", Default: "role:nobody", NobodyOK: true},
}

// channelIndex is the derived data of one channel.
type channelIndex struct {
	subscribers ids.Set // users with an active subscription, deactivated accounts included
	active      ids.Set // those of them whose account is active
	// users that are or were subscribed, and some that only set a property of it
	everSubscribed ids.Set
	// users that receive new messages of the channel: their last span is open
	receiving  ids.Set
	openings   []openSpan             // when the spans opened, ascending; some have been closed since
	wantsEmail ids.Set                // users that asked for emails of this channel, subscribed or not
	ids        ids.Set                // messages that are in the channel now
	sent       ids.Set                // messages that were sent to the channel, wherever they are now
	topics     map[string]*topicIndex // by case-folded name
	// the same topics as a list: reading many of them needs no lookup for each
	topicList                 []*topicIndex
	connectedSubscribers      []UserID // cache: subscribers that have a queue
	connectedSubscribersValid bool
	traffic                   int         // cache: messages in the 28 days before trafficDay
	trafficDay                int64       // days since 1970; 0: traffic is not valid
	infoChanges               int         // counts changes of the row that clients see
	groups                    GroupValues // cache: the permission settings as clients see them,
	groupsVersion             [2]int      // valid for these values of infoChanges and groupDisplayVersion
	activeChanges             int         // counts changes of active
	json                      channelJSON
}

// FindChannel returns a channel by id, or nil. It checks no permission: commands use the functions below, whose names
// contain the permission that they check.
func (r *Realm) FindChannel(id ChannelID) *Channel { return r.channels.find(id) }

// FindChannelByName returns a channel by its name, or nil. Upper and lower case are the same.
func (r *Realm) FindChannelByName(name string) *Channel {
	if id, ok := r.index.channelByName[fold(strings.TrimSpace(name))]; ok {
		return r.channels.find(id)
	}
	return nil
}

// EachChannel calls fn with every channel, archived ones included, by ascending id.
func (r *Realm) EachChannel(fn func(*Channel)) {
	for id := ChannelID(0); id < r.Org().NextChannel; id++ {
		if c := r.channels.find(id); c != nil {
			fn(c)
		}
	}
}

// ChannelSetting returns the value of one of a channel's permission settings, or its default.
func (r *Realm) ChannelSetting(c *Channel, name string) GroupValue {
	if v, ok := c.Settings[name]; ok {
		return v
	}
	rule := findGroupRule(ChannelRules, name)
	if rule == nil {
		panic("BUG: no channel setting " + name)
	}
	if rule.Default == "channel_creator" {
		if c.Creator == 0 {
			return GroupValue{Group: groupNobody}
		}
		return GroupValue{Members: []UserID{c.Creator}}
	}
	return GroupValue{Group: r.SystemGroup(rule.Default)}
}

// channelAllows reports whether u has a permission by one of the channel's settings.
func (r *Realm) channelAllows(u *User, c *Channel, name string) bool {
	return r.allowed(u, r.ChannelSetting(c, name), findGroupRule(ChannelRules, name).EveryoneOK)
}

// Subscribed reports whether a user has an active subscription.
func (r *Realm) Subscribed(u UserID, c ChannelID) bool {
	ix := r.index.channels[c]
	return ix != nil && ix.subscribers.Has(int64(u))
}

// Subscribers returns the users with an active subscription and an active account, ascending.
func (r *Realm) Subscribers(c ChannelID) []UserID { return ids.IDs[UserID](r.index.channels[c].active) }

// SubscriberCount returns the number of Subscribers.
func (r *Realm) SubscriberCount(c ChannelID) int { return r.index.channels[c].active.Len() }

// hasContentAccess reports whether u is allowed to read a channel's messages. u is nil for a logged-out visitor. The
// rules, in order: everyone reads web-public channels; members read public channels; subscribers read their channels;
// and members that are allowed to subscribe, or to add subscribers, read private ones too.
func (r *Realm) hasContentAccess(u *User, c *Channel) bool {
	if c.WebPublic {
		return u != nil || r.SpectatorsAllowed()
	}
	if u == nil {
		return false
	}
	if !c.Private && !u.IsGuest() { // the most frequent case first: it needs no lookup of subscriptions
		return true
	}
	if r.Subscribed(u.ID, c.ID) {
		return true
	}
	if u.IsGuest() {
		return false
	}
	return r.channelAllows(u, c, "can_subscribe_group") || r.channelAllows(u, c, "can_add_subscribers_group")
}

// hasMetadataAccess reports whether u is allowed to know that a channel exists. These are users with content access,
// and administrators of the organization or the channel.
func (r *Realm) hasMetadataAccess(u *User, c *Channel) bool {
	return r.hasContentAccess(u, c) || r.mayAdminister(u, c)
}

// VisibleChannel returns a channel that the caller is allowed to know of.
func (v View) VisibleChannel(id ChannelID) (*Channel, error) {
	c := v.channels.find(id)
	if c == nil || !v.MaySeeChannel(c) {
		return nil, errInvalidChannel()
	}
	return c, nil
}

// MaySeeChannel reports whether the caller is allowed to know that the channel exists.
func (v View) MaySeeChannel(c *Channel) bool {
	return v.System || v.hasMetadataAccess(v.Me(), c) && v.scope.HasChannel(c.ID)
}

// ReadableChannel returns a channel whose messages the caller is allowed to read.
func (v View) ReadableChannel(id ChannelID) (*Channel, error) {
	c := v.channels.find(id)
	if c == nil || !v.MayReadChannel(c) {
		return nil, errInvalidChannel()
	}
	return c, nil
}

// MayReadChannel reports whether the caller is allowed to read the channel's messages.
func (v View) MayReadChannel(c *Channel) bool {
	return v.System || v.hasContentAccess(v.Me(), c) && v.scope.HasChannel(c.ID)
}

// mayAdminister reports whether u is an administrator of the organization or of the channel.
func (r *Realm) mayAdminister(u *User, c *Channel) bool {
	return u != nil && (u.IsAdmin() || r.channelAllows(u, c, "can_administer_channel_group"))
}

// AdministeredChannel returns a channel that the caller is allowed to change. It can be archived: its properties can
// still change, for example to unarchive it.
func (v View) AdministeredChannel(id ChannelID) (*Channel, error) {
	c, err := v.VisibleChannel(id)
	if err != nil {
		return nil, err
	}
	if !v.System && !v.mayAdminister(v.Me(), c) {
		return nil, BadRequest("You do not have permission to administer this channel.")
	}
	return c, nil
}

// MaySeeSubscribers reports whether the caller is allowed to see the list of subscribers.
func (v View) MaySeeSubscribers(c *Channel) bool {
	me := v.Me()
	if v.System {
		return true
	}
	if !v.scope.HasChannel(c.ID) {
		return false
	}
	if me == nil {
		return c.WebPublic
	}
	if me.IsGuest() && !c.WebPublic {
		return v.Subscribed(me.ID, c.ID)
	}
	return v.hasMetadataAccess(me, c)
}

// NewChannel has the properties of a channel to be created.
type NewChannel struct {
	Name, Description, DescriptionHTML string
	Private, WebPublic                 bool
	History                            *bool // nil: shared in public channels, protected in private ones
	Retention                          *int64
	Folder                             int64
	TopicsPolicy                       string
	Default                            bool
	Groups                             []GroupChange
}

// checkChannelName refuses names that the protocol does not allow, and returns the trimmed name.
func checkChannelName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return "", BadRequest("Channel name can't be empty.")
	}
	if runeCount(name) > MaxChannelName {
		return "", BadRequest("Channel name too long (limit: %d characters).", MaxChannelName)
	}
	if at, ok := findSpoofing(name); !ok {
		return "", BadRequest("Invalid character in channel name, at position %d.", at)
	}
	return name, nil
}

// newChannel checks and records a channel. It posts no message about it.
func (t *Turn) newChannel(n NewChannel) (*Channel, error) {
	c, err := t.planChannel(n)
	if err != nil {
		return nil, err
	}
	if err := t.checkNewChannels([]*Channel{c}, 0); err != nil {
		return nil, err
	}
	t.Record(&ChannelCreated{Channel: *c})
	return t.channels.must(c.ID), nil
}

// planChannel checks a new channel and the caller's permission to create it, and records nothing. So several channels
// can be checked before the first is created.
func (t *Turn) planChannel(n NewChannel) (*Channel, error) {
	name, err := checkChannelName(n.Name)
	if err != nil {
		return nil, err
	}
	if t.FindChannelByName(name) != nil {
		return nil, BadRequest("Channel name is already in use.")
	}
	history := valueOr(n.History, !n.Private)
	if err := checkPrivacyCombination(n.Private, n.WebPublic, history); err != nil {
		return nil, err
	}
	me := t.Me()
	if err := t.mayCreateChannel(me, n); err != nil {
		return nil, err
	}
	if n.Default && n.Private {
		return nil, BadRequest("A default channel cannot be private.")
	}
	if err := t.checkFolderUsable(n.Folder); err != nil {
		return nil, err
	}
	text, err := cleanDescription(n.Description)
	if err != nil {
		return nil, err
	}
	c := &Channel{ID: t.Org().NextChannel, Name: name, Description: text, DescriptionHTML: n.DescriptionHTML,
		Created: t.Now, LastActive: t.Now, Private: n.Private, WebPublic: n.WebPublic, History: history,
		Retention: n.Retention, Folder: n.Folder, TopicsPolicy: "inherit", Default: n.Default, Settings: GroupValues{}}
	if me != nil {
		c.Creator = me.ID
	}
	if n.TopicsPolicy != "" && n.TopicsPolicy != c.TopicsPolicy {
		if err := t.maySetTopicsPolicy(me); err != nil {
			return nil, err
		}
		c.TopicsPolicy = n.TopicsPolicy
	}
	values, err := t.checkGroupChanges(me, n.Groups, func(name string) GroupValue { return t.ChannelSetting(c, name) })
	if err != nil {
		return nil, err
	}
	for i, g := range n.Groups {
		c.Settings[g.Name] = values[i]
	}
	if c.Private && !c.History && t.ChannelSetting(c, "can_create_topic_group").Group != groupEveryone {
		return nil, errTopicCreation()
	}
	if c.DescriptionHTML == "" && text != "" {
		c.DescriptionHTML = t.Describe(text)
	}
	return c, nil
}

// mayCreateChannel refuses users that are not allowed to create a channel of this kind.
func (t *Turn) mayCreateChannel(me *User, n NewChannel) error {
	if t.System {
		return nil
	}
	right := "can_create_public_channel_group"
	if n.Private {
		right = "can_create_private_channel_group"
	}
	if me == nil || !t.HasPermission(me, right) {
		return errPermission()
	}
	if n.WebPublic {
		if err := t.mayMakeWebPublic(me); err != nil {
			return err
		}
	}
	if n.Retention != nil && me.Role != Owner {
		return errNotOwner()
	}
	if n.Default && !me.IsAdmin() {
		return errPermission() // changing an existing channel has a text of its own
	}
	return nil
}

// ChannelCreated adds a channel.
type ChannelCreated struct{ Channel Channel }

func (f *ChannelCreated) apply(r *Realm) {
	c := f.Channel
	c.Settings = cloneMap(c.Settings)
	o := r.org.change(0)
	o.NextChannel = max(o.NextChannel, c.ID+1)
	if c.Default {
		o.DefaultChannels = append(o.DefaultChannels, c.ID)
		slices.Sort(o.DefaultChannels)
	}
	r.channels.put(c.ID, &c)
	r.index.addChannel(&c)
}

func (f *ChannelCreated) notices(r *Realm) []Notice {
	out := []Notice{{To: r.channelAudience(r.channels.must(f.Channel.ID)), Event: r.channelsAppeared(f.Channel.ID)}}
	if f.Channel.Default {
		out = append(out, Notice{To: r.membersAudience(), Event: r.defaultChannelsEvent()})
	}
	return out
}

// ChannelAppeared is the event stream/create: the receiver can see the channel now.
type ChannelAppeared struct{ Channels []ChannelInfo }

func (*ChannelAppeared) EventType() string { return "stream" }

// channelsAppeared returns the event with the present state of channels.
func (r *Realm) channelsAppeared(ids ...ChannelID) *ChannelAppeared {
	e := &ChannelAppeared{}
	for _, id := range ids {
		e.Channels = append(e.Channels, r.ChannelInfo(r.channels.must(id)))
	}
	return e
}

// ChannelVanished is the event stream/delete: the receiver cannot see the channel any more, or it was archived.
type ChannelVanished struct {
	Channels []ChannelID
	Archived bool        // only for queues without the capability archived_channels
	Shut     []ChannelID // those of Channels that were archived before: only queues with archived_channels knew of them
}

func (*ChannelVanished) EventType() string { return "stream" }

// ChannelInfo is a channel as clients see it: the row and derived values.
type ChannelInfo struct {
	Channel
	Groups         GroupValues // every permission setting, with defaults; shared: read only
	FirstMessage   MessageID   // 0: none
	Subscribers    int         // active accounts, bots included
	WeeklyTraffic  int64       // messages per week; -1: the channel is too new
	RecentlyActive bool
}

// ChannelInfo returns a copy of a channel that may leave the realm.
func (r *Realm) ChannelInfo(c *Channel) ChannelInfo {
	ix := r.index.channels[c.ID]
	if version := [2]int{ix.infoChanges, r.index.groupDisplayVersion}; ix.groups == nil || ix.groupsVersion != version {
		ix.groups, ix.groupsVersion = make(GroupValues, len(ChannelRules)), version
		for _, rule := range ChannelRules {
			ix.groups[rule.Name] = r.WithoutDeactivated(r.ChannelSetting(c, rule.Name))
		}
	}
	info := ChannelInfo{Channel: *c, Groups: ix.groups, WeeklyTraffic: r.weeklyTraffic(c)}
	info.Settings = nil
	if first, ok := ix.ids.Min(); ok {
		info.FirstMessage = MessageID(first)
	}
	info.Subscribers = r.SubscriberCount(c.ID)
	info.RecentlyActive = r.recentlyActive(c)
	return info
}

// weeklyTraffic returns the average number of messages per week in the 28 days before today, rounded to two
// significant digits. It is -1 for a channel younger than a week. New messages change the value once a day, so
// messages are counted once a day, and again after some were deleted or moved.
func (r *Realm) weeklyTraffic(c *Channel) int64 {
	age := (r.index.clock - c.Created) / secondsPerDay
	if age < 7 {
		return -1
	}
	ix := r.index.channels[c.ID]
	today := r.index.clock / secondsPerDay
	if ix.trafficDay != today {
		ix.trafficDay = today
		ix.traffic = r.countMessagesSince(c.ID, (today-28)*secondsPerDay) -
			r.countMessagesSince(c.ID, today*secondsPerDay)
	}
	return weeklyAverage(int64(ix.traffic), age)
}

const secondsPerDay = 86400

// weeklyAverage returns the weekly average of n messages in the last 28 days, for a channel that is age days old.
func weeklyAverage(n, age int64) int64 {
	span := min(age, 28)
	average := (n*7 + span/2) / span
	if average == 0 && n > 0 {
		return 1
	}
	for unit := int64(10); average >= unit*10; unit *= 10 {
		if average < unit*100 {
			return (average + unit/2) / unit * unit
		}
	}
	return average
}

// hasProtectedHistory reports whether messages of the channel can be read only by users that received them.
func (r *Realm) hasProtectedHistory(c *Channel) bool { return !c.History && !c.WebPublic }
