package bench

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Threshold is a limit for one value of a run, for example "p99(send) < 200ms". Thresholds and guarantees decide the
// exit code of a run.
type Threshold struct {
	Text  string
	stat  string // p99, mean, rate and so on; empty for a counter or a figure
	of    string // kind of request, "seen", or "all"; the name of a counter or figure if stat is empty
	phase string // empty: all phases together
	op    string
	limit float64 // in the base unit of the value: ms, percent, or none
	unit  string  // as it was written
}

// A Checked is a threshold with the value that a run measured.
type Checked struct {
	Threshold string  `json:"threshold"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit,omitempty"`
	Kept      bool    `json:"kept"`
	Note      string  `json:"note,omitempty"`
}

const (
	// maxThresholds bounds the thresholds of one run.
	maxThresholds = 1000
	// maxThresholdText bounds one expression, in bytes.
	maxThresholdText = 200
)

var (
	thresholdForm = regexp.MustCompile(`^\s*([A-Za-z][A-Za-z0-9_. -]*?)\s*(?:\(\s*([a-z]+)\s*(?:,\s*([^()]+?)\s*)?\))?` +
		`\s*(<=|>=|==|!=|<|>)\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z%]*(?:/s)?)\s*$`)
	percentileForm = regexp.MustCompile(`^p([0-9]{1,2}(?:\.[0-9]{1,3})?|100)$`)
)

// statistics are the functions of a threshold besides percentiles, with the base unit of their values.
var statistics = map[string]string{"mean": "ms", "max": "ms", "min": "ms", "rate": "/s", "count": ""}

// counters of a run that a threshold can name, with the kinds of violations they count. A counter without a kind is
// computed from the answers.
var thresholdCounters = map[string][]string{
	"lost": {"loss", "stuck"}, "duplicated": {"duplicate"}, "reordered": {"reorder", "event id"}, "leaked": {"leak"},
	"truncated": {"truncated", "bad answer"}, "late": {"late"}, "unstored": {"not stored"},
	"queues_lost": {"queue lost"}, "broken": nil, "errors": nil, "refused": nil, "rate_limited": nil, "requests": nil,
	"deliveries": nil,
}

// ParseThreshold reads an expression VALUE OP LIMIT. VALUE is STATISTIC(KIND) or STATISTIC(KIND, PHASE), a counter, or
// the name of a figure. The error says which part is wrong.
func ParseThreshold(text string) (Threshold, error) {
	t := Threshold{Text: strings.TrimSpace(text)}
	fail := func(format string, args ...any) (Threshold, error) {
		return t, fmt.Errorf("threshold %.*q: %s", maxThresholdText, text, fmt.Sprintf(format, args...))
	}
	if len(text) > maxThresholdText {
		return fail("it is longer than %d bytes", maxThresholdText)
	}
	m := thresholdForm.FindStringSubmatch(text)
	if m == nil {
		return fail("it must be VALUE OPERATOR LIMIT, for example 'p99(send) < 200ms', 'lost == 0' or 'errors < 0.1%%'")
	}
	name, of := m[1], m[2]
	t.phase, t.op, t.unit = m[3], m[4], m[6]
	limit, err := strconv.ParseFloat(m[5], 64)
	if err != nil {
		return fail("%q is not a number", m[5])
	}
	base := ""
	switch _, counter := thresholdCounters[name]; {
	case of != "":
		unit, known := statistics[name]
		if percentileForm.MatchString(name) {
			unit, known = "ms", true
		}
		if !known {
			return fail("there is no statistic %q; there are p0 to p100, %s", name, sortedList(statistics))
		}
		if of != "seen" && of != "all" && !slices.Contains(kindNames[:], of) {
			return fail("there is no kind of request %q; there are seen, all, %s", of, strings.Join(kindNames[:], ", "))
		}
		if of == "poll" && unit == "ms" {
			return fail("polls wait on purpose and have no latency: use seen")
		}
		t.stat, t.of, base = name, of, unit
	case counter:
		t.of = name
	case strings.Contains(name, "."):
		t.of, base = name, "figure" // its unit is known after the run
	default:
		return fail("there is no counter %q; there are %s, and figures such as chat.send_p99", name,
			sortedList(thresholdCounters))
	}
	if t.limit, err = convert(limit, t.unit, base, t.of); err != nil {
		return fail("%v", err)
	}
	return t, nil
}

func sortedList[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// convert returns a limit in the base unit of a value.
func convert(limit float64, unit, base, of string) (float64, error) {
	times := map[string]float64{"us": 0.001, "ms": 1, "s": 1000, "m": 60000}
	switch base {
	case "ms":
		if unit == "" {
			return limit, nil
		}
		if f, ok := times[unit]; ok {
			return limit * f, nil
		}
		return 0, fmt.Errorf("a latency has the unit us, ms, s or m, not %q", unit)
	case "figure":
		if f, ok := times[unit]; ok {
			return limit * f, nil
		}
		return limit, nil
	case "/s":
		if unit == "" || unit == "/s" {
			return limit, nil
		}
		return 0, fmt.Errorf("a rate has the unit /s, not %q", unit)
	}
	if unit == "" || unit == "%" && slices.Contains([]string{"errors", "refused", "rate_limited"}, of) {
		return limit, nil
	}
	return 0, fmt.Errorf("%s has no unit %q", of, unit)
}

// thresholdList collects the values of --threshold.
type thresholdList []Threshold

func (l *thresholdList) String() string { return "" }

func (l *thresholdList) Set(text string) error {
	if len(*l) >= maxThresholds {
		return fmt.Errorf("more than %d thresholds", maxThresholds)
	}
	t, err := ParseThreshold(text)
	if err == nil {
		*l = append(*l, t)
	}
	return err
}

// totals hold the measurements of one phase, or of all of them, that thresholds need. Their histograms are exact sums
// of those of the phases.
type totals struct {
	Seconds     float64
	Requests    int64
	Deliveries  int64
	Errors      int64 // 5xx and lost answers
	Refused     int64 // other answers than 200
	RateLimited int64 // answers with status 429
	kinds       [kindCount]tally
	seen        *hdrhistogram.Histogram
}

func newTotals() *totals { return &totals{seen: newHist()} }

// add adds the measurements of a phase.
func (t *totals) add(m *meter) {
	t.Seconds += (m.end - m.begin).Seconds()
	t.Deliveries += m.delivered
	t.seen.Merge(m.seen)
	for k := range m.kinds {
		from, to := &m.kinds[k], &t.kinds[k]
		to.n += from.n
		to.bytes += from.bytes
		t.Requests += from.n
		if from.latency != nil {
			if to.latency == nil {
				to.latency = newHist()
			}
			to.latency.Merge(from.latency)
		}
		for status, n := range from.status {
			if to.status == nil {
				to.status = map[int]int64{}
			}
			to.status[status] += n
			switch {
			case status == 0 || status >= 500:
				t.Errors += n
			case status == 429:
				t.RateLimited += n
			default:
				t.Refused += n
			}
		}
	}
}

// histogram returns the latencies of a kind of request, of all kinds but polls, or from send to seen.
func (t *totals) histogram(of string) *hdrhistogram.Histogram {
	if of == "seen" {
		return t.seen
	}
	all := newHist()
	for k := range t.kinds {
		if h := t.kinds[k].latency; h != nil && k != kindPoll && (of == "all" || of == kindNames[k]) {
			all.Merge(h)
		}
	}
	return all
}

// count returns the number of answers of a kind.
func (t *totals) count(of string) (n int64) {
	if of == "seen" {
		return t.Deliveries
	}
	for k := range t.kinds {
		if of == "all" && k != kindPoll || of == kindNames[k] {
			n += t.kinds[k].n
		}
	}
	return n
}

// check compares a threshold with a result. A value that was not measured does not keep it.
func (t Threshold) check(res *Result) Checked {
	c := Checked{Threshold: t.Text}
	v, unit, note, ok := t.value(res)
	c.Value, c.Unit, c.Note = v, unit, note
	if !ok {
		return c
	}
	switch t.op {
	case "<":
		c.Kept = v < t.limit
	case "<=":
		c.Kept = v <= t.limit
	case ">":
		c.Kept = v > t.limit
	case ">=":
		c.Kept = v >= t.limit
	case "==":
		c.Kept = v == t.limit
	case "!=":
		c.Kept = v != t.limit
	}
	if why := res.refused(); why != "" && !c.Kept && (unit == "ms" || unit == "/s") {
		c.Note = "no verdict on rates and latencies: " + why
	}
	return c
}

// value returns the measured value, its unit, and a note if it was not measured.
func (t Threshold) value(res *Result) (v float64, unit, note string, ok bool) {
	sum := res.totals[t.phase]
	if sum == nil {
		return 0, "", fmt.Sprintf("not measured: the run has no phase %q", t.phase), false
	}
	if t.stat != "" {
		n := sum.count(t.of)
		h := sum.histogram(t.of)
		switch t.stat {
		case "count":
			return float64(n), "", "", true
		case "rate":
			if sum.Seconds <= 0 {
				return 0, "/s", "not measured", false
			}
			return float64(n) / sum.Seconds, "/s", "", true
		}
		if h.TotalCount() == 0 {
			return 0, "ms", "not measured: no " + t.of + " was answered", false
		}
		return statistic(h, t.stat), "ms", "", true
	}
	if f, found := res.Figure(t.of); found {
		v = f.Value
		if f.Unit == "s" { // limits with a unit of time are in ms
			v, f.Unit = v*1000, "ms"
		}
		return v, f.Unit, f.Note, true
	}
	kinds, counter := thresholdCounters[t.of]
	if !counter {
		return 0, "", "not measured: there is no figure " + t.of, false
	}
	v = float64(sum.counter(t.of, kinds, res))
	if t.unit == "%" {
		if sum.Requests == 0 {
			return 0, "%", "not measured: no request was answered", false
		}
		return 100 * v / float64(sum.Requests), "%", "", true
	}
	return v, "", "", true
}

func (t *totals) counter(name string, kinds []string, res *Result) (n int64) {
	switch name {
	case "broken":
		return int64(res.Broken)
	case "errors":
		return t.Errors
	case "refused":
		return t.Refused
	case "rate_limited":
		return t.RateLimited
	case "requests":
		return t.Requests
	case "deliveries":
		return t.Deliveries
	}
	for _, k := range kinds {
		n += int64(res.BrokenByKind[k])
	}
	return n
}

// statistic returns a percentile or other statistic of a histogram in milliseconds.
func statistic(h *hdrhistogram.Histogram, stat string) float64 {
	switch stat {
	case "mean":
		return h.Mean() / 1000
	case "max":
		return ms(h.Max())
	case "min":
		return ms(h.Min())
	}
	q, _ := strconv.ParseFloat(stat[1:], 64)
	return ms(h.ValueAtQuantile(q))
}

// checkThresholds compares thresholds with a result and stores the outcomes in it.
func (r *Result) checkThresholds(list []Threshold) {
	for _, t := range list {
		c := t.check(r)
		if !c.Kept {
			r.Missed++
		}
		r.Thresholds = append(r.Thresholds, c)
	}
}

func writeThresholds(w io.Writer, res *Result) {
	for _, c := range res.Thresholds {
		word := "kept"
		if !c.Kept {
			word = "MISSED"
		}
		fmt.Fprintf(w, "threshold %s: %s, measured %s", c.Threshold, word, valueText(Figure{Value: c.Value,
			Unit: c.Unit}))
		if c.Note != "" {
			fmt.Fprintf(w, " (%s)", c.Note)
		}
		fmt.Fprintln(w)
	}
}
