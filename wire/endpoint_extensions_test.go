package wire

import (
	"slices"
	"strings"
	"testing"
)

// pinnedExtensions are all endpoints that the protocol's description does not contain. A new one is a decision: it
// needs a line here and a reason at the endpoint.
var pinnedExtensions = []string{
	"OPTIONS /tus", "OPTIONS /tus/{upload}", "HEAD /tus/{upload}", "GET /tus/{upload}", "PATCH /tus/{upload}",
	"DELETE /tus/{upload}",
	"GET /compatibility",
	"GET /zulip-services/verify/{access_token}",
	"GET /users/me/api_keys", "POST /users/me/api_keys", "DELETE /users/me/api_keys/{key_id}",
	"GET /users/{user_id}/api_keys", "POST /users/{user_id}/api_keys", "DELETE /users/{user_id}/api_keys/{key_id}",
	"POST /users/me/confirmation",
	"GET /audit_log", "PATCH /audit_log",
	"GET /places",
	"GET /compliance_exports", "PATCH /compliance_exports", "POST /compliance_exports",
	"POST /compliance_exports/{request_id}",
	"GET /users/me/data_exports", "POST /users/me/data_exports", "DELETE /users/me/data_exports/{export_id}",
	"GET /analytics/chart_data", "GET /analytics/chart_data/stream/{stream_id}", "GET /usage",
	"POST /external/{integration}", "HEAD /external/{integration}",
	"GET /messages/{message_id}/translation",
	"POST /assisted_texts", "GET /assisted_texts/{text_key}", "DELETE /assisted_texts/{text_key}",
	"POST /calls/livekit", "GET /calls/livekit/{call_key}", "POST /calls/livekit/{call_key}/token",
	"GET /people", "GET /gifs", "GET /messages/meaning",
	"GET /bot_commands", "PUT /bots/{bot_id}/commands",
	"GET /bots/{bot_id}/deliveries", "POST /bots/{bot_id}/deliveries",
	"GET /users/me/web_push", "POST /users/me/web_push", "DELETE /users/me/web_push",
}

// pinnedOwnParameters are all parameters, of the other endpoints, that the protocol's description does not contain.
var pinnedOwnParameters = []string{
	"PATCH /settings keep_api_keys", "PATCH /settings/display keep_api_keys",
	"PATCH /settings/notifications keep_api_keys",
	"POST /users/me/api_key/regenerate password",
	"GET /messages/{message_id}/history offset",
	"POST /messages/flags/narrow anchor_date",
	"POST /scheduled_messages repeat", "PATCH /scheduled_messages/{scheduled_message_id} repeat",
	"POST /users/me/presence presence_user_ids",
	"PATCH /realm assistant_enabled", "PATCH /realm meaning_search_enabled",
	"PATCH /realm allow_browser_push",
	"PATCH /realm allow_external_pictures",
	"PATCH /realm allow_livekit_calls",
	"PATCH /realm allow_message_emails",
	"PATCH /realm allow_mobile_push",
	"PATCH /realm allow_outgoing_webhooks",
	"PATCH /realm/user_settings_defaults allow_private_data_export",
	"PATCH /realm/user_settings_defaults default_language",
	"PATCH /realm/user_settings_defaults enable_login_emails",
	"PATCH /realm/user_settings_defaults enable_marketing_emails",
}

// minReason is the length of the shortest text in bytes that can be a reason.
const minReason = 20

// TestExtensions compares the marks of extensions with the pinned list, without the protocol's description.
func TestExtensions(t *testing.T) {
	var marked []string
	for _, e := range Endpoints() {
		if e.Extension == "" {
			continue
		}
		marked = append(marked, e.name)
		if len(e.Extension) < minReason {
			t.Errorf("%s: the extension has no reason: %q", e.name, e.Extension)
		}
	}
	compareExtensions(t, marked, pinnedExtensions)
}

// TestOwnParameters does the same with the marks of parameters. The parameters of an extension need no mark. The
// OpenAPI document has the reasons.
func TestOwnParameters(t *testing.T) {
	var marked []string
	document := string(OpenAPI())
	for _, e := range Endpoints() {
		for _, p := range e.Params() {
			if p.Extension == "" {
				continue
			}
			name := e.name + " " + p.Name
			marked = append(marked, name)
			if len(p.Extension) < minReason {
				t.Errorf("%s: the extension has no reason: %q", name, p.Extension)
			}
			if !strings.Contains(document, `"`+extensionMark+`": "`+p.Extension+`"`) {
				t.Errorf("%s: the OpenAPI document does not have the reason", name)
			}
			if e.Extension != "" {
				t.Errorf("%s: the endpoint is an extension, so its parameters need no mark", name)
			}
		}
	}
	compareExtensions(t, marked, pinnedOwnParameters)
}

func compareExtensions(t *testing.T, marked, pinned []string) {
	t.Helper()
	for _, name := range marked {
		if !slices.Contains(pinned, name) {
			t.Errorf("%s is marked as an extension, but not in the list of this test", name)
		}
	}
	for _, name := range pinned {
		if !slices.Contains(marked, name) {
			t.Errorf("%s is in the list of this test, but not marked as an extension", name)
		}
	}
}
