package offsite

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Hourly backups of two years: all of the last day stay, and the newest of each of the days, weeks and months, however
// often and in which steps older ones are removed.
func TestKeep(t *testing.T) {
	k, err := ParseKeep("7d,4w,12m")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 15, 12, 30, 0, 0, time.UTC)
	var stepwise []Backup
	var all []Backup
	for at := now.AddDate(-2, 0, 0).Truncate(time.Hour); !at.After(now); at = at.Add(time.Hour) {
		b := Backup{Name: at.Format(listTime), Begun: at}
		all = append(all, b)
		stepwise, _ = k.split(append(stepwise, b), at)
	}
	stepwise, _ = k.split(stepwise, now)
	stay, removed := k.split(all, now)
	if len(stay)+len(removed) != len(all) {
		t.Errorf("%d stay and %d are removed of %d", len(stay), len(removed), len(all))
	}
	have := map[string]bool{}
	for _, b := range stay {
		have[b.Name] = true
	}
	for _, name := range []string{"20260315T120000Z", "20260314T130000Z", "20260309T230000Z", "20260301T230000Z",
		"20260228T230000Z", "20250430T230000Z"} {
		if !have[name] {
			t.Errorf("%s was removed", name)
		}
	}
	for _, name := range []string{"20260313T120000Z", "20260308T220000Z", "20250331T230000Z"} {
		if have[name] {
			t.Errorf("%s has stayed", name)
		}
	}
	names := func(list []Backup) string {
		var out []string
		for _, b := range list {
			out = append(out, b.Name)
		}
		return strings.Join(out, " ")
	}
	if a, b := names(stay), names(stepwise); a != b {
		t.Errorf("removed at once, these stay: %s\nremoved hour by hour: %s", a, b)
	}
	if stay, removed := (Keep{}).split(all, now); len(stay) != len(all) || len(removed) != 0 {
		t.Error("without a limit backups were removed")
	}
	for _, text := range []string{"7", "d", "0d", "-1d", "7x", "7d,,", "9999m", "7d 4w"} {
		if _, err := ParseKeep(text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A status says how late the next backup is.
func TestOverdue(t *testing.T) {
	now := time.Unix(100_000, 0)
	for _, c := range []struct {
		status Status
		want   time.Duration
	}{
		{Status{}, 0},
		{Status{Newest: 10}, 0},
		{Status{Interval: 3600, Started: 99_000}, 0},
		{Status{Interval: 3600, Started: 90_000}, 6400 * time.Second},
		{Status{Interval: 3600, Started: 50_000, Newest: 96_000}, 400 * time.Second},
	} {
		if got := c.status.Overdue(now); got != c.want {
			t.Errorf("%+v is overdue by %v, want %v", c.status, got, c.want)
		}
	}
}
