package integrations

import (
	"errors"
	"testing"
)

// describedCase is a request as the pages of a service describe it. There is no recorded one.
type describedCase struct {
	service, event, body string // event is the value of the service's header, if it has one
	topic, text          string
}

var describedCases = []describedCase{
	{"zabbix", "", `{"hostname": "web1", "severity": "High", "status": "PROBLEM", "item": "Load is 9.1",
		"trigger": "Load is too high", "link": "https://zabbix.example.com/tr_events.php?triggerid=7"}`,
		"web1", "PROBLEM (High) alert on [web1](https://zabbix.example.com/tr_events.php?triggerid=7):\n" +
			"* Load is too high\n* Load is 9.1"},
	{"datadog", "", `{"id": "1", "type": "query_alert_monitor", "title": "[Triggered] CPU is high", "text": "avg > 90",
		"link": "https://app.datadoghq.com/event/1", "alert": "CPU is high", "transition": "Triggered", "host": "db1"}`,
		"CPU is high", ":alert: **Triggered** on **db1**: " +
			"[[Triggered] CPU is high](https://app.datadoghq.com/event/1)\n~~~ quote\navg > 90\n~~~"},
	{"datadog", "", `{"title": "[Recovered] CPU is high", "alert": "CPU is high", "transition": "Recovered"}`,
		"CPU is high", ":squared_ok: **Recovered**: **[Recovered] CPU is high**"},
	{"datadog", "", `{"title": "Deployed"}`, "Deployed", "**Deployed**"},
	{"freshdesk", "", `{"freshdesk_webhook": {"triggered_event": "{ticket_action:created}", "ticket_id": 11,
		"ticket_subject": "No sound", "ticket_url": "https://help.example.com/helpdesk/tickets/11",
		"ticket_description": "<p>The <b>speaker</b> is silent.</p>", "ticket_type": "Problem",
		"ticket_priority": "High", "ticket_status": "Open", "requester_name": "Ada",
		"requester_email": "ada@example.com"}}`,
		"#11: No sound", "Ada <ada@example.com> created [ticket #11](https://help.example.com/helpdesk/tickets/11):\n" +
			"~~~ quote\nThe **speaker** is silent.\n~~~\n\n" +
			"* **Type**: Problem\n* **Priority**: High\n* **Status**: Open"},
	{"freshdesk", "", `{"freshdesk_webhook": {"triggered_event": "{status:{from:2,to:4}}", "ticket_id": 11,
		"ticket_subject": "No sound", "ticket_url": "https://help.example.com/helpdesk/tickets/11",
		"ticket_status": "Resolved", "requester_name": "Ada"}}`,
		"#11: No sound", "Ada updated [ticket #11](https://help.example.com/helpdesk/tickets/11).\n\n" +
			"* **Status**: Resolved"},
	{"asana", "", `{"name": "Write the report", "project": "Spring", "actor": "Ada", "action": "completed",
		"permalink_url": "https://app.asana.com/0/1/2"}`,
		"Spring", "Ada completed [Write the report](https://app.asana.com/0/1/2)."},
	{"asana", "", `{"name": "Write the report", "assignee": {"name": "Bo"}, "notes": "By Friday."}`,
		"Asana", "Updated **Write the report** (assigned to Bo):\n~~~ quote\nBy Friday.\n~~~"},
	{"trello", "", trello("createCard", `"list": {"name": "To do"}`),
		"Spring", "Ada created [Paint](https://trello.com/c/xyz) in To do."},
	{"trello", "", trello("updateCard", `"listBefore": {"name": "To do"}, "listAfter": {"name": "Done"}, "old": {}`),
		"Spring", "Ada moved [Paint](https://trello.com/c/xyz) from To do to Done."},
	{"trello", "", trello("updateCard", `"old": {"due": null}`),
		"Spring", "Ada removed the due date of [Paint](https://trello.com/c/xyz)."},
	{"trello", "", trello("commentCard", `"text": "Which color?\n@**all**"`),
		"Spring", "Ada commented on [Paint](https://trello.com/c/xyz):\n~~~ quote\nWhich color?\n@\u200b**all**\n~~~"},
	{"trello", "", trello("updateCheckItemStateOnCard",
		`"checklist": {"name": "Tools"}, "checkItem": {"name": "Brush", "state": "complete"}`),
		"Spring", "Ada checked **Brush** in **Tools** of [Paint](https://trello.com/c/xyz)."},
	{"trello", "", trello("updateCard", `"old": {"pos": 3}`), "", ""},
	{"forgejo", "push", `{"ref": "refs/heads/main", "compare_url": "https://code.example.com/a/b/compare/1...2",
		"commits": [{"id": "5ee0dde4ba0ee2c9fed0b6d4a8a2c0b0a2a5b0aa", "message": "Mend the roof",
		"url": "https://code.example.com/a/b/commit/5ee0dde", "author": {"name": "Ada", "username": "ada"}}],
		"repository": {"name": "house"}, "sender": {"username": "ada"}}`,
		"house / main", "ada [pushed](https://code.example.com/a/b/compare/1...2) 1 commit to branch main.\n\n" +
			"* Mend the roof ([5ee0dde4ba0](https://code.example.com/a/b/commit/5ee0dde))"},
}

// trello returns a payload of Trello with fields in its data.
func trello(kind, data string) string {
	return `{"action": {"type": "` + kind + `", "memberCreator": {"fullName": "Ada"}, "data": {
		"board": {"name": "Spring", "shortLink": "b1"}, "card": {"name": "Paint", "shortLink": "xyz"}, ` + data + `}},
		"model": {"name": "Spring"}}`
}

// The templates of all services of the program compile, although a server compiles only those that it needs.
func TestIncludedTemplatesCompile(t *testing.T) {
	set, err := Included()
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Names()) == 0 {
		t.Error("the program has no services")
	}
	for _, name := range set.Names() {
		set.Find(name).program() // panics with the place of a fault
	}
}

// TestDescribedServices holds the messages of services of which there are no recorded requests.
func TestDescribedServices(t *testing.T) {
	set, err := Included()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range describedCases {
		s := set.Find(c.service)
		result, err := s.Handle(request(c.body, s.EventHeader, c.event), Filter{})
		if err != nil {
			t.Errorf("%s: %v", c.service, err)
			continue
		}
		got := Message{}
		if len(result.Messages) > 0 {
			got = result.Messages[0]
		}
		if got != (Message{c.topic, c.text}) {
			t.Errorf("%s %s:\n%q\n%q\nexpected\n%q\n%q", c.service, result.Event, got.Topic, got.Text, c.topic, c.text)
		}
	}
	var unsupported *Unsupported
	if _, err := set.Find("asana").Handle(request(`{"events": []}`), Filter{}); !errors.As(err, &unsupported) {
		t.Errorf("events of Asana's API: %v", err)
	}
}
