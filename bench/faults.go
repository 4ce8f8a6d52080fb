package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// faultsScenario makes some 20,000 deliveries in 6 s. Most users are not in most channels, so that a leak is possible.
func faultsScenario() Scenario {
	s := Scenarios()["chat"]
	s.Name, s.About = "faults", "sends through a proxy that damages one event in many"
	s.Users, s.Pollers, s.Channels, s.Zipf, s.History, s.Sample = 40, 40, 8, 1, 0, 0
	s.Phases = []Phase{{Name: "faults", Seconds: 6, Rate: 200, Mix: map[string]float64{"send": 9, "react": 1}}}
	return s
}

// faultsMain is a faulty proxy with --listen. Without it, it runs one short scenario through such a proxy for each kind
// of fault, and prints whether the run found it.
func faultsMain(args []string, stdout, stderr io.Writer) int {
	s := newRunFlags("faults", stdout, stderr)
	listen := s.flags.String("listen", "",
		"`address` of a proxy on this machine that damages answers until it is stopped; without it, prove each kind")
	kinds := s.flags.String("kinds", "", "`kinds` of fault, separated by commas (default: all): "+
		strings.Join(slices.Sorted(maps.Keys(faultKinds)), ", "))
	oneIn := s.flags.Int("one-in", 10_000, "damage one message event, or send, in each `n`")
	delay := s.flags.Duration("delay", 15*time.Second, "time that the proxy withholds a delayed event")
	if err := s.parse("faults", args); err != nil {
		return s.fail(err, stderr)
	}
	list := slices.Sorted(maps.Keys(faultKinds))
	if *kinds != "" {
		list = strings.Split(*kinds, ",")
	}
	for _, k := range list {
		if faultKinds[k] == nil {
			return s.fail(fmt.Errorf("there is no kind of fault %q; there are %s", k, sortedList(faultKinds)), stderr)
		}
	}
	if *oneIn < 1 || *delay <= 0 || *delay > pollLimit/2 {
		return s.fail(fmt.Errorf("--one-in must be positive, and --delay between 0 and %v", pollLimit/2), stderr)
	}
	r := newRun(s.scenario, s.options)
	if err := r.connect(); err != nil {
		return s.fail(err, stderr)
	}
	defer func() {
		if r.server.cmd != nil {
			r.server.close()
		}
	}()
	if *listen != "" {
		if err := serveFaults(*listen, r.server, list, *oneIn, *delay, s.scenario.Seed, stdout); err != nil {
			return s.fail(err, stderr)
		}
		return 0
	}
	rows, err := s.proveFaults(r.server, list, *oneIn, *delay, stdout)
	if err != nil {
		return s.fail(err, stderr)
	}
	missed := 0
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "fault\tinjected\tfound\tmessage\tqueue\tmoment\tas")
	for _, x := range rows {
		if x.Found < x.Injected || x.Injected == 0 {
			missed++
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%s\t%s\n", x.Kind, x.Injected, x.Found, x.First.Message, x.First.Queue,
			x.First.At.Format("15:04:05.000"), x.As)
	}
	t.Flush()
	if err := s.writeJSON(rows); err != nil {
		return s.fail(err, stderr)
	}
	if missed > 0 {
		fmt.Fprintf(stdout, "%d kinds of fault were not found, or not injected\n", missed)
		return 1
	}
	fmt.Fprintln(stdout, "every fault was found")
	return 0
}

// A faultRow says whether a run found the faults of one kind.
type faultRow struct {
	Kind     string        `json:"kind"`
	Injected int           `json:"injected"`
	Found    int           `json:"found"`
	First    injectedFault `json:"first"`
	As       string        `json:"found_as"` // kind of the violation that shows the first fault
}

// serveFaults serves a proxy until the process gets SIGINT or SIGTERM. It prints each fault as a line of JSON.
func serveFaults(listen string, s *server, kinds []string, oneIn int, delay time.Duration, seed uint64,
	stdout io.Writer) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("--listen must be an address of this machine, such as 127.0.0.1:9992: the proxy speaks " +
			"plain HTTP")
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	srv := &http.Server{Handler: newFaultProxy(s, kinds, oneIn, delay, seed, stdout), ReadHeaderTimeout: settingsLimit}
	fmt.Fprintf(stdout, "http://%s passes requests on to %s%s and makes faults: %s, one in %d\n", l.Addr(), s.scheme(),
		s.host, strings.Join(kinds, ", "), oneIn)
	go func() {
		<-ctx.Done()
		srv.Close()
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// proveFaults runs the scenario once for each kind of fault and compares the violations with the injected faults.
func (s *runFlags) proveFaults(to *server, kinds []string, oneIn int, delay time.Duration, stdout io.Writer) (
	rows []faultRow, err error) {
	for _, kind := range kinds {
		n := oneIn
		if kind == "unstored" {
			n = max(1, oneIn/perDelivery)
		}
		f := newFaultProxy(to, []string{kind}, n, delay, s.scenario.Seed, nil)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		srv := &http.Server{Handler: f, ReadHeaderTimeout: settingsLimit}
		go srv.Serve(l)
		opt := s.options
		opt.self, opt.tls, opt.http2, opt.caFile, opt.quiet = false, false, false, "", true
		opt.target = "http://" + l.Addr().String()
		opt.drainLimit = 3 * time.Second
		if kind == "delay" {
			opt.drainLimit += delay
		}
		res, err := runScenario(s.scenario, opt)
		srv.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		rows = append(rows, compareFaults(kind, f.faults(), res))
		fmt.Fprintf(stdout, "%s: %d injected, %d found\n", kind, rows[len(rows)-1].Injected, rows[len(rows)-1].Found)
	}
	return rows, nil
}

// compareFaults counts the faults that the violations of a run show: of the same message, or of the same queue.
func compareFaults(kind string, faults []injectedFault, res *Result) faultRow {
	row := faultRow{Kind: kind, Injected: len(faults)}
	if len(faults) > 0 {
		row.First = faults[0]
	}
	for i, x := range faults {
		at := slices.IndexFunc(res.Violations, func(v violation) bool {
			return slices.Contains(faultKinds[kind], v.Kind) && (v.Message == x.Message && x.Message != 0 ||
				v.Queue == x.Queue && x.Queue != "")
		})
		if at >= 0 {
			row.Found++
			if i == 0 {
				row.As = res.Violations[at].line()
			}
		}
	}
	return row
}
