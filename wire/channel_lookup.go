package wire

import (
	"slices"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

var channelEndpoints = []Endpoint{
	Get("/streams", getChannels).Returns("{streams: [ListedChannel]}"),
	Get("/streams/{stream_id}", getChannel).Returns("{stream: Channel}"),
	CommandFromCall("PATCH", "/streams/{stream_id}", editChannel, emptyAnswer),
	CommandFromForm("DELETE", "/streams/{stream_id}", func(f channelForm) realm.ArchiveChannel {
		return realm.ArchiveChannel{Channel: f.Channel}
	}, emptyAnswer),
	Get("/streams/{stream_id}/members", getSubscribers).Returns("{subscribers: [int]}"),
	Custom("GET", "/streams/{stream_id}/email_address", getChannelEmail).Returns("{email: str}"),
	Get("/get_stream_id", getChannelID).Returns("{stream_id: int}"),
	Custom("POST", "/channels/create", createChannelInTurns).Returns("{id: int}"),
	Get("/users/{user_id}/channels", getUserChannels).Returns("{subscribed_channel_ids: [int]}"),
	Get("/users/{user_id}/subscriptions/{stream_id}", isSubscribed).Returns("{is_subscribed: bool}"),
	Custom("GET", "/users/me/{stream_id}/topics", getTopics).Returns("{topics: [{name: str, max_id: int}]}").
		AllowVisitors(),
}

var channelEvents = []EventKind{
	EventOneOf(channelAppeared),
	EventOneOf(channelVanished),
	Events(channelActivityChanged),
	Events(channelChanged),
	EventOneOf(channelPrivacySet),
	EventOneOf(channelArchived),
	EventOneOf(channelUnarchived),
	EventOneOf(channelBecameInactive),
	EventOneOf(func(e *realm.AnnouncementsStopped, _ *Recipient) any {
		return obj{"type": "realm", "op": "update", "property": e.Setting, "value": -1}
	}),
}

// groupValue returns the JSON of a permission setting: the id of a group, or the lists of direct members and
// subgroups.
func groupValue(g realm.GroupValue) any { return groupValueJSON{g} }

// nonNil returns an empty list instead of nil, so that JSON has [] and not null.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// legacyPostPolicy returns the number that older clients use for the posting permission of a channel.
func legacyPostPolicy(g realm.GroupValue) int {
	switch g.Group {
	case 3:
		return 2
	case 5:
		return 3
	case 4:
		return 4
	}
	return 1
}

// channelObject returns a channel as JSON. It has the fields that are the same for all users.
func channelObject(c realm.ChannelInfo) obj {
	post := legacyPostPolicy(c.Groups["can_send_message_group"])
	o := obj{
		"stream_id":                     c.ID,
		"name":                          c.Name,
		"description":                   c.Description,
		"rendered_description":          c.DescriptionHTML,
		"date_created":                  c.Created,
		"creator_id":                    nil,
		"invite_only":                   c.Private,
		"is_web_public":                 c.WebPublic,
		"history_public_to_subscribers": c.History,
		"is_archived":                   c.Archived,
		"is_announcement_only":          post == 2,
		"stream_post_policy":            post,
		"message_retention_days":        nil,
		"first_message_id":              nil,
		"folder_id":                     nil,
		"topics_policy":                 c.TopicsPolicy,
		"is_recently_active":            c.RecentlyActive,
		"stream_weekly_traffic":         nil,
		"subscriber_count":              c.Subscribers,
	}
	if c.Creator != 0 {
		o["creator_id"] = c.Creator
	}
	if c.Retention != nil {
		o["message_retention_days"] = *c.Retention
	}
	if c.FirstMessage != 0 {
		o["first_message_id"] = c.FirstMessage
	}
	if c.Folder != 0 {
		o["folder_id"] = c.Folder
	}
	if c.WeeklyTraffic >= 0 {
		o["stream_weekly_traffic"] = c.WeeklyTraffic
	}
	for name, g := range c.Groups {
		o[name] = groupValue(g)
	}
	return o
}

type channelForm struct {
	Channel realm.ChannelID `path:"stream_id"`
}

type getChannelsForm struct {
	Public          bool `form:"include_public,default=true"`
	WebPublic       bool `form:"include_web_public"`
	Subscribed      bool `form:"include_subscribed,default=true"`
	ExcludeArchived bool `form:"exclude_archived,default=true"`
	AllActive       bool `form:"include_all_active"`
	All             bool `form:"include_all"`
	Default         bool `form:"include_default"`
	OwnerSubscribed bool `form:"include_owner_subscribed"`
	Content         bool `form:"include_can_access_content"`
}

func getChannels(c *Call, v realm.View, f getChannelsForm) (Answer, error) {
	me := v.Me()
	if f.AllActive && !me.IsAdmin() {
		return nil, realm.BadRequest("User not authorized for this query")
	}
	var found []*realm.Channel
	v.EachChannel(func(ch *realm.Channel) {
		// a bot can send to its owner's channels
		botMaySend := f.OwnerSubscribed && me.BotOwner != 0 && v.Subscribed(me.BotOwner, ch.ID)
		if (!f.ExcludeArchived || !ch.Archived) && (botMaySend || v.MaySeeChannel(ch) && f.includes(v, me, ch)) {
			found = append(found, ch)
		}
	})
	sortByName(found)
	list := newObjectList(len(found), 2)
	for _, ch := range found {
		var more []byte
		if f.Default {
			more = strconv.AppendBool([]byte(`"is_default":`), ch.Default)
		}
		list.add(sharedFragment(v.ChannelJSON(ch, channelFieldsJSON)), ownFragment(more))
	}
	return Answer{"streams": list.end()}, nil
}

// includes reports whether the request asked for a channel. One matching condition is enough.
func (f *getChannelsForm) includes(v realm.View, me *realm.User, ch *realm.Channel) bool {
	return f.All || f.AllActive ||
		f.Public && !ch.Private && !me.IsGuest() ||
		f.WebPublic && ch.WebPublic ||
		f.Subscribed && v.Subscribed(me.ID, ch.ID) ||
		f.Default && ch.Default ||
		f.Content && v.MayReadChannel(ch)
}

// sortByName sorts channels by name, ignoring case.
func sortByName(list []*realm.Channel) {
	slices.SortStableFunc(list, func(a, b *realm.Channel) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
}

func getChannel(c *Call, v realm.View, f channelForm) (Answer, error) {
	ch, err := v.VisibleChannel(f.Channel)
	if err != nil {
		return nil, err
	}
	return Answer{"stream": channelObject(v.ChannelInfo(ch))}, nil
}

func getSubscribers(c *Call, v realm.View, f channelForm) (Answer, error) {
	ch, err := v.VisibleChannel(f.Channel)
	if err != nil {
		return nil, err
	}
	if !v.MaySeeSubscribers(ch) {
		return nil, realm.BadRequest("Invalid channel ID")
	}
	return Answer{"subscribers": v.Subscribers(ch.ID)}, nil
}

type getChannelIDForm struct {
	Name string `form:"stream,required"`
}

func getChannelID(c *Call, v realm.View, f getChannelIDForm) (Answer, error) {
	ch := v.FindChannelByName(f.Name)
	if ch == nil || !v.MaySeeChannel(ch) {
		return nil, realm.BadRequest("Invalid channel name '%s'", f.Name)
	}
	return Answer{"stream_id": ch.ID}, nil
}

type userChannelsForm struct {
	User realm.UserID `path:"user_id"`
}

// visibleUser returns a user that the caller is allowed to see.
func visibleUser(v realm.View, id realm.UserID) (*realm.User, error) {
	u := v.Find(id)
	if u == nil || u.System || !v.MaySeeUser(u) {
		return nil, realm.BadRequest("No such user")
	}
	return u, nil
}

func getUserChannels(c *Call, v realm.View, f userChannelsForm) (Answer, error) {
	u, err := visibleUser(v, f.User)
	if err != nil {
		return nil, err
	}
	ids := []realm.ChannelID{}
	for _, id := range v.SubscribedChannels(u.ID) {
		if ch := v.FindChannel(id); !ch.Archived && v.MaySeeSubscribers(ch) {
			ids = append(ids, id)
		}
	}
	return Answer{"subscribed_channel_ids": ids}, nil
}

type isSubscribedForm struct {
	User    realm.UserID    `path:"user_id"`
	Channel realm.ChannelID `path:"stream_id"`
}

func isSubscribed(c *Call, v realm.View, f isSubscribedForm) (Answer, error) {
	u, err := visibleUser(v, f.User)
	if err != nil {
		return nil, err
	}
	ch, err := v.VisibleChannel(f.Channel)
	if err != nil {
		return nil, err
	}
	if !v.MaySeeSubscribers(ch) {
		return nil, realm.BadRequest("Invalid channel ID")
	}
	return Answer{"is_subscribed": v.Subscribed(u.ID, ch.ID)}, nil
}

type topicsForm struct {
	Channel   realm.ChannelID `path:"stream_id"`
	EmptyName bool            `form:"allow_empty_topic_name"`
}

// MaxListedTopics is how many topics of a channel one answer has, the newest ones: about 3 MB. Clients show some
// hundred.
const MaxListedTopics = 50_000

func getTopics(c *Call, f topicsForm) (Answer, error) {
	topics, err := Read(c, func(v realm.View) ([]realm.TopicInfo, error) {
		ch, err := v.ReadableChannel(f.Channel)
		if err != nil {
			return nil, err
		}
		return v.Topics(ch), nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(topics, func(a, b realm.TopicInfo) int { return int(b.Last - a.Last) })
	list := newEncodedList(c)
	for _, t := range topics[:min(len(topics), MaxListedTopics)] {
		name := t.Name
		if name == "" && !f.EmptyName {
			name = realm.EmptyTopicName
		}
		if err := list.add(obj{"name": name, "max_id": t.Last}); err != nil {
			return nil, err
		}
	}
	return Answer{"topics": list.elements()}, nil
}

type channelEmailForm struct {
	Channel realm.ChannelID        `path:"stream_id"`
	Sender  form.Opt[realm.UserID] `form:"sender_id"`
}

func getChannelEmail(c *Call, f channelEmailForm) (Answer, error) {
	sender := realm.EmailGateway
	if f.Sender.Set {
		sender = f.Sender.Value
	}
	m, err := Execute(c, realm.MailToken{Channel: f.Channel, Sender: sender})
	if err != nil {
		return nil, err
	}
	return Answer{"email": m.Address(c.Tools.ChannelMailPattern)}, nil
}

func channelActivityChanged(e *realm.ChannelActivityChanged, to *Recipient) []any {
	var updates []any
	if e.FirstChanged {
		var first any
		if e.First != 0 {
			first = e.First
		}
		updates = append(updates, obj{"type": "stream", "op": "update", "property": "first_message_id", "value": first,
			"stream_id": e.Channel, "name": e.Name})
	}
	if e.Active {
		updates = append(updates, obj{"type": "stream", "op": "update", "property": "is_recently_active", "value": true,
			"stream_id": e.Channel, "name": e.Name})
	}
	return updates
}
