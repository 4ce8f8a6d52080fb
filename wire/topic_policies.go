package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var userTopicEndpoints = []Endpoint{
	CommandFromForm("POST", "/user_topics", func(f userTopicForm) realm.SetTopicPolicy {
		return realm.SetTopicPolicy{Channel: f.Channel, Topic: f.Topic, Policy: f.Policy}
	}, emptyAnswer),
	CommandFromForm("PATCH", "/users/me/subscriptions/muted_topics", func(f muteTopicForm) realm.MuteTopic {
		return realm.MuteTopic{Channel: f.Channel.Value, ChannelName: f.Name.Value, Topic: f.Topic,
			Remove: f.Op == "remove"}
	}, emptyAnswer),
}

var userTopicEvents = []EventKind{
	EventOneOf(func(e *realm.TopicPolicySet, to *Recipient) any {
		return obj{"type": "user_topic", "stream_id": e.Channel, "topic_name": to.Topic(e.Topic), "last_updated": e.At,
			"visibility_policy": e.Policy}
	}),
	EventOneOf(func(e *realm.MutedTopicsEvent, to *Recipient) any {
		return obj{"type": "muted_topics", "muted_topics": mutedTopicList(e.List, to.Client)}
	}),
}

func mutedTopicList(list []realm.MutedTopic, c Client) []any {
	out := []any{}
	for _, m := range list {
		out = append(out, []any{m.ChannelName, c.Topic(m.Topic), m.Since})
	}
	return out
}

type userTopicForm struct {
	Channel realm.ChannelID `form:"stream_id,required"`
	Topic   string          `form:"topic,required,strip,maxlen=60"`
	Policy  int             `form:"visibility_policy,required,in=0|1|2|3"`
}

type muteTopicForm struct {
	Channel form.Opt[realm.ChannelID] `form:"stream_id"`
	Name    form.Opt[string]          `form:"stream"`
	Topic   string                    `form:"topic,required,strip,maxlen=60"`
	Op      string                    `form:"op,required,enum=add|remove"`
}

// Check requires exactly one of the two ways to name the channel.
func (f *muteTopicForm) Check() *form.Error {
	switch {
	case f.Channel.Set && f.Name.Set:
		return form.Unsupported("stream_id", "stream")
	case !f.Channel.Set && !f.Name.Set:
		return form.Missing("stream_id")
	}
	return nil
}
