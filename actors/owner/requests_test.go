package owner

import (
	"fmt"
	"testing"

	"parley/actors/realm"
)

// The set of recent ids has a bounded size and keeps the newest ones.
func TestRecentRequestsAreBounded(t *testing.T) {
	var r recentRequests
	for n := range realm.Seq(MaxRecentRequests + 10) {
		r.add(fmt.Sprint(n), n)
	}
	if len(r.seqs) != MaxRecentRequests || len(r.order) != MaxRecentRequests {
		t.Errorf("%d ids in a list of %d", len(r.seqs), len(r.order))
	}
	if _, found := r.seqs["9"]; found {
		t.Error("an old id is kept")
	}
	if n, found := r.seqs["10"]; !found || n != 10 {
		t.Error("a recent id is forgotten")
	}
}
