package realm_test

import (
	"fmt"
	"testing"

	. "parley/actors/realm"
)

// TestEditHistoryIsBounded edits and moves one message far more often than its history keeps. The first text and the
// first topic stay, as do the newest; texts that the history no longer shows are erased.
func TestEditHistoryIsBounded(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "first", "text 0")
	for n := range MaxTextEditsInHistory + 25 {
		do(s, s.ann, s.editText(id, fmt.Sprint("text ", n+1)))
	}
	for n := range MaxMovesInHistory + 25 {
		do(s, s.ann, moveToTopic(id, MoveOne, fmt.Sprint("topic ", n)))
	}
	var versions []uint16
	var topics []string
	for _, r := range s.info(id).History {
		if r.Content {
			versions = append(versions, r.Version)
		} else {
			topics = append(topics, *r.TopicBefore)
		}
	}
	if len(versions) != MaxTextEditsInHistory || len(topics) != MaxMovesInHistory {
		t.Fatalf("%d edits and %d moves are kept", len(versions), len(topics))
	}
	if newest := uint16(MaxTextEditsInHistory + 24); versions[0] != 0 || versions[1] != 26 || versions[99] != newest {
		t.Errorf("kept versions: %v", versions)
	}
	if topics[0] != "first" || topics[1] != "topic 25" || topics[99] != fmt.Sprint("topic ", MaxMovesInHistory+23) {
		t.Errorf("kept topics: %v", topics)
	}
}
