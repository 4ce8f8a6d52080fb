package wire

import (
	"slices"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/shape"
)

var channelEndpoints = []Endpoint{
	Get("/streams", getChannels),
	Get("/streams/{stream_id}", getChannel),
	CommandFromCall("PATCH", "/streams/{stream_id}", editChannel, emptyAnswer),
	CommandFromForm("DELETE", "/streams/{stream_id}", func(f channelForm) realm.ArchiveChannel {
		return realm.ArchiveChannel{Channel: f.Channel}
	}, emptyAnswer),
	Get("/streams/{stream_id}/members", getSubscribers),
	Custom("GET", "/streams/{stream_id}/email_address", getChannelEmail),
	Get("/get_stream_id", getChannelID),
	Custom("POST", "/channels/create", createChannelInTurns),
	Get("/users/{user_id}/channels", getUserChannels),
	Get("/users/{user_id}/subscriptions/{stream_id}", isSubscribed),
	Custom("GET", "/users/me/{stream_id}/topics", getTopics).AllowVisitors(),
}

type channelsAnswer struct {
	Channels encoded[[]listedChannelJSON] `json:"streams"`
}

type channelAnswer struct {
	Channel channelJSON `json:"stream"`
}

type subscribersAnswer struct {
	Subscribers []realm.UserID `json:"subscribers"`
}

type channelEmailAnswer struct {
	Address string `json:"email"`
}

type channelIDAnswer struct {
	Channel realm.ChannelID `json:"stream_id"`
}

type userChannelsAnswer struct {
	Channels []realm.ChannelID `json:"subscribed_channel_ids"`
}

type isSubscribedAnswer struct {
	Subscribed bool `json:"is_subscribed"`
}

type topicsAnswer struct {
	Topics listOf[listedTopic] `json:"topics"`
}

type listedTopic struct {
	Name   string          `json:"name"`
	Newest realm.MessageID `json:"max_id"`
}

// nonNil returns an empty list instead of nil, so that JSON has [] and not null.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// announcementPolicy is the number of a posting permission that only administrators have.
const announcementPolicy = 2

// legacyPostPolicy returns the number that older clients use for the posting permission of a channel.
func legacyPostPolicy(g realm.GroupValue) int {
	switch g.Group {
	case 3:
		return announcementPolicy
	case 5:
		return 3
	case 4:
		return 4
	}
	return 1
}

// channelJSON is a channel with the fields that are the same for all users.
type channelJSON struct {
	ID               realm.ChannelID `json:"stream_id"`
	Name             string          `json:"name"`
	Description      string          `json:"description"`
	HTML             string          `json:"rendered_description"`
	Created          int64           `json:"date_created"`
	Creator          realm.UserID    `json:"creator_id" zero:"null"`
	Private          bool            `json:"invite_only"`
	WebPublic        bool            `json:"is_web_public"`
	History          bool            `json:"history_public_to_subscribers"`
	Archived         bool            `json:"is_archived"`
	AnnouncementOnly bool            `json:"is_announcement_only"`
	PostPolicy       int             `json:"stream_post_policy"`
	Retention        *int64          `json:"message_retention_days"`
	FirstMessage     realm.MessageID `json:"first_message_id" zero:"null"`
	Folder           int64           `json:"folder_id" zero:"null"`
	TopicsPolicy     topicsPolicy    `json:"topics_policy"`
	RecentlyActive   bool            `json:"is_recently_active"`
	WeeklyTraffic    *int64          `json:"stream_weekly_traffic"`
	Subscribers      int             `json:"subscriber_count"`
	Rules            channelRules
}

// listedChannelJSON is a channel in GET /streams, which can ask for the additional field.
type listedChannelJSON struct {
	channelJSON
	Default *bool `json:"is_default,omitzero"`
}

// channelRules is the permission settings of a channel, all of them.
type channelRules realm.GroupValues

// JSONFields returns a field for each setting.
func (channelRules) JSONFields() []shape.TableField {
	return ruleTableFields(realm.ChannelRules, false)
}

// JSONField returns the value of a setting.
func (r channelRules) JSONField(i int) any { return groupValueJSON{r[realm.ChannelRules[i].Name]} }

func newChannel(c realm.ChannelInfo) channelJSON {
	post := legacyPostPolicy(c.Groups["can_send_message_group"])
	out := channelJSON{ID: c.ID, Name: c.Name, Description: c.Description, HTML: c.DescriptionHTML, Created: c.Created,
		Creator: c.Creator, Private: c.Private, WebPublic: c.WebPublic, History: c.History, Archived: c.Archived,
		AnnouncementOnly: post == announcementPolicy, PostPolicy: post, Retention: c.Retention,
		FirstMessage: c.FirstMessage, Folder: c.Folder, TopicsPolicy: topicsPolicy(c.TopicsPolicy),
		RecentlyActive: c.RecentlyActive, Subscribers: c.Subscribers, Rules: channelRules(c.Groups)}
	if c.WeeklyTraffic >= 0 {
		out.WeeklyTraffic = &c.WeeklyTraffic
	}
	return out
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

func getChannels(c *Call, v realm.View, f getChannelsForm) (*channelsAnswer, error) {
	me := v.Me()
	if f.AllActive && !me.IsAdmin() {
		return nil, realm.BadRequest("User not authorized for this query")
	}
	var found []*realm.Channel
	v.EachChannel(func(ch *realm.Channel) {
		// a bot can send to its owner's channels
		botMaySend := f.OwnerSubscribed && me.BotOwner != 0 && v.Subscribed(me.BotOwner, ch.ID) &&
			v.KeyScope().HasChannel(ch.ID)
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
	return &channelsAnswer{inFragments[[]listedChannelJSON](list.end()...)}, nil
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

func getChannel(c *Call, v realm.View, f channelForm) (*channelAnswer, error) {
	ch, err := v.VisibleChannel(f.Channel)
	if err != nil {
		return nil, err
	}
	return &channelAnswer{newChannel(v.ChannelInfo(ch))}, nil
}

func getSubscribers(c *Call, v realm.View, f channelForm) (*subscribersAnswer, error) {
	ch, err := v.VisibleChannel(f.Channel)
	if err != nil {
		return nil, err
	}
	if !v.MaySeeSubscribers(ch) {
		return nil, realm.BadRequest("Invalid channel ID")
	}
	return &subscribersAnswer{v.Subscribers(ch.ID)}, nil
}

type getChannelIDForm struct {
	Name string `form:"stream,required"`
}

func getChannelID(c *Call, v realm.View, f getChannelIDForm) (*channelIDAnswer, error) {
	ch := v.FindChannelByName(f.Name)
	if ch == nil || !v.MaySeeChannel(ch) {
		return nil, realm.BadRequest("Invalid channel name '%s'", f.Name)
	}
	return &channelIDAnswer{ch.ID}, nil
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

func getUserChannels(c *Call, v realm.View, f userChannelsForm) (*userChannelsAnswer, error) {
	u, err := visibleUser(v, f.User)
	if err != nil {
		return nil, err
	}
	out := &userChannelsAnswer{}
	for _, id := range v.SubscribedChannels(u.ID) {
		if ch := v.FindChannel(id); !ch.Archived && v.MaySeeSubscribers(ch) {
			out.Channels = append(out.Channels, id)
		}
	}
	return out, nil
}

type isSubscribedForm struct {
	User    realm.UserID    `path:"user_id"`
	Channel realm.ChannelID `path:"stream_id"`
}

func isSubscribed(c *Call, v realm.View, f isSubscribedForm) (*isSubscribedAnswer, error) {
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
	return &isSubscribedAnswer{v.Subscribed(u.ID, ch.ID)}, nil
}

type topicsForm struct {
	Channel   realm.ChannelID `path:"stream_id"`
	EmptyName bool            `form:"allow_empty_topic_name"`
}

// MaxListedTopics is how many topics of a channel one answer has, the newest ones: about 3 MB. Clients show some
// hundred.
const MaxListedTopics = 50_000

func getTopics(c *Call, f topicsForm) (*topicsAnswer, error) {
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
		if err := list.add(listedTopic{name, t.Last}); err != nil {
			return nil, err
		}
	}
	return &topicsAnswer{listOf[listedTopic]{list.elements()}}, nil
}

type channelEmailForm struct {
	Channel realm.ChannelID        `path:"stream_id"`
	Sender  form.Opt[realm.UserID] `form:"sender_id"`
}

func getChannelEmail(c *Call, f channelEmailForm) (*channelEmailAnswer, error) {
	sender := realm.EmailGateway
	if f.Sender.Set {
		sender = f.Sender.Value
	}
	m, err := Execute(c, realm.MailToken{Channel: f.Channel, Sender: sender})
	if err != nil {
		return nil, err
	}
	return &channelEmailAnswer{m.Address(c.Tools.ChannelMailPattern)}, nil
}
