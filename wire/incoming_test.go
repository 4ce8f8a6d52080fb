package wire

import (
	"strings"
	"testing"

	"parley/actors/realm"
)

func TestSlackMessagesAreRead(t *testing.T) {
	for _, x := range []struct{ in, topic, text string }{
		{`{"text": "*Done*: <https://a.example/1|build 1> & _fast_ ~slow~"}`, "(no topic)", "**Done**: [build 1](https://a.example/1) & *fast* ~~slow~~"},
		{`{"channel": "#ops", "text": "a < b, 2*3*4 <https://a.example>"}`, "ops", "a < b, 2*3*4 https://a.example"},
		{`{"text": "x", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "from a block"}}]}`, "(no topic)", "from a block"},
		{`{"attachments": [{"pretext": "p", "title": "t", "title_link": "https://t.example", "text": "body"}]}`, "(no topic)", "p\n\n[t](https://t.example)\n\nbody"},
	} {
		topic, text, err := readSlack(nil, incomingForm{Payload: x.in})
		if err != nil || topic != x.topic || text != x.text {
			t.Errorf("%s reads as %q, %q, %v", x.in, topic, text, err)
		}
	}
	if _, _, err := readSlack(nil, incomingForm{Payload: "{"}); err == nil || err.(*realm.Refusal).Code != "INVALID_JSON" {
		t.Errorf("half a message: %v", err)
	}
}

func TestJSONIsShown(t *testing.T) {
	_, text, err := readJSON(&Call{Body: func() []byte { return []byte(`{"a":[1]}`) }}, incomingForm{})
	if err != nil || !strings.HasPrefix(text, "```json\n{\n") {
		t.Errorf("%q, %v", text, err)
	}
	if _, _, err := readJSON(&Call{Body: func() []byte { return nil }}, incomingForm{}); err == nil {
		t.Error("nothing is JSON")
	}
}
