package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestIncomingWebhooks sends requests of other services, with the key in the URL, and checks the messages.
func TestIncomingWebhooks(t *testing.T) {
	k := newDemoClient(t)
	bot := k.must("ann", "POST bots", "full_name", "Hook", "short_name", "hook", "bot_type", 2)
	endpoint := func(integration string) string {
		return fmt.Sprintf("POST external/%s?api_key=%v", integration, bot["api_key"])
	}
	general := k.must("ann", "GET get_stream_id", "stream", "general")["stream_id"]
	last := func() map[string]any {
		list := k.must("ann", "GET messages", "anchor", "newest", "num_before", 1, "num_after", 0, "apply_markdown",
			"false")["messages"].([]any)
		return list[len(list)-1].(map[string]any)
	}
	expect := func(what, client, topic, text string) {
		t.Helper()
		m := last()
		k.equal(what, []any{m["sender_id"], m["client"], m["subject"], m["content"]},
			[]any{bot["user_id"], client, topic, text})
	}
	const slack, hello = "ZulipSlackIncomingWebhook", `{"text": "hello"}`

	k.equal("the answer to Slack's clients", k.must("", endpoint("slack_incoming"), "payload", hello, "stream",
		fmt.Sprint(general), "topic", "by id")["ok"], true)
	expect("a channel by its id", slack, "by id", "hello")
	k.must("", endpoint("slack_incoming"), "payload", `{"channel": "#ops", "text": "*done*"}`, "stream", "general",
		"only_events", []string{"x"})
	expect("a topic chosen by the service", slack, "ops", "**done**")
	k.must("", endpoint("slack_incoming"), "payload", hello)
	expect("a message without a destination goes to the owner", slack, "", "hello")

	k.must("", endpoint("slack_incoming"), "payload", `{"text": " "}`, "stream", "general")
	expect("an empty message is not sent", slack, "", "hello")
	k.must("", endpoint("slack_incoming"), "payload", hello, "stream", "nowhere")
	if m := last(); m["sender_full_name"] != "Notification Bot" ||
		!strings.Contains(m["content"].(string), "`nowhere`") {
		t.Errorf("the owner of a bot that sends to a missing channel gets %v", m)
	}

	k.refused("", "POST external/slack_incoming", "REQUEST_VARIABLE_MISSING", "Missing 'api_key' argument", "payload",
		hello)
	k.refused("", "POST external/slack_incoming?api_key=short", "INVALID_API_KEY", "Malformed API key", "payload",
		hello)
	k.refused("", "POST external/slack_incoming?api_key="+strings.Repeat("a", 32), "INVALID_API_KEY", "Invalid API key",
		"payload", hello)
	k.refused("", endpoint("slack_incoming"), "REQUEST_VARIABLE_MISSING", "Missing 'payload' argument")
	k.refused("", endpoint("slack_incoming"), "INVALID_JSON", "Malformed JSON", "payload", "{")
	k.equal("an unreadable payload is reported with the name of its service",
		k.refused("", endpoint("slack_incoming"), "ANOMALOUS_WEBHOOK_PAYLOAD", "", "payload", "[]")["webhook_name"],
		"SlackIncoming")
	k.refused("", endpoint("json"), "INVALID_JSON", "Malformed JSON", "a", "form")
	// A private channel that the bot must not know of is as one that does not exist.
	k.must("", endpoint("slack_incoming"), "payload", hello, "stream", "leads")
	k.refused("", endpoint("unknown"), "BAD_REQUEST", "Unknown integration")
}

// TestWebhookSecret holds that requests must be signed once a bot has the secret of its service.
func TestWebhookSecret(t *testing.T) {
	k := newDemoClient(t)
	bot := k.must("ann", "POST bots", "full_name", "Hook", "short_name", "hook", "bot_type", 2,
		"service_name", "gitlab",
		"config_data", map[string]any{"signature_secret": "s3cret"})
	to := fmt.Sprintf("POST external/github?api_key=%v", bot["api_key"])
	k.refused("", to, "UNAUTHORIZED", "The signature of the request does not fit the secret", "payload", "{}")
	k.must("ann", fmt.Sprintf("PATCH bots/%v", bot["user_id"]), "config_data",
		map[string]any{"signature_secret": ""})
	k.refused("", to, "BAD_REQUEST", "Missing the HTTP event header 'X-GitHub-Event'", "payload", "{}")
	long := strings.Repeat("x", 1001)
	k.refused("ann", fmt.Sprintf("PATCH bots/%v", bot["user_id"]), "BAD_REQUEST",
		"config_data is too long (limit: 1000 bytes)", "config_data", map[string]any{"a": long})
}

// TestWebhookWarnings holds that a bot's owner is told once a day of each kind of request that fits nothing.
func TestWebhookWarnings(t *testing.T) {
	k := newDemoClient(t)
	bot := k.must("ann", "POST bots", "full_name", "Hook", "short_name", "hook", "bot_type", 2)
	to := func(name string) string { return fmt.Sprintf("POST external/%s?api_key=%v", name, bot["api_key"]) }
	warnings := func() (texts []string) {
		narrow := `[["is","dm"]]`
		for _, m := range k.must("ann", "GET messages", "anchor", "newest", "num_before", 20, "num_after", 0, "narrow",
			narrow, "apply_markdown", "false")["messages"].([]any) {
			if m := m.(map[string]any); m["sender_full_name"] == "Notification Bot" {
				texts = append(texts, m["content"].(string))
			}
		}
		return texts
	}
	before := len(warnings())
	for range 3 {
		k.refused("", to("statuspage"), "INVALID_JSON", "Malformed JSON", "x", "{}")
		k.refused("", to("heroku"), "ANOMALOUS_WEBHOOK_PAYLOAD",
			"Unable to parse request: Did Heroku generate this event?", "x", "{}")
	}
	got := warnings()
	if !strings.Contains(got[len(got)-1], "spoiler Request") || !strings.Contains(got[len(got)-1], "x=%7B%7D") {
		t.Errorf("the warning does not show the request: %q", got[len(got)-1])
	}
	if len(got) != before+2 || !strings.Contains(got[len(got)-1], "Heroku") {
		t.Errorf("%d warnings after six requests of two kinds: %q", len(got)-before, got)
	}
	for range 2 {
		for _, event := range []string{"push", "issues"} { // faults of two kinds of events are two kinds
			r, _ := http.NewRequest("POST", k.at+"/api/v1/external/github?api_key="+fmt.Sprint(bot["api_key"]),
				strings.NewReader("no JSON"))
			r.Header.Set("X-GitHub-Event", event)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
		}
		k.refused("", to("papertrail"), "REQUEST_VARIABLE_MISSING", "Missing 'payload' argument")
	}
	if got := warnings(); len(got) != before+5 {
		t.Errorf("%d warnings after requests of three more kinds, want 3: %q", len(got)-before-2, got)
	}
}

// TestWebhookAddressCheck holds that a service which requests an address with HEAD before it uses it gets a success,
// and that a wrong address does not.
func TestWebhookAddressCheck(t *testing.T) {
	k := newDemoClient(t)
	bot := k.must("ann", "POST bots", "full_name", "Hook", "short_name", "hook", "bot_type", 2)
	head := func(path string) int {
		t.Helper()
		answer, err := http.Head(k.at + "/api/v1/external/" + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	key := fmt.Sprint("?api_key=", bot["api_key"], "&stream=general")
	k.equal("statuses of addresses", []int{head("trello" + key), head("unknown" + key), head("trello?api_key=short"),
		head("trello")}, []int{200, 404, 401, 400})
}
