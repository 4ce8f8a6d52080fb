package integrations

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// formCase changes fields of a recorded request. A nil value removes the field.
type formCase struct {
	from  string // service/number of the recorded request
	set   map[string]any
	topic string // the topic parameter of the address
	text  string
}

// change sets the field at a path of names with dots.
func change(object map[string]any, path string, value any) {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		if object[name] = value; value == nil {
			delete(object, name)
		}
		return
	}
	inner, ok := object[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		object[name] = inner
	}
	change(inner, rest, value)
}

// message returns the text of the message of the changed request.
func (c formCase) message(t *testing.T, set *Set, given map[string][]givenCase) string {
	name, _, _ := strings.Cut(c.from, "/")
	for _, g := range given[name] {
		if g.ID != c.from {
			continue
		}
		payload := map[string]any{}
		if err := json.Unmarshal(g.Payload, &payload); err != nil {
			t.Fatal(err)
		}
		for path, value := range c.set {
			change(payload, path, value)
		}
		g.Payload, _ = json.Marshal(payload)
		g.Raw, g.Params = "", map[string]string{}
		if c.topic != "" {
			g.Params["topic"] = c.topic
		}
		result, err := set.Find(name).Handle(g.request(t), g.filter(t))
		if err != nil || len(result.Messages) == 0 {
			return fmt.Sprint("no message: ", err)
		}
		return result.Messages[len(result.Messages)-1].Text
	}
	return "no recorded request"
}

// checkForms compares the messages of changed requests.
func checkForms(t *testing.T, cases []formCase) {
	given := givenCases(t)
	if len(given) == 0 {
		t.Skip("there are no recorded requests beside the project")
	}
	set, err := Included()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if got := c.message(t, set, given); got != c.text {
			t.Errorf("%s %v:\n got %q\nwant %q", c.from, c.set, got, c.text)
		}
	}
}

// TestFormsOfCodeHosts holds the sentences of actions of code hosts that no recorded request has.
func TestFormsOfCodeHosts(t *testing.T) {
	const pull = "[PR #1](https://github.com/baxterthehacker/public-repo/pull/1)"
	const review = "[PR review](https://github.com/groonga/groonga/pull/1581#pullrequestreview-1483047907)"
	const remark = "(https://github.com/baxterthehacker/public-repo/pull/1#discussion_r29724692)"
	ada := map[string]any{"login": "ada"}
	const long = "\n\n~~~ quote\nThis is a pretty simple change that we need to pull into master.\n~~~"
	const branches = "from `baxterthehacker:changes` to `baxterthehacker:master`"
	checkForms(t, []formCase{
		{"github/045", map[string]any{"action": "edited"}, "", "baxterthehacker edited " + pull + "."},
		{"github/045", map[string]any{"action": "edited", "changes.body.from": "x"}, "", "baxterthehacker edited " +
			pull +
			":" + long},
		{"github/045", map[string]any{"action": "reopened"}, "", "baxterthehacker reopened " + pull + "."},
		{"github/045", map[string]any{"action": "closed"}, "", "baxterthehacker closed without merge " + pull + "."},
		{"github/045", map[string]any{"pull_request.title": "Why?"}, "t", "baxterthehacker opened [PR #1 Why?]" +
			"(https://github.com/baxterthehacker/public-repo/pull/1) " + branches + ":" + long},
		{"github/048", map[string]any{"pull_request.assignee": ada}, "", "baxterthehacker updated " + pull +
			" (assigned to ada)."},
		{"github/068", map[string]any{"action": "dismissed"}, "", "kou submitted " + review + "."},
		{"github/069", map[string]any{"action": "deleted"}, "",
			"baxterthehacker deleted [PR review comment]" + remark + "."},
		{"github/069", map[string]any{"action": "edited", "pull_request.title": "Why?"}, "t",
			"baxterthehacker edited [PR review comment on #1 Why?]" + remark},
		{"github/028", map[string]any{"issue.assignee": ada, "issue.body": nil}, "",
			"baxterthehacker opened [issue #2](https://github.com/baxterthehacker/public-repo/issues/2)."},
		{"github/062", map[string]any{"build.status": "building"}, "",
			"GitHub Pages build, triggered by baxterthehacker, is being built."},
		{"github/120", map[string]any{"sponsorship.tier.name": "$7 one time"}, "",
			"monalisa cancelled their $7 one time subscription."},
		{"github/090", map[string]any{"changes": map[string]any{"description": map[string]any{"from": "x"}},
			"team.description": "New", "sender.login": "ada"}, "",
			"**ada** changed the team description to:\n```quote\nNew\n```"},
		{"gitlab/047", map[string]any{"object_attributes.oldrev": "abc"}, "", "Tomasz Kolek added commit(s) to " +
			"[MR #3](https://gitlab.com/tomaszkolek0/my-awesome-project/merge_requests/3)."},
	})
}

// TestFormsOfOtherServices holds sentences of kinds and fields that no recorded request has.
func TestFormsOfOtherServices(t *testing.T) {
	const bug = "[BUG-15: New bug with hook](http://lfranchi.com:8080/browse/BUG-15)"
	const assigned = " (assigned to **Othello, the Moor of Venice**)"
	const said = ":\n\n``` quote\nx\n```"
	const plan = "[Subscription](https://dashboard.stripe.com/subscriptions/sub_E6STM5w5EX3K28) created\nPlan: "
	const item = "[Invoice](https://dashboard.stripe.com/invoices/in_1EjLINHuGUuNWDDZjDf2WNqd)"
	const rundeck = "http://localhost:4440/project/welcome-project-community/"
	const email, kind = "issue.fields.assignee.emailAddress", "issue_event_type_name"
	items := func(field string, from, to any) map[string]any {
		return map[string]any{"comment": nil, kind: "issue_assigned", "changelog.items": []any{map[string]any{
			"field": field, "fromString": from, "toString": to}}}
	}
	checkForms(t, []formCase{
		{"jira/019", map[string]any{"comment.body": "x"}, "", "Leo Franchi commented on " + bug + assigned + said},
		{"jira/019", map[string]any{"comment.body": "x", email: nil}, "", "Leo Franchi commented on " + bug + said},
		{"jira/019", map[string]any{"comment.body": "x", kind: "issue_comment_edited"}, "",
			"Leo Franchi edited a comment on " + bug + assigned + said},
		{"jira/019", map[string]any{"comment.body": "", kind: "issue_comment_edited"}, "",
			"Leo Franchi edited a comment on " + bug + assigned + "."},
		{"jira/019", map[string]any{"comment.body": "x", kind: "issue_comment_deleted"}, "",
			"Leo Franchi deleted a comment from " + bug + assigned + said},
		{"jira/019", items("assignee", nil, "Othello"), "",
			"Leo Franchi updated " + bug + assigned + ":\n\n* Changed assignee to **Othello, the Moor of Venice**"},
		{"jira/019", items("priority", "Major", nil), "",
			"Leo Franchi updated " + bug + assigned + ":\n\n* Changed priority from **Major** to **None**"},
		{"stripe/002", map[string]any{"data.object.failure_code": "card_declined"}, "",
			"[Charge](https://dashboard.stripe.com/charges/ch_00000000000000) for 1.00 AUD failed. " +
				"Failure code: card_declined"},
		{"stripe/008", map[string]any{"data.object.plan.nickname": nil, "data.object.plan.id": "flat"}, "",
			plan + "https://dashboard.stripe.com/plans/flat\nQuantity: 800\nBilling method: send invoice"},
		{"stripe/018", map[string]any{"data.previous_attributes": map[string]any{"billing_reason": "x"},
			"data.object.status": "open", "data.object.billing_reason": "manual"}, "",
			item + " updated\n* Billing reason is now manual"},
		{"stripe/018", map[string]any{"data.previous_attributes": map[string]any{"number": "x"},
			"data.object.status": "open"}, "", "no message: <nil>"},
		{"azuredevops/008", map[string]any{"eventType": "git.pullrequest.updated"}, "",
			"Yuro Itaki updated [PR #1 Add " +
				"PR request](https://dev.azure.com/ttchong/test-zulip/_git/test-zulip/pullrequest/1):\n\n~~~ quote\n" +
				"Add PR request\n~~~"},
		{"intercom/022", map[string]any{"topic": "user.tag.created"}, "",
			"The tag `CSV Import - 2019-03-26 22:46:04 UTC` was added to the user."},
		{"bitbucket2/023", map[string]any{"pullrequest.title": "Why?"}, "t", "Tomasz approved " +
			"[PR #1 Why?](https://bitbucket.org/kolaszek/repository-name/pull-requests/1)"},
		{"rundeck/000", map[string]any{"trigger": "avgduration"}, "",
			"[Global Log Filter Usage](" + rundeck + "job/show/a0296d93-4b10-48d7-8b7d-86ad3f603b85) execution [#3](" +
				rundeck + "execution/show/3) for welcome-project-community is running long. :time_ticking:"},
		{"pagerduty/011", map[string]any{"messages": []any{map[string]any{"type": "incident.resolve",
			"data": map[string]any{"incident": map[string]any{"incident_number": 1, "html_url": "https://e.org/1",
				"trigger_summary_data": map[string]any{"subject": "a", "description": "b"}}}}}}, "",
			"Incident [1](https://e.org/1) resolved.\n\n``` quote\na\nb\n```"},
	})
}

// TestLogSearches holds the form of the matches of a search in logs: each message quoted below its time, source and
// query, and a link to the others from the fourth on.
func TestLogSearches(t *testing.T) {
	set, err := Included()
	if err != nil {
		t.Fatal(err)
	}
	const match = `{"display_received_at":"May 18","source_name":"db","program":"cron","message":"down"}`
	const quoted = "\nMay 18 - db - error:\n``` quote\ndown\n```"
	for n := 1; n <= 5; n++ {
		want := fmt.Sprintf("[Search for \"s\"](https://e.org/s) found **%d** matches:\n", n) +
			strings.Repeat(quoted, min(n, 4))
		if n >= 4 {
			want += "\n[See more](https://e.org/s)"
		}
		body := `{"saved_search":{"name":"s","query":"error","html_search_url":"https://e.org/s"},"events":[` +
			strings.TrimSuffix(strings.Repeat(match+",", n), ",") + `]}`
		r := Request{ContentType: "application/x-www-form-urlencoded", Params: url.Values{},
			Body:   []byte(url.Values{"payload": {body}}.Encode()),
			Header: func(string) string { return "" }}
		result, err := set.Find("papertrail").Handle(r, Filter{})
		if err != nil || len(result.Messages) != 1 {
			t.Fatalf("%d matches: error %v", n, err)
		}
		if got := result.Messages[0].Text; got != want {
			t.Errorf("%d matches:\n got %q\nwant %q", n, got, want)
		}
	}
}
