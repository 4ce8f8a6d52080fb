package bench

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"time"
)

// A Result is everything that a run measured; --json writes it.
type Result struct {
	Format     int         `json:"format"`
	Scenario   Scenario    `json:"scenario"`
	Started    time.Time   `json:"started"`
	Seconds    float64     `json:"seconds"`
	Machine    string      `json:"machine"`
	Server     ServerInfo  `json:"server"`
	Build      Building    `json:"build"`
	Phases     []PhaseData `json:"phases"`
	Figures    []Figure    `json:"figures"`
	Violations []violation `json:"violations"`
	Broken     int         `json:"broken"` // number of all violations
	Memory     []MemPoint  `json:"memory"`
	Complaints []string    `json:"complaints,omitempty"`
	Notes      []string    `json:"notes,omitempty"`
	Thresholds []Checked   `json:"thresholds,omitempty"`
	Missed     int         `json:"missed"` // number of thresholds that were not kept

	Stopped      string             `json:"stopped,omitempty"` // the stop condition that ended the run early
	BrokenByKind map[string]int     `json:"broken_by_kind,omitempty"`
	totals       map[string]*totals // by phase; "" holds all phases
}

// addTotals adds the measurements of a phase to those of its name and to those of all phases.
func (r *Result) addTotals(phase string, m *meter) {
	for _, name := range []string{"", phase} {
		if r.totals[name] == nil {
			r.totals[name] = newTotals()
		}
		r.totals[name].add(m)
	}
}

// formatNow is the version of the JSON format; readers reject newer ones.
const formatNow = 1

// ServerInfo is the measured server.
type ServerInfo struct {
	Version string  `json:"version"`
	Level   int     `json:"feature_level"`
	Pid     int     `json:"pid"` // 0: not on this machine, no CPU or memory figures
	Answers float64 `json:"answers_after_s,omitempty"`
	Restart float64 `json:"restart_s,omitempty"`
}

// Building describes how the crowd was created and how long that took, in seconds.
type Building struct {
	How      string  `json:"how"`
	Seconds  float64 `json:"seconds"`
	Users    int     `json:"users"`
	Channels int     `json:"channels"`
	Messages int     `json:"messages"`
	Register float64 `json:"register_seconds"`
}

// PhaseData holds the numbers of one phase.
type PhaseData struct {
	Name      string              `json:"name"`
	Seconds   float64             `json:"seconds"`
	Drain     float64             `json:"drain_s"` // from the last request until everything was seen
	Kinds     map[string]KindData `json:"kinds"`
	Seen      Latency             `json:"seen"`
	Late      Latency             `json:"late"`
	Delivered int64               `json:"delivered"`
	PerSecond float64             `json:"deliveries_per_s"`
	Bytes     float64             `json:"bytes_per_delivery"`
	CPU       float64             `json:"server_cores"`    // CPU seconds of the server per second
	Delivery  float64             `json:"cpu_us_delivery"` // server CPU per delivery
	Busy      float64             `json:"generator_share"` // of one core, its thread
	Others    float64             `json:"other_cores"`     // used by other processes and the host
	In        int64               `json:"bytes_in"`
	Out       int64               `json:"bytes_out"`
	Errors    float64             `json:"errors_percent"`
	Mean      float64             `json:"mean_ms"`
	P99       float64             `json:"p99_ms"`
	Heartbeat int64               `json:"heartbeats"`
	Series    []SeriesPoint       `json:"series"`
	// Refused is the reason why rates and latencies are not those of the server; empty if they are.
	Refused string `json:"refused,omitempty"`
}

// KindData holds the requests of one kind in a phase.
type KindData struct {
	N       int64            `json:"n"`
	Status  map[string]int64 `json:"not_200,omitempty"`
	Latency Latency          `json:"latency"`
	Bytes   int64            `json:"bytes"`
	Share   float64          `json:"share_percent"`
}

// Latency is a distribution in milliseconds; Curve holds percentiles for the chart.
type Latency struct {
	N     int64        `json:"n"`
	Mean  float64      `json:"mean_ms"`
	P50   float64      `json:"p50_ms"`
	P90   float64      `json:"p90_ms"`
	P99   float64      `json:"p99_ms"`
	P999  float64      `json:"p999_ms"`
	Max   float64      `json:"max_ms"`
	Curve [][2]float64 `json:"curve,omitempty"` // percentile, ms
}

// SeriesPoint is one interval of a phase.
type SeriesPoint struct {
	At        float64 `json:"t"`
	Requests  float64 `json:"requests"`
	Delivered float64 `json:"delivered"`
	SeenP50   float64 `json:"seen_p50_ms"`
	SeenP99   float64 `json:"seen_p99_ms"`
	TookP99   float64 `json:"took_p99_ms"`
}

// MemPoint is the server's memory and processor time at one moment.
type MemPoint struct {
	At         float64 `json:"t"` // seconds since the run began
	RSS        int64   `json:"rss"`
	Heap       int64   `json:"heap,omitempty"`
	CPU        float64 `json:"cores"`
	Goroutines int64   `json:"goroutines,omitempty"`
}

// A Figure is one number to compare or to check against a target. Low and High are its range over repeated runs, or
// over the seconds of one run.
type Figure struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	Runs  int     `json:"runs,omitempty"`
	More  bool    `json:"more_is_better,omitempty"`
	Note  string  `json:"note,omitempty"`
	// Refused is the reason why the number is no verdict on the server; empty if it is one.
	Refused string `json:"refused,omitempty"`
}

func newResult(sc Scenario) *Result {
	return &Result{Format: formatNow, Scenario: sc, Started: time.Now().UTC(), Machine: machine(),
		totals: map[string]*totals{"": newTotals()}}
}

func (r *Result) add(f Figure) {
	if f.Low == 0 && f.High == 0 {
		f.Low, f.High = f.Value, f.Value
	}
	r.Figures = append(r.Figures, f)
}

// Figure returns a figure by name.
func (r *Result) Figure(name string) (Figure, bool) {
	for _, f := range r.Figures {
		if f.Name == name {
			return f, true
		}
	}
	return Figure{}, false
}

func machine() string {
	model := "unknown CPU"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for _, line := range strings.Split(string(b), "\n") {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				model = strings.TrimSpace(v)
				break
			}
		}
	}
	mem := ""
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kb int64
		fmt.Sscanf(string(b), "MemTotal: %d kB", &kb)
		mem = fmt.Sprintf(", %d GB", (kb+512<<10)>>20)
	}
	kernel := ""
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = ", Linux " + strings.TrimSpace(string(b))
	}
	return fmt.Sprintf("%d x %s%s%s, %s", runtime.NumCPU(), model, mem, kernel, runtime.Version())
}

type counters struct {
	at      time.Duration
	in, out int64
	cpu     time.Duration
	busy    time.Duration
	self    time.Duration
	others  time.Duration
	dials   int64
}

func (r *run) readCounters() counters {
	c := counters{at: r.loop.Now(), in: r.loop.BytesIn, out: r.loop.BytesOut, busy: r.loop.Busy(), dials: r.loop.Dials,
		others: othersCPU()}
	if r.server.pid != 0 {
		c.cpu, _ = process{r.server.pid}.cpu()
	}
	c.self, _ = process{os.Getpid()}.cpu()
	return c
}

// recordCost stores the counters' differences over a phase. The CPU counter of a server that was restarted in between
// starts from zero.
func (r *run) recordCost(m *meter, b counters) {
	a := r.readCounters()
	m.bytesIn, m.bytesOut = a.in-b.in, a.out-b.out
	m.serverCPU, m.generatorBusy, m.ownCPU, m.dials = a.cpu-b.cpu, a.busy-b.busy, a.self-b.self, a.dials-b.dials
	if m.serverCPU < 0 {
		m.serverCPU = a.cpu
	}
	m.otherCPU = a.others - b.others - m.serverCPU - m.ownCPU
	if m.otherCPU < 0 || r.server.pid == 0 {
		m.otherCPU = 0
	}
}

func ms(us int64) float64 { return float64(us) / 1000 }

func latency(h histogram, curve bool) Latency {
	if h == nil || h.TotalCount() == 0 {
		return Latency{}
	}
	l := Latency{N: h.TotalCount(), Mean: h.Mean() / 1000, P50: ms(h.ValueAtQuantile(50)),
		P90: ms(h.ValueAtQuantile(90)), P99: ms(h.ValueAtQuantile(99)), P999: ms(h.ValueAtQuantile(99.9)),
		Max: ms(h.Max())}
	if curve {
		for _, q := range curvePoints {
			l.Curve = append(l.Curve, [2]float64{q, ms(h.ValueAtQuantile(q))})
		}
	}
	return l
}

// curvePoints are the percentiles of a curve: each step halves the distance to 100 %, to resolve the tail.
var curvePoints = []float64{0, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 92.5, 95, 96.25, 97.5, 98.125, 98.75, 99,
	99.375, 99.6875, 99.8, 99.9, 99.95, 99.99, 100}

type histogram interface {
	TotalCount() int64
	Mean() float64
	ValueAtQuantile(float64) int64
	Max() int64
}

func (r *run) phaseResult(p *Phase, m *meter, drain time.Duration) {
	took := (m.end - m.begin).Seconds()
	d := PhaseData{Name: p.Name, Seconds: took, Drain: drain.Seconds(), Kinds: map[string]KindData{},
		Seen: latency(m.seen, true), Late: latency(m.lateness, false), Delivered: m.delivered, In: m.bytesIn,
		Out: m.bytesOut, Heartbeat: m.heartbeats}
	d.PerSecond = float64(m.delivered) / took
	d.Busy = m.generatorBusy.Seconds() / took
	d.Others = m.otherCPU.Seconds() / took
	if r.server.pid != 0 {
		d.CPU = m.serverCPU.Seconds() / took
		if m.delivered > 0 {
			d.Delivery = float64(m.serverCPU.Microseconds()) / float64(m.delivered)
		}
	}
	if polls := m.kinds[kindPoll].n - m.heartbeats; m.eventBytes > 0 && polls > 0 {
		d.Bytes = float64(m.eventBytes) / float64(m.delivered)
	}
	all := newHist()
	var total, bad int64
	for k := range m.kinds {
		total += m.kinds[k].n
	}
	for k := range m.kinds {
		t := &m.kinds[k]
		if t.n == 0 {
			continue
		}
		kd := KindData{N: t.n, Bytes: t.bytes, Share: 100 * float64(t.n) / float64(total)}
		if t.latency != nil {
			kd.Latency = latency(t.latency, true)
			if k != kindPoll {
				all.Merge(t.latency)
			}
		}
		for s, n := range t.status {
			if kd.Status == nil {
				kd.Status = map[string]int64{}
			}
			kd.Status[fmt.Sprint(s)] = n
			if s == 0 || s >= 500 {
				bad += n
			}
		}
		d.Kinds[kindNames[k]] = kd
	}
	if total > 0 {
		d.Errors = 100 * float64(bad) / float64(total)
	}
	l := latency(all, false)
	d.Mean, d.P99 = l.Mean, l.P99
	for _, w := range m.windows {
		pt := SeriesPoint{At: w.at.Seconds(), Requests: float64(w.requests), Delivered: float64(w.delivered)}
		if w.seen.TotalCount() > 0 {
			pt.SeenP50, pt.SeenP99 = ms(w.seen.ValueAtQuantile(50)), ms(w.seen.ValueAtQuantile(99))
		}
		if w.took.TotalCount() > 0 {
			pt.TookP99 = ms(w.took.ValueAtQuantile(99))
		}
		d.Series = append(d.Series, pt)
	}
	d.Refused = r.noVerdictReason(p, m, &d)
	r.result.Phases = append(r.result.Phases, d)
	r.phaseFigures(p, m, &d)
}

// noVerdictReason returns why the rates and latencies of a phase describe the generator, or other processes, instead
// of the server; "" if they describe the server.
func (r *run) noVerdictReason(p *Phase, m *meter, d *PhaseData) string {
	g := r.scenario.Gate
	switch {
	case d.Others > g.Others*float64(runtime.NumCPU()):
		return fmt.Sprintf("other processes, or the host, used %.1f of %d cores", d.Others, runtime.NumCPU())
	case d.Busy > g.Generator:
		return fmt.Sprintf("the generator's thread was busy %.0f %% of the time", 100*d.Busy)
	case (p.Rate > 0 || p.Share > 0 || len(p.Curve) > 0) && d.Late.N > 0 && d.Late.P99 > g.Late:
		return fmt.Sprintf("the generator was %.0f ms behind its own schedule (p99)", d.Late.P99)
	}
	return ""
}

// spread returns the range of the middle half of a phase's seconds, as an estimate of the noise of one run.
func spread(xs []float64) (lo, hi float64) {
	if len(xs) < 4 {
		return 0, 0
	}
	s := append([]float64(nil), xs...)
	sort.Float64s(s)
	return s[len(s)/4], s[len(s)-1-len(s)/4]
}

// phaseFigures adds the figures of a phase to the result.
func (r *run) phaseFigures(p *Phase, m *meter, d *PhaseData) {
	add := func(name, unit string, v float64, more bool, xs []float64) {
		f := Figure{Name: p.Name + "." + name, Unit: unit, Value: v, More: more, Refused: d.Refused}
		if f.Low, f.High = spread(xs); f.Low == 0 && f.High == 0 {
			f.Low, f.High = v, v
		}
		if f.Low > v || f.High < v {
			f.Low, f.High = min(f.Low, v), max(f.High, v)
		}
		r.result.add(f)
	}
	var perS, p50s, p99s []float64
	for _, w := range d.Series {
		if w.Delivered > 0 {
			perS, p50s, p99s = append(perS, w.Delivered), append(p50s, w.SeenP50), append(p99s, w.SeenP99)
		}
	}
	if d.Delivered > 0 {
		add("deliveries_per_s", "1/s", d.PerSecond, true, perS)
		add("seen_p50", "ms", d.Seen.P50, false, p50s)
		add("seen_p99", "ms", d.Seen.P99, false, p99s)
		add("bytes_per_delivery", "B", d.Bytes, false, nil)
		if r.server.pid != 0 && !p.replaces() {
			// The kernel counts CPU independent of waiting, so the figure is valid even if the generator is at its
			// limit.
			r.result.add(Figure{Name: p.Name + ".cpu_per_delivery", Unit: "us", Value: d.Delivery})
		}
	}
	for k := range m.kinds {
		kd, ok := d.Kinds[kindNames[k]]
		if !ok || k == kindPoll {
			continue
		}
		answered := kd.N
		for _, n := range kd.Status {
			answered -= n
		}
		add(kindNames[k]+"_per_s", "1/s", float64(answered)/d.Seconds, p.Closed > 0 || p.Burst > 0, nil)
		add(kindNames[k]+"_p50", "ms", kd.Latency.P50, false, nil)
		add(kindNames[k]+"_p99", "ms", kd.Latency.P99, false, nil)
	}
	if r.server.pid != 0 && !p.replaces() {
		r.result.add(Figure{Name: p.Name + ".server_cores", Unit: "cores", Value: d.CPU})
	}
	r.result.add(Figure{Name: p.Name + ".errors", Unit: "%", Value: d.Errors})
	if m.held > 0 || m.limited() > 0 {
		r.result.add(Figure{Name: p.Name + ".rate_limited", Value: float64(m.limited()),
			Note: fmt.Sprintf("answers with status 429; %d requests were held back until the server accepts them",
				m.held)})
	}
	if p.Upgrade > 0 {
		r.upgradeFigures(p, m)
	}
}
