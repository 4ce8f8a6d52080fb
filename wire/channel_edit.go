package wire

import (
	"slices"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

// channelGroups is the permission settings of a channel: plain values when a channel is created, old and new values
// when it is changed.
type channelGroups[T any] struct {
	AddSubscribers    form.Opt[T] `form:"can_add_subscribers_group"`
	Administer        form.Opt[T] `form:"can_administer_channel_group"`
	CreateTopic       form.Opt[T] `form:"can_create_topic_group"`
	DeleteAny         form.Opt[T] `form:"can_delete_any_message_group"`
	DeleteOwn         form.Opt[T] `form:"can_delete_own_message_group"`
	MoveOut           form.Opt[T] `form:"can_move_messages_out_of_channel_group"`
	MoveWithin        form.Opt[T] `form:"can_move_messages_within_channel_group"`
	RemoveSubscribers form.Opt[T] `form:"can_remove_subscribers_group"`
	ResolveTopics     form.Opt[T] `form:"can_resolve_topics_group"`
	SendMessage       form.Opt[T] `form:"can_send_message_group"`
	Subscribe         form.Opt[T] `form:"can_subscribe_group"`
}

// changes returns the settings that were sent, in the order of realm.ChannelRules. The list below must have that
// order.
func (g *channelGroups[T]) changes(change func(T) realm.GroupChange) (out []realm.GroupChange) {
	for i, o := range []form.Opt[T]{g.AddSubscribers, g.Administer, g.CreateTopic, g.DeleteAny, g.DeleteOwn, g.MoveOut,
		g.MoveWithin, g.RemoveSubscribers, g.ResolveTopics, g.SendMessage, g.Subscribe} {
		if o.Set {
			x := change(o.Value)
			x.Name = realm.ChannelRules[i].Name
			out = append(out, x)
		}
	}
	return out
}

func newGroupSetting(g form.GroupSetting) realm.GroupChange {
	return realm.GroupChange{New: groupValueFromForm(g)}
}

func groupSettingChange(g form.GroupSettingUpdate) realm.GroupChange {
	x := realm.GroupChange{New: groupValueFromForm(g.New)}
	if g.Old != nil {
		old := groupValueFromForm(*g.Old)
		x.Old = &old
	}
	return x
}

// parseRetention reads a number of days or a word. realm_default returns nil, unlimited returns -1.
func parseRetention(n form.NumberOrWord) (*int64, error) {
	switch {
	case !n.Set || n.IsWord && n.Word == "realm_default":
		return nil, nil
	case n.IsWord && n.Word == "unlimited":
		days := int64(-1)
		return &days, nil
	case n.IsWord:
		return nil, form.BadValue("message_retention_days", n.Word)
	case n.Number < 1 || n.Number > realm.MaxPeriod:
		return nil, form.BadValue("message_retention_days", n.Number)
	}
	return &n.Number, nil
}

// topicsPolicy says whether the messages of a channel need a topic.
type topicsPolicy string

// Values returns all policies.
func (topicsPolicy) Values() []string {
	return []string{"inherit", "allow_empty_topic", "disable_empty_topic", "empty_topic_only"}
}

// parseTopicsPolicy accepts the word with and without JSON quotes, because clients send both.
func parseTopicsPolicy(o form.Opt[string]) (string, error) {
	word := strings.Trim(o.Value, `"`)
	if o.Set && !slices.Contains(topicsPolicy.Values(""), word) {
		return "", realm.BadRequest("Invalid topics_policy")
	}
	return word, nil
}

// channelOptions is the parameters for message retention, folder and topics of a channel, both for creating and for
// changing it.
type channelOptions struct {
	Retention    form.NumberOrWord `form:"message_retention_days"`
	Folder       form.Null[int64]  `form:"folder_id"`
	TopicsPolicy form.Opt[string]  `form:"topics_policy"`
}

// values checks the parameters and returns the retention in days and the topics policy.
func (f *channelOptions) values() (days *int64, topics string, err error) {
	if f.Folder.Set && !f.Folder.IsNull && f.Folder.Value <= 0 {
		return nil, "", realm.BadRequest("Invalid channel folder ID")
	}
	if days, err = parseRetention(f.Retention); err != nil {
		return nil, "", err
	}
	topics, err = parseTopicsPolicy(f.TopicsPolicy)
	return days, topics, err
}

type editChannelForm struct {
	Channel     realm.ChannelID  `path:"stream_id"`
	Description form.Opt[string] `form:"description,maxlen=1024"`
	Private     form.Opt[bool]   `form:"is_private"`
	Default     form.Opt[bool]   `form:"is_default_stream"`
	History     form.Opt[bool]   `form:"history_public_to_subscribers"`
	WebPublic   form.Opt[bool]   `form:"is_web_public"`
	Name        form.Opt[string] `form:"new_name"`
	Archived    form.Opt[bool]   `form:"is_archived"`
	channelOptions
	channelGroups[form.GroupSettingUpdate]
}

func pointerIfSet[T any](o form.Opt[T]) *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

func editChannel(c *Call, f editChannelForm) (cmd realm.EditChannel, err error) {
	cmd = realm.EditChannel{
		Channel:      f.Channel,
		Name:         pointerIfSet(f.Name),
		Description:  pointerIfSet(f.Description),
		Private:      pointerIfSet(f.Private),
		WebPublic:    pointerIfSet(f.WebPublic),
		History:      pointerIfSet(f.History),
		Default:      pointerIfSet(f.Default),
		SetRetention: f.Retention.Set,
		SetFolder:    f.Folder.Set,
		Folder:       f.Folder.Value,
		Groups:       f.changes(groupSettingChange),
	}
	if f.Archived.Set {
		if f.Archived.Value {
			return cmd, realm.BadRequest("Invalid is_archived")
		}
		cmd.Unarchive = true
	}
	cmd.Retention, cmd.TopicsPolicy, err = f.values()
	return cmd, err
}

// newChannelForm is the parameters of a new channel that all endpoints which create channels share.
type newChannelForm struct {
	Announce  bool           `form:"announce"`
	Private   bool           `form:"invite_only"`
	WebPublic bool           `form:"is_web_public"`
	Default   bool           `form:"is_default_stream"`
	History   form.Opt[bool] `form:"history_public_to_subscribers"`
	Notify    bool           `form:"send_new_subscription_messages,default=true"`
	channelOptions
	channelGroups[form.GroupSetting]
}

func (f *newChannelForm) channel() (n realm.NewChannel, err error) {
	n = realm.NewChannel{Private: f.Private, WebPublic: f.WebPublic, Default: f.Default,
		History: pointerIfSet(f.History), Folder: f.Folder.Value, Groups: f.changes(newGroupSetting)}
	n.Retention, n.TopicsPolicy, err = f.values()
	return n, err
}

type createChannelForm struct {
	Name        string  `form:"name,required"`
	Description string  `form:"description,maxlen=1024"`
	Subscribers []int64 `form:"subscribers,required"`
	newChannelForm
}

// createChannelInTurns creates a channel and subscribes its first members, in as many turns as that needs.
func createChannelInTurns(c *Call, f createChannelForm) (*idAnswer, error) {
	cmd, err := createChannel(c, f)
	if err != nil {
		return nil, err
	}
	cmd.MaxPerTurn = realm.MaxSubscriptionsPerTurn
	created, err := Execute(c, cmd)
	if err != nil {
		return nil, err
	}
	if _, err := waitForJob(c, created.Job); err != nil {
		return nil, err
	}
	return newIDAnswer(int64(created.ID)), nil
}

func createChannel(c *Call, f createChannelForm) (realm.CreateChannel, error) {
	n, err := f.channel()
	n.Name, n.Description = f.Name, f.Description
	cmd := realm.CreateChannel{New: n, Announce: f.Announce, Notify: f.Notify}
	for _, id := range f.Subscribers {
		cmd.Subscribers = append(cmd.Subscribers, realm.Principal{ID: realm.UserID(id)})
	}
	return cmd, err
}
