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
	Event(func(e *realm.TopicPolicySet, to *Recipient) *topicPolicyEvent {
		return &topicPolicyEvent{userTopicJSON: userTopicJSON{e.Channel, to.Topic(e.Topic), e.At, e.Policy}}
	}),
	Event(func(e *realm.MutedTopicsEvent, to *Recipient) *mutedTopicsEvent {
		return &mutedTopicsEvent{Topics: mutedTopicList(e.List, to.Client)}
	}),
}

type topicPolicyEvent struct {
	_ struct{} `const:"type=user_topic"`
	userTopicJSON
}

type userTopicJSON struct {
	Channel realm.ChannelID `json:"stream_id"`
	Topic   string          `json:"topic_name"`
	At      int64           `json:"last_updated"`
	Policy  int             `json:"visibility_policy"`
}

type mutedTopicsEvent struct {
	_      struct{}     `const:"type=muted_topics"`
	Topics []mutedTopic `json:"muted_topics"`
}

// mutedTopic is the name of the channel, the topic, and the time in Unix seconds.
type mutedTopic []either[string, int64]

func mutedTopicList(list []realm.MutedTopic, c Client) []mutedTopic {
	return each(list, func(m realm.MutedTopic) mutedTopic {
		return mutedTopic{{m.ChannelName}, {c.Topic(m.Topic)}, {m.Since}}
	})
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
