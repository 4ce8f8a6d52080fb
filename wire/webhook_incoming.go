package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

// incomingEndpoints receive the requests that other services send to an incoming-webhook bot. The address contains
// the bot's API key and the destination of its messages.
var incomingEndpoints = []Endpoint{
	Custom("POST", "/external/{integration}", receiveWebhook).Returns("{ok?: bool}").allowWebhookBots().apiKeyInQuery(),
}

// integration turns the request of a service into a message: a topic, which the address can override, and a text. No
// message is sent if the text is empty. answer holds fields that the service expects besides those of the protocol.
type integration struct {
	name, display string
	client        string // the client name on the messages (protocol)
	parse         func(c *Call, f incomingWebhookForm) (topic, text string, err error)
	answer        Answer
}

var integrations = []integration{
	{"json", "JSON formatter", "ZulipJSONWebhook", parseJSONPayload, Answer{}},
	{"slack_incoming", "Slack-compatible webhook", "ZulipSlackIncomingWebhook", parseSlackPayload, Answer{"ok": true}},
}

// integrationObjects describes the integrations for the page where users create bots.
func integrationObjects() any {
	out := []any{}
	for _, i := range integrations {
		out = append(out, obj{
			"name":            i.name,
			"display_name":    i.display,
			"all_event_types": nil,
			"config_options":  []any{},
			"url_options": []any{obj{"key": "stream", "label": "Channel", "input_type": "text"},
				obj{"key": "topic", "label": "Topic", "input_type": "text"}},
		})
	}
	return out
}

type incomingWebhookForm struct {
	Integration string           `path:"integration"`
	Key         string           `form:"api_key"`
	Channel     string           `form:"stream,strip"`
	Topic       form.Opt[string] `form:"topic,strip"`
	Payload     form.Opt[string] `form:"payload"`
	// These integrations do not distinguish kinds of events, so both filters have no effect.
	Only   []string `form:"only_events"`
	Except []string `form:"exclude_events"`
}

// receiveWebhook sends the message of a service to the channel in the address, by name or id, or else to the bot's
// owner. If the channel does not exist, the bot's owner gets a warning and the service a success, because the service
// cannot repair it.
func receiveWebhook(c *Call, f incomingWebhookForm) (Answer, error) {
	at := slices.IndexFunc(integrations, func(i integration) bool { return i.name == f.Integration })
	if at < 0 {
		return nil, realm.Missing("Unknown integration")
	}
	from := integrations[at]
	c.Caller.Client = from.client
	topic, text, err := from.parse(c, f)
	if err != nil || text == "" {
		return maps.Clone(from.answer), err
	}
	cmd := realm.SendMessage{ToChannel: f.Channel != "", ChannelName: f.Channel, Topic: f.Topic.Or(topic)}
	if id, err := strconv.ParseInt(f.Channel, 10, 64); err == nil {
		cmd.Channel = realm.ChannelID(id)
	}
	if f.Channel == "" {
		owner, err := Read(c, func(v realm.View) (realm.UserID, error) {
			if me := v.Me(); me.IsBot() {
				return me.BotOwner, nil
			}
			return v.User, nil
		})
		if err != nil {
			return nil, err
		}
		cmd.People = []realm.Principal{{ID: owner}}
	}
	if text, err = realm.NormalizeContent(text); err != nil {
		return nil, err
	}
	if cmd.Body, cmd.Content, err = render(c, text); err != nil {
		return nil, err
	}
	if _, err = Execute(c, cmd); isNoSuchChannel(err) && c.Account.Bot != realm.Human {
		err = warnBotOwner(c, cmd)
	}
	return maps.Clone(from.answer), err
}

// parseJSONPayload shows the JSON body in a code block.
func parseJSONPayload(c *Call, _ incomingWebhookForm) (topic, text string, err error) {
	var b bytes.Buffer
	if json.Indent(&b, c.Body(), "", "  ") != nil {
		return "", "", realm.Refuse(realm.Invalid, "INVALID_JSON", "Malformed JSON")
	}
	return "JSON", "```json\n" + b.String() + "\n```", nil
}

// slackMessage is the part of a Slack message that is shown.
type slackMessage struct {
	Channel     string       `json:"channel"`
	Text        string       `json:"text"`
	Blocks      []slackBlock `json:"blocks"`
	Attachments []struct {
		Pretext, Title, Text, Fallback string
		TitleLink                      string `json:"title_link"`
		Fields                         []struct{ Title, Value string }
	} `json:"attachments"`
}

// slackBlock is one block of a Slack message. The elements of a context block are texts. The elements of other blocks
// are buttons and inputs, which are left out.
type slackBlock struct {
	Type     string
	Text     struct{ Text string }
	Fields   []struct{ Text string }
	Elements []struct{ Text any }
	Image    string `json:"image_url"`
	Alt      string `json:"alt_text"`
}

// texts returns the texts of a block, in Slack's markup.
func (b slackBlock) texts() (out []string) {
	switch b.Type {
	case "header":
		return []string{"## " + b.Text.Text}
	case "divider":
		return []string{"---"}
	case "image":
		return []string{"<" + b.Image + "|" + cmp.Or(b.Alt, b.Image) + ">"}
	}
	out = append(out, b.Text.Text)
	for _, f := range b.Fields {
		out = append(out, f.Text)
	}
	for _, e := range b.Elements {
		if text, ok := e.Text.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// parseSlackPayload reads a message in the format of Slack: a JSON body, or JSON in the parameter payload.
func parseSlackPayload(c *Call, f incomingWebhookForm) (topic, text string, err error) {
	raw := []byte(f.Payload.Value)
	if !f.Payload.Set {
		if raw = c.Body(); len(raw) == 0 {
			return "", "", form.Missing("payload")
		}
	}
	var m slackMessage
	switch {
	case !json.Valid(raw):
		return "", "", realm.Refuse(realm.Invalid, "INVALID_JSON", "Malformed JSON")
	case json.Unmarshal(raw, &m) != nil:
		return "", "", realm.Refuse(realm.Invalid, "ANOMALOUS_WEBHOOK_PAYLOAD",
			"Unable to parse request: Did SlackIncoming generate this event?").With("webhook_name", "SlackIncoming")
	}
	var parts []string
	add := func(s string) {
		if s = strings.TrimSpace(slackToMarkdown(s)); s != "" {
			parts = append(parts, s)
		}
	}
	for _, b := range m.Blocks {
		for _, text := range b.texts() {
			add(text)
		}
	}
	if len(parts) == 0 {
		add(m.Text)
	}
	for _, a := range m.Attachments {
		add(a.Pretext)
		switch {
		case a.Title != "" && a.TitleLink != "":
			add("<" + a.TitleLink + "|" + a.Title + ">")
		default:
			add(a.Title)
		}
		if a.Text == "" && a.Title == "" {
			add(a.Fallback)
		}
		add(a.Text)
		for _, f := range a.Fields {
			add("*" + f.Title + "*: " + f.Value)
		}
	}
	topic = strings.TrimLeft(m.Channel, "#@")
	if topic == "" {
		topic = "(no topic)"
	}
	return topic, strings.Join(parts, "\n\n"), nil
}

// Slack markup that differs from Markdown: <address|text>, <address>, *strong*, _emphasis_, ~deleted~.
var (
	slackLink     = regexp.MustCompile(`<(https?://[^|>\s]+)\|([^>\n]+)>`)
	slackBareLink = regexp.MustCompile(`<(https?://[^|>\s]+)>`)
	slackEmphasis = regexp.MustCompile(`(^|[\s(])([*_~])([^\s*_~](?:[^*_~\n]*[^\s*_~])?)([*_~])`)
	slackEntities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// slackToMarkdown converts Slack markup to Markdown.
func slackToMarkdown(s string) string {
	s = slackEmphasis.ReplaceAllStringFunc(s, func(m string) string {
		p := slackEmphasis.FindStringSubmatch(m)
		if p[2] != p[4] {
			return m
		}
		mark := map[string]string{"*": "**", "_": "*", "~": "~~"}[p[2]]
		return p[1] + mark + p[3] + mark
	})
	s = slackLink.ReplaceAllString(s, "[$2]($1)")
	s = slackBareLink.ReplaceAllString(s, "$1")
	return slackEntities.Replace(s)
}
