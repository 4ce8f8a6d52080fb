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
	History         bool // history is public to subscribers
	Archived        bool
	Retention       *int64 // days; nil inherits, -1 keeps for ever
	Folder          int64  // 0: none
	TopicsPolicy    string // inherit, allow_empty_topic, disable_empty_topic, empty_topic_only
	Default         bool   // kept in step with the organization's default channels
	LastActive      int64  // time of the last message, or of creation
	Settings        GroupValues
	Quiet           bool // told to be no longer recently active
}

// ChannelRules are the permission settings every channel has.
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

// channelIndex is what is derived about one channel.
type channelIndex struct {
	subscribers               ids.Set                // users with an active subscription, deactivated accounts included
	active                    ids.Set                // those of them whose account is active
	everSubscribed            ids.Set                // users who are or were subscribed, and maybe some who only set what they want of it
	receiving                 ids.Set                // users who receive what is sent to the channel: their last span is open
	openings                  []openSpan             // since when, ascending; some have been closed again since
	wantsEmail                ids.Set                // users who asked for mails of this channel, be they subscribed now or not
	ids                       ids.Set                // messages that are in the channel now
	sent                      ids.Set                // messages that were sent to it, wherever they are now
	topics                    map[string]*topicIndex // by folded name
	topicList                 []*topicIndex          // the same, one behind the other: who wants all of very many need not look each up
	connectedSubscribers      []UserID               // cached: subscribers that have a queue
	connectedSubscribersValid bool
	traffic                   int         // cached: messages in the 28 days before trafficDay
	trafficDay                int64       // counted from 1970
	infoChanges               int         // of what clients are told of the row
	groups                    GroupValues // cached: the permission settings as clients are told of them,
	groupsVersion             [2]int      // since so many changes, here and of accounts
	activeChanges             int         // changes of active
	json                      channelJSON
}

// FindChannel is a channel by id whatever the caller may know of it, or nil. Commands use the functions below, which
// say what the caller may do.
func (r *Realm) FindChannel(id ChannelID) *Channel { return r.channels.find(id) }

// FindChannelByName is a channel by its name, compared without case, or nil.
func (r *Realm) FindChannelByName(name string) *Channel {
	if id, ok := r.index.channelByName[fold(strings.TrimSpace(name))]; ok {
		return r.channels.find(id)
	}
	return nil
}

// EachChannel calls fn with every channel by ascending id, archived ones included.
func (r *Realm) EachChannel(fn func(*Channel)) {
	for id := ChannelID(0); id < r.Org().NextChannel; id++ {
		if c := r.channels.find(id); c != nil {
			fn(c)
		}
	}
}

// ChannelSetting is the value of one of a channel's permission settings.
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

func (r *Realm) channelAllows(u *User, c *Channel, name string) bool {
	return r.allowed(u, r.ChannelSetting(c, name), findGroupRule(ChannelRules, name).EveryoneOK)
}

// Subscribed reports whether a user has an active subscription.
func (r *Realm) Subscribed(u UserID, c ChannelID) bool {
	ix := r.index.channels[c]
	return ix != nil && ix.subscribers.Has(int64(u))
}

// Subscribers is every user with an active subscription and an active account.
func (r *Realm) Subscribers(c ChannelID) []UserID { return ids.IDs[UserID](r.index.channels[c].active) }

// SubscriberCount is how many Subscribers there are.
func (r *Realm) SubscriberCount(c ChannelID) int { return r.index.channels[c].active.Len() }

// hasContentAccess reports whether somebody may read a channel's messages: of a web-public channel everyone, else subscribers, and
// of those who are no guests all for a public channel, and members of the groups that may subscribe or add subscribers.
// u is nil for a visitor.
func (r *Realm) hasContentAccess(u *User, c *Channel) bool {
	if c.WebPublic {
		return u != nil || r.SpectatorsAllowed()
	}
	if u == nil {
		return false
	}
	if !c.Private && !u.IsGuest() { // the commonest, without a look at who is in it
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

// hasMetadataAccess reports whether somebody may know that a channel exists: those who may read its messages, and administrators
// of the organization or the channel.
func (r *Realm) hasMetadataAccess(u *User, c *Channel) bool {
	return r.hasContentAccess(u, c) || u != nil && (u.IsAdmin() || r.channelAllows(u, c, "can_administer_channel_group"))
}

// VisibleChannel is a channel the caller may know of.
func (v View) VisibleChannel(id ChannelID) (*Channel, error) {
	c := v.channels.find(id)
	if c == nil || !v.System && !v.hasMetadataAccess(v.Me(), c) {
		return nil, errInvalidChannel()
	}
	return c, nil
}

// MaySeeChannel reports whether the caller may know the channel exists.
func (v View) MaySeeChannel(c *Channel) bool { return v.System || v.hasMetadataAccess(v.Me(), c) }

// ReadableChannel is a channel whose messages the caller may read.
func (v View) ReadableChannel(id ChannelID) (*Channel, error) {
	c := v.channels.find(id)
	if c == nil || !v.System && !v.hasContentAccess(v.Me(), c) {
		return nil, errInvalidChannel()
	}
	return c, nil
}

// MayReadChannel reports whether the caller may read the channel's messages.
func (v View) MayReadChannel(c *Channel) bool { return v.System || v.hasContentAccess(v.Me(), c) }

// mayAdminister: organization administrators and the channel's own.
func (r *Realm) mayAdminister(u *User, c *Channel) bool {
	return u != nil && (u.IsAdmin() || r.channelAllows(u, c, "can_administer_channel_group"))
}

// AdministeredChannel is a channel the caller may change.
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

// MaySeeSubscribers reports whether the caller may know who is subscribed.
func (v View) MaySeeSubscribers(c *Channel) bool {
	me := v.Me()
	if v.System {
		return true
	}
	if me == nil {
		return c.WebPublic
	}
	if me.IsGuest() && !c.WebPublic {
		return v.Subscribed(me.ID, c.ID)
	}
	return v.hasMetadataAccess(me, c)
}

// NewChannel is what a channel is created with.
type NewChannel struct {
	Name, Description, DescriptionHTML string
	Private, WebPublic                 bool
	History                            *bool // nil: public channels share history, private ones do not
	Retention                          *int64
	Folder                             int64
	TopicsPolicy                       string
	Default                            bool
	Groups                             []GroupChange
}

// checkChannelName refuses names the protocol does not allow and returns the trimmed one.
func checkChannelName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return "", BadRequest("Channel name can't be empty.")
	}
	if runeCount(name) > MaxChannelName {
		return "", BadRequest("Channel name too long (limit: %d characters).", MaxChannelName)
	}
	if at, ok := findUnprintable(name); !ok {
		return "", BadRequest("Invalid character in channel name, at position %d.", at)
	}
	return name, nil
}

// newChannel checks and records a channel, without a notice.
func (t *Turn) newChannel(n NewChannel) (*Channel, error) {
	c, err := t.planChannel(n)
	if err != nil {
		return nil, err
	}
	t.Record(&ChannelCreated{Channel: *c})
	return t.channels.must(c.ID), nil
}

// planChannel checks a new channel and who may create it, without recording, so that several can be checked before the
// noticeRank is made.
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
	c := &Channel{ID: t.Org().NextChannel, Name: name, Description: text, DescriptionHTML: n.DescriptionHTML, Created: t.Now, LastActive: t.Now,
		Private: n.Private, WebPublic: n.WebPublic, History: history, Retention: n.Retention, Folder: n.Folder, TopicsPolicy: "inherit", Default: n.Default, Settings: GroupValues{}}
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

// mayCreateChannel: which kinds of channels somebody may create.
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
		return errDefaultChannels()
	}
	return nil
}

// ChannelCreated says a channel exists.
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

func (f *ChannelCreated) tell(r *Realm) []Notice {
	out := []Notice{{To: r.channelAudience(r.channels.must(f.Channel.ID)), Event: r.channelsAppeared(f.Channel.ID)}}
	if f.Channel.Default {
		out = append(out, Notice{To: r.membersAudience(), Event: r.defaultChannelsEvent()})
	}
	return out
}

// ChannelAppeared is the event stream/create: the channel came into somebody's sight.
type ChannelAppeared struct{ Channels []ChannelInfo }

func (*ChannelAppeared) EventType() string { return "stream" }

func (r *Realm) channelsAppeared(ids ...ChannelID) *ChannelAppeared {
	e := &ChannelAppeared{}
	for _, id := range ids {
		e.Channels = append(e.Channels, r.ChannelInfo(r.channels.must(id)))
	}
	return e
}

// ChannelVanished is the event stream/delete: the channel went out of somebody's sight, or was archived.
type ChannelVanished struct {
	Channels []ChannelID
	Archived bool        // for queues without archived_channels only
	Shut     []ChannelID // those of Channels that were archived before: only queues with archived_channels knew of them
}

func (*ChannelVanished) EventType() string { return "stream" }

// ChannelInfo is a channel as clients are told of it: the row and what is derived.
type ChannelInfo struct {
	Channel
	Groups         GroupValues // every permission setting, defaults filled in; shared: read only
	FirstMessage   MessageID   // 0: none
	Subscribers    int         // active accounts, bots included
	WeeklyTraffic  int64       // messages a week; -1: too new to tell
	RecentlyActive bool
}

// ChannelInfo copies a channel out of the realm.
func (r *Realm) ChannelInfo(c *Channel) ChannelInfo {
	ix := r.index.channels[c.ID]
	if of := [2]int{ix.infoChanges, r.index.groupDisplayVersion}; ix.groups == nil || ix.groupsVersion != of {
		ix.groups, ix.groupsVersion = make(GroupValues, len(ChannelRules)), of
		for _, rule := range ChannelRules {
			ix.groups[rule.Name] = r.WithoutDeactivated(r.ChannelSetting(c, rule.Name))
		}
	}
	i := ChannelInfo{Channel: *c, Groups: ix.groups, WeeklyTraffic: r.weeklyTraffic(c)}
	i.Settings = nil
	if m, ok := ix.ids.Min(); ok {
		i.FirstMessage = MessageID(m)
	}
	i.Subscribers = r.SubscriberCount(c.ID)
	i.RecentlyActive = r.recentlyActive(c)
	return i
}

// weeklyTraffic is the average of messages a week over the 28 days before today, rounded to two significant digits; -1
// for a channel younger than a week. It changes once a day, so it is counted once a day.
func (r *Realm) weeklyTraffic(c *Channel) int64 {
	age := (r.index.clock - c.Created) / secondsPerDay
	if age < 7 {
		return -1
	}
	ix := r.index.channels[c.ID]
	today := r.index.clock / secondsPerDay
	if ix.trafficDay != today {
		ix.trafficDay = today
		ix.traffic = r.countMessagesSince(c.ID, (today-28)*secondsPerDay) - r.countMessagesSince(c.ID, today*secondsPerDay)
	}
	return weeklyAverage(int64(ix.traffic), age)
}

const secondsPerDay = 86400 // seconds

// weeklyAverage makes an average of n messages in the last 28 days of a channel's life of age days.
func weeklyAverage(n, age int64) int64 {
	span := min(age, 28)
	w := (n*7 + span/2) / span
	if w == 0 && n > 0 {
		return 1
	}
	for unit := int64(10); w >= unit*10; unit *= 10 {
		if w < unit*100 {
			return (w + unit/2) / unit * unit
		}
	}
	return w
}
