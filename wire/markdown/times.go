package markdown

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// times replaces <time:…>. Other text remains plain text (protocol, since level 451).
func (r *renderer) times(text string) string {
	e := rewriter{src: text}
	for i := 0; ; {
		next := strings.Index(text[i:], "<time:")
		if next < 0 {
			return e.finish()
		}
		i += next
		end := strings.IndexByte(text[i:], '>')
		if end < 0 {
			return e.finish()
		}
		end += i
		source := r.unmark(text[i+len("<time:") : end])
		n := r.textNode(kindText, "<time:"+source+">")
		if t, ok := parseTime(source, r.options.Now); ok {
			n = r.atom(tagTime, source, attr{"datetime", isoTime(t)})
		}
		e.replace(i, end+1, r.placeholder(n))
		i = end + 1
	}
}

func isoTime(t time.Time) string {
	if t.Nanosecond() == 0 {
		return t.Format("2006-01-02T15:04:05Z")
	}
	return t.Format("2006-01-02T15:04:05.000000Z")
}

// maxTimeLength is the length of the longest time, in bytes; longer texts are no time.
const maxTimeLength = 100

// parseTime parses the common forms of a time: ISO 8601, names of months, zones, seconds since 1970. Without a zone
// it is UTC. Missing parts of the date are taken from now; if now is zero such a time is invalid.
func parseTime(s string, now time.Time) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > maxTimeLength {
		return time.Time{}, false
	}
	t, ok := readTime(s, now)
	if !ok {
		t, ok = unixTime(s)
	}
	t = t.UTC()
	return t, ok && t.Year() >= 1 && t.Year() <= 9999
}

func unixTime(s string) (time.Time, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 253402300799 { // the end of the year 9999
		return time.Time{}, false
	}
	whole, part := math.Modf(f)
	return time.Unix(int64(whole), int64(math.Round(part*1e6))*1000), true
}

var months = []string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
	"november", "december"}
var weekdays = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// fillers are words without meaning in a time.
var fillers = map[string]bool{"at": true, "on": true, "and": true, "of": true, "ad": true, "t": true, "st": true,
	"nd": true,
	"rd": true, "th": true, "m": true}

// zones are common abbreviations, in minutes east of Greenwich.
var zones = map[string]int{
	"z": 0, "utc": 0, "gmt": 0, "wet": 0, "west": 60, "bst": 60, "cet": 60, "cest": 120, "met": 60, "mest": 120,
	"eet": 120, "eest": 180,
	"sast": 120, "cat": 120, "wat": 60, "eat": 180, "msk": 180, "trt": 180, "gst": 240, "pkt": 300, "ist": 330,
	"npt": 345,
	"wib": 420, "ict": 420, "hkt": 480, "sgt": 480, "pht": 480, "pst8": -480, "awst": 480, "wita": 480, "jst": 540,
	"kst": 540, "wit": 540,
	"acst": 570, "acdt": 630, "aest": 600, "aedt": 660, "chst": 600, "nzst": 720, "nzdt": 780, "sst": -660,
	"hst": -600, "hdt": -540,
	"akst": -540, "akdt": -480, "pst": -480, "pdt": -420, "mst": -420, "mdt": -360, "cst": -360, "cdt": -300,
	"est": -300, "edt": -240,
	"ast": -240, "adt": -180, "nst": -210, "ndt": -150, "brt": -180, "art": -180, "clt": -240, "cot": -300, "pet": -300,
}

// partialTime is a partly parsed time.
type partialTime struct {
	year, month, day     int
	hour, minute, second int
	nano                 int
	offset               int // minutes east of Greenwich
	zoned, timed         bool
	numbers              []dateNumber
}

// dateNumber is a number of a date that can be a day, month or year.
type dateNumber struct {
	value, digits int
}

func word(s string, i int) int {
	for i < len(s) && isAlpha(s[i]) {
		i++
	}
	return i
}

func digits(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

func readTime(s string, now time.Time) (time.Time, bool) {
	var m partialTime
	for i := 0; i < len(s); {
		ok := true
		switch c := s[i]; {
		case isDigit(c):
			i, ok = m.number(s, i)
		case isAlpha(c):
			end := word(s, i)
			ok = m.word(strings.ToLower(s[i:end]))
			i = end
		case (c == '+' || c == '-') && m.timed && !m.zonedByNumber(s, i):
			i, ok = m.zone(s, i)
		case strings.IndexByte(" ,.;-/'T", c) >= 0:
			i++
		default:
			ok = false
		}
		if !ok {
			return time.Time{}, false
		}
	}
	return m.time(now)
}

// zonedByNumber reports whether the sign at i does not begin an offset: no digit follows it.
func (m *partialTime) zonedByNumber(s string, i int) bool {
	return i+1 >= len(s) || !isDigit(s[i+1])
}

func (m *partialTime) number(s string, i int) (int, bool) {
	end := digits(s, i)
	n, digitCount := 0, end-i
	if digitCount > 14 {
		return 0, false
	}
	n, _ = strconv.Atoi(s[i:end])
	if end < len(s) && s[end] == ':' && digitCount <= 2 && !m.timed {
		return m.clock(s, end+1, n)
	}
	if next, ok := m.separated(s, i, end); ok {
		return next, true
	}
	// Digits without separators.
	switch {
	case (digitCount == 6 || digitCount == 4) && !m.timed && m.dated():
		return end, m.compactClock(s[i:end])
	case digitCount == 14, digitCount == 12, digitCount == 8 && m.year == 0:
		m.year, m.month, m.day = n, 0, 0
		d := s[i:end]
		m.year, _ = strconv.Atoi(d[:4])
		m.month, _ = strconv.Atoi(d[4:6])
		m.day, _ = strconv.Atoi(d[6:8])
		if m.month == 0 || m.day == 0 {
			return 0, false
		}
		if digitCount > 8 {
			return end, m.compactClock(d[8:])
		}
		return end, true
	case digitCount == 6 && !m.timed && len(m.numbers) == 0 && m.month == 0:
		for ; i < end; i += 2 {
			m.numbers = append(m.numbers, number(s[i:i+2]))
		}
		return end, true
	case digitCount > 4:
		return 0, false
	}
	// An hour with am or pm.
	next := end
	for next < len(s) && s[next] == ' ' {
		next++
	}
	switch strings.ToLower(s[next:word(s, next)]) {
	case "am", "pm", "a", "p":
		if !m.timed && n >= 1 && n <= 12 {
			m.hour, m.timed = n, true
			return end, true
		}
	case "h":
		if !m.timed && n < 24 {
			m.hour, m.timed = n, true
			next = word(s, next)
			if end = digits(s, next); end > next && end-next <= 2 {
				m.minute, _ = strconv.Atoi(s[next:end])
			}
			return end, true
		}
	}
	m.numbers = append(m.numbers, dateNumber{n, digitCount})
	return end, len(m.numbers) <= 3
}

// dated reports whether the whole date is parsed.
func (m *partialTime) dated() bool {
	return m.year != 0 || len(m.numbers) == 3 || len(m.numbers) == 2 && m.month != 0
}

// separated parses a date like 2031-05-06, 5/6/2031 or 6-May-2031 whose first number is s[i:end].
func (m *partialTime) separated(s string, i, end int) (next int, ok bool) {
	if end >= len(s) || strings.IndexByte("-/.", s[end]) < 0 || end-i > 4 || len(m.numbers) > 0 || m.dated() {
		return 0, false
	}
	separator := s[end]
	numbers := []dateNumber{number(s[i:end])}
	month := 0
	for end < len(s) && s[end] == separator && len(numbers) < 3 {
		from := end + 1
		to := digits(s, from)
		if to > from && to-from <= 4 {
			numbers = append(numbers, number(s[from:to]))
		} else if to = word(s, from); month == 0 && monthOf(strings.ToLower(s[from:to])) > 0 {
			month = monthOf(strings.ToLower(s[from:to]))
		} else {
			break
		}
		end = to
	}
	parts := len(numbers)
	if month > 0 {
		parts++
	}
	if parts < 2 || separator == '.' && parts < 3 {
		return 0, false
	}
	m.numbers = append(m.numbers, numbers...)
	if month > 0 {
		m.month = month
	}
	return end, true
}

func number(s string) dateNumber {
	n, _ := strconv.Atoi(s)
	return dateNumber{n, len(s)}
}

// monthOf returns the number of a month by its name or the first letters of it, or 0.
func monthOf(w string) int {
	for i, name := range months {
		if w == name || w == name[:3] || w == "sept" && i == 8 {
			return i + 1
		}
	}
	return 0
}

func (m *partialTime) compactClock(d string) bool {
	m.timed = true
	m.hour, _ = strconv.Atoi(d[:2])
	m.minute, _ = strconv.Atoi(d[2:4])
	if len(d) > 4 {
		m.second, _ = strconv.Atoi(d[4:6])
	}
	return true
}

// clock parses minutes and seconds after the first colon.
func (m *partialTime) clock(s string, i, hour int) (int, bool) {
	m.hour, m.timed = hour, true
	end := digits(s, i)
	if end == i || end-i > 2 {
		return 0, false
	}
	m.minute, _ = strconv.Atoi(s[i:end])
	if end < len(s) && s[end] == ':' {
		i = end + 1
		if end = digits(s, i); end == i || end-i > 2 {
			return 0, false
		}
		m.second, _ = strconv.Atoi(s[i:end])
		if end+1 < len(s) && (s[end] == '.' || s[end] == ',') && isDigit(s[end+1]) {
			i = end + 1
			end = digits(s, i)
			fraction := (s[i:end] + "000000")[:6]
			micro, _ := strconv.Atoi(fraction)
			m.nano = micro * 1000
		}
	}
	return end, true
}

// zone parses an offset like +02:00, -0530 or +2.
func (m *partialTime) zone(s string, i int) (int, bool) {
	sign := 1
	if s[i] == '-' {
		sign = -1
	}
	if m.zoned && isAlpha(s[i-1]) { // in GMT+3 three hours are added to get GMT, as other servers do
		sign = -sign
	}
	i++
	end := digits(s, i)
	hours, minutes := 0, 0
	switch end - i {
	case 1, 2:
		hours, _ = strconv.Atoi(s[i:end])
		if end+2 < len(s) && s[end] == ':' && digits(s, end+1) == end+3 {
			minutes, _ = strconv.Atoi(s[end+1 : end+3])
			end += 3
		}
	case 4:
		hours, _ = strconv.Atoi(s[i : i+2])
		minutes, _ = strconv.Atoi(s[i+2 : end])
	default:
		return 0, false
	}
	if hours >= 24 || minutes >= 60 {
		return 0, false
	}
	m.offset, m.zoned = sign*(hours*60+minutes), true
	return end, true
}

func (m *partialTime) word(w string) bool {
	switch {
	case w == "am" || w == "a" || w == "pm" || w == "p":
		if !m.timed || m.hour > 12 {
			return false
		}
		m.hour %= 12
		if w[0] == 'p' {
			m.hour += 12
		}
		return true
	case fillers[w]:
		return true
	}
	if month := monthOf(w); month > 0 {
		if m.month != 0 {
			return false
		}
		m.month = month
		return true
	}
	for _, name := range weekdays {
		if w == name || len(w) >= 3 && len(w) <= 5 && strings.HasPrefix(name, w) {
			return true
		}
	}
	if offset, ok := zones[w]; ok && m.timed && !m.zoned {
		m.offset, m.zoned = offset, true
		return true
	}
	return false
}

// centuryTurn is the number of years in the future from which a year of two digits means the last century.
const centuryTurn = 50

// date assigns the numbers of the date to day, month and year.
func (m *partialTime) date(now time.Time) bool {
	n := m.numbers
	for _, d := range n {
		if d.digits > 2 && d.value == 0 {
			return false
		}
	}
	year := func(d dateNumber) {
		m.year = d.value
		if d.digits <= 2 {
			m.year += 2000
			if turn := max(now.UTC().Year(), 2025) + centuryTurn; m.year >= turn {
				m.year -= 100
			}
		}
	}
	isYear := func(d dateNumber) bool { return d.value > 31 || d.digits > 2 }
	if len(n) == 1 {
		if isYear(n[0]) {
			year(n[0])
		} else {
			m.day = n[0].value
			return m.day > 0
		}
		return true
	}
	if m.month != 0 && m.day == 0 { // the month was given by name
		if len(n) == 2 {
			if isYear(n[0]) {
				n[0], n[1] = n[1], n[0]
			}
			m.day = n[0].value
			year(n[1])
		}
		return len(n) <= 2
	}
	switch len(n) {
	case 2:
		switch {
		case isYear(n[0]):
			year(n[0])
			m.month = n[1].value
			if n[1].digits > 2 {
				return false
			}
		case isYear(n[1]):
			m.month = n[0].value
			year(n[1])
		case n[0].value > 12:
			m.day, m.month = n[0].value, n[1].value
		default:
			m.month, m.day = n[0].value, n[1].value
		}
	case 3:
		if m.year != 0 {
			return false
		}
		switch {
		case isYear(n[0]):
			year(n[0])
			m.month, m.day = n[1].value, n[2].value
			if n[1].digits > 2 || n[2].digits > 2 {
				return false
			}
		case n[0].value > 12:
			m.day, m.month = n[0].value, n[1].value
			year(n[2])
		default:
			m.month, m.day = n[0].value, n[1].value
			if m.day > 31 {
				return false
			}
			year(n[2])
		}
	}
	return true
}

func (m *partialTime) time(now time.Time) (time.Time, bool) {
	named := m.month != 0 || m.day != 0 || len(m.numbers) > 0
	if !m.date(now) || !named && !m.timed {
		return time.Time{}, false
	}
	if m.year == 0 || m.month == 0 || m.day == 0 {
		if now.IsZero() {
			return time.Time{}, false
		}
		if m.year == 0 {
			m.year = now.UTC().Year()
		}
		if m.month == 0 {
			m.month = int(now.UTC().Month())
		}
		if m.day == 0 {
			m.day = min(now.UTC().Day(), daysIn(m.year, m.month))
		}
	}
	if m.month > 12 || m.day > daysIn(m.year, m.month) || m.hour > 23 || m.minute > 59 || m.second > 59 {
		return time.Time{}, false
	}
	t := time.Date(m.year, time.Month(m.month), m.day, m.hour, m.minute, m.second, m.nano, time.UTC)
	return t.Add(-time.Duration(m.offset) * time.Minute), true
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}
