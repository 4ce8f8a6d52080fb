package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A presence report on the fast path has the same answer and the same effect for other users as one that the ordinary
// handler gets.
func TestFastPresenceReportsEqualOrdinaryOnes(t *testing.T) {
	debug := freeAddress(t)
	p := demo(t, t.TempDir(), "--debug-listen", debug)
	at := p.serving()
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	bot := demoAccount(t, at, "demo-bot@example.org")
	ping := func(more ...string) string {
		v := url.Values{"status": {"active"}, "ping_only": {"true"}, "new_user_input": {"false"}}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v.Encode()
	}
	// the first report causes an event
	rawPost(t, at, "/api/v1/users/me/presence", "Authorization: "+ann.auth()+"\r\n", ping())
	for _, c := range []struct {
		name, form string
		who        *account
		quick      bool
		want       string
	}{
		{"a ping", ping(), ann, true, `"presence_last_update_id":-1,"result":"success"`},
		{"idle", ping("status", "idle"), ann, true, `"presence_last_update_id":-1`},
		{"with an update id", ping("last_update_id", "7"), ann, true, `"presence_last_update_id":7`},
		{"with an unknown parameter", ping("mood", "good"), ann, true, `"ignored_parameters_unsupported":["mood"]`},
		{"a bot's", ping(), bot, false, "This endpoint does not accept bot requests."},
		{"asleep", ping("status", "asleep"), ann, false, "Invalid status: asleep"},
		{"without status", "ping_only=true", ann, false, "Missing 'status' argument"},
		{"a bad update id", ping("last_update_id", "x"), ann, false, "not valid JSON"},
	} {
		before := fastRequests(t, debug)
		authorization := "Authorization: " + c.who.auth() + "\r\nUser-Agent: test/1\r\n"
		quick := rawPost(t, at, "/api/v1/users/me/presence", authorization, c.form)
		ordinary := rawPost(t, at, "/api/v1/users/me/presence", authorization+"User-Agent: test/1\r\n", c.form)
		got := fastRequests(t, debug) - before
		// the event loop updates its counter at the end of a round
		for end := time.Now().Add(binaryTimeout); c.quick && got < 1 && time.Now().Before(end); {
			got = fastRequests(t, debug) - before
		}
		if (got == 1) != c.quick || got > 1 {
			t.Errorf("%s: %d on the fast path", c.name, got)
		}
		if quick != ordinary {
			t.Errorf("%s: on the fast path\n%sby the ordinary handler\n%s", c.name, quick, ordinary)
		}
		if !strings.Contains(quick, c.want) {
			t.Errorf("%s: %q is not in\n%s", c.name, c.want, quick)
		}
	}

	queue := bo.must(t, "POST", "register", url.Values{"event_types": {`["presence"]`}, "slim_presence": {"true"}})
	cy := demoAccount(t, at, "cy@example.org")
	rawPost(t, at, "/api/v1/users/me/presence", "Authorization: "+cy.auth()+"\r\n", ping())
	events := bo.must(t, "GET", "events", url.Values{"queue_id": {queue["queue_id"].(string)}, "last_event_id": {"-1"},
		"dont_block": {"true"}})["events"].([]any)
	if len(events) != 1 || events[0].(map[string]any)["type"] != "presence" {
		t.Errorf("when a user comes online others receive %v", events)
	}
	seen := func(who *account) any {
		id := fmt.Sprint(who.must(t, "GET", "users/me", nil)["user_id"])
		return ann.must(t, "POST", "users/me/presence",
			url.Values{"status": {"idle"}, "last_update_id": {"-1"}})["presences"].(map[string]any)[id]
	}
	if seen(cy) == nil {
		t.Error("the user who reported is not in the list")
	}
	cy.must(t, "PATCH", "settings", url.Values{"presence_enabled": {"false"}}) // the user appears offline at once
	hidden := fmt.Sprint(seen(cy))
	rawPost(t, at, "/api/v1/users/me/presence", "Authorization: "+cy.auth()+"\r\n", ping())
	if now := fmt.Sprint(seen(cy)); now != hidden {
		t.Errorf("a user with hidden presence was shown as %s, and after a report as %s", hidden, now)
	}
}
