package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/shape"
)

var typingEndpoints = []Endpoint{
	CommandFromCall("POST", "/typing", startTyping, emptyAnswer),
	CommandFromForm("POST", "/messages/{message_id}/typing", startEditTyping, emptyAnswer),
}

var typingEvents = []EventKind{
	EventOneOf(renderTyping).sends(typingForms("start")...).sends(typingForms("stop")...),
	EventOneOf(renderEditTyping).sends(withValues(formOf[editTypingEvent](), "op", "start"),
		withValues(formOf[editTypingEvent](), "op", "stop")),
}

type typingForm struct {
	Type   string            `form:"type,default=direct,enum=direct|private|stream|channel"`
	Op     string            `form:"op,required,enum=start|stop"`
	To     form.Opt[[]int64] `form:"to"`
	Stream form.Opt[int64]   `form:"stream_id"`
	Topic  form.Opt[string]  `form:"topic,strip"`
}

func startTyping(_ *Call, f typingForm) (realm.SendTyping, error) {
	c := realm.SendTyping{Stop: f.Op == "stop"}
	if f.Type == "stream" || f.Type == "channel" {
		if !f.Stream.Set {
			return c, realm.BadRequest("Missing 'stream_id' argument")
		}
		if !f.Topic.Set {
			return c, realm.BadRequest("Missing topic")
		}
		c.ToChannel, c.Channel, c.Topic = true, realm.ChannelID(f.Stream.Value), f.Topic.Value
		return c, nil
	}
	if !f.To.Set {
		return c, realm.BadRequest("Missing 'to' argument")
	}
	if len(f.To.Value) == 0 {
		return c, realm.BadRequest("Empty 'to' list")
	}
	for _, u := range f.To.Value {
		c.People = append(c.People, realm.Principal{ID: realm.UserID(u)})
	}
	return c, nil
}

type editTypingForm struct {
	Message realm.MessageID `path:"message_id"`
	Op      string          `form:"op,required,enum=start|stop"`
}

func startEditTyping(f editTypingForm) realm.SendEditTyping {
	return realm.SendEditTyping{Message: f.Message, Stop: f.Op == "stop"}
}

func startOrStop(stop bool) string {
	if stop {
		return "stop"
	}
	return "start"
}

type typingEvent struct {
	_      struct{}     `const:"type=typing"`
	Op     string       `json:"op"`
	Sender typingPerson `json:"sender"`
}

type typingPerson struct {
	User  realm.UserID `json:"user_id"`
	Email string       `json:"email"`
}

type directTypingEvent struct {
	_ struct{} `const:"message_type=direct"`
	typingEvent
	Recipients []typingPerson `json:"recipients"`
}

type channelTypingEvent struct {
	_ struct{} `const:"message_type=stream"`
	typingEvent
	Channel realm.ChannelID `json:"stream_id"`
	Topic   string          `json:"topic"`
}

type editTypingEvent struct {
	_         struct{}                                        `const:"type=typing_edit_message"`
	Op        string                                          `json:"op"`
	Sender    realm.UserID                                    `json:"sender_id"`
	Message   realm.MessageID                                 `json:"message_id"`
	Recipient either[directTypingTarget, channelTypingTarget] `json:"recipient"`
}

type directTypingTarget struct {
	_     struct{}       `const:"type=direct"`
	Users []realm.UserID `json:"user_ids"`
}

type channelTypingTarget struct {
	_       struct{}        `const:"type=channel"`
	Channel realm.ChannelID `json:"channel_id"`
	Topic   string          `json:"topic"`
}

// typingForms returns the shapes of typing events with an op.
func typingForms(op string) []*shape.Shape {
	return []*shape.Shape{withValues(formOf[directTypingEvent](), "op", op),
		withValues(formOf[channelTypingEvent](), "op", op)}
}

func renderTyping(e *realm.Typing, to *Recipient) any {
	person := func(p realm.UserInfo) typingPerson { return typingPerson{p.ID, apiEmail(p, to.Site)} }
	common := typingEvent{Op: startOrStop(e.Stop), Sender: person(e.Sender)}
	if e.Channel != 0 {
		if !to.Has(realm.CapStreamTyping) {
			return nil
		}
		return &channelTypingEvent{typingEvent: common, Channel: e.Channel, Topic: to.Topic(e.Topic)}
	}
	return &directTypingEvent{typingEvent: common, Recipients: each(e.People, person)}
}

func renderEditTyping(e *realm.TypingEdit, to *Recipient) any {
	out := &editTypingEvent{Op: startOrStop(e.Stop), Sender: e.Sender, Message: e.Message}
	out.Recipient.value = directTypingTarget{Users: e.People}
	if e.Channel != 0 {
		out.Recipient.value = channelTypingTarget{Channel: e.Channel, Topic: to.Topic(e.Topic)}
	}
	return out
}
