package wire

import (
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/wire/form"
)

func TestParseSlackPayload(t *testing.T) {
	for _, x := range []struct{ in, topic, text string }{
		{`{"text": "*Done*: <https://a.example/1|build 1> & _fast_ ~slow~"}`, "(no topic)",
			"**Done**: [build 1](https://a.example/1) & *fast* ~~slow~~"},
		{`{"channel": "#ops", "text": "a < b, 2*3*4 <https://a.example>"}`, "ops", "a < b, 2*3*4 https://a.example"},
		{`{"text": "x", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "from a block"}}]}`,
			"(no topic)", "from a block"},
		{`{"blocks": [{"type": "header", "text": {"text": "Build 7"}}, {"type": "divider"},
			{"type": "section", "fields": [{"text": "*by* Bo"}, {"text": "in 3 s"}]},
			{"type": "context", "elements": [{"type": "mrkdwn", "text": "at night"}]},
			{"type": "actions", "elements": [{"type": "button", "text": {"text": "Again"}}]},
			{"type": "image", "image_url": "https://a.example/i.png", "alt_text": "a graph"}]}`, "(no topic)",
			"## Build 7\n\n---\n\n**by** Bo\n\nin 3 s\n\nat night\n\n[a graph](https://a.example/i.png)"},
		{`{"attachments": [{"fallback": "f", "fields": [{"title": "State", "value": "_down_"}]}]}`, "(no topic)",
			"f\n\n**State**: *down*"},
		{`{"text": ""}`, "(no topic)", ""},
		{`{"attachments": [{"pretext": "p", "title": "t", "title_link": "https://t.example", "text": "body"}]}`,
			"(no topic)", "p\n\n[t](https://t.example)\n\nbody"},
	} {
		topic, text, err := parseSlackPayload(nil, incomingWebhookForm{Payload: form.Opt[string]{Value: x.in,
			Set: true}})
		if err != nil || topic != x.topic || text != x.text {
			t.Errorf("%s was parsed as %q, %q, %v", x.in, topic, text, err)
		}
	}
	for in, code := range map[string]string{"{": "INVALID_JSON", "": "INVALID_JSON", "[]": "ANOMALOUS_WEBHOOK_PAYLOAD",
		`{"text": 5}`: "ANOMALOUS_WEBHOOK_PAYLOAD"} {
		if _, _, err := parseSlackPayload(nil, incomingWebhookForm{Payload: form.Opt[string]{Value: in,
			Set: true}}); err == nil || err.(*realm.Refusal).Code != code {
			t.Errorf("%q: %v, want %s", in, err, code)
		}
	}
}

func TestParseJSONPayload(t *testing.T) {
	_, text, err := parseJSONPayload(&Call{Body: func() []byte { return []byte(`{"a":[1]}`) }}, incomingWebhookForm{})
	if err != nil || !strings.HasPrefix(text, "```json\n{\n") {
		t.Errorf("%q, %v", text, err)
	}
	if _, _, err := parseJSONPayload(&Call{Body: func() []byte { return nil }}, incomingWebhookForm{}); err == nil {
		t.Error("an empty body was accepted as JSON")
	}
}
