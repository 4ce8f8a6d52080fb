// Package calendar computes the times of repeated messages in time zones. The time of day is the local time of the
// zone, also after a clock change.
package calendar

import (
	"time"

	"parley/actors/realm"
)

// Next returns the first time of a repeated message after a time, both in Unix seconds; false if its time zone is not
// known. A day has at most one time. A time of day that the clocks skip moves by the skipped time, and of a time that
// they show twice the first is taken. In a month that is too short, a monthly message is sent on the last day.
func Next(p realm.Repeat, after int64) (int64, bool) {
	if p.Zone == "" || p.Zone == "Local" { // "Local" is the zone of the server
		return 0, false
	}
	zone, err := time.LoadLocation(p.Zone)
	if err != nil {
		return 0, false
	}
	first := time.Unix(p.First, 0).In(zone)
	from := time.Unix(after, 0).In(zone)
	for day := dateOf(from.Year(), from.Month(), from.Day()); ; day = day.AddDate(0, 0, 1) {
		if !isDay(p.Every, day, first) {
			continue
		}
		if at := localTimeOn(day, first, zone); at > after {
			return at, true
		}
	}
}

// dateOf returns the noon of a day in UTC, which represents the day without a time zone.
func dateOf(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 12, 0, 0, 0, time.UTC)
}

// isDay reports whether a message is sent on a day.
func isDay(every string, day, first time.Time) bool {
	switch every {
	case "weekdays":
		return day.Weekday() != time.Saturday && day.Weekday() != time.Sunday
	case "weekly":
		return day.Weekday() == first.Weekday()
	case "monthly":
		lastDay := dateOf(day.Year(), day.Month()+1, 0).Day()
		return day.Day() == min(first.Day(), lastDay)
	}
	return true
}

const secondsPerDay = 24 * 60 * 60

// localTimeOn returns the Unix time at which the clocks of a zone show the time of day of first on a day.
func localTimeOn(day, first time.Time, zone *time.Location) int64 {
	year, month, date := day.Date()
	local := time.Date(year, month, date, first.Hour(), first.Minute(), first.Second(), 0, time.UTC).Unix()
	_, before := time.Unix(local-secondsPerDay, 0).In(zone).Zone()
	_, after := time.Unix(local+secondsPerDay, 0).In(zone).Zone()
	for _, offset := range []int{max(before, after), min(before, after)} { // the earlier time first
		at := local - int64(offset)
		if _, is := time.Unix(at, 0).In(zone).Zone(); is == offset {
			return at
		}
	}
	return local - int64(before) // the clocks skip this time
}
