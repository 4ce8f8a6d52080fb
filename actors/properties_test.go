package actors

import (
	"fmt"
	"testing"
)

// Many changes in one request cause the same events as one request for each: every change, in order, two events for a
// muted channel. One answer to a poll has them all.
func TestManySubscriptionProperties(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
		ann := createOrganization(t, srv, "ann")[0]
		mustCall(t, srv, ann, "POST /users/me/subscriptions",
			params{"subscriptions": []any{map[string]any{"name": "here"}}})
		channel := mustCall(t, srv, ann, "GET /get_stream_id", params{"stream": "here"})["stream_id"]
		queue := mustCall(t, srv, ann, "POST /register", params{"event_types": []string{"subscription"}})
		var changes []any
		for i := range 100 {
			changes = append(changes, map[string]any{"stream_id": channel, "property": "color",
				"value": fmt.Sprintf("#%06x", i)}, map[string]any{"stream_id": channel, "property": "is_muted",
				"value": i%2 == 0})
		}
		last := any(-1)
		heard := func() (out []string) {
			for _, x := range mustCall(t, srv, ann, "GET /events", params{"queue_id": queue["queue_id"],
				"last_event_id": last, "dont_block": true})["events"].([]any) {
				e := x.(map[string]any)
				last = e["id"]
				delete(e, "id")
				out = append(out, fmt.Sprint(e))
			}
			return out
		}
		var one []string
		for _, c := range changes {
			mustCall(t, srv, ann, "POST /users/me/subscriptions/properties", params{"subscription_data": []any{c}})
			one = append(one, heard()...)
		}
		if len(one) != 300 {
			t.Fatalf("%d events for 200 changes, of which 100 mute or unmute", len(one))
		}
		mustCall(t, srv, ann, "POST /users/me/subscriptions/properties", params{"subscription_data": changes})
		if all := heard(); fmt.Sprint(all) != fmt.Sprint(one) {
			t.Errorf("events of one request:\n%v\nwant\n%v", all, one)
		}
		closeServer(t, srv)
	})
}
