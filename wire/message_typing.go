package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var typingEndpoints = []Endpoint{
	CommandFromCall("POST", "/typing", startTyping, emptyAnswer),
	CommandFromForm("POST", "/messages/{message_id}/typing", startEditTyping, emptyAnswer),
}

var typingEvents = []EventKind{
	EventOneOf(typingEvent),
	EventOneOf(editTypingEvent),
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

func typingEvent(e *realm.Typing, to *Recipient) any {
	o := obj{"type": "typing", "op": startOrStop(e.Stop),
		"sender": obj{"user_id": e.Sender.ID, "email": apiEmail(e.Sender, to.Site)}}
	if e.Channel != 0 {
		if !to.Has(realm.CapStreamTyping) {
			return nil
		}
		o["message_type"], o["stream_id"], o["topic"] = "stream", e.Channel, to.Topic(e.Topic)
		return o
	}
	people := []any{}
	for _, p := range e.People {
		people = append(people, obj{"user_id": p.ID, "email": apiEmail(p, to.Site)})
	}
	o["message_type"], o["recipients"] = "direct", people
	return o
}

func editTypingEvent(e *realm.TypingEdit, to *Recipient) any {
	recipient := obj{"type": "direct", "user_ids": e.People}
	if e.Channel != 0 {
		recipient = obj{"type": "channel", "channel_id": e.Channel, "topic": to.Topic(e.Topic)}
	}
	return obj{"type": "typing_edit_message", "op": startOrStop(e.Stop), "sender_id": e.Sender, "message_id": e.Message,
		"recipient": recipient}
}
