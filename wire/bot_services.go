package wire

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"parley/actors/realm"
)

// slackInterface is the other dialect an outgoing webhook may speak; everything else is the protocol's own.
const slackInterface = 2

// BuildServiceRequest is what a bot's service is told of a message: the body of a POST and its type. It reports false if the
// message's text has been erased.
func BuildServiceRequest(e *realm.ServiceTriggered, ctx RenderContext) (kind string, body []byte, ok bool) {
	var text realm.Body
	if e.Message.Body != nil {
		text = *e.Message.Body
	} else if text, ok = ctx.Texts.Text(ctx.Realm, e.Message.Ref); !ok {
		return "", nil, false
	}
	m := &e.Message
	if e.Service.Interface == slackInterface {
		where, name := "P"+strconv.FormatUint(uint64(m.Talk), 10), ""
		if m.Channel != 0 {
			where, name = "C"+m.Channel.String(), m.ChannelName
		}
		return "application/x-www-form-urlencoded", []byte(url.Values{
			"token": {e.Service.Token}, "team_id": {"T" + strconv.FormatUint(uint64(ctx.Realm), 10)}, "team_domain": {ctx.Site.Host},
			"channel_id": {where}, "channel_name": {name}, "thread_ts": {strconv.FormatInt(m.Time, 10)}, "timestamp": {strconv.FormatInt(m.Time, 10)},
			"user_id": {"U" + m.Sender.ID.String()}, "user_name": {m.Sender.Name}, "text": {text.Text}, "trigger_word": {triggerName(e)}, "service_id": {e.Bot.ID.String()},
		}.Encode()), true
	}
	o := messageObject(m, text, Client{}, ctx.Site, false)
	o["rendered_content"] = text.HTML
	return "application/json", encode(obj{"data": text.Text, "trigger": triggerName(e), "token": e.Service.Token, "bot_email": e.Bot.Email, "bot_full_name": e.Bot.Name, "message": o}), true
}

func triggerName(e *realm.ServiceTriggered) string {
	if e.Mention {
		return "mention"
	}
	return "direct_message"
}

// ParseServiceResponse is what a service wants its bot to say: "" for nothing.
func ParseServiceResponse(e *realm.ServiceTriggered, body []byte) (text, widget string, ok bool) {
	if said := strings.TrimSpace(string(body)); said == "" || said == `""` { // as older bot servers put it
		return "", "", true
	}
	var a struct {
		Text        string          `json:"text"`
		Content     string          `json:"content"`
		Response    string          `json:"response_string"`
		NotRequired bool            `json:"response_not_required"`
		Widget      json.RawMessage `json:"widget_content"`
	}
	if json.Unmarshal(body, &a) != nil {
		return "", "", false
	}
	if e.Service.Interface == slackInterface {
		return a.Text, "", true
	}
	if a.NotRequired {
		return "", "", true
	}
	if a.Response != "" { // the older name, which goes first (protocol)
		a.Content = a.Response
	}
	if len(a.Widget) > 0 && string(a.Widget) != "null" {
		widget = string(a.Widget)
		if json.Unmarshal(a.Widget, &a.Text) == nil { // sendAnswer as a string of JSON
			widget = a.Text
		}
	}
	return a.Content, widget, true
}

// SendServiceReply has a bot answer where it was spoken to. The errand is done in the same turn, so that no crash makes the
// bot say it twice; 0 is none.
func SendServiceReply(c *Call, e *realm.ServiceTriggered, text, widget string, errand int64) error {
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
		m.Widget, m.WidgetData = widgetIn(text)
	}
	if m.Body, m.Content, err = render(c, text); err != nil {
		return err
	}
	_, err = c.Server.Turn(c.Realm, c.Caller, func(t *realm.Turn) (any, error) {
		sent, err := m.Decide(t)
		if err == nil && errand != 0 {
			t.FinishOutboxJobs([]int64{errand})
		}
		return sent, err
	})
	return err
}

// ReportServiceFailure tells a bot's owner that its service could not be called.
func ReportServiceFailure(c *Call, e *realm.ServiceTriggered, why string) error {
	c.Caller = realm.Caller{System: true, Client: "Internal"}
	_, err := Execute(c, realm.ReportServiceFailure{Bot: e.Bot.ID, Message: e.Message.ID, Why: why})
	return err
}
