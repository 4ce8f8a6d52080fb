package actors

import (
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"parley/actors/realm"
)

// A client that asked for partial lists of subscribers gets, when its user is subscribed, the same list that a
// registration has: all subscribers of a small channel; of a large one only bots and users of the last two weeks.
func TestPartialSubscribersInEvents(t *testing.T) {
	var wall atomic.Int64
	wall.Store(1_700_000_000)
	d := &slowDisk{diskContents: newDiskContents()}
	open := func() *Server {
		return openServerWith(t, d, Options{Now: func() time.Time { return time.Unix(wall.Load(), 0) }})
	}
	srv := open()
	var names []string
	for i := range realm.FullSubscriberListLimit + 5 {
		names = append(names, fmt.Sprintf("u%d", i))
	}
	crowd := createOrganization(t, srv, names...)
	ann, gone, here := crowd[0], crowd[7], crowd[9]
	bot := realm.UserID(mustCall(t, srv, ann, "POST /bots",
		params{"full_name": "Robo", "short_name": "robo"})["user_id"].(float64))
	mustCall(t, srv, gone, "POST /users/me/presence", params{"status": "active"})
	wall.Add(10 * 86400)
	mustCall(t, srv, here, "POST /users/me/presence", params{"status": "active"})
	if err := srv.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	closeServer(t, srv)
	srv = open()
	defer closeServer(t, srv)
	wall.Add(5 * 86400)

	var others []realm.UserID
	mustCall(t, srv, ann, "DELETE /users/me/subscriptions", params{"subscriptions": []string{"one", "two"}})
	mustCall(t, srv, ann, "POST /users/me/subscriptions", params{"subscriptions": []any{map[string]any{"name": "one"}},
		"principals": []realm.UserID{bot}})
	mustCall(t, srv, ann, "POST /users/me/subscriptions",
		params{"subscriptions": []any{map[string]any{"name": "small"}},
			"principals": crowd[2 : realm.FullSubscriberListLimit/2]})
	mustCall(t, srv, ann, "DELETE /users/me/subscriptions", params{"subscriptions": []string{"small"},
		"principals": append(others, here)})
	listen := func(how string) map[string]any {
		return mustCall(t, srv, ann, "POST /register", params{"include_subscribers": how,
			"event_types": []string{"subscription"}, "fetch_event_types": []string{"subscription"}})
	}
	partial, full, none := listen("partial"), listen("true"), listen("false")
	told := func(q map[string]any) map[string]map[string]any {
		out := map[string]map[string]any{}
		for _, e := range mustCall(t, srv, ann, "GET /events", params{"queue_id": q["queue_id"], "last_event_id": -1,
			"dont_block": true})["events"].([]any) {
			if e := e.(map[string]any); e["op"] == "add" {
				for _, s := range e["subscriptions"].([]any) {
					out[s.(map[string]any)["name"].(string)] = s.(map[string]any)
				}
			}
		}
		return out
	}
	mustCall(t, srv, ann, "POST /users/me/subscriptions", params{"subscriptions": []any{map[string]any{"name": "one"}}})
	mustCall(t, srv, ann, "POST /users/me/subscriptions",
		params{"subscriptions": []any{map[string]any{"name": "two"}, map[string]any{"name": "small"}}})
	ids := func(v any) (out []realm.UserID) {
		list, _ := v.([]any)
		for _, x := range list {
			out = append(out, realm.UserID(x.(float64)))
		}
		return out
	}
	events := told(partial)
	for name, want := range map[string][]realm.UserID{"one": {ann, here, bot}, "two": {ann, here}} {
		if _, whole := events[name]["subscribers"]; whole || !slices.Equal(ids(events[name]["partial_subscribers"]),
			want) {
			t.Errorf("partial list of %s is %v, want %v", name, events[name]["partial_subscribers"], want)
		}
	}
	if _, part := events["small"]["partial_subscribers"]; part ||
		len(ids(events["small"]["subscribers"])) != realm.FullSubscriberListLimit/2-2 {
		t.Errorf("a small channel has a partial list: %v", events["small"])
	}
	for _, s := range listen("partial")["subscriptions"].([]any) {
		s := s.(map[string]any)
		for _, list := range []string{"subscribers", "partial_subscribers"} {
			if !reflect.DeepEqual(s[list], events[s["name"].(string)][list]) {
				t.Errorf("%s of %v: %v by events, %v by register", list, s["name"], events[s["name"].(string)][list],
					s[list])
			}
		}
	}
	for name, n := range map[string]int{"one": len(crowd) + 1, "two": len(crowd),
		"small": realm.FullSubscriberListLimit/2 - 2} {
		if o := told(full)[name]; len(ids(o["subscribers"])) != n {
			t.Errorf("a client that wants all subscribers of %s got %d of %d", name, len(ids(o["subscribers"])), n)
		}
		for _, list := range []string{"subscribers", "partial_subscribers"} {
			if _, any := told(none)[name][list]; any {
				t.Errorf("a client that wants no subscribers got %s of %s", list, name)
			}
		}
	}
}
