package cluster

import (
	"testing"
	"time"
)

// A request that the owner has not carried out is sent again as soon as there is another link, not after a fixed time.
func TestForwardAgainOverNextLink(t *testing.T) {
	c := startTestCore(t, "")
	edge := startTestEdge(c, "b", nil)
	first, err := edge.waitForLink(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	returned := make(chan struct{})
	go func() {
		edge.waitForOtherLink(t.Context(), first, time.Hour)
		close(returned)
	}()
	edge.change(func() {}) // wakes it, but the link is the same one
	select {
	case <-returned:
		t.Fatal("the request was sent again over the link that has refused it")
	default:
	}
	c.SetLeader(false)
	eventually(t, "the edge has lost its link", func() bool { return !edge.IsReady() })
	c.SetLeader(true)
	select {
	case <-returned:
	case <-time.After(testTimeout):
		t.Fatal("the request still waits although there is another link")
	}
	if next, err := edge.waitForLink(t.Context(), false); err != nil || next == first {
		t.Errorf("the next link is %p, the first one was %p: %v", next, first, err)
	}
	edge.waitForOtherLink(t.Context(), first, time.Hour) // returns at once
}
