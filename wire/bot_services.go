package wire

import "parley/actors/realm"

// ServiceMessage returns a message as outgoing webhooks receive it: the message of the API, as text and as HTML.
func ServiceMessage(m *realm.MessageInfo, body realm.Body, s Site) any {
	return renderedMessage{newMessage(m, body, Client{}, s, false), body.HTML}
}

// renderedMessage is a message as text and as HTML.
type renderedMessage struct {
	arrivedMessageJSON
	HTML string `json:"rendered_content"`
}

// EncodeJSON returns v as the API encodes it: keys are sorted and nothing is escaped for HTML.
func EncodeJSON(v any) []byte { return encode(v) }

// SendServiceReply sends the answer of a bot's service to the conversation of the message that triggered it. The call
// is recorded and its outbox job finished in the same turn, so a crash cannot make the bot answer twice; nil: neither.
func SendServiceReply(c *Call, e *realm.ServiceTriggered, text, widget string, d *realm.BotDelivery) error {
	c.Caller = realm.Caller{User: e.Bot.ID, Client: "OutgoingWebhookResponse"}
	m := realm.SendMessage{ToChannel: e.Message.Channel != 0, Channel: e.Message.Channel, Topic: e.Message.Topic}
	for _, p := range e.Message.People {
		m.People = append(m.People, realm.Principal{ID: p.ID})
	}
	text, err := realm.NormalizeContent(text)
	if err != nil {
		return err
	}
	if widget != "" {
		if m.Widget, m.WidgetData, err = checkWidget(widget); err != nil {
			return err
		}
	} else {
		m.Widget, m.WidgetData = WidgetIn(text)
	}
	if m.Body, m.Content, err = render(c, text); err != nil {
		return err
	}
	_, err = c.Server.Turn(c.Realm, c.Caller, func(t *realm.Turn) (any, error) {
		sent, err := m.Decide(t)
		if err == nil && d != nil {
			t.RecordServiceCall(e.Bot.ID, *d)
		}
		return sent, err
	})
	return err
}
