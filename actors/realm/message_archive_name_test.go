package realm

import (
	"testing"
	"time"
)

// TestArchiveDates compares the dates in the names of archives with those of package time, which this package does not
// import.
func TestArchiveDates(t *testing.T) {
	for at := int64(0); at < 5_000_000_000; at += 12_345_67 {
		if got, want := dateOf(at), time.Unix(at, 0).UTC().Format(time.DateOnly); got != want {
			t.Fatalf("the date of %d is %s, want %s", at, got, want)
		}
	}
	for _, day := range []string{"2000-02-29", "2024-02-29", "2024-03-01", "2026-12-31", "2100-02-28", "2100-03-01"} {
		at, _ := time.Parse(time.DateOnly, day)
		if got := dateOf(at.Unix()); got != day {
			t.Errorf("the date of %s is %s", day, got)
		}
	}
}
