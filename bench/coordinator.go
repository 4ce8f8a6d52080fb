package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

const (
	// maxAgents bounds the agents of a run.
	maxAgents = 1000
	// clockPings is the number of measurements of an agent's clock. The fastest one counts.
	clockPings = 20
	// maxClockError is the largest error of an agent's clock with which latencies between agents have a meaning.
	maxClockError = 20 * time.Millisecond
	// startDelay is the time between the command to start and the start, so that all agents start together.
	startDelay = 2 * time.Second
)

// A remoteAgent is an agent as its coordinator sees it.
type remoteAgent struct {
	addr   string
	f      *framer
	offset time.Duration // clock of the coordinator minus that of the agent
	within time.Duration // largest error of offset
}

// wait returns the next frame of the agent that is not a sign of life.
func (a *remoteAgent) wait(limit time.Duration) (frame, error) {
	for end := time.Now().Add(limit); ; {
		x, err := a.f.receive(agentSilence)
		if err != nil {
			return x, fmt.Errorf("agent %s failed: %w", a.addr, err)
		}
		if !x.Alive {
			return x, nil
		}
		if time.Now().After(end) {
			return x, fmt.Errorf("agent %s did not finish within %v", a.addr, limit)
		}
	}
}

// dialAgents connects to the agents and measures their clocks.
func dialAgents(addrs []string, token []byte) (agents []*remoteAgent, err error) {
	cfg, err := agentTLS(token)
	if err != nil {
		return nil, err
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: settingsLimit}, Config: cfg}
	for _, addr := range addrs {
		ctx, cancel := context.WithTimeout(context.Background(), settingsLimit)
		conn, err := d.DialContext(ctx, "tcp", addr)
		cancel()
		if err != nil {
			return agents, fmt.Errorf("agent %s: %w", addr, err)
		}
		a := &remoteAgent{addr: addr, f: &framer{conn: conn}, within: time.Hour}
		agents = append(agents, a)
		for range clockPings {
			begin := time.Now()
			if err := a.f.send(frame{Ping: true}); err != nil {
				return agents, fmt.Errorf("agent %s: %w", addr, err)
			}
			x, err := a.f.receive(agentSilence)
			if err != nil {
				return agents, fmt.Errorf("agent %s: %w", addr, err)
			}
			if took := time.Since(begin); took/2 < a.within {
				a.within, a.offset = took/2, begin.Add(took/2).Sub(time.Unix(0, x.Now))
			}
		}
		if a.within > maxClockError {
			return agents, fmt.Errorf("agent %s: its clock is known only to %v, more than %v", addr, a.within,
				maxClockError)
		}
	}
	return agents, nil
}

// runAgents makes a run with agents: this process creates the crowd, divides it, and merges the results.
func runAgents(sc Scenario, opt options) (*Result, error) {
	if err := checkForAgents(sc, opt); err != nil {
		return nil, err
	}
	agents, err := dialAgents(opt.agents, opt.token)
	defer func() {
		for _, a := range agents {
			a.f.conn.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	r := newRun(sc, opt)
	defer r.closeSetup()
	if err := r.openSetup(); err != nil {
		return nil, err
	}
	r.server.pid = 0
	begin := time.Now()
	results, err := r.driveAgents(agents)
	if err != nil {
		return nil, err
	}
	for i := range sc.Phases {
		if err := r.mergePhase(i, results); err != nil {
			return nil, err
		}
	}
	for i, a := range results {
		r.result.Notes = append(r.result.Notes, a.Notes...)
		r.result.Notes = append(r.result.Notes, fmt.Sprintf("agent %d is %s; its clock differs by %v, known to %v", i,
			agents[i].addr, agents[i].offset.Round(time.Microsecond), agents[i].within.Round(time.Microsecond)))
		r.complaints = append(r.complaints, a.Complaints...)
		r.ledger.violations = append(r.ledger.violations, a.Violations...)
		for k, n := range a.ByKind {
			r.ledger.violationsByKind[k] += n
			r.ledger.violationCount += n
		}
		if r.result.Stopped == "" {
			r.result.Stopped = a.Stopped
		}
	}
	r.complaints = r.complaints[:min(len(r.complaints), maxComplaints)]
	r.completeResult(time.Since(begin))
	return r.result, nil
}

// checkForAgents returns an error if a run cannot be divided.
func checkForAgents(sc Scenario, opt options) error {
	if opt.self || opt.live != "" || opt.floor || opt.repeat > 1 || opt.traceSteps != nil || sc.Crowd ||
		sc.Realms > 1 || sc.ownLoad() {
		return errors.New("agents need --target, and exclude --live, --floor, --repeat, traces, crowds and several " +
			"organizations")
	}
	if len(opt.agents) > maxAgents || sc.Users < len(opt.agents) {
		return fmt.Errorf("%d users cannot be divided among %d agents (at most %d)", sc.Users, len(opt.agents),
			maxAgents)
	}
	for _, p := range sc.Phases {
		if p.Rounds > 0 || p.Share > 0 || p.replaces() || p.Backup > 0 {
			return fmt.Errorf("phase %s cannot be divided: agents run rate, curve, closed, burst and waiting phases",
				p.Name)
		}
	}
	return nil
}

// divide returns the part of n for one of several agents; the parts add up to n.
func divide(n, index, agents int) int { return n*(index+1)/agents - n*index/agents }

// planFor returns the part of the run for one agent.
func (r *run) planFor(index, agents int, marker uint64, offset time.Duration) *agentPlan {
	people := len(r.population.people)
	p := &agentPlan{Scenario: r.scenario, Target: r.options.target, CA: r.options.ca, HTTP2: r.options.http2,
		People: r.population.people, Channels: r.population.channels, From: people * index / agents,
		To: people * (index + 1) / agents, Index: index, Agents: agents, Marker: marker, Offset: int64(offset),
		Oldest: r.oldest, Newest: r.newest,
		Late: r.options.late, Drain: r.options.drainLimit}
	sc := &p.Scenario
	sc.Seed += uint64(index) * 1_000_003 // agents must not draw the same requests
	sc.Pollers = divide(sc.Pollers, index, agents)
	sc.Conns = max(1, divide(sc.Conns, index, agents))
	sc.Sample = 0 // mirrors compare with a fresh state while other agents still send
	sc.Phases = append([]Phase(nil), sc.Phases...)
	share := float64(p.To-p.From) / float64(people)
	for i := range sc.Phases {
		x := &sc.Phases[i]
		x.Rate *= share
		x.Closed, x.Burst, x.Count = divide(x.Closed, index, agents), divide(x.Burst, index, agents),
			divide(x.Count, index, agents)
		x.Curve = append([][2]float64(nil), x.Curve...)
		for j := range x.Curve {
			x.Curve[j][1] *= share
		}
	}
	return p
}

// driveAgents takes the agents through a run. The first agent that fails ends it.
func (r *run) driveAgents(agents []*remoteAgent) ([]*agentResult, error) {
	marker := rand.Uint64()
	length := time.Duration(0)
	for _, p := range r.scenario.Phases {
		length += seconds(p.Seconds) + burstLimit
		if n := len(p.Curve); n > 0 {
			length += seconds(p.Curve[n-1][0])
		}
	}
	for i, a := range agents {
		if err := a.f.send(frame{Plan: r.planFor(i, len(agents), marker, a.offset)}); err != nil {
			return nil, fmt.Errorf("agent %s: %w", a.addr, err)
		}
	}
	for _, a := range agents {
		if x, err := a.wait(agentSetupLimit); err != nil || !x.Ready {
			return nil, errors.Join(err, errNotReady(x, a))
		}
	}
	start := time.Now().Add(startDelay)
	r.logf("%d agents are ready and start together", len(agents))
	for _, a := range agents {
		if err := a.f.send(frame{Start: start.Add(-a.offset).UnixNano()}); err != nil {
			return nil, fmt.Errorf("agent %s: %w", a.addr, err)
		}
	}
	type sent struct {
		at  int
		x   frame
		err error
	}
	collect := func(limit time.Duration) ([]frame, error) {
		all := make(chan sent, len(agents))
		for i, a := range agents {
			go func() {
				x, err := a.wait(limit)
				all <- sent{i, x, err}
			}()
		}
		list := make([]frame, len(agents))
		for range agents {
			s := <-all
			if s.err != nil {
				return nil, s.err
			}
			list[s.at] = s.x
		}
		return list, nil
	}
	sends, err := collect(length + agentSetupLimit)
	if err != nil {
		return nil, err
	}
	for i, a := range agents {
		others := []agentSend{}
		for j, x := range sends {
			if x.Sends == nil {
				return nil, fmt.Errorf("agent %s did not report its sends", agents[j].addr)
			}
			if j != i {
				others = append(others, *x.Sends...)
			}
		}
		if err := a.f.send(frame{Sends: &others}); err != nil {
			return nil, fmt.Errorf("agent %s: %w", a.addr, err)
		}
	}
	last, err := collect(agentSetupLimit + drainLimit)
	if err != nil {
		return nil, err
	}
	var results []*agentResult
	for i, x := range last {
		if x.Result == nil {
			return nil, fmt.Errorf("agent %s did not send a result", agents[i].addr)
		}
		results = append(results, x.Result)
	}
	return results, nil
}

func errNotReady(x frame, a *remoteAgent) error {
	if x.Ready {
		return nil
	}
	return fmt.Errorf("agent %s is not ready", a.addr)
}

// mergePhase adds a phase of all agents to the result.
func (r *run) mergePhase(i int, results []*agentResult) error {
	p := &r.scenario.Phases[i]
	m := newMeter(p.Name)
	drain, found := 0.0, false
	for _, a := range results {
		if i < len(a.Phases) {
			found = true
			drain = max(drain, a.Phases[i].Drain)
			if err := m.merge(&a.Phases[i]); err != nil {
				return err
			}
		}
	}
	if found && !p.Warm {
		r.result.addTotals(p.Name, m)
		r.phaseResult(p, m, seconds(drain))
	}
	return nil
}
