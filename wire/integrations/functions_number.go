package integrations

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

func (e *execution) ordered(a, b any, want, or int) (bool, error) {
	x, err := e.number(a)
	if err != nil {
		return false, e.absent("%v", err)
	}
	y, err := e.number(b)
	if err != nil {
		return false, e.absent("%v", err)
	}
	c := cmp.Compare(x, y)
	return c == want || c == or, nil
}

// int returns the whole part of a number.
func (e *execution) int(v any) (any, error) {
	f, err := e.number(v)
	if err != nil {
		return gone, e.absent("%v", err)
	}
	return int64(f), nil
}

// number returns a value as a number. It returns an *Anomaly if it is none.
func (e *execution) number(v any) (float64, error) {
	if err := e.spend(1); err != nil {
		return 0, err
	}
	s, err := text(v)
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		return 0, &Anomaly{Reason: "a number is " + strconv.Quote(truncate(s, 20, "..."))}
	}
	return f, nil
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (e *execution) arithmetic(f func(a, b float64) float64) func(a, b any) (json.Number, error) {
	return func(a, b any) (json.Number, error) {
		x, err := e.number(a)
		if err != nil {
			return gone, e.absent("%v", err)
		}
		y, err := e.number(b)
		if err != nil {
			return gone, e.absent("%v", err)
		}
		return json.Number(formatNumber(f(x, y))), nil
	}
}

// round returns a number with a fixed count of digits after the point.
func (e *execution) round(digits int, v any) (string, error) {
	f, err := e.number(v)
	if err != nil {
		return gone, e.absent("%v", err)
	}
	return strconv.FormatFloat(f, 'f', min(max(digits, 0), 12), 64), nil
}

// timeLayouts are the forms of times in payloads besides numbers of seconds or milliseconds.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05 -0700",

	"2006-01-02 15:04:05 MST", "2006-01-02 15:04:05.999999999-07:00", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04:05.999-0700", "2006-01-02"}

// time formats a time as a layout of package time says, in UTC unless the time names a zone.
func (e *execution) time(layout string, v any) (string, error) {
	s, err := e.textOf(v)
	if err != nil {
		return "", err
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		const firstMillisecond = 1e11 // as seconds, this is the year 5138
		if f >= firstMillisecond {
			f /= 1000
		}
		return time.UnixMilli(int64(f * 1000)).UTC().Format(layout), nil
	}
	for _, in := range timeLayouts {
		if t, err := time.Parse(in, s); err == nil {
			return t.Format(layout), nil
		}
	}
	return s, e.absent("a time is %q", truncate(s, 40, "..."))
}

// newrelicTime formats a time in milliseconds as New Relic's readers expect it, with a zone of +00:00.
func (e *execution) newrelicTime(v any) (string, error) {
	s, err := e.textOf(v)
	if err != nil || !strings.ContainsAny(s, "0123456789") {
		return cmp.Or(s, gone), err
	}
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil || ms < 0 || ms > maxMilliseconds {
		return "", &Refused{"The newrelic webhook expects time in milliseconds."}
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000000") + "+00:00", nil
}

// maxMilliseconds is the end of the year 9999.
const maxMilliseconds = 253_402_300_799_999
