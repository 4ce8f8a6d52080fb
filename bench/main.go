// Package bench is Parley's load harness. It speaks plain HTTP to any Zulip-compatible server, checks that the server
// keeps its promises while it is loaded, and reports what that cost. README.md explains each figure.
package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"

	"parley/bench/floor"
)

const usage = `parley bench: load a Zulip-compatible server, check it, measure it

  parley bench SCENARIO (--self | --target URL) [flags]   run one scenario
  parley bench list                                       the scenarios
  parley bench show SCENARIO                              a scenario as JSON, to edit and pass with --scenario
  parley bench hunt SCENARIO (--self | --target URL)      the most users that stay inside the gate
  parley bench targets --self [--short] [--only NAME,…]   Parley's targets, reached or missed
  parley bench compare A.json B.json                      differences of two runs, noise shown
  parley bench record --target URL --listen ADDR --out F  reverse proxy that writes an anonymised trace
  parley bench replay TRACE (--self | --target URL)       the same requests, with the same timing

parley bench SCENARIO -h lists the flags.
`

// Main is parley bench. Its result is the exit code: 0 fine, 1 the server broke a promise or missed a gate, 2 misuse
// or no result.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" || args[0] == "help" {
		fmt.Fprint(stdout, usage)
		return 0
	}
	cmd, rest := args[0], args[1:]
	switch cmd {
	case "list":
		all := Scenarios()
		for _, n := range ScenarioNames() {
			fmt.Fprintf(stdout, "%-14s %s\n", n, all[n].About)
		}
		return 0
	case "show":
		if len(rest) != 1 {
			fmt.Fprint(stderr, usage)
			return 2
		}
		s, ok := Scenarios()[rest[0]]
		if !ok {
			fmt.Fprintf(stderr, "no scenario %q; there are: %s\n", rest[0], strings.Join(ScenarioNames(), " "))
			return 2
		}
		return printJSON(stdout, stderr, s)
	case "hunt":
		return huntMain(rest, stdout, stderr)
	case "targets":
		return targetsMain(rest, stdout, stderr)
	case "compare":
		return compareMain(rest, stdout, stderr)
	case "record":
		return recordMain(rest, stdout, stderr)
	case "replay":
		return replayMain(rest, stdout, stderr)
	case "floor-client":
		return floorClientMain(rest, stdout, stderr)
	case "floor-server":
		return floorMain(rest, stdout, stderr)
	}
	if _, ok := Scenarios()[cmd]; !ok {
		fmt.Fprintf(stderr, "no scenario or command %q\n\n%s", cmd, usage)
		return 2
	}
	return scenarioMain(cmd, rest, stdout, stderr)
}

func printJSON(stdout, stderr io.Writer, v any) int {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	fmt.Fprintf(stdout, "%s\n", b)
	return 0
}

// settings are the flags every run has.
type settings struct {
	opt      options
	sc       Scenario
	file     string
	jsonFile string
	htmlFile string
	hosts    string
	serve    string
	rate     float64
	seconds  float64
	flags    *flag.FlagSet
}

func newSettings(name string, stdout, stderr io.Writer) *settings {
	s := &settings{opt: options{out: stdout}}
	f := flag.NewFlagSet("parley bench "+name, flag.ContinueOnError)
	f.SetOutput(stderr)
	s.flags = f
	f.StringVar(&s.opt.target, "target", "", "`URL` of the server, plain http")
	f.BoolVar(&s.opt.self, "self", false, "start a fresh Parley in a process of its own, and measure that")
	f.StringVar(&s.opt.exe, "exe", "", "with --self: the `executable` to start (default: this one)")
	f.StringVar(&s.serve, "serve", "",
		"with --self: `arguments` for serve instead of those the scenario chooses, separated by spaces")
	f.StringVar(&s.opt.user, "user", "",
		"`email` of an administrator who may create users (default: development login)")
	f.StringVar(&s.opt.key, "key", "", "that administrator's API `key`")
	f.StringVar(&s.opt.file, "credentials", "",
		"`file` of JSON lines {email,key,user_id,host}: use these people instead of creating any")
	f.BoolVar(&s.opt.adopt, "adopt", false, "use the users the development login lists instead of creating any")
	f.StringVar(&s.hosts, "hosts", "", "for mixed-realms: Host `names` of the organizations, separated by commas")
	f.StringVar(&s.opt.metrics, "metrics", "",
		"`URL` of the server's Prometheus text (default: /metrics of the target, if it answers)")
	f.BoolVar(&s.opt.quiet, "quiet", false, "no progress lines")
	f.IntVar(&s.opt.repeat, "repeat", 1, "run the phases `n` times and report medians and ranges")
	f.BoolVar(&s.opt.floor, "floor", false,
		"also run the bare epoll server, in alternation, and report ratios (at least three pairs)")
	f.StringVar(&s.opt.floorCmd, "floor-command", "",
		"another `program` as floor; it is given --listen ADDR and --bytes N")
	f.StringVar(&s.jsonFile, "json", "", "write the result to `file`")
	f.StringVar(&s.htmlFile, "html", "", "write a report to `file`")
	f.StringVar(&s.file, "scenario", "", "`file` with a scenario as JSON; flags given change it")
	f.IntVar(&s.sc.Users, "users", 0, "people created")
	f.IntVar(&s.sc.Pollers, "pollers", -1,
		"event queues with a parked poll (default: as the scenario says, at least one each when --users is given)")
	f.IntVar(&s.sc.Channels, "channels", 0, "channels")
	f.IntVar(&s.sc.History, "history", -1, "messages sent before anything is measured")
	f.IntVar(&s.sc.Sample, "sample", -1, "pollers that decode everything and mirror the state")
	f.IntVar(&s.sc.Conns, "connections", 0, "connections for everything that is not a poll")
	f.IntVar(&s.sc.Sources, "sources", 0, "loopback source addresses")
	f.Uint64Var(&s.sc.Seed, "seed", 0, "seed of everything random")
	f.Float64Var(&s.rate, "rate", 0, "requests a second of open-loop phases")
	f.Float64Var(&s.seconds, "duration", 0, "seconds of phases that have a length")
	return s
}

// parse reads flags and settles what is run.
func (s *settings) parse(name string, args []string) error {
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	sc, ok := Scenarios()[name]
	if s.file != "" {
		var err error
		if sc, err = LoadScenario(s.file); err != nil {
			return err
		}
	} else if !ok {
		return fmt.Errorf("no scenario %q", name)
	}
	s.sc = override(sc, s.sc, s.rate, s.seconds)
	if s.serve != "" {
		s.sc.Serve = strings.Fields(s.serve)
	}
	if s.hosts != "" {
		s.opt.hosts = strings.Split(s.hosts, ",")
		s.sc.Realms = len(s.opt.hosts)
	}
	if s.opt.self == (s.opt.target != "") {
		return fmt.Errorf("say either --self or --target URL")
	}
	if s.opt.exe == "" {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		s.opt.exe = exe
	}
	if s.opt.floor && s.opt.repeat < 3 {
		s.opt.repeat = 3
	}
	return s.sc.check()
}

// override puts what flags say over a scenario.
func override(sc, f Scenario, rate, duration float64) Scenario {
	if f.Users > 0 {
		if sc.Pollers > 0 && f.Pollers < 0 {
			// As many queues a person as before, so that --users alone scales a scenario.
			sc.Pollers = min(max(1, sc.Pollers/max(1, sc.Users))*f.Users, 19000)
		}
		sc.Users = f.Users
	}
	if f.Pollers >= 0 {
		sc.Pollers = f.Pollers
	}
	if f.Channels > 0 {
		sc.Channels = f.Channels
	}
	if f.History >= 0 {
		sc.History = f.History
	}
	if f.Sample >= 0 {
		sc.Sample = f.Sample
	}
	if f.Conns > 0 {
		sc.Conns = f.Conns
	}
	if f.Sources > 0 {
		sc.Sources = f.Sources
	}
	if f.Seed > 0 {
		sc.Seed = f.Seed
	}
	sc.Phases = append([]Phase(nil), sc.Phases...)
	for i := range sc.Phases {
		p := &sc.Phases[i]
		if rate > 0 && p.Rate > 0 && !p.Warm {
			p.Rate = rate
		}
		if duration > 0 && p.Seconds > 0 && p.Burst == 0 && !p.Warm {
			p.Seconds = duration
		}
		if p.Burst > sc.Users && !p.Warm {
			p.Burst = sc.Users
		}
	}
	return sc
}

func scenarioMain(name string, args []string, stdout, stderr io.Writer) int {
	s := newSettings(name, stdout, stderr)
	if err := s.parse(name, args); err != nil {
		if err != flag.ErrHelp {
			fmt.Fprintf(stderr, "parley bench %s: %v\n", name, err)
		}
		return 2
	}
	fmt.Fprintf(stdout, "parley bench %s: %s (seed %d)\n", s.sc.Name, s.sc.About, s.sc.Seed)
	res, err := runScenario(s.sc, s.opt)
	if err != nil {
		fmt.Fprintf(stderr, "parley bench %s: %v\n", name, err)
		return 2
	}
	writeTable(stdout, res)
	if err := writeFiles(s, res); err != nil {
		fmt.Fprintf(stderr, "parley bench %s: %v\n", name, err)
		return 2
	}
	if res.Broken > 0 {
		return 1
	}
	return 0
}

func writeFiles(s *settings, res *Result) error {
	if s.jsonFile != "" {
		b, err := json.MarshalIndent(res, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(s.jsonFile, append(b, '\n'), 0o644); err != nil {
			return err
		}
	}
	if s.htmlFile != "" {
		f, err := os.Create(s.htmlFile)
		if err != nil {
			return err
		}
		if err := WriteHTML(f, res); err != nil {
			f.Close()
			return err
		}
		return f.Close()
	}
	return nil
}

// floorMain is the floor as a process of its own; it says where it listens and serves until it is ended.
func floorMain(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("parley bench floor-server", flag.ContinueOnError)
	f.SetOutput(stderr)
	listen := f.String("listen", "127.0.0.1:0", "`address`")
	weight := f.Int("bytes", 1000, "size of an event answer")
	if f.Parse(args) != nil {
		return 2
	}
	addr, err := netip.ParseAddrPort(*listen)
	if err == nil {
		var s *floor.Server
		if s, err = floor.Listen(addr, *weight); err == nil {
			fmt.Fprintf(stdout, "floor listens on %s\n", s.Addr())
			err = s.Serve()
		}
	}
	fmt.Fprintln(stderr, err)
	return 2
}

// floorClientMain runs a scenario against a floor.
func floorClientMain(args []string, stdout, stderr io.Writer) int {
	s := newSettings("floor-client", stdout, stderr)
	s.opt.nobody = true
	if err := s.parse("fanout", args); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	res, err := runScenario(s.sc, s.opt)
	if err == nil {
		err = writeFiles(s, res)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	return 0
}
