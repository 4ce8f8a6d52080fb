package actors

import (
	"fmt"
	"slices"
	"testing"

	"parley/actors/realm"
)

// Changing the flags of very many messages takes several turns, but is one request to its caller: all of it is done, a
// refusal refuses all of it, and the answer covers all parts.
func TestFlagManyMessages(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
		people := createOrganization(t, srv, "ann", "bob")
		ann, bob := people[0], people[1]
		var ids, channels []int64
		for _, name := range []string{"left", "stays", "left too"} {
			mustCall(t, srv, ann, "POST /users/me/subscriptions",
				params{"subscriptions": []any{map[string]any{"name": name}}, "principals": people})
			ids = append(ids, int64(mustCall(t, srv, ann, "POST /messages", params{"type": "stream", "to": name,
				"topic": "t", "content": "hi"})["id"].(float64)))
			channels = append(channels,
				int64(mustCall(t, srv, ann, "GET /get_stream_id", params{"stream": name})["stream_id"].(float64)))
		}
		flags := func(id int64) []any {
			return mustCall(t, srv, bob, "GET /messages/{message_id}",
				params{"message_id": id})["message"].(map[string]any)["flags"].([]any)
		}
		// many repeats messages in a list so often that each is in another part of it.
		many := func(ids ...int64) (out []int64) {
			for _, id := range ids {
				out = append(out, slices.Repeat([]int64{id}, realm.MaxFlagged)...)
			}
			return out
		}
		a := mustCall(
			t,
			srv,
			bob,
			"POST /messages/flags",
			params{"messages": many(ids...), "op": "add", "flag": "read"},
		)
		if list, ok := a["ignored_because_not_subscribed_channels"].([]any); !ok || len(list) != 0 {
			t.Errorf("marking messages as read names channels: %v", a)
		}
		for _, id := range ids {
			if !slices.Contains(flags(id), any("read")) {
				t.Errorf("message %d is not read: %v", id, flags(id))
			}
		}
		if a := <-call(srv, bob, "POST /messages/flags", params{"messages": many(ids[0], ids[1], 1_000_000),
			"op": "add", "flag": "starred"}); a.status != 400 || a.body["msg"] != "Invalid message(s)" {
			t.Errorf("starring a message that does not exist: %d %v", a.status, a.body)
		}
		if a := <-call(srv, bob, "POST /messages/flags", params{"messages": many(ids[0], ids[1], 1_000_000),
			"op": "remove", "flag": "read"}); a.status != 400 || a.body["msg"] != "Invalid message(s)" {
			t.Errorf("marking a message that does not exist as unread: %d %v", a.status, a.body)
		}
		if f := flags(ids[0]); slices.Contains(f, any("starred")) || !slices.Contains(f, any("read")) {
			t.Errorf("a part of a refused request was done: %v", f)
		}
		mustCall(t, srv, bob, "POST /messages/flags", params{"messages": many(ids...), "op": "add", "flag": "starred"})
		mustCall(t, srv, bob, "DELETE /users/me/subscriptions", params{"subscriptions": []string{"left", "left too"}})
		a = mustCall(t, srv, bob, "POST /messages/flags", params{"messages": many(ids...), "op": "remove",
			"flag": "read"})
		if got, want := fmt.Sprint(a["ignored_because_not_subscribed_channels"]),
			fmt.Sprint([]int64{channels[0], channels[2]}); got != want {
			t.Errorf("channels %s were left out, want %s", got, want)
		}
		for i, want := range []bool{true, false, true} {
			f := flags(ids[i])
			if slices.Contains(f, any("read")) != want || !slices.Contains(f, any("starred")) {
				t.Errorf("message %d has flags %v", i, f)
			}
		}
		closeServer(t, srv)
	})
}
