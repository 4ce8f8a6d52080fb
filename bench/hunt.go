package bench

import (
	"flag"
	"fmt"
	"io"
	"math"
)

// huntMain searches for the most users that stay inside the gate: it doubles the users until a run fails, then halves
// the interval. With --self every step is a new server; with --target the crowd grows on the same one.
func huntMain(args []string, stdout, stderr io.Writer) int {
	name := "chat"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		name, args = args[0], args[1:]
	}
	s := newRunFlags("hunt "+name, stdout, stderr)
	gate := DefaultGate
	from := s.flags.Int("from", 500, "users of the first run")
	most := s.flags.Int("most", 19000, "users of the largest run")
	perUser := s.flags.Float64("rate-per-user", 0.02,
		"requests a second of each user, in phases with a rate; a browser makes about one a minute")
	within := s.flags.Float64("within", 0.1, "stop when the limit is known within this fraction")
	s.flags.Float64Var(&gate.Mean, "gate-mean", gate.Mean, "mean answer time in `ms`, without polls")
	s.flags.Float64Var(&gate.P99, "gate-p99", gate.P99, "99th percentile of answer times in `ms`, without polls")
	s.flags.Float64Var(&gate.Errors, "gate-errors", gate.Errors, "5xx and lost answers in `percent`")
	s.flags.Float64Var(&gate.SeenP99, "gate-seen-p99", gate.SeenP99, "99th percentile of sent to seen in `ms`")
	if err := s.parse(name, args); err != nil {
		if err != flag.ErrHelp {
			fmt.Fprintf(stderr, "parley bench hunt: %v\n", err)
		}
		return 2
	}
	s.options.quiet = true
	base := s.scenario
	gate.Generator, gate.Late, gate.Others = base.Gate.Generator, base.Gate.Late, base.Gate.Others
	base.Gate = gate
	fmt.Fprintf(stdout, "hunt %s: mean <= %g ms, p99 <= %g ms, errors <= %g %%, sent to seen p99 <= %g ms (seed %d)\n",
		name, gate.Mean, gate.P99, gate.Errors, gate.SeenP99, base.Seed)
	var best *Result
	good, bad := 0, math.MaxInt
	n := *from
	for {
		sc := scaleScenario(base, n, *perUser)
		res, err := runScenario(sc, s.options)
		if err != nil {
			fmt.Fprintf(stderr, "parley bench hunt: %d users: %v\n", n, err)
			return 2
		}
		why := res.failsGate(gate)
		refused := res.refused()
		fmt.Fprintf(stdout, "%7d users  %s\n", n, gateLine(res, why, refused))
		if refused != "" && why == "" {
			// Inside the gate, but the generator is at its limit and cannot load the server further.
			good, best = n, res
			fmt.Fprintf(stdout, "no verdict beyond this: %s\n", refused)
			break
		}
		if why == "" {
			good, best = n, res
		} else {
			bad = n
		}
		if good >= *most || bad <= 1 || bad != math.MaxInt && float64(bad-good) <= *within*float64(bad) {
			break
		}
		if bad == math.MaxInt {
			n = min(n*2, *most)
		} else if good == 0 {
			n = bad / 2
		} else {
			n = (good + bad) / 2
		}
	}
	fmt.Fprintf(stdout, "most users inside the gate: %d", good)
	if bad != math.MaxInt {
		fmt.Fprintf(stdout, " (%d were too many)", bad)
	}
	fmt.Fprintln(stdout)
	if best == nil {
		return 1
	}
	best.add(Figure{Name: "hunt.users", Unit: "users", Value: float64(good), More: true})
	if err := writeFiles(s, best); err != nil {
		fmt.Fprintf(stderr, "parley bench hunt: %v\n", err)
		return 2
	}
	return 0
}

// scaleScenario returns sc for n users.
func scaleScenario(sc Scenario, n int, perUser float64) Scenario {
	if sc.Pollers > 0 {
		sc.Pollers = min(max(1, sc.Pollers/max(1, sc.Users))*n, 19000)
	}
	sc.Users = n
	sc.Phases = append([]Phase(nil), sc.Phases...)
	for i := range sc.Phases {
		if p := &sc.Phases[i]; p.Rate > 0 {
			p.Rate = max(1, float64(n)*perUser)
		}
	}
	return sc
}

// failsGate returns the first limit of g that a run exceeds; "" if none.
func (r *Result) failsGate(g Gate) string {
	if r.Broken > g.Violations {
		return fmt.Sprintf("%d guarantees violated (%s)", r.Broken, r.Violations[0].Kind)
	}
	for i := range r.Phases {
		d := &r.Phases[i]
		for _, c := range []struct {
			name     string
			is, most float64
		}{{"mean", d.Mean, g.Mean}, {"p99", d.P99, g.P99}, {"errors %", d.Errors, g.Errors},
			{"sent to seen p99", d.Seen.P99, g.SeenP99}} {
			if c.most > 0 && c.is > c.most {
				return fmt.Sprintf("%s %s > %s", c.name, number(c.is), number(c.most))
			}
		}
	}
	return ""
}

func (r *Result) refused() string {
	for i := range r.Phases {
		if r.Phases[i].Refused != "" {
			return r.Phases[i].Refused
		}
	}
	return ""
}

func gateLine(res *Result, why, refused string) string {
	d := &res.Phases[len(res.Phases)-1]
	s := fmt.Sprintf("mean %6.1f ms  p99 %7.1f ms  errors %.3f %%  seen p99 %7.1f ms  server %.2f cores  generator "+
		"%.0f %%", d.Mean, d.P99, d.Errors, d.Seen.P99, d.CPU, 100*d.Busy)
	if why != "" {
		return s + "  outside: " + why
	}
	if refused != "" {
		return s + "  no verdict"
	}
	return s + "  inside"
}
