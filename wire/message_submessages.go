package wire

import "parley/actors/realm"

var submessageEndpoints = []Endpoint{
	CommandFromForm("POST", "/submessage", addSubmessage, emptyAnswer),
}

var submessageEvents = []EventKind{
	EventOneOf(func(e *realm.SubmessageAdded, _ *Recipient) any {
		s := e.Submessage
		return obj{"type": "submessage", "message_id": e.Message, "submessage_id": s.ID, "sender_id": s.Sender,
			"msg_type": s.Type, "content": s.Content}
	}),
}

type addSubmessageForm struct {
	Message realm.MessageID `form:"message_id,required"`
	Type    string          `form:"msg_type,required,maxlen=100"`
	Content string          `form:"content,required,maxlen=10000"`
}

func addSubmessage(f addSubmessageForm) realm.AddSubmessage {
	return realm.AddSubmessage{Message: f.Message, Type: f.Type, Content: f.Content}
}
