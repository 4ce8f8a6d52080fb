package migration

import (
	"testing"

	"parley/actors/realm"
)

// Two policies for one topic, as the realm compares topics, become the last one. Topics that the realm keeps apart
// keep both.
func TestPoliciesFoldTopicsAsTheRealm(t *testing.T) {
	for _, c := range []struct {
		first, second string
		want          int
	}{{"Deploy", "dePLOY", 1}, {"ÄRGER", "ärger", 1}, {"straſe", "strase", 2}, {"σ", "ς", 2}} {
		got := lastOfEach([]realm.TopicPolicy{{Channel: 1, Topic: c.first, Policy: 1},
			{Channel: 1, Topic: c.second, Policy: 3}})
		if len(got) != c.want || got[len(got)-1].Policy != 3 {
			t.Errorf("%q and %q: policies %v, want %d", c.first, c.second, got, c.want)
		}
	}
}
