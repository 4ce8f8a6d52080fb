package offsite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Keep says which backups stay in the bucket: all of the last day, and the newest of each of the last Days, Weeks and
// Months in which there are any. Days, weeks and months are those of UTC. The zero value keeps all.
type Keep struct{ Days, Weeks, Months int }

const (
	keepAll = 24 * time.Hour
	maxKeep = 1000
)

// ParseKeep parses a value such as 7d,4w,12m.
func ParseKeep(text string) (k Keep, err error) {
	if text == "" {
		return k, nil
	}
	for _, part := range strings.Split(text, ",") {
		var n int
		if len(part) > 1 {
			n, err = strconv.Atoi(part[:len(part)-1])
		}
		if err != nil || n < 1 || n > maxKeep {
			return Keep{}, fmt.Errorf("keep must be numbers of days, weeks and months such as 7d,4w,12m, not %q", text)
		}
		switch part[len(part)-1] {
		case 'd':
			k.Days = n
		case 'w':
			k.Weeks = n
		case 'm':
			k.Months = n
		default:
			return Keep{}, fmt.Errorf("keep must be numbers of days, weeks and months such as 7d,4w,12m, not %q", text)
		}
	}
	return k, nil
}

// split returns the backups that stay and those that are removed, oldest first.
func (k Keep) split(list []Backup, now time.Time) (stay, removed []Backup) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Backup) int { return b.Begun.Compare(a.Begun) })
	day := func(t time.Time) string { return t.Format(time.DateOnly) }
	week := func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprint(y, " ", w) }
	month := func(t time.Time) string { return t.Format("2006-01") }
	periods := []struct {
		left int
		of   func(time.Time) string
		last string
	}{{k.Days, day, ""}, {k.Weeks, week, ""}, {k.Months, month, ""}}
	for i, b := range list {
		keep := k == Keep{} || i == 0 || now.Sub(b.Begun) <= keepAll
		for p := range periods {
			if at := periods[p].of(b.Begun.UTC()); periods[p].left > 0 && at != periods[p].last {
				periods[p].left--
				periods[p].last = at
				keep = true
			}
		}
		if keep {
			stay = append(stay, b)
		} else {
			removed = append(removed, b)
		}
	}
	slices.Reverse(stay)
	slices.Reverse(removed)
	return stay, removed
}
