package presence

import (
	"testing"

	"parley/actors/realm"
)

// With a limit, the rows that changed first are taken first, and no change is forgotten.
func TestTakeChangedWithALimit(t *testing.T) {
	table := New()
	for u := realm.UserID(9); u > 0; u-- {
		table.Report(u, true, 1000)
	}
	var got []realm.UserID
	for rows := table.TakeChanged(4); len(rows) > 0; rows = table.TakeChanged(4) {
		if len(rows) > 4 {
			t.Errorf("%d rows at once", len(rows))
		}
		for _, r := range rows {
			got = append(got, r.User)
		}
	}
	want := []realm.UserID{6, 7, 8, 9, 2, 3, 4, 5, 1}
	if len(got) != len(want) {
		t.Fatalf("took %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("took %v instead of %v", got, want)
			break
		}
	}
}
