package wire

import "parley/actors/realm"

var submessageEndpoints = []Endpoint{
	CommandFromForm("POST", "/submessage", addSubmessage, emptyAnswer),
}

var submessageEvents = []EventKind{
	Event(func(e *realm.SubmessageAdded, _ *Recipient) *submessageEvent {
		s := e.Submessage
		return &submessageEvent{Message: e.Message, ID: s.ID, Sender: s.Sender, Type: s.Type, Content: s.Content}
	}),
}

type submessageEvent struct {
	_       struct{}        `const:"type=submessage"`
	Message realm.MessageID `json:"message_id"`
	ID      int64           `json:"submessage_id"`
	Sender  realm.UserID    `json:"sender_id"`
	Type    string          `json:"msg_type"`
	Content string          `json:"content"`
}

type addSubmessageForm struct {
	Message realm.MessageID `form:"message_id,required"`
	Type    string          `form:"msg_type,required,maxlen=100"`
	Content string          `form:"content,required,maxlen=10000"`
}

func addSubmessage(f addSubmessageForm) realm.AddSubmessage {
	return realm.AddSubmessage{Message: f.Message, Type: f.Type, Content: f.Content}
}
