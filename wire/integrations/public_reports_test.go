package integrations

import (
	"strings"
	"testing"
)

// TestReportedPayloads holds the messages of payloads with missing fields, as operators reported them.
func TestReportedPayloads(t *testing.T) {
	set, err := Included()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ service, event, body, topic, text string }{
		{"alertmanager", "", `{"alerts":[{"status":"firing","labels":{"alertname":"Down","instance":"db"},
			"annotations":{},"generatorURL":""}]}`, "db", ":alert: **FIRING** Down"},
		{"alertmanager", "", `{"alerts":[{"status":"firing","labels":{"alertname":"Down","instance":"db"}}]}`,
			"db", ":alert: **FIRING** Down"},
		{"gitlab", "Issue Hook", `{"user":{"name":"Ada"},"project":{"name":"p"},"object_attributes":
			{"iid":1,"title":"t","url":"https://e.org/1","description":""}}`, "p / issue #1 t",
			"Ada created [issue #1](https://e.org/1)."},
		{"gitlab", "Wiki Page Hook", `{"user":{"name":"Ada"},"project":{"name":"p"},"object_attributes":
			{"title":"t","url":"https://e.org/1"}}`, "p", `Ada created [wiki page "t"](https://e.org/1).`},
		{"slack_incoming", "", `{"blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[
			{"type":"text","text":"hi "},{"type":"text","text":"all","style":{"bold":true}}]}]}]}`, "", "hi **all**"},
		{"slack_incoming", "", `{"blocks":[{"type":"rich_text","elements":[{"type":"rich_text_list","style":"ordered",
			"elements":[{"type":"rich_text_section","elements":[{"type":"link","url":"https://e.org","text":"x"}]},
			{"type":"rich_text_section","elements":[{"type":"emoji","name":"wave"}]}]}]}]}`, "",
			"1. [x](https://e.org)\n2. :wave:"},
		{"slack_incoming", "", `{"blocks":[{"type":"markdown","text":"**hi**"}]}`, "", "**hi**"},
		{"slack_incoming", "", "\uFEFF" + `{"text":"hi"}`, "", "hi"},
		{"json", "", "\uFEFF" + `{"a": 1}`, "JSON", "```json\n{\n  \"a\": 1\n}\n```"},
		{"ansibletower", "", `{"id":7,"name":"deploy","url":"https://e.org/#/jobs/playbook/7","status":"successful",
			"hosts":{"db":{"failed":false}}}`, "deploy", ""},
		{"sentry", "", `{"project_name":"p","level":"error","url":"https://e.org/1","message":"boom"}`, "p",
			"New [issue](https://e.org/1) (level: ERROR):\n\n``` quote\nboom\n```"},
		{"github", "team", `{"action":"edited","sender":{"login":"ada"},"team":{"name":"t"},"changes":{"size":{}}}`,
			"team t", "Team has changes to `size` data."},
		{"github", "delete", `{"ref_type":"tag","ref":"v1","sender":{"login":"ada"},"repository":{"name":"r"}}`, "r",
			"ada deleted tag v1."},
		{"github", "member", `{"action":"removed","member":{"login":"bo","html_url":"https://e.org/bo"},
			"sender":{"login":"ada"},"repository":{"name":"r","full_name":"a/r","html_url":"https://e.org/r"}}`, "r",
			"ada removed [bo](https://e.org/bo) from [a/r](https://e.org/r)."},
		{"circleci", "", `{"type":"workflow-completed","project":{"name":"p"},"workflow":{"name":"w",
			"url":"https://e.org/w",
			"status":"success"},"pipeline":{"number":1,"vcs":{"tag":"v1"}}}`, "p", ""},
	} {
		s := set.Find(c.service)
		result, err := s.Handle(request(c.body, s.EventHeader, c.event), Filter{})
		if err != nil || len(result.Messages) != 1 {
			t.Errorf("%s: %v, %d messages", c.service, err, len(result.Messages))
			continue
		}
		got := result.Messages[0]
		if strings.Contains(got.Text, "not known here") || c.text != "" && got.Text != c.text ||
			c.topic != "" && got.Topic != c.topic {
			t.Errorf("%s: topic %q, text\n%s\nexpected %q\n%s", c.service, got.Topic, got.Text, c.topic, c.text)
		}
		if c.text == "" {
			t.Logf("%s: %s", c.service, got.Text)
		}
	}
}
