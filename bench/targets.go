package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// A Target is one limit for a figure. Run names the measurement that yields the figure.
type Target struct {
	What    string
	Run     string
	Figure  string
	AtLeast bool // false: at most
	Limit   float64
	Stretch float64 // 0: none
	Unit    string
}

// Targets are Parley's limits on two cores that it shares with the load generator.
var Targets = []Target{
	{What: "just started: memory", Run: "idle", Figure: "start.rss", Limit: 60, Unit: "MB"},
	{What: "just started: CPU, no connections", Run: "idle", Figure: "start.cores", Limit: 0.005, Unit: "cores"},
	{What: "19,000 parked polls: memory each", Run: "idle", Figure: "steady.rss_per_poll", Limit: 4, Stretch: 2.5,
		Unit: "kB"},
	{What: "19,000 parked polls: goroutines", Run: "idle", Figure: "steady.goroutines", Limit: 200},
	{What: "19,000 parked polls: CPU of heartbeats", Run: "idle", Figure: "parked.server_cores", Limit: 0.05,
		Unit: "cores"},
	{What: "19,000 parked polls: answers that are errors", Run: "idle", Figure: "parked.errors", Limit: 0, Unit: "%"},
	{What: "fanout to 10,000: server CPU a delivery, to floor", Run: "fanout",
		Figure: "rounds.cpu_per_delivery_to_floor", Limit: 1.4, Unit: "x"},
	{What: "fanout to 10,000: deliveries/s, to floor", Run: "fanout", Figure: "rounds.deliveries_per_s_to_floor",
		AtLeast: true, Limit: 0.9, Unit: "x"},
	{What: "100 of 10,000 at 10 % load, durable: seen p50", Run: "fanout", Figure: "hundred.seen_p50", Limit: 2,
		Unit: "ms"},
	{What: "100 of 10,000 at 10 % load, durable: seen p99", Run: "fanout", Figure: "hundred.seen_p99", Limit: 6,
		Unit: "ms"},
	{What: "the same without durability: seen p50", Run: "fanout-memory", Figure: "hundred.seen_p50", Limit: 1.2,
		Unit: "ms"},
	{What: "the same without durability: seen p99", Run: "fanout-memory", Figure: "hundred.seen_p99", Limit: 2.5,
		Unit: "ms"},
	{What: "CPU a delivery, 19,000 pollers to 2,000", Run: "scale", Figure: "scale.cpu_per_delivery", Limit: 1.1,
		Unit: "x"},
	{What: "5,000 durable sends/s for 30 s: p50", Run: "send", Figure: "open.send_p50", Limit: 1, Unit: "ms"},
	{What: "5,000 durable sends/s for 30 s: p99", Run: "send", Figure: "open.send_p99", Limit: 5, Unit: "ms"},
	{What: "64 senders: durable sends/s", Run: "send", Figure: "saturation.send_per_s", AtLeast: true, Limit: 15000,
		Unit: "1/s"},
	{What: "register, realm of 10,000, 5,000 at once: rate", Run: "register-herd", Figure: "herd.register_per_s",
		AtLeast: true, Limit: 400, Unit: "1/s"},
	{What: "register, realm of 10,000, 5,000 at once: p99", Run: "register-herd", Figure: "herd.register_p99",
		Limit: 1000, Unit: "ms"},
	{What: "kill -9 under 19,000 pollers: all polling again", Run: "restart-herd", Figure: "all_polling_again_s",
		Limit: 5, Unit: "s"},
	{What: "kill -9 under 19,000 pollers: guarantees violated", Run: "restart-herd", Figure: "broken", Limit: 0},
	{What: "kill -9 under 19,000 pollers: 5xx", Run: "restart-herd", Figure: "after.errors", Limit: 0, Unit: "%"},
	{What: "kill -9 under 19,000 pollers: polls over 1 s", Run: "restart-herd", Figure: "back_over_1s", Limit: 0},
	{What: "upgrade under 5,000 pollers: sends, p99.9", Run: "upgrade", Figure: "upgrade.send_p999", Limit: 250,
		Unit: "ms"},
	{What: "upgrade under 5,000 pollers: seen, p99.9", Run: "upgrade", Figure: "upgrade.seen_p999", Limit: 250,
		Unit: "ms"},
	{What: "upgrade under 5,000 pollers: requests that failed", Run: "upgrade", Figure: "upgrade.failed", Limit: 0},
	{What: "presence of 10,000 users each minute, reports only: CPU", Run: "presence", Figure: "minute.server_cores",
		Limit: 0.05, Unit: "cores"},
	{What: "200 agents that wait for a resource, to 200 polls: memory", Run: "mcp", Figure: "mcp.memory_to_poll",
		Limit: 1.3, Stretch: 1.2, Unit: "x"},
	{What: "200 agents that wait for a resource, to 200 polls: CPU an update", Run: "mcp",
		Figure: "mcp.update_to_poll", Limit: 1.5, Stretch: 1.2, Unit: "x"},
	{What: "200 agents that read a resource, to 200 reads of messages: CPU", Run: "mcp", Figure: "mcp.read_to_poll",
		Limit: 1.5, Stretch: 1.2, Unit: "x"},
	{What: "crowd doing everything: guarantees violated", Run: "crowd", Figure: "broken", Limit: 0},
	{What: "crowd, kill -9 five times: guarantees violated", Run: "crowd-crash", Figure: "broken", Limit: 0},
	{What: "chat mix, 2,000 users: guarantees violated", Run: "chat", Figure: "broken", Limit: 0},
	{What: "chat mix, 2,000 users: seen p99", Run: "chat", Figure: "chat.seen_p99", Limit: 1000, Unit: "ms"},
}

// targetRuns returns the measurements of the targets in order. Their durations suit make bench, which must end within
// ten minutes.
func targetRuns(short bool) []targetRun {
	all := Scenarios()
	with := func(name string, set func(*Scenario)) Scenario {
		s := all[name]
		s.Phases = append([]Phase(nil), s.Phases...)
		if set != nil {
			set(&s)
		}
		return s
	}
	return []targetRun{
		{name: "crowd", scenario: with("crowd", nil)},
		{name: "crowd-crash", scenario: with("crowd-crash", nil)},
		{name: "chat", scenario: with("chat", func(s *Scenario) {
			if short {
				s.Phases[1].Seconds = 10
			}
		})},
		{name: "fanout", scenario: with("fanout", func(s *Scenario) {
			if short {
				s.Phases[1].Rounds, s.Phases[2].Seconds = 20, 5
			}
		}), floor: true},
		{name: "fanout-memory", scenario: with("fanout", func(s *Scenario) {
			s.Phases[1].Rounds, s.Phases[2].Seconds = 10, 5
		}), requiredFlag: "--unsafe-no-sync"},
		{name: "scale", scenario: with("fanout", func(s *Scenario) {
			s.Users, s.Pollers, s.Hundred = 2000, 2000, 0
			s.Phases = []Phase{{Name: "warm", Rounds: 10, To: "largest", Warm: true},
				{Name: "rounds", Rounds: 100, To: "largest"}}
		})},
		{name: "send", scenario: with("send", nil)},
		{name: "register-herd", scenario: with("register-herd", nil)},
		{name: "restart-herd", scenario: with("restart-herd", nil)},
		{name: "upgrade", scenario: with("upgrade", nil)},
		{name: "presence", scenario: with("presence", func(s *Scenario) {
			if short {
				s.Phases[1].Seconds = 15
			}
		})},
		{name: "mcp", scenario: with("mcp", nil)},
		{name: "idle", scenario: with("idle", nil)},
	}
}

type targetRun struct {
	name         string
	scenario     Scenario
	floor        bool
	requiredFlag string // a flag of serve that the run needs; without it the run is skipped
}

func targetsMain(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("parley bench targets", flag.ContinueOnError)
	f.SetOutput(stderr)
	short := f.Bool("short", false, "shorter phases: all runs in less than ten minutes")
	only := f.String("only", "", "run `names` only, separated by commas")
	dir := f.String("out", "", "`directory` for the JSON and HTML of every run")
	markdown := f.String("markdown", "", "write the table to `file`, as Markdown")
	exe := f.String("exe", "", "the `executable` to start (default: this one)")
	f.Bool("self", true, "start a fresh Parley for every run (always the case)")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if *exe == "" {
		var err error
		if *exe, err = os.Executable(); err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
	}
	begin := time.Now()
	found := map[string]*Result{}
	for _, tr := range targetRuns(*short) {
		if *only != "" && !contains(strings.Split(*only, ","), tr.name) {
			continue
		}
		res, err := tr.run(*exe, stdout)
		if err != nil {
			fmt.Fprintf(stdout, "%s: no result: %v\n", tr.name, err)
			continue
		}
		if res == nil {
			fmt.Fprintf(stdout, "%s: not run: parley serve has no flag %s\n", tr.name, tr.requiredFlag)
			continue
		}
		res.add(Figure{Name: "broken", Value: float64(res.Broken)})
		found[tr.name] = res
		writeTable(stdout, res)
		if *dir != "" {
			if err := writeReports(*dir, tr.name, res); err != nil {
				fmt.Fprintln(stderr, err)
				return 2
			}
		}
	}
	rows, missed := targetTable(found, *only != "")
	writeTargets(stdout, rows)
	if *markdown != "" {
		var b strings.Builder
		markdownTargets(&b, rows)
		if err := os.WriteFile(*markdown, []byte(b.String()), 0o644); err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
	}
	fmt.Fprintf(stdout, "took %v\n", time.Since(begin).Round(time.Second))
	if missed > 0 {
		return 1
	}
	return 0
}

func (tr targetRun) run(exe string, stdout io.Writer) (*Result, error) {
	opt := options{self: true, executable: exe, out: stdout, quiet: true, repeat: 1}
	if tr.name == "mcp" {
		fmt.Fprintf(stdout, "\n=== %s: %s\n", tr.name, tr.scenario.About)
		return measureMCP(tr.scenario, opt)
	}
	if tr.floor {
		opt.floor, opt.repeat = true, 3
	}
	if tr.requiredFlag != "" {
		if !strings.Contains(helpText(exe, "serve"), strings.TrimLeft(tr.requiredFlag, "-")) {
			return nil, nil
		}
		tr.scenario.Serve = append(serveArgs(exe, tr.scenario), tr.requiredFlag)
	}
	fmt.Fprintf(stdout, "\n=== %s: %s\n", tr.name, tr.scenario.About)
	res, err := runScenario(tr.scenario, opt)
	if err != nil || tr.name != "scale" {
		return res, err
	}
	// The same with 19,000 pollers, nearly ten times as many for each message.
	big := tr.scenario
	big.Users, big.Pollers = 9500, 19000
	big.Phases = []Phase{{Name: "warm", Rounds: 3, To: "largest", Warm: true},
		{Name: "rounds", Rounds: 12, To: "largest"}}
	more, err := runScenario(big, opt)
	if err != nil {
		return nil, err
	}
	a, _ := res.Figure("rounds.cpu_per_delivery")
	b, _ := more.Figure("rounds.cpu_per_delivery")
	if a.Value > 0 {
		more.add(Figure{Name: "scale.cpu_per_delivery", Unit: "x", Value: b.Value / a.Value,
			Note: fmt.Sprintf("%.1f us with 19,000, %.1f us with 2,000", b.Value, a.Value)})
	}
	more.Broken += res.Broken
	more.Violations = append(res.Violations, more.Violations...)
	return more, nil
}

func writeReports(dir, name string, res *Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b, err := json.MarshalIndent(res, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), append(b, '\n'), 0o644); err != nil {
		return err
	}
	h, err := os.Create(filepath.Join(dir, name+".html"))
	if err != nil {
		return err
	}
	defer h.Close()
	return WriteHTML(h, res)
}

// A targetRow is one line of the target table.
type targetRow struct{ what, limit, value, verdict string }

// targetTable compares every target with the results. It returns the table and the number of missed targets.
func targetTable(found map[string]*Result, onlyRun bool) (rows []targetRow, missed int) {
	for _, x := range Targets {
		res := found[x.Run]
		if res == nil && onlyRun {
			continue
		}
		op := "<="
		if x.AtLeast {
			op = ">="
		}
		limit := strings.TrimSpace(fmt.Sprintf("%s %s %s", op, trimNumber(x.Limit), x.Unit))
		if x.Stretch != 0 {
			limit += fmt.Sprintf(" (stretch %s)", trimNumber(x.Stretch))
		}
		value, verdict := x.verdict(res)
		if verdict == "MISSED" {
			missed++
		}
		rows = append(rows, targetRow{x.What, limit, value, verdict})
	}
	return rows, missed
}

func writeTargets(w io.Writer, rows []targetRow) {
	fmt.Fprintf(w, "\n%s, %s\n", machine(), time.Now().UTC().Format("2006-01-02 15:04 MST"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "target\tlimit\tmeasured\tverdict")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.what, r.limit, r.value, r.verdict)
	}
	t.Flush()
}

// markdownTargets writes the table as Markdown.
func markdownTargets(w io.Writer, rows []targetRow) {
	fmt.Fprintf(w, "%s; %s.\n\n| target | limit | measured | verdict |\n|---|---|---|---|\n", machine(),
		time.Now().UTC().Format("2006-01-02 15:04 MST"))
	for _, r := range rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.what, r.limit, r.value, r.verdict)
	}
}

// verdict compares a target with a result. A figure that was refused yields no verdict.
func (x Target) verdict(res *Result) (value, verdict string) {
	if res == nil {
		return "-", "not measured"
	}
	f, ok := res.Figure(x.Figure)
	if !ok {
		return "-", "not measured"
	}
	if res.Broken > 0 && x.Figure != "broken" {
		return valueText(f), "MISSED" // a fast server that violates guarantees misses the target
	}
	good := f.Value <= x.Limit
	stretch := x.Stretch != 0 && f.Value <= x.Stretch
	if x.AtLeast {
		good, stretch = f.Value >= x.Limit, x.Stretch != 0 && f.Value >= x.Stretch
	}
	switch {
	case f.Refused != "":
		return valueText(f), "no verdict"
	case stretch:
		return valueText(f), "reached, stretch too"
	case good:
		return valueText(f), "reached"
	}
	return valueText(f), "MISSED"
}

func trimNumber(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", v), "0"), ".")
}
