package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

const (
	// maxScenarioFile bounds a scenario file, in bytes.
	maxScenarioFile = 1 << 20
	// maxPhases bounds the phases of a scenario.
	maxPhases = 1000
	// maxCurve bounds the points of a curve: one for each minute of a week.
	maxCurve = 7*24*60 + 1
	// maxRate bounds the requests a second of a phase. One generator reaches some 20,000.
	maxRate = 1e6
	// maxClosed bounds the requests under way, and the requests of a burst.
	maxClosed = 1_000_000
)

// scenarioDocs describes the members of a scenario file, for its comments and its JSON schema. A test requires an entry
// for each member.
var scenarioDocs = map[string]string{
	"name":           "name of the run; that of a built-in scenario gives missing members its values",
	"about":          "one line about the run",
	"users":          "users to create or to use",
	"pollers":        "event queues with a parked poll; may exceed users",
	"channels":       "channels with users/rank^zipf members",
	"zipf":           "0: every user is in every channel",
	"hundred":        "one more channel with this many subscribers",
	"room":           "further channels of this size that divide the users among them",
	"history":        "messages sent before the measurement",
	"events":         "event types of the queues; empty: those of a mobile client",
	"sample":         "pollers that decode every event and mirror the state",
	"realms":         "organizations of the crowd",
	"fresh":          "with --self: restart the server between building and measuring",
	"crowd":          "sampled users also run the actions of bench/crowd",
	"phases":         "the loads, one after the other",
	"gate":           "limits of hunt, and limits above which a phase has no verdict",
	"seed":           "seed of all random values",
	"sources":        "loopback source addresses",
	"connections":    "connections shared by all requests that are not polls",
	"serve":          "with --self: arguments for serve",
	"thresholds":     "expressions that the run must keep, as for --threshold",
	"stop":           "expressions that end the run early when a second of a phase does not keep them",
	"phases.name":    "name of the phase; its figures are NAME.KIND",
	"phases.seconds": "length in seconds",
	"phases.count":   "stop after this many requests",
	"phases.rounds":  "closed loop: the next send when all pollers have seen the last",
	"phases.rate":    "open loop: requests a second, at random times",
	"phases.curve": "open loop: points [second, requests a second], joined by lines; two points of one " +
		"second are a step",
	"phases.closed":          "closed loop: this many clients with one request under way each",
	"phases.think":           "closed loop: mean think time of a client after an answer, in seconds (exponential)",
	"phases.share":           "open loop at this share of the deliveries a second that the phase 'of' reached",
	"phases.of":              "the phase of share",
	"phases.mix":             "weights by kind of request; default: only sends",
	"phases.channel":         "channel of the sends; empty: a random one",
	"phases.even":            "open loop with even instead of random distances",
	"phases.burst":           "this many requests at once; after seconds the rest is given up",
	"phases.kill":            "with --self: kill -9 and restart the server after this many seconds",
	"phases.warm":            "not reported",
	"phases.upgrade":         "with --self: a successor replaces the server after this many seconds",
	"phases.backup":          "with --self: online backup after this many seconds",
	"gate.mean_ms":           "mean of all answers except polls",
	"gate.p99_ms":            "99th percentile of all answers except polls",
	"gate.errors_percent":    "5xx and lost answers",
	"gate.seen_p99_ms":       "99th percentile of sent to seen",
	"gate.violations":        "violated guarantees",
	"gate.generator_share":   "CPU share of the generator's thread",
	"gate.generator_late_ms": "delay of the generator behind its schedule",
	"gate.others_share":      "CPU share of other processes and of the host",
}

// LoadScenario reads a scenario from a file: TOML if its name ends with .toml, else JSON. Members that are missing keep
// the values of the built-in scenario with the same name, or of "chat". Unknown members are errors.
func LoadScenario(file string) (Scenario, error) {
	b, err := readBounded(file, maxScenarioFile)
	if err != nil {
		return Scenario{}, err
	}
	s, err := parseScenario(b, strings.EqualFold(filepath.Ext(file), ".toml"))
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return s, err
}

func parseScenario(b []byte, isTOML bool) (Scenario, error) {
	if isTOML {
		var tree map[string]any
		if err := toml.Unmarshal(b, &tree); err != nil {
			return Scenario{}, err
		}
		var err error
		if b, err = json.Marshal(tree); err != nil {
			return Scenario{}, err
		}
	}
	var name struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(b, &name); err != nil {
		return Scenario{}, err
	}
	s, ok := Scenarios()[name.Name]
	if !ok {
		s = Scenarios()["chat"]
	}
	// Decode into an empty list: phases of the file must not inherit values of built-in phases at the same index.
	own := s.Phases
	s.Phases = nil
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Scenario{}, err
	}
	if s.Phases == nil {
		s.Phases = own
	}
	return s, s.check()
}

// check returns an error if the members of a phase contradict each other or are out of bounds.
func (p *Phase) check() error {
	ways := 0
	for _, set := range []bool{p.Rounds > 0, p.Rate > 0, p.Closed > 0, p.Share > 0, p.Burst > 0, len(p.Curve) > 0} {
		if set {
			ways++
		}
	}
	for _, v := range []float64{p.Seconds, float64(p.Count), float64(p.Rounds), p.Rate, float64(p.Closed), p.Share,
		float64(p.Burst), p.Kill, p.Upgrade, p.Backup, p.Think} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return errors.New("a number is negative or not finite")
		}
	}
	switch {
	case ways > 1:
		return errors.New("at most one of rounds, rate, curve, closed, share and burst can be set")
	case p.Rounds == 0 && p.Burst == 0 && p.Seconds <= 0 && p.Count == 0 && len(p.Curve) == 0:
		return errors.New("it has no end: set seconds, count, rounds, curve or burst")
	case p.Seconds > maxPhase.Seconds():
		return fmt.Errorf("seconds must be at most %.0f", maxPhase.Seconds())
	case p.Rate > maxRate:
		return fmt.Errorf("rate must be at most %.0f requests a second", maxRate)
	case p.Closed > maxClosed || p.Burst > maxClosed:
		return fmt.Errorf("closed and burst must be at most %d", maxClosed)
	case p.Think > 0 && p.Closed == 0:
		return errors.New("think is for closed")
	}
	for k, w := range p.Mix {
		if _, ok := mixKinds[k]; !ok {
			return fmt.Errorf("unknown kind of request %q; there are %s", k, sortedList(mixKinds))
		}
		if !(w >= 0) || math.IsInf(w, 0) {
			return fmt.Errorf("the weight of %s must not be negative", k)
		}
	}
	return p.checkCurve()
}

func (p *Phase) checkCurve() error {
	if len(p.Curve) == 0 {
		return nil
	}
	if len(p.Curve) < 2 || len(p.Curve) > maxCurve {
		return fmt.Errorf("a curve has 2 to %d points, not %d", maxCurve, len(p.Curve))
	}
	if p.Seconds > 0 {
		return errors.New("a curve has its own end: seconds must not be set")
	}
	area := 0.0
	for i, x := range p.Curve {
		if !(x[0] >= 0 && x[0] <= maxPhase.Seconds() && x[1] >= 0 && x[1] <= maxRate) {
			return fmt.Errorf("point %d of the curve: second must be 0 to %.0f, and rate 0 to %.0f", i,
				maxPhase.Seconds(),
				maxRate)
		}
		if i > 0 {
			if x[0] < p.Curve[i-1][0] {
				return fmt.Errorf("point %d of the curve is before the point that precedes it", i)
			}
			area += (x[0] - p.Curve[i-1][0]) * (x[1] + p.Curve[i-1][1]) / 2
		}
	}
	if p.Curve[0][0] != 0 || area == 0 {
		return errors.New("a curve begins at second 0 and has requests")
	}
	return nil
}

// A schedule returns the times of an open loop, in seconds since the start of the phase.
type schedule struct {
	points [][2]float64 // second, requests a second
	i      int          // index of the segment: from point i to point i+1
	at     float64      // time of the last request
}

// newSchedule returns the schedule of a phase with a constant rate or a curve.
func newSchedule(p *Phase, rate float64) *schedule {
	if len(p.Curve) > 0 {
		return &schedule{points: p.Curve}
	}
	return &schedule{points: [][2]float64{{0, rate}, {math.Inf(1), rate}}}
}

// next returns the time by which amount more requests are due, and false after the end of the curve. With amounts that
// are exponentially distributed around 1, the requests are a Poisson process with the rate of the curve.
func (s *schedule) next(amount float64) (float64, bool) {
	for ; s.i+1 < len(s.points); s.i++ {
		from, to := s.points[s.i], s.points[s.i+1]
		if math.IsInf(to[0], 1) {
			s.at += amount / from[1]
			return s.at, true
		}
		length := to[0] - from[0]
		left := to[0] - s.at
		if length <= 0 || left <= 0 {
			continue
		}
		slope := (to[1] - from[1]) / length
		rate := from[1] + slope*(s.at-from[0])
		area := left * (rate + to[1]) / 2 // requests until the end of the segment
		if amount > area {
			amount -= area
			s.at = to[0]
			continue
		}
		// amount = rate*t + slope*t*t/2, in the form that is exact for small slopes.
		s.at += 2 * amount / (rate + math.Sqrt(max(0, rate*rate+2*slope*amount)))
		return s.at, true
	}
	return 0, false
}

// checkStop returns the first stop condition that the phase so far does not keep, or "".
func (r *run) checkStop(m *meter) string {
	if len(r.stop) == 0 {
		return ""
	}
	now := *m
	now.end = r.loop.Now()
	sum := newTotals()
	sum.add(&now)
	res := &Result{totals: map[string]*totals{"": sum}, Broken: r.ledger.violationCount,
		BrokenByKind: r.ledger.violationsByKind}
	for _, t := range r.stop {
		if c := t.check(res); !c.Kept && !strings.HasPrefix(c.Note, "not measured") {
			return fmt.Sprintf("%s does not hold after %.0f s of phase %s: measured %s", t.Text,
				(now.end - m.begin).Seconds(), m.name, valueText(Figure{Value: c.Value, Unit: c.Unit}))
		}
	}
	return ""
}

// parseThresholds reads the expressions of a scenario.
func parseThresholds(texts []string) (list thresholdList, err error) {
	for _, text := range texts {
		if err := list.Set(text); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// WriteTOML writes a scenario as a TOML file with a comment for each member.
func WriteTOML(w io.Writer, s Scenario) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# A scenario of parley bench. Run it with: parley bench %s --scenario FILE.toml\n", s.Name)
	writeMembers(&b, reflect.ValueOf(s), "")
	for _, p := range s.Phases {
		b.WriteString("\n[[phases]]\n")
		writeMembers(&b, reflect.ValueOf(p), "phases.")
	}
	b.WriteString("\n[gate]\n")
	writeMembers(&b, reflect.ValueOf(s.Gate), "gate.")
	_, err := io.WriteString(w, b.String())
	return err
}

// member returns the JSON name of a field, and whether its empty value is left out.
func member(f reflect.StructField) (name string, optional bool) {
	name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, rest == "omitempty"
}

func writeMembers(b *strings.Builder, v reflect.Value, prefix string) {
	for i := range v.NumField() {
		name, optional := member(v.Type().Field(i))
		f := v.Field(i)
		if prefix == "" && (name == "phases" || name == "gate") || optional && f.IsZero() {
			continue
		}
		fmt.Fprintf(b, "%s = %s # %s\n", name, tomlValue(f), scenarioDocs[prefix+name])
	}
}

// tomlValue returns a value of a scenario in TOML.
func tomlValue(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		q, _ := json.Marshal(v.String()) // a JSON string is a basic string of TOML
		return string(q)
	case reflect.Float64:
		s := strconv.FormatFloat(v.Float(), 'g', -1, 64)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		return s
	case reflect.Slice, reflect.Array:
		var all []string
		for i := range v.Len() {
			all = append(all, tomlValue(v.Index(i)))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case reflect.Map:
		var all []string
		for _, k := range v.MapKeys() {
			all = append(all, k.String()+" = "+tomlValue(v.MapIndex(k)))
		}
		slices.Sort(all)
		return "{ " + strings.Join(all, ", ") + " }"
	}
	return fmt.Sprint(v.Interface())
}

// ScenarioSchema returns the JSON schema of a scenario file.
func ScenarioSchema() ([]byte, error) {
	s := schemaOf(reflect.TypeFor[Scenario](), "")
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", "A scenario of parley bench"
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

func schemaOf(t reflect.Type, prefix string) map[string]any {
	switch t.Kind() {
	case reflect.Struct:
		members := map[string]any{}
		for i := range t.NumField() {
			name, _ := member(t.Field(i))
			m := schemaOf(t.Field(i).Type, name+".")
			m["description"] = scenarioDocs[prefix+name]
			members[name] = m
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": members}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), prefix)}
	case reflect.Array:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), prefix), "minItems": t.Len(),
			"maxItems": t.Len()}
	case reflect.Map:
		kinds := map[string]any{}
		for k := range mixKinds {
			kinds[k] = map[string]any{"type": "number", "minimum": 0}
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": kinds}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number", "minimum": 0}
	}
	return map[string]any{"type": "integer", "minimum": 0}
}
