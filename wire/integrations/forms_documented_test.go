package integrations

import (
	"slices"
	"strings"
	"testing"
)

// TestFormsOfDocumentedEvents holds sentences of events that the services' own pages describe and no recorded request
// has. The words are those of the recorded requests.
func TestFormsOfDocumentedEvents(t *testing.T) {
	type fields = map[string]any
	const pull = "[PR #2](https://try.gogs.io/kostekIV/test/pulls/2) from `c` to `master`"
	const discussion = "https://github.com/sbansal1999/testing-gh/discussions/20"
	const note = "https://gitlab.com/tomaszkolek0/my-awesome-project/snippets/2#note_14172058"
	const snippet = "https://gitlab.com/tomaszkolek0/my-awesome-project/-/snippets/2"
	const stripe = "https://dashboard.stripe.com/"
	const linear = "[Issue](https://linear.app/webhooks/issue/WEB-42/drop-down-overflow-in-the-select-menu)"
	const awx = "[#2674 System - Deploy - Zabbix Agent](http://awx.example.co.uk/#/jobs/playbook/2674) "
	const rundeck = "http://localhost:4440/project/welcome-project-community/"
	checkForms(t, []formCase{
		{"gogs/014", fields{"action": "assigned"}, "",
			"kostekIV assigned kostekIV to " + pull + " (assigned to kostekIV)."},
		{"gitea/007", fields{"action": "closed"}, "",
			"kostekIV closed [PR #5](https://try.gitea.io/kostekIV/test/pulls/5) from `d` to `master`."},
		{"gogs/022", fields{"release.name": ""}, "",
			"cestrell published release [v1.4](https://try.gogs.io/cestrell/zulip_test) for tag v1.4."},
		{"github/116", fields{"action": "edited"}, "", "sbansal1999 edited a [comment](" + discussion +
			"#discussioncomment-6332416) on [discussion #20](" + discussion +
			"):\n\n~~~ quote\nsome random comment\n~~~"},
		{"gitlab/035", fields{"object_attributes.action": "update"}, "", "Tomasz Kolek updated a [comment](" + note +
			") on [snippet #2](" + snippet + "):\n\n~~~ quote\nNice snippet\n~~~"},
		{"azuredevops/000", fields{"resource.commits": nil, "resource.refUpdates": []any{fields{"name": "refs/heads/x",
			"oldObjectId": "1", "newObjectId": strings.Repeat("0", 40)}}}, "", "Yuro Itaki deleted branch x."},
		{"jira/027", fields{"webhookEvent": "jira:issue_updated", "issue_event_type_name": "issue_generic",
			"issue.fields.assignee": nil}, "",
			"Leo Franchi updated [BUG-15: New bug with hook](http://lfranchi.com:8080/browse/BUG-15)."},
		{"linear/000", fields{"data.priority": 0, "data.state": nil}, "", linear + " was created in team Webhooks."},
		{"stripe/008", fields{"type": "customer.subscription.updated", "data.previous_attributes": fields{
			"billing_cycle_anchor": 1, "quantity": 1}}, "",
			"[Subscription](" + stripe + "subscriptions/sub_E6STM5w5EX3K28) updated\n" +
				"* Billing cycle anchor is now Dec 06, 2018, 05:37:50 UTC\n* Quantity is now 800"},
		{"stripe/014", fields{"data.object.coupon.name": nil}, "",
			"Discount created ([25_00000000000000](" + stripe + "coupons/25_00000000000000))."},
		{"ansibletower/003", fields{"status": "running", "hosts": fields{}}, "", "Job: " + awx + "is running."},
		{"rundeck/000", fields{"trigger": "retryablefailure"}, "", "[Global Log Filter Usage](" + rundeck +
			"job/show/a0296d93-4b10-48d7-8b7d-86ad3f603b85) execution [#3](" + rundeck +
			"execution/show/3) for welcome-project-community has failed. :cross_mark:"},
		{"raygun/003", fields{"eventType": "NewErrorOccurred", "error.instance": fields{"tags": []any{"test", "v1"},
			"affectedUser": fields{"UUID": "a9b7"}, "customData": fields{"loggedIn": true}}}, "",
			"New [Error](http://app.raygun.io/error-url) occurred:\n* **First occurred**: Wed Jan 28 01:49:36 1970\n" +
				"* **Last occurred**: Wed Jan 28 01:49:36 1970\n* 1 users affected with 1 total occurrences\n" +
				"* **Tags**: test, v1\n* **Affected user**: a9b7\n* **loggedIn**: True\n" +
				"* **Application details**: [application name](http://app.raygun.io/application-url)"},
		{"jotform/000", fields{"pretty": "Name:Ada, Subjects:Math, Physics, Site:https://e.org, Time:10:30"}, "",
			"* **Name**: Ada\n* **Subjects**: Math, Physics\n* **Site**: https://e.org\n* **Time**: 10:30"},
	})
}

// TestAlertsOfOneTopic holds that alerts of a topic which differ in their status become two messages.
func TestAlertsOfOneTopic(t *testing.T) {
	set, err := Included()
	if err != nil {
		t.Fatal(err)
	}
	alert := func(status, instance string) string {
		return `{"status":"` + status + `","labels":{"alertname":"Down","instance":"` + instance + `"}}`
	}
	result, err := set.Find("alertmanager").Handle(request(`{"alerts":[`+strings.Join([]string{alert("firing", "db"),
		alert("resolved", "db"), alert("firing", "db"), alert("firing", "web")}, ",")+`]}`), Filter{})
	want := []Message{{"db", ":alert: **FIRING**\n* Down\n* Down"}, {"db", ":squared_ok: **Resolved** Down"},
		{"web", ":alert: **FIRING** Down"}}
	if err != nil || !slices.Equal(result.Messages, want) {
		t.Errorf("%v\n%q\nexpected\n%q", err, result.Messages, want)
	}
}
