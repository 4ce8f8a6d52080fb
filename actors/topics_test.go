package actors

import (
	"slices"
	"testing"
)

// The topics of a channel are listed by their newest message, and spelled as in that message.
func TestTopicsNewestFirst(t *testing.T) {
	runSynctest(t, func(t *testing.T) {
		srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
		ann := createOrganization(t, srv, "ann")[0]
		for _, topic := range []string{"Alpha", "beta", "gamma", "alpha", ""} {
			mustCall(t, srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": topic,
				"content": "hi"})
		}
		channel := mustCall(t, srv, ann, "GET /get_stream_id", params{"stream": "one"})["stream_id"]
		var names []string
		for _, x := range mustCall(t, srv, ann, "GET /users/me/{stream_id}/topics",
			params{"stream_id": channel, "allow_empty_topic_name": true})["topics"].([]any) {
			names = append(names, x.(map[string]any)["name"].(string))
		}
		if got := names[:min(4, len(names))]; !slices.Equal(got, []string{"", "alpha", "gamma", "beta"}) {
			t.Errorf("the topics are %q", names)
		}
		closeServer(t, srv)
	})
}
