package server

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// A question that every caller is refused proves nothing: the refusal may have another cause than the permission. So at
// least one caller of each question is allowed, unless neverAllowed has the question with the exact refusal.

// neverAllowed are the endpoints, and the questions of tables, that are refused to every caller of the matrix, with the
// refusal of the callers that have the permission, and the reason. An unnecessary row fails the test.
var neverAllowed = []struct{ question, text, why string }{
	{"GET /calls/bigbluebutton/create", "BigBlueButton is not configured.", "needs an external service"},
	{"POST /calls/constructorgroups/create", "Constructor Groups is not configured.", "needs an external service"},
	{"POST /calls/nextcloud_talk/create", "Nextcloud Talk is not configured.", "needs an external service"},
	{"POST /calls/webex/create", "Webex credentials have not been configured", "needs an external service"},
	{"POST /calls/zoom/create", "Zoom credentials have not been configured", "needs an external service"},
	{"DELETE /users/me/web_push", "Token does not exist", "needs a push service; TestWebPush ends a subscription"},
	{"DELETE /export/realm/{export_id}", "Invalid data export ID", "needs an export that is done, which takes a disk"},
	{"POST /compliance_exports", "This organization does not demand that two owners agree.", "the demand cannot end"},
	{"POST /compliance_exports/{request_id}", "Invalid request ID", "needs a request of another owner"},
	{"DELETE /users/me/data_exports/{export_id}", "Invalid data export ID", "needs a file, which takes a disk"},
	{"POST /jwt/fetch_api_key", "JWT authentication is not enabled for this organization",
		"needs a key in the configuration"},
	{"GET /gifs", "GIFs are not enabled on this server.", "needs an external service"},
	{"GET /messages/meaning", "Search by meaning is not enabled on this server.", "needs an external service"},
	{"GET /messages/summary", "Topic summaries are not enabled on this server.", "needs an external service"},
	{"GET /messages/{message_id}/translation", "Translations are not enabled on this server.",
		"needs an external service"},
	{"POST /assisted_texts", "Topic summaries are not enabled on this server.", "needs an external service"},
	{"GET /assisted_texts/{text_key}", "Translations are not enabled on this server.", "needs an external service"},
	{"DELETE /assisted_texts/{text_key}", "Translations are not enabled on this server.",
		"needs an external service"},
	{"POST /mobile_push/test_notification", "Device not recognized", "needs a push service"},
	{"POST /mobile_push/register", "Invalid 'device_id'", "needs a push service"},
	{"POST /mobile_push/e2ee/test_notification", "Server is not configured to use push notification service.",
		"needs a push service"},
	{"POST /remotes/push/e2ee/register", "This server does not pass on push notifications for others.",
		"is for push services"},
	{"GET /zulip-services/verify/{access_token}", "Verification secret not prepared", "is for push services"},

	{"POST /users/{user_id}/api_keys of a person", noPermission, "only a person makes keys of the own account"},
	{"Messages: edit", noEdit, "only the sender edits a text"},
	{"Messages: type an edit", noEdit, "only the sender edits a text"},
	{"DirectMessages: edit", noEdit, "only the sender edits a text"},
	{"DirectMessages: type an edit", noEdit, "only the sender edits a text"},
	{"DirectMessages: move to a topic", "Direct messages cannot have topics.", "direct messages have no topics"},
	{"DirectMessages: move to a channel", "Direct messages cannot be moved to channels.",
		"direct messages belong to their participants"},
}

const noEdit = "You don't have permission to edit this message"

// neverAllowedAt returns the row of a question or endpoint, or -1.
func neverAllowedAt(question string) int {
	return slices.IndexFunc(neverAllowed, func(x struct{ question, text, why string }) bool {
		return x.question == question
	})
}

// refusedByLogin reports whether an endpoint refuses all callers that log in in this way.
func (l *coverage) refusedByLogin(endpoint string) bool {
	return l.login != bySession && slices.Contains(neverByKey, endpoint) ||
		l.login == byAdditionalKey && slices.Contains(neverByAdditionalKey, endpoint)
}

// askedQuestion has the outcomes of a question so far.
type askedQuestion struct {
	allowed  bool // at least one caller
	refusals map[string]bool
}

func (q *askedQuestion) note(refusal string) {
	if q.refusals == nil {
		q.refusals = map[string]bool{}
	}
	if refusal == "" || refusal == "shown" {
		q.allowed = true
		return
	}
	q.refusals[refusal] = true
}

// checkNever compares a question or endpoint with neverAllowed.
func (l *coverage) checkNever(t *testing.T, question string, q *askedQuestion) {
	t.Helper()
	at := neverAllowedAt(question)
	if at >= 0 {
		l.never(at)
	}
	switch {
	case q.allowed && at >= 0:
		t.Errorf("%s was not refused: remove its row from neverAllowed", question)
	case q.allowed, l.refusedByLogin(question):
	case at < 0:
		t.Errorf("%s: refused to every caller: %q. Add a cell with an allowed caller, or a row with the reason to "+
			"neverAllowed", question, slices.Sorted(maps.Keys(q.refusals)))
	case !q.refusals[neverAllowed[at].text]:
		t.Errorf("%s: refused with %q, not with the text in neverAllowed: %q", question,
			slices.Sorted(maps.Keys(q.refusals)), neverAllowed[at].text)
	default:
		t.Logf("refused to every caller: %s: %s", question, neverAllowed[at].why)
	}
}

func (l *coverage) never(at int) {
	l.Lock()
	defer l.Unlock()
	l.neverUsed[at] = true
}

// checkUnusedNever fails for the rows of neverAllowed that no table and no endpoint needed.
func (l *coverage) checkUnusedNever(t *testing.T) {
	for i, x := range neverAllowed {
		if !l.neverUsed[i] {
			t.Errorf("%s is in neverAllowed, but no cell asks it", x.question)
		}
	}
}

// checkAnswer is check for an answer to a question of a table. The question is part of the table's name, unless it
// begins with a method.
func (c *matrixServer) checkAnswer(question, got, want, name string, args ...any) bool {
	c.Helper()
	if c.questions == nil {
		c.questions = map[string]*askedQuestion{}
	}
	if c.questions[question] == nil {
		c.questions[question] = &askedQuestion{}
	}
	c.questions[question].note(got)
	return c.check(got, want, name, args...)
}

// checkQuestions fails for every question of the table that no caller was allowed to do.
func (c *matrixServer) checkQuestions() {
	c.Helper()
	for _, question := range slices.Sorted(maps.Keys(c.questions)) {
		c.coverage.checkNever(c.T, question, c.questions[question])
	}
}

// question returns the name of a question of the running table.
func (c *matrixServer) question(name string) string { return fmt.Sprint(tableOf(c.Name()), ": ", name) }
