package bench

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/bench/floor"
)

const usage = `parley bench: generate load on a Zulip-compatible server, verify its answers and measure it

  parley bench SCENARIO (--self | --target URL) [flags]   run a scenario
  parley bench list                                       list the scenarios
  parley bench show SCENARIO|FILE [--json]                print a scenario as TOML, to edit and pass with --scenario
  parley bench schema                                     print the JSON schema of scenario files
  parley bench hunt SCENARIO (--self | --target URL)      search for the most users within the limits of the gate
  parley bench targets --self [--short] [--only NAME,…]   check Parley's performance targets: reached or MISSED
  parley bench compare A.json B.json [--fail-if worse=5%]  compare two results, with their noise;
	--html FILE makes a report with two columns
  parley bench faults (--self | --target URL) [flags]     prove that a run finds each kind of fault,
	or be a faulty proxy
  parley bench organizations --self [flags]               measure a server with 10,000 organizations, of which few are
	active: starts, memory, first requests
  parley bench agent --listen ADDR --token-file F         generate load for a run with --agents on another machine
  parley bench conform (--self | --target URL) [flags]    compare a server with statements of the API documentation
  parley bench client --listen ADDR [flags]               be a scripted server that checks the behaviour of a client
  parley bench record --target URL --listen ADDR --out F  run a reverse proxy that writes an anonymised trace
  parley bench replay TRACE (--self | --target URL)       send the requests of a trace with their original timing

parley bench SCENARIO -h lists the flags.
`

// Main runs `parley bench` with the given arguments and returns the exit code: 0 for success, 1 if the server violated
// a guarantee or missed a threshold or target, 2 for wrong usage or if there is no result.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" || args[0] == "help" {
		fmt.Fprint(stdout, usage)
		return 0
	}
	cmd, rest := args[0], args[1:]
	if slices.ContainsFunc(rest, asksForHelp) {
		if slices.Contains([]string{"list", "show", "schema"}, cmd) {
			fmt.Fprint(stdout, usage)
		} else {
			runCommand(cmd, []string{"-h"}, stdout, stdout) // prints the flags
		}
		return 0
	}
	return runCommand(cmd, rest, stdout, stderr)
}

// asksForHelp reports whether an argument asks for help instead of a run.
func asksForHelp(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }

// runCommand executes one command or scenario and returns the exit code.
func runCommand(cmd string, rest []string, stdout, stderr io.Writer) int {
	switch cmd {
	case "list":
		all := Scenarios()
		for _, n := range ScenarioNames() {
			fmt.Fprintf(stdout, "%-14s %s\n", n, all[n].About)
		}
		return 0
	case "show":
		return showMain(rest, stdout, stderr)
	case "schema":
		b, err := ScenarioSchema()
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
		stdout.Write(b)
		return 0
	case "hunt":
		return huntMain(rest, stdout, stderr)
	case "targets":
		return targetsMain(rest, stdout, stderr)
	case "compare":
		return compareMain(rest, stdout, stderr)
	case "overload":
		return overloadMain(rest, stdout, stderr)
	case "hostile":
		return hostileMain(rest, stdout, stderr)
	case "mcp":
		return mcpMain(rest, stdout, stderr)
	case "cluster":
		return clusterMain(rest, stdout, stderr)
	case "cluster-kill":
		return clusterKillMain(rest, stdout, stderr)
	case "organizations":
		return organizationsMain(rest, stdout, stderr)
	case "agent":
		return agentMain(rest, stdout, stderr)
	case "conform":
		return conformMain(rest, stdout, stderr)
	case "client":
		return clientMain(rest, stdout, stderr)
	case "faults":
		return faultsMain(rest, stdout, stderr)
	case "record":
		return recordMain(rest, stdout, stderr)
	case "replay":
		return replayMain(rest, stdout, stderr)
	case "floor-client":
		return floorClientMain(rest, stdout, stderr)
	case "floor-server":
		return floorServerMain(rest, stdout, stderr)
	}
	if _, ok := Scenarios()[cmd]; !ok {
		fmt.Fprintf(stderr, "no scenario or command %q\n\n%s", cmd, usage)
		return 2
	}
	return scenarioMain(cmd, rest, stdout, stderr)
}

// showMain prints a built-in scenario, or that of a file, as TOML, or as JSON with --json.
func showMain(args []string, stdout, stderr io.Writer) int {
	asJSON := slices.Contains(args, "--json")
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--json" })
	if len(args) != 1 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	s, ok := Scenarios()[args[0]]
	if !ok {
		var err error
		if s, err = LoadScenario(args[0]); err != nil {
			fmt.Fprintf(stderr, "no scenario %q (there are: %s), and no file: %v\n", args[0],
				strings.Join(ScenarioNames(), " "), err)
			return 2
		}
	}
	err := error(nil)
	if asJSON {
		var b []byte
		b, err = json.MarshalIndent(s, "", "  ")
		fmt.Fprintf(stdout, "%s\n", b)
	} else {
		err = WriteTOML(stdout, s)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	return 0
}

// runFlags holds the flags that every run has.
type runFlags struct {
	options  options
	scenario Scenario
	file     string
	jsonFile string
	htmlFile string
	hosts    string
	serve    string
	rate     float64
	seconds  secondsFlag
	flags    *flag.FlagSet

	junitFile, csvFile, promFile string
	accountsFile, channelNames   string
	agentAddrs, tokenFile        string
	thresholds                   thresholdList
}

// secondsFlag is a positive number of seconds on the command line: 90, 90s or 1m30s.
type secondsFlag float64

func (s *secondsFlag) String() string { return strconv.FormatFloat(float64(*s), 'g', -1, 64) }

func (s *secondsFlag) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		var d time.Duration
		if d, err = time.ParseDuration(text); err != nil {
			return errors.New("must be seconds such as 90, or a duration such as 90s or 5m")
		}
		v = d.Seconds()
	}
	if !(v > 0 && v <= maxPhase.Seconds()) {
		return fmt.Errorf("must be more than 0 and at most %v", maxPhase)
	}
	*s = secondsFlag(v)
	return nil
}

// maxPhase is the longest phase: long enough for a soak test over a week.
const maxPhase = 7 * 24 * time.Hour

// newFlagSet returns the flags of one command.
func newFlagSet(name string, stderr io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet("parley bench "+name, flag.ContinueOnError)
	f.SetOutput(stderr)
	return f
}

func newRunFlags(name string, stdout, stderr io.Writer) *runFlags {
	s := &runFlags{options: options{out: stdout}}
	f := newFlagSet(name, stderr)
	s.flags = f
	f.StringVar(&s.options.target, "target", "", "`URL` of the server: http://HOST[:PORT] or https://HOST[:PORT]")
	f.StringVar(&s.options.caFile, "ca", "",
		"PEM `file` with the roots to trust for https (default: those of the system)")
	f.BoolVar(&s.options.mayLoad, strings.TrimLeft(loadThisServer, "-"), false,
		"confirm that you may load a target that is not on this machine")
	f.Var(&s.thresholds, "threshold",
		"`expression` that the run must keep, for example 'p99(send) < 200ms'; may be repeated")
	f.DurationVar(&s.options.late, "late", lateLimit,
		"a message that a poller sees this much later than the others violates a guarantee; negative: never")
	f.StringVar(&s.junitFile, "junit", "", "write guarantees and thresholds to `file`, as JUnit XML")
	f.StringVar(&s.csvFile, "csv", "", "write a row for each phase and kind of request to `file`")
	f.StringVar(&s.promFile, "prometheus", "", "write the figures to `file`, in the text form of Prometheus")
	f.BoolVar(&s.options.self, "self", false, "start a fresh Parley in its own process and measure it")
	f.BoolVar(&s.options.tls, "tls", false, "with --self: the server uses TLS, with a certificate of this run")
	f.BoolVar(&s.options.http2, "http2", false, "use HTTP/2, with one stream at a time on each connection; needs TLS")
	f.StringVar(&s.options.executable, "exe", "", "with --self: the `executable` to start (default: this one)")
	f.StringVar(&s.serve, "serve", "",
		"with --self: `arguments` for serve, separated by spaces, instead of those the scenario chooses")
	f.StringVar(&s.options.adminEmail, "user", "",
		"`email` of an administrator that can create users (default: development login)")
	f.StringVar(&s.options.adminKey, "key", "", "API `key` of the administrator --user")
	f.StringVar(&s.options.credentialsFile, "credentials", "",
		"`file` of JSON lines {email,key,user_id,host}: use these users instead of creating any")
	f.StringVar(&s.accountsFile, "accounts", "",
		"CSV `file` with existing accounts, email,key or email,password: use these and their channels, create nothing")
	f.StringVar(&s.options.live, "live", "",
		"`address` on this machine of a page, JSON and Prometheus metrics that show the run while it lasts")
	f.StringVar(&s.agentAddrs, "agents", "",
		"`addresses` of agents (parley bench agent) that make the load instead of this process, separated by commas")
	f.StringVar(&s.tokenFile, "token-file", "", "with --agents: `file` with the secret that the agents share")
	f.StringVar(&s.channelNames, "only-channels", "",
		"with --accounts: `names` of the channels to send to, separated by commas (default: all of the accounts)")
	f.BoolVar(&s.options.adopt, "adopt", false, "use the users of the development login instead of creating any")
	f.StringVar(&s.hosts, "hosts", "", "for mixed-realms: host `names` of the organizations, separated by commas")
	f.StringVar(&s.options.metrics, "metrics", "",
		"`URL` of the server's Prometheus metrics (default: /metrics of the target, if it exists)")
	f.BoolVar(&s.options.quiet, "quiet", false, "no progress lines")
	f.IntVar(&s.options.repeat, "repeat", 1, "run the phases `n` times and report medians and ranges")
	f.BoolVar(&s.options.floor, "floor", false,
		"also run a bare epoll server (the floor) alternately, and report ratios to it (at least three pairs)")
	f.StringVar(&s.options.floorCommand, "floor-command", "",
		"`program` to run as the floor, with --listen ADDR and --bytes N")
	f.StringVar(&s.jsonFile, "json", "", "write the result to `file`")
	f.StringVar(&s.htmlFile, "html", "", "write a report to `file`")
	f.StringVar(&s.file, "scenario", "", "`file` with a scenario as TOML or JSON; other flags override its values")
	f.IntVar(&s.scenario.Users, "users", 0, "users to create")
	f.IntVar(&s.scenario.Pollers, "pollers", -1,
		"event queues with a parked poll (default: from the scenario; with --users at least one for each user)")
	f.IntVar(&s.scenario.Channels, "channels", 0, "channels")
	f.IntVar(&s.scenario.History, "history", -1, "messages sent before the measurement")
	f.IntVar(&s.scenario.Sample, "sample", -1, "pollers that decode every event and keep a copy of the state")
	f.IntVar(&s.scenario.Conns, "connections", 0, "connections for all requests except polls")
	f.IntVar(&s.scenario.Sources, "sources", 0, "loopback source addresses")
	f.Uint64Var(&s.scenario.Seed, "seed", 0, "seed of all random values")
	f.Float64Var(&s.rate, "rate", 0, "requests per second in open-loop phases")
	f.Var(&s.seconds, "duration", "`length` of the phases: seconds, or a duration such as 5m")
	return s
}

// ownLoads are the scenarios that generate their own load, over plain HTTP.
var ownLoads = []string{"overload", "hostile", "mcp", "cluster", "cluster-kill"}

func (s *Scenario) ownLoad() bool { return slices.Contains(ownLoads, s.Name) }

// parse reads the flags and checks the resulting scenario.
func (s *runFlags) parse(name string, args []string) error {
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	sc, ok := Scenarios()[name]
	switch name { // commands with a crowd that are no scenarios
	case "faults":
		sc, ok = faultsScenario(), true
	case "conform":
		sc, ok = conformScenario(), true
	}
	if s.file != "" {
		var err error
		if sc, err = LoadScenario(s.file); err != nil {
			return err
		}
	} else if !ok {
		return fmt.Errorf("no scenario %q", name)
	}
	if err := s.readAccounts(sc); err != nil {
		return err
	}
	s.scenario = applyFlags(sc, s.scenario, s.rate, float64(s.seconds))
	if s.serve != "" {
		s.scenario.Serve = strings.Fields(s.serve)
	}
	if s.hosts != "" {
		s.options.hosts = strings.Split(s.hosts, ",")
		s.scenario.Realms = len(s.options.hosts)
	}
	if s.options.self == (s.options.target != "") {
		return fmt.Errorf("either --self or --target URL is required, not both")
	}
	if s.options.tls && (!s.options.self || s.options.floor || s.scenario.ownLoad()) {
		return fmt.Errorf("--tls requires --self, excludes --floor, and is not for %s", strings.Join(ownLoads, ", "))
	}
	if s.options.http2 && !s.options.tls && !strings.HasPrefix(strings.ToLower(s.options.target), "https:") {
		return errors.New("--http2 needs TLS: a target with https://, or --self --tls")
	}
	if s.options.caFile != "" && s.options.self {
		return errors.New("--ca is for --target with https, not for --self")
	}
	if s.scenario.ownLoad() && strings.HasPrefix(strings.ToLower(s.options.target), "https:") {
		return fmt.Errorf("%s makes its own load over plain HTTP: its target must be http://", s.scenario.Name)
	}
	if s.agentAddrs != "" {
		s.options.agents = strings.Split(s.agentAddrs, ",")
		var err error
		if s.options.token, err = readToken(s.tokenFile); err != nil {
			return err
		}
	} else if s.tokenFile != "" {
		return errors.New("--token-file is for --agents")
	}
	if s.scenario.ownLoad() && (len(s.thresholds) > 0 || s.junitFile != "" || s.csvFile != "" || s.promFile != "") {
		return fmt.Errorf("%s has limits of its own: --threshold, --junit, --csv and --prometheus are not for it",
			s.scenario.Name)
	}
	if s.options.executable == "" {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		s.options.executable = exe
	}
	if s.options.floor && s.options.repeat < 3 {
		s.options.repeat = 3
	}
	return s.scenario.check()
}

// readAccounts reads the file of --accounts and limits the users of the scenario to its accounts.
func (s *runFlags) readAccounts(sc Scenario) (err error) {
	if s.accountsFile == "" {
		if s.channelNames != "" {
			return errors.New("--only-channels is for --accounts")
		}
		return nil
	}
	if s.options.self || s.options.adopt || s.options.credentialsFile != "" || sc.Crowd || sc.ownLoad() {
		return errors.New("--accounts needs --target, excludes --adopt and --credentials, and is not for " +
			"scenarios that " +
			"need users of their own")
	}
	if s.channelNames != "" {
		s.options.channels = strings.Split(s.channelNames, ",")
	}
	if s.options.accounts, err = readAccounts(s.accountsFile); err != nil {
		return fmt.Errorf("--accounts: %w", err)
	}
	have := len(s.options.accounts)
	if s.scenario.Users > have {
		return fmt.Errorf("--accounts: %s has %d accounts, fewer than --users %d", s.accountsFile, have,
			s.scenario.Users)
	}
	if s.scenario.Users == 0 {
		s.scenario.Users = min(have, sc.Users)
	}
	return nil
}

// applyFlags returns sc with the values that flags set in f. A zero value in f, or -1 where zero has a meaning, leaves
// the value of sc. rate and duration apply to all phases but warm-ups.
func applyFlags(sc, f Scenario, rate, duration float64) Scenario {
	if f.Users > 0 {
		if sc.Pollers > 0 && f.Pollers < 0 {
			// Keep the number of queues a user, so that --users alone scales a scenario.
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
		if duration > 0 && len(p.Curve) > 0 && !p.Warm {
			// Stretch the curve.
			p.Curve = slices.Clone(p.Curve)
			length := p.Curve[len(p.Curve)-1][0]
			for j := range p.Curve {
				p.Curve[j][0] *= duration / length
			}
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
	s := newRunFlags(name, stdout, stderr)
	if err := s.parse(name, args); err != nil {
		return s.fail(err, stderr)
	}
	fmt.Fprintf(stdout, "parley bench %s: %s (seed %d)\n", s.scenario.Name, s.scenario.About, s.scenario.Seed)
	res, err := runScenario(s.scenario, s.options)
	if err != nil {
		return s.fail(err, stderr)
	}
	return s.finish(res, stdout, stderr)
}

// writeResult writes the result of a scenario that makes its load itself. It returns the exit code: that of the
// verdict, or 2 if the file cannot be written.
func (s *runFlags) writeResult(code int, result any, stderr io.Writer) int {
	if err := s.writeJSON(result); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	return code
}

// printFaults prints violated guarantees and missed limits. It reports whether there are any.
func printFaults(out io.Writer, broken, missed []string) bool {
	for _, x := range broken[:min(len(broken), maxViolations)] {
		fmt.Fprintf(out, "BROKEN: %s\n", x)
	}
	for _, x := range missed {
		fmt.Fprintf(out, "MISSED: %s\n", x)
	}
	return len(broken)+len(missed) > 0
}

// floorServerMain runs the floor server in this process: it prints its address and serves until the process ends.
func floorServerMain(args []string, stdout, stderr io.Writer) int {
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

// floorClientMain runs a scenario against a floor server, in a process of its own.
func floorClientMain(args []string, stdout, stderr io.Writer) int {
	s := newRunFlags("floor-client", stdout, stderr)
	s.options.floorTarget = true
	if err := s.parse("fanout", args); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	res, err := runScenario(s.scenario, s.options)
	if err == nil {
		err = writeFiles(s, res)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	return 0
}
