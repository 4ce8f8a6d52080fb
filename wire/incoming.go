package wire

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

// Integrations are the kinds of requests other services send to an incoming-webhook bot; the bot's key is in the
// address, with where its messages go.
var incomingEndpoints = []Endpoint{
	keyInQuery(webhook(Custom("POST", "/external/{integration}", incoming))),
}

func keyInQuery(e Endpoint) Endpoint { e.KeyInQuery = true; return e }

// integration makes a message of what a service sent: a topic, used unless the address names one, and a text.
type integration struct {
	name, display string
	read          func(c *Call, f incomingForm) (topic, text string, err error)
}

var integrations = []integration{
	{"json", "JSON formatter", readJSON},
	{"slack_incoming", "Slack-compatible webhook", readSlack},
}

// integrationObjects describes them to whoever makes a bot.
func integrationObjects() any {
	out := []any{}
	for _, i := range integrations {
		out = append(out, obj{"name": i.name, "display_name": i.display, "all_event_types": nil, "config_options": []any{},
			"url_options": []any{obj{"key": "stream", "label": "Channel", "input_type": "text"}, obj{"key": "topic", "label": "Topic", "input_type": "text"}}})
	}
	return out
}

type incomingForm struct {
	Integration string           `path:"integration"`
	Key         string           `form:"api_key"`
	Channel     string           `form:"stream,strip"`
	Topic       form.Opt[string] `form:"topic,strip"`
	Payload     string           `form:"payload"`
}

// incoming sends what a service had to say: to the channel in the address, else to the bot's owner.
func incoming(c *Call, f incomingForm) (Answer, error) {
	for _, i := range integrations {
		if i.name != f.Integration {
			continue
		}
		topic, text, err := i.read(c, f)
		if err != nil {
			return nil, err
		}
		cmd := realm.SendMessage{ToChannel: f.Channel != "", ChannelName: f.Channel, Topic: f.Topic.Or(topic)}
		if f.Channel == "" {
			owner, err := Look(c, func(v realm.View) (realm.UserID, error) {
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
		if _, err = Play(c, cmd); err != nil {
			return nil, err
		}
		return Answer{}, nil
	}
	return nil, realm.Missing("Unknown integration")
}

// readJSON shows what was sent, whatever it is.
func readJSON(c *Call, _ incomingForm) (topic, text string, err error) {
	var b bytes.Buffer
	if json.Indent(&b, c.Body(), "", "  ") != nil {
		return "", "", realm.Refuse(realm.Invalid, "INVALID_JSON", "Malformed JSON")
	}
	return "JSON", "```json\n" + b.String() + "\n```", nil
}

// slackMessage is the part of a Slack message that is shown.
type slackMessage struct {
	Channel     string `json:"channel"`
	Text        string `json:"text"`
	Attachments []struct {
		Pretext, Title, Text, Fallback string
		TitleLink                      string `json:"title_link"`
	} `json:"attachments"`
	Blocks []struct {
		Text *struct {
			Text string `json:"text"`
		} `json:"text"`
	} `json:"blocks"`
}

// readSlack reads a message as it would be sent to Slack: as JSON, or JSON in the parameter payload.
func readSlack(c *Call, f incomingForm) (topic, text string, err error) {
	raw := []byte(f.Payload)
	if len(raw) == 0 {
		raw = c.Body()
	}
	var m slackMessage
	if json.Unmarshal(raw, &m) != nil {
		return "", "", realm.Refuse(realm.Invalid, "INVALID_JSON", "Malformed JSON")
	}
	var parts []string
	add := func(s string) {
		if s = strings.TrimSpace(fromSlack(s)); s != "" {
			parts = append(parts, s)
		}
	}
	for _, b := range m.Blocks {
		if b.Text != nil {
			add(b.Text.Text)
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
	}
	topic = strings.TrimLeft(m.Channel, "#@")
	if topic == "" {
		topic = "(no topic)"
	}
	return topic, strings.Join(parts, "\n\n"), nil
}

// What Slack writes otherwise: <address|text>, <address>, *strong*, _emphasis_, ~deleted~.
var (
	slackLink  = regexp.MustCompile(`<(https?://[^|>\s]+)\|([^>\n]+)>`)
	slackPlain = regexp.MustCompile(`<(https?://[^|>\s]+)>`)
	slackMarks = regexp.MustCompile(`(^|[\s(])([*_~])([^\s*_~](?:[^*_~\n]*[^\s*_~])?)([*_~])`)
	slackSigns = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

func fromSlack(s string) string {
	s = slackMarks.ReplaceAllStringFunc(s, func(m string) string {
		p := slackMarks.FindStringSubmatch(m)
		if p[2] != p[4] {
			return m
		}
		mark := map[string]string{"*": "**", "_": "*", "~": "~~"}[p[2]]
		return p[1] + mark + p[3] + mark
	})
	s = slackLink.ReplaceAllString(s, "[$2]($1)")
	s = slackPlain.ReplaceAllString(s, "$1")
	return slackSigns.Replace(s)
}
