package wire

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testedAlone is the reason for endpoints that have tests of their own.
const testedAlone = "has tests of its own"

// outsideCrowds lists the endpoints that change something and that no random crowd calls, each with its reason. Crowds
// are the asks of bench/crowd and the steps of TestMirrors.
var outsideCrowds = map[string]string{
	"POST /calls/constructorgroups/create":        "returns a link of another service, changes nothing",
	"POST /calls/nextcloud_talk/create":           "returns a link of another service, changes nothing",
	"POST /calls/webex/create":                    "returns a link of another service, changes nothing",
	"POST /calls/zoom/create":                     "returns a link of another service, changes nothing",
	"POST /realm/deactivate":                      "ends the organization that the crowd is in",
	"POST /export/realm":                          testedAlone + "; no client state depends on exports",
	"DELETE /export/realm/{export_id}":            testedAlone + "; no client state depends on exports",
	"POST /external/{integration}":                "sends a message as a bot: the same command as POST /messages",
	"DELETE /invites/{invite_id}":                 "crowds receive no emails; invitation links are in crowds",
	"POST /invites/{invite_id}/resend":            "crowds receive no emails; invitation links are in crowds",
	"POST /jwt/fetch_api_key":                     "a login, changes nothing that clients show",
	"POST /fetch_api_key":                         "a login, changes nothing that clients show",
	"POST /dev_fetch_api_key":                     "a login, changes nothing that clients show",
	"POST /users/me/api_key/regenerate":           "ends the caller's own clients",
	"POST /users/me/web_push":                     testedAlone + "; subscriptions are in no event and no register",
	"DELETE /users/me/web_push":                   testedAlone + "; subscriptions are in no event and no register",
	"PATCH /compliance_exports":                   testedAlone + "; requests are in no event and no register",
	"POST /compliance_exports":                    testedAlone + "; requests are in no event and no register",
	"POST /compliance_exports/{request_id}":       testedAlone + "; requests are in no event and no register",
	"POST /users/me/data_exports":                 testedAlone + "; no client state depends on exports",
	"DELETE /users/me/data_exports/{export_id}":   testedAlone + "; no client state depends on exports",
	"POST /assisted_texts":                        testedAlone + "; texts of services are in no event and no register",
	"DELETE /assisted_texts/{text_key}":           testedAlone + "; texts of services are in no event and no register",
	"POST /calls/livekit":                         testedAlone + "; calls are in no register",
	"POST /calls/livekit/{call_key}/token":        testedAlone + "; it changes nothing that clients show",
	"PATCH /audit_log":                            testedAlone + "; the log is in no event and no register",
	"POST /users/me/confirmation":                 "is about the caller's session only",
	"POST /users/me/api_keys":                     testedAlone + "; keys are in no event and no register",
	"DELETE /users/me/api_keys/{key_id}":          testedAlone + "; keys are in no event and no register",
	"POST /users/{user_id}/api_keys":              testedAlone + "; keys are in no event and no register",
	"DELETE /users/{user_id}/api_keys/{key_id}":   testedAlone + "; keys are in no event and no register",
	"POST /messages/render":                       "renders a text, changes nothing",
	"POST /realm/test_welcome_bot_custom_message": "sends one direct message: the same fact as POST /messages",
	"POST /users/me/apns_device_token":            "push tokens are in no event and no register",
	"DELETE /users/me/apns_device_token":          "push tokens are in no event and no register",
	"POST /users/me/android_gcm_reg_id":           "push tokens are in no event and no register",
	"DELETE /users/me/android_gcm_reg_id":         "push tokens are in no event and no register",
	"POST /mobile_push/test_notification":         "sends a push notification, changes nothing",
	"POST /mobile_push/register":                  "crowds have no push service; register_client_device is in crowds",
	"POST /mobile_push/e2ee/test_notification":    "sends a push notification, changes nothing",
	"POST /remotes/push/e2ee/register":            "crowds have no push service",
	"POST /tus":                                   testedAlone + "; plain uploads are in crowds",
	"PATCH /tus/{upload}":                         testedAlone + "; plain uploads are in crowds",
	"DELETE /tus/{upload}":                        testedAlone + "; plain uploads are in crowds",
	"PATCH /settings/display":                     "older form of PATCH /settings",
	"PATCH /settings/notifications":               "older form of PATCH /settings",
	"PUT /bot_storage":                            "bots' storage is in no event and no register",
	"DELETE /bot_storage":                         "bots' storage is in no event and no register",
	"PUT /bots/{bot_id}/commands":                 "bots' commands are in no event and no register",
	"POST /bots/{bot_id}/deliveries":              testedAlone + "; calls of services are in no event and no register",
	"PATCH /users/me/subscriptions":               "older form: the same commands as POST and DELETE",
	"PATCH /users/me/subscriptions/{stream_id}":   "older form of POST /users/me/subscriptions/properties",
	"PATCH /users/{email}":                        "the same command as PATCH /users/{user_id}",
	"DELETE /users/me":                            "closes the caller's account; DELETE /users/{user_id} is in crowds",
}

// outsideMirrors lists the kinds of events that bench/mirror does not know, each with its reason.
var outsideMirrors = map[string]string{
	"call": "clients ring for a call and stop; no register has it",
}

// TestCrowdsCallEveryEndpoint fails for an endpoint that changes something and is called by no crowd: the test that
// compares clients' state with a fresh register would never see its events.
func TestCrowdsCallEveryEndpoint(t *testing.T) {
	text := sources(t, "../bench/crowd/*.go", "../actors/mirror_test.go")
	// Crowds write most calls out; of the others they choose the method: choose(a, "POST", "DELETE")+" /path".
	call := regexp.MustCompile(`"((?:POST|PATCH|PUT|DELETE)? /[^"?]*)`)
	var called []string
	for _, m := range call.FindAllStringSubmatch(text, -1) {
		called = append(called, m[1])
	}
	for _, e := range Endpoints() {
		name := e.Method + " " + e.Path
		known := e.Method == "GET" || e.Method == "HEAD" || e.Method == "OPTIONS" || slices.Contains(called, name) ||
			e.Method != "PATCH" && slices.Contains(called, " "+e.Path)
		switch reason, outside := outsideCrowds[name]; {
		case !known && !outside:
			t.Errorf("%s is called by no crowd: add it to bench/crowd, or to outsideCrowds with a reason", name)
		case known && outside:
			t.Errorf("%s is called by a crowd now: take it out of outsideCrowds (%s)", name, reason)
		}
	}
}

// TestMirrorsKnowEveryEvent fails for a kind of event that bench/mirror does not know.
func TestMirrorsKnowEveryEvent(t *testing.T) {
	text := sources(t, "../bench/mirror/*.go")
	for _, s := range eventShapes {
		known := strings.Contains(text, `"`+s.kind+`":`)
		if _, outside := outsideMirrors[s.kind]; known == outside {
			t.Errorf("event %s: in bench/mirror %v, in outsideMirrors %v; it must be in one of the two", s.kind, known,
				outside)
		}
	}
}

func sources(t *testing.T, patterns ...string) string {
	t.Helper()
	var out strings.Builder
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		if err != nil || len(files) == 0 {
			t.Fatalf("no sources at %s: %v", p, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(b)
		}
	}
	return out.String()
}
