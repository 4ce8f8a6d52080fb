package actors

import (
	"slices"
	"testing"
)

// The topics of a channel are listed by their newest message, and named as it spells them.
func TestTopicsNewestFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := openHouse(t, &slowDisk{platter: newPlatter()})
		ann := found(t, h, "ann")[0]
		for _, topic := range []string{"Alpha", "beta", "gamma", "alpha", ""} {
			must(t, h, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": topic, "content": "hi"})
		}
		channel := must(t, h, ann, "GET /get_stream_id", params{"stream": "one"})["stream_id"]
		var names []string
		for _, x := range must(t, h, ann, "GET /users/me/{stream_id}/topics", params{"stream_id": channel, "allow_empty_topic_name": true})["topics"].([]any) {
			names = append(names, x.(map[string]any)["name"].(string))
		}
		if got := names[:min(4, len(names))]; !slices.Equal(got, []string{"", "alpha", "gamma", "beta"}) {
			t.Errorf("the topics are %q", names)
		}
		endHouse(t, h)
	})
}
