package webhooks

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire"
)

// slackInterface is the value of a bot's interface for payloads in Slack's format. All others are the protocol's own.
const slackInterface = 2

// buildRequest returns the body of the POST about a message, and its content type.
func buildRequest(e *realm.ServiceTriggered, text realm.Body, id realm.ID, s wire.Site) (kind string, body []byte) {
	if e.Service.Interface == slackInterface {
		return "application/x-www-form-urlencoded", []byte(slackForm(e, text, id, s).Encode())
	}
	return "application/json", wire.EncodeJSON(map[string]any{
		"data":          text.Text,
		"trigger":       triggerName(e),
		"token":         e.Service.Token,
		"bot_email":     e.Bot.Email,
		"bot_full_name": e.Bot.Name,
		"message":       wire.ServiceMessage(&e.Message, text, s),
	})
}

func slackForm(e *realm.ServiceTriggered, text realm.Body, id realm.ID, s wire.Site) url.Values {
	m := &e.Message
	channel, name := "P"+strconv.FormatUint(uint64(m.Talk), 10), ""
	if m.Channel != 0 {
		channel, name = "C"+m.Channel.String(), m.ChannelName
	}
	sent := strconv.FormatInt(m.Time, 10)
	return url.Values{
		"token":        {e.Service.Token},
		"team_id":      {"T" + strconv.FormatUint(uint64(id), 10)},
		"team_domain":  {s.Host},
		"channel_id":   {channel},
		"channel_name": {name},
		"thread_ts":    {sent},
		"timestamp":    {sent},
		"user_id":      {"U" + m.Sender.ID.String()},
		"user_name":    {m.Sender.Name},
		"text":         {text.Text},
		"trigger_word": {triggerName(e)},
		"service_id":   {e.Bot.ID.String()},
	}
}

func triggerName(e *realm.ServiceTriggered) string {
	if e.Mention {
		return "mention"
	}
	return "direct_message"
}

// parseAnswer returns the message, and the widget if any, that a service's answer makes its bot send. An empty text
// means that the bot sends nothing. ok is false if the answer is not JSON.
func parseAnswer(e *realm.ServiceTriggered, answer []byte) (text, widget string, ok bool) {
	answer = bytes.TrimPrefix(answer, []byte("\uFEFF"))               // a byte order mark, as some frameworks send it
	if s := strings.TrimSpace(string(answer)); s == "" || s == `""` { // older bot servers answer "" to send nothing
		return "", "", true
	}
	var a struct {
		Text        string          `json:"text"`
		Content     string          `json:"content"`
		Response    string          `json:"response_string"`
		NotRequired bool            `json:"response_not_required"`
		Widget      json.RawMessage `json:"widget_content"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return "", "", false
	}
	if e.Service.Interface == slackInterface {
		return a.Text, "", true
	}
	if a.NotRequired {
		return "", "", true
	}
	if a.Response != "" { // the older name of content, which takes precedence (protocol)
		a.Content = a.Response
	}
	if len(a.Widget) > 0 && string(a.Widget) != "null" {
		widget = string(a.Widget)
		if json.Unmarshal(a.Widget, &a.Text) == nil { // a string that contains JSON
			widget = a.Text
		}
	}
	return a.Content, widget, true
}
