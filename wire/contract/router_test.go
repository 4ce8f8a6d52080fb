package contract

import (
	"slices"
	"strings"
	"testing"

	"parley/wire"
)

// TestRouterAgainstTheList compares the server's endpoints with the list of all endpoints. Missing ones are
// logged, additional ones are errors.
func TestRouterAgainstTheList(t *testing.T) {
	c := load(t)
	shape := func(method, path string) string { return method + " " + inBraces.ReplaceAllString(path, "{}") }
	served := map[string]bool{}
	for _, e := range wire.Endpoints() {
		served[shape(e.Method, strings.ReplaceAll(e.Path, ":*", ""))] = true
	}
	listed := map[string]bool{}
	var missing, defined []string
	for _, e := range c.Endpoints() {
		s := shape(e.Method, e.Path)
		listed[s] = true
		if !served[s] {
			missing = append(missing, e.Method+" "+e.Path)
			if e.Spec == "YES" {
				defined = append(defined, e.Method+" "+e.Path)
			}
		}
	}
	t.Logf("%d of %d listed endpoints are missing, %d of them defined by the specification:\n  %s", len(missing),
		len(c.Endpoints()),
		len(defined), strings.Join(missing, "\n  "))
	for s := range served {
		if !listed[s] && !slices.Contains(aliases, s) {
			t.Errorf("%s is served, but not in the protocol", s)
		}
	}
}

// aliases are routes outside the list that some clients need, each with its reason.
var aliases = []string{
	// The later steps of a resumable upload; the list has the first.
	"OPTIONS /tus", "OPTIONS /tus/{}", "HEAD /tus/{}", "GET /tus/{}", "PATCH /tus/{}", "DELETE /tus/{}",
	"GET /compatibility",            // asked by the web app before it reloads, and by the former mobile app
	"GET /zulip-services/verify/{}", // the push service proves with it who owns this host name
	// Additional API keys, an extension of this server.
	"GET /users/me/api_keys", "POST /users/me/api_keys", "DELETE /users/me/api_keys/{}",
	"GET /users/{}/api_keys", "POST /users/{}/api_keys", "DELETE /users/{}/api_keys/{}",
	// Incoming webhooks of other services. Some check an address with HEAD before they use it.
	"POST /external/{}", "HEAD /external/{}",
	// Notifications of browsers, an extension of this server.
	"GET /users/me/web_push", "POST /users/me/web_push", "DELETE /users/me/web_push",
}
