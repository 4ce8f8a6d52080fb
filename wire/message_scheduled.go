package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var scheduledEndpoints = []Endpoint{
	Get("/scheduled_messages", func(_ *Call, v realm.View, _ noParameters) (*scheduledAnswer, error) {
		return &scheduledAnswer{newScheduledList(v.ScheduledOf(v.User), asStored)}, nil
	}),
	CommandFromCall("POST", "/scheduled_messages", scheduleMessage, func(id int64) *addedScheduledAnswer {
		return &addedScheduledAnswer{id}
	}),
	CommandFromCall("PATCH", "/scheduled_messages/{scheduled_message_id}", changeScheduled, emptyAnswer),
	CommandFromForm("DELETE", "/scheduled_messages/{scheduled_message_id}", func(f scheduledIDForm) realm.Unschedule {
		return realm.Unschedule{ID: f.ID}
	}, emptyAnswer),
}

var scheduledEvents = []EventKind{
	Event(func(e *realm.MessageScheduled, to *Recipient) *scheduledAddedEvent {
		return &scheduledAddedEvent{Messages: []scheduledMessageJSON{newScheduled(e.Message, to.Client)}}
	}),
	Event(func(e *realm.ScheduledChanged, to *Recipient) *scheduledChangedEvent {
		return &scheduledChangedEvent{Message: newScheduled(e.Message, to.Client)}
	}),
	Event(func(e *realm.ScheduledGone, _ *Recipient) *scheduledRemovedEvent {
		return &scheduledRemovedEvent{ID: e.ID}
	}),
}

type scheduledAnswer struct {
	Messages []scheduledMessageJSON `json:"scheduled_messages"`
}

type addedScheduledAnswer struct {
	ID int64 `json:"scheduled_message_id"`
}

type scheduledAddedEvent struct {
	_        struct{}               `const:"type=scheduled_messages op=add"`
	Messages []scheduledMessageJSON `json:"scheduled_messages"`
}

type scheduledChangedEvent struct {
	_       struct{}             `const:"type=scheduled_messages op=update"`
	Message scheduledMessageJSON `json:"scheduled_message"`
}

type scheduledRemovedEvent struct {
	_  struct{} `const:"type=scheduled_messages op=remove"`
	ID int64    `json:"scheduled_message_id"`
}

type scheduledMessageJSON struct {
	ID      int64                                   `json:"scheduled_message_id"`
	Type    string                                  `json:"type" enum:"stream|private"`
	To      either[realm.ChannelID, []realm.UserID] `json:"to"`
	Topic   *string                                 `json:"topic,omitzero"`
	Content string                                  `json:"content"`
	HTML    string                                  `json:"rendered_content"`
	At      int64                                   `json:"scheduled_delivery_timestamp"`
	Failed  bool                                    `json:"failed"`
	Repeat  *repeatJSON                             `json:"repeat,omitzero"` // only of repeated messages
}

// repeatJSON says how often a message is sent, an extension of the protocol.
type repeatJSON struct {
	Every string `json:"every" enum:"daily|weekdays|weekly|monthly"`
	Zone  string `json:"timezone"`
}

// repeatForm asks for a message that is sent repeatedly.
type repeatForm struct {
	Every string `form:"every,required,enum=daily|weekdays|weekly|monthly"`
	Zone  string `form:"timezone"`
}

func (f repeatForm) repeat() realm.Repeat { return realm.Repeat{Every: f.Every, Zone: f.Zone} }

type scheduledIDForm struct {
	ID int64 `path:"scheduled_message_id"`
}

type scheduleForm struct {
	Type    string               `form:"type,required,enum=direct|private|stream|channel"`
	To      form.Recipients      `form:"to,required"`
	Topic   form.Opt[string]     `form:"topic,strip"`
	Content string               `form:"content,required"`
	At      int64                `form:"scheduled_delivery_timestamp,required,max=253402214399"` // see MaxTime
	Read    form.Opt[bool]       `form:"read_by_sender"`
	Repeat  form.Opt[repeatForm] `form:"repeat,extension=messages that are sent repeatedly"`
}

func isChannel(kind string) bool { return kind == "stream" || kind == "channel" }

func scheduleMessage(c *Call, f scheduleForm) (realm.ScheduleMessage, error) {
	cmd := realm.ScheduleMessage{At: f.At, ReadBySenderSet: f.Read.Set, Repeat: f.Repeat.Value.repeat()}
	m := &cmd.Message
	m.ReadBySender = f.Read.Or(readsOwnMessages(c))
	if m.ToChannel = isChannel(f.Type); m.ToChannel {
		to, err := f.To.ChannelID()
		if err != nil {
			return cmd, err
		}
		if !f.Topic.Set {
			return cmd, realm.BadRequest("Missing topic")
		}
		m.Channel, m.RawChannelID, m.Topic = realm.ChannelID(to.ID), impossibleChannelID(to), f.Topic.Value
	} else {
		to, err := f.To.UserIDs()
		if err != nil {
			return cmd, err
		}
		m.People = directRecipients(to)
	}
	text, err := realm.NormalizeContent(f.Content)
	if err != nil {
		return cmd, err
	}
	m.Widget, m.WidgetData = WidgetIn(text)
	m.Body, m.Content, err = render(c, text)
	return cmd, err
}

func directRecipients(to form.UserRefs) []realm.Principal {
	var out []realm.Principal
	for i, id := range to.IDs {
		out = append(out, realm.Principal{ID: realm.UserID(id), RawID: to.OutOfRange[i]})
	}
	return out
}

type changeScheduledForm struct {
	ID      int64                 `path:"scheduled_message_id"`
	Type    form.Opt[string]      `form:"type,enum=direct|private|stream|channel"`
	To      form.Recipients       `form:"to"`
	Topic   form.Opt[string]      `form:"topic,strip"`
	Content form.Opt[string]      `form:"content"`
	At      form.Opt[int64]       `form:"scheduled_delivery_timestamp,max=253402214399"` // see MaxTime
	Repeat  form.Null[repeatForm] `form:"repeat,extension=messages that are sent repeatedly"`
}

func changeScheduled(c *Call, f changeScheduledForm) (realm.ChangeScheduled, error) {
	cmd := realm.ChangeScheduled{ID: f.ID, Topic: pointerIfSet(f.Topic), At: pointerIfSet(f.At)}
	if f.Repeat.Set {
		cmd.Repeat = ptr(f.Repeat.Value.repeat())
	}
	channel := isChannel(f.Type.Value)
	if f.Type.Set {
		cmd.ToChannel = &channel
	} else if f.To.IsSet() {
		is, err := Read(c, func(v realm.View) (bool, error) { return v.ScheduledForChannel(f.ID) })
		if err != nil {
			return cmd, err
		}
		channel = is
	}
	if f.To.IsSet() {
		cmd.HasRecipients = true
		if channel {
			to, err := f.To.ChannelID()
			if err != nil {
				return cmd, err
			}
			id := realm.ChannelID(to.ID)
			cmd.Channel, cmd.RawChannelID = &id, impossibleChannelID(to)
		} else {
			to, err := f.To.UserIDs()
			if err != nil {
				return cmd, err
			}
			cmd.People = directRecipients(to)
		}
	}
	if f.Content.Set {
		text, err := realm.NormalizeContent(f.Content.Value)
		if err != nil {
			return cmd, err
		}
		var body realm.Body
		if body, cmd.Content, err = render(c, text); err != nil {
			return cmd, err
		}
		cmd.Body = &body
		cmd.Widget, cmd.WidgetData = WidgetIn(text)
	}
	return cmd, nil
}

func newScheduledList(list []realm.ScheduledMessage, c Client) []scheduledMessageJSON {
	return each(list, func(s realm.ScheduledMessage) scheduledMessageJSON { return newScheduled(s, c) })
}

func newScheduled(s realm.ScheduledMessage, c Client) scheduledMessageJSON {
	out := scheduledMessageJSON{ID: s.ID, Type: "private", Content: s.Body.Text, HTML: s.Body.HTML, At: s.At,
		Failed: s.Failed}
	if s.Repeat.Every != "" {
		out.Repeat = &repeatJSON{s.Repeat.Every, s.Repeat.Zone}
	}
	if s.Channel == 0 {
		out.To.value = s.Others()
		return out
	}
	out.Type, out.To.value, out.Topic = "stream", s.Channel, ptr(c.Topic(s.Topic))
	return out
}
