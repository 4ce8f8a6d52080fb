package bench

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"parley/bench/crowd"
	"parley/bench/swarm"
)

const agent = "ParleyBench/1"

const (
	// drainLimit is the time after a phase in which everything sent must be seen; later it counts as lost.
	drainLimit = 20 * time.Second
	// roundLimit ends a run if some poller never sees the message of a round.
	roundLimit = 30 * time.Second
	// burstLimit ends a burst that is never answered; the Seconds of a phase override it.
	burstLimit = 5 * time.Minute
	// recoveryLimit is the time after a crash in which all pollers must have an answer.
	recoveryLimit = 30 * time.Second
)

// options are the flags that say how to run; Scenario says which load to run.
type options struct {
	target, adminEmail, adminKey, credentialsFile string
	caFile                                        string   // roots for a target with https
	ca                                            []byte   // the content of caFile
	agents                                        []string // addresses of the agents that make the load
	token                                         []byte   // that the agents share
	live                                          string   // address of the live page
	mayLoad                                       bool     // the target may be beyond this machine
	self                                          bool
	tls                                           bool // with self: over TLS
	http2                                         bool // the load uses HTTP/2
	executable                                    string
	adopt                                         bool
	accounts                                      []person // existing accounts; nil: create users
	channels                                      []string // with accounts: names of the channels to use
	hosts                                         []string
	metrics                                       string
	quiet                                         bool
	repeat                                        int
	drainLimit                                    time.Duration // instead of drainLimit
	late                                          time.Duration // instead of lateLimit; negative: none
	floor                                         bool          // run the floor in alternation
	floorCommand                                  string        // a program instead of our own floor
	traceSteps                                    []Step        // of the trace to replay
	speed                                         float64
	floorTarget                                   bool // the server is a floor: it has no users
	out                                           io.Writer
}

// A run is one scenario on one server. Everything but the sampler belongs to the goroutine that calls runScenario.
type run struct {
	scenario   Scenario
	options    options
	server     *server
	loop       *swarm.Loop
	pool       *swarm.Pool
	population *population
	ledger     *ledger
	meter      *meter
	sampler    *sampler
	rng        *rand.Rand

	pollers      []*poller
	byAudience   map[int32]*channel
	crowd        *crowdRunner
	scratch      []byte
	event        swarm.Event
	registerTook time.Duration
	rssBefore    int64
	heapBefore   int64
	oldest       int64 // message ids of the history
	newest       int64

	stop        thresholdList // conditions of the scenario that end the run early
	stopped     string        // the condition that ended the run, or empty
	live        *liveServer   // nil without --live
	agent       *agentPlan    // of an agent; nil for a run in one process
	agentPhases []agentPhase  // measurements for the coordinator
	sendable    []int         // indexes of the channels with a member that sends
	finished    bool          // no more requests are sent
	crowdPaused bool          // the crowd waits because the server is about to be killed
	serverDown  bool          // the server was killed and has not answered since
	recovering  bool          // it answers again, but some pollers still have no answer
	pollersAway int           // pollers without an answer since they lost their connection
	firstReturn time.Duration // first and last poll answered after a crash
	nextPinger  int           // index of the next user that reports presence
	lastReturn  time.Duration
	// The number of polls that a restarted server took longer than longReturn to answer, and the longest time.
	longReturns   int
	longestReturn time.Duration
	killedAt      time.Duration
	busyAtKill    time.Duration // CPU time of the loop at killed
	emptyAnswers  int64
	lostWhileDown int64
	skippedSteps  int64 // steps of a trace that name something this crowd does not have
	complaints    []string

	result        *Result
	deliveryRates map[string]float64 // deliveries a second, by phase name
	crowdByServer bool               // the server created the crowd during its start
	floorResults  []*Result          // of the floor, one for each repetition
}

func (r *run) logf(format string, args ...any) {
	if !r.options.quiet {
		fmt.Fprintf(r.options.out, "  %s\n", fmt.Sprintf(format, args...))
	}
}

// runScenario runs one scenario and returns its result. An error means that there is no result; violated guarantees are
// part of the result.
func runScenario(sc Scenario, opt options) (res *Result, err error) {
	if err := sc.check(); err != nil {
		return nil, err
	}
	if len(opt.agents) > 0 {
		return runAgents(sc, opt)
	}
	r := newRun(sc, opt)
	begin := time.Now()
	defer func() {
		if err != nil && r.server != nil {
			printLogTail(opt.out, r.server)
		}
		r.closeSetup()
	}()
	if opt.live != "" {
		if r.live, err = startLive(opt.live); err != nil {
			return nil, err
		}
		defer r.live.close()
		fmt.Fprintf(opt.out, "  live page: http://%s/\n", r.live.addr)
	}
	if err := r.openSetup(); err != nil {
		return nil, err
	}
	r.recordMemoryBefore()
	if err := r.openPollers(); err != nil {
		return nil, err
	}
	r.parkedFigures()
	r.startCrowd()
	for rep := 0; rep < max(1, opt.repeat) && r.stopped == ""; rep++ {
		if opt.floor {
			if err := r.runFloor(); err != nil {
				return nil, fmt.Errorf("floor: %w", err)
			}
		}
		for i := range sc.Phases {
			if err := r.runPhase(&sc.Phases[i]); err != nil {
				return nil, err
			}
			if r.stopped != "" {
				break
			}
		}
	}
	r.result.Stopped = r.stopped
	r.compareMirrors()
	if err := r.checkStored(); err != nil {
		return nil, err
	}
	r.finished = true
	r.ledger.checkLost()
	r.completeResult(time.Since(begin))
	r.combineRepetitions()
	return r.result, nil
}

// newRun returns a run that has no server yet.
func newRun(sc Scenario, opt options) *run {
	r := &run{scenario: sc, options: opt, deliveryRates: map[string]float64{}, byAudience: map[int32]*channel{},
		rng: rand.New(rand.NewPCG(sc.Seed, 0x72756e))}
	r.stop, _ = parseThresholds(sc.Stop) // check has seen them
	r.result = newResult(sc)
	return r
}

// openSetup connects to the server and builds the crowd. Call closeSetup afterwards, after an error too.
func (r *run) openSetup() (err error) {
	if err := r.connect(); err != nil {
		return err
	}
	if r.loop, err = swarm.Open(); err != nil {
		return err
	}
	r.openPool()
	r.sampler = startSampler(r.server.pid, r.metricsURL())
	r.serverInfo()
	return r.buildCrowd()
}

// openPool makes the connections for all requests but polls.
func (r *run) openPool() {
	r.meter = newMeter("build")
	r.pool = swarm.NewPool(r.loop, r.server.addr, sourceAddresses(r.server.addr, r.scenario.Sources), r.scenario.Conns,
		agent)
	if r.server.tls != nil {
		r.pool.UseTLS(r.server.loadTLS(r.options.http2))
	}
}

// usePopulation makes a crowd that of the run, with a new ledger.
func (r *run) usePopulation(pop *population, marker uint64) {
	r.population = pop
	r.ledger = newLedger(marker)
	r.ledger.checkText = !r.options.floorTarget
	r.sendable = nil
	for i := range pop.channels {
		c := &pop.channels[i]
		c.audience = r.ledger.addAudience("channel "+c.Name, c.Members...)
		r.byAudience[c.audience] = c
		c.senders = c.Members
		if r.agent != nil {
			c.senders = nil
			for _, m := range c.Members {
				if int(m) >= r.agent.From && int(m) < r.agent.To {
					c.senders = append(c.senders, m)
				}
			}
		}
		if len(c.senders) > 0 {
			r.sendable = append(r.sendable, i)
		}
	}
}

// closeSetup ends the work that openSetup started.
func (r *run) closeSetup() {
	if r.sampler != nil {
		r.sampler.close()
	}
	if r.loop != nil {
		r.loop.Close()
	}
	if r.server != nil && r.server.cmd != nil {
		r.server.close()
	}
}

// connect starts the server, or looks up the address of a running one.
func (r *run) connect() error {
	if r.options.self {
		extra := r.scenario.Serve
		if len(extra) == 0 {
			extra = serveArgs(r.options.executable, r.scenario)
		}
		r.crowdByServer = len(extra) > 0 && extra[0] == "--demo-crowd"
		s, err := startSelf(r.options.executable, extra, r.options.tls)
		if err != nil {
			if s != nil {
				s.close()
			}
			return err
		}
		r.server = s
		r.logf("started %s: answered after %v", r.options.executable, s.startTook.Round(time.Millisecond))
		return nil
	}
	s := &server{}
	if r.options.caFile != "" && r.options.ca == nil {
		var err error
		if r.options.ca, err = readBounded(r.options.caFile, maxCAFile); err != nil {
			return fmt.Errorf("--ca: %w", err)
		}
	}
	if err := s.resolve(r.options.target, r.options.ca); err != nil {
		return err
	}
	if err := s.checkPermission(r.options.mayLoad); err != nil {
		return err
	}
	if err := s.fetchSettings(); err != nil {
		return err
	}
	s.pid = listeningPid(s.addr)
	if s.pid == os.Getpid() {
		s.pid = 0
	}
	r.server = s
	return nil
}

func (r *run) metricsURL() string {
	if r.options.metrics != "" {
		return r.options.metrics
	}
	if r.server.metrics != "" {
		return r.server.metrics
	}
	if r.server.tls != nil {
		return ""
	}
	u := "http://" + r.server.addr.String() + "/metrics"
	if g, _ := readMetrics(u); g > 0 {
		return u
	}
	return ""
}

func (r *run) buildCrowd() error {
	begin := r.loop.Now()
	var b Builder = httpBuilder{}
	if r.options.floorTarget {
		b = floorBuilder{}
	} else if r.options.accounts != nil {
		b = accountBuilder{r.options.accounts[:min(len(r.options.accounts), r.scenario.Users)], r.options.channels}
	} else if r.options.adopt || r.options.credentialsFile != "" || r.crowdByServer {
		a := adoptBuilder{}
		if r.options.credentialsFile != "" {
			var err error
			if a.people, err = readCredentials(r.options.credentialsFile); err != nil {
				return err
			}
		}
		b = a
	}
	plan := crowd.Plan{Users: r.scenario.Users, Channels: r.scenario.Channels, Zipf: r.scenario.Zipf,
		Hundred: r.scenario.Hundred, Room: r.scenario.Room, Seed: r.scenario.Seed}
	pop, err := b.Build(r, plan)
	if err != nil {
		return fmt.Errorf("building the crowd: %w", err)
	}
	if len(pop.channels) == 0 || len(pop.people) == 0 {
		return errors.New("building the crowd: the server has no users or no channels")
	}
	r.usePopulation(pop, r.scenario.Seed^uint64(time.Now().UnixNano()))
	if !r.crowdByServer {
		err = r.sendHistory(r.scenario.History)
	} else if r.scenario.History > 0 {
		err = r.findHistory()
	}
	if err != nil {
		return fmt.Errorf("building the history: %w", err)
	}
	pop.took = r.loop.Now() - begin
	if r.crowdByServer {
		pop.how = "by the server"
		pop.took += r.server.startTook
	}
	r.result.Build = Building{How: pop.how, Seconds: pop.took.Seconds(), Users: len(pop.people),
		Channels: len(pop.channels), Messages: r.scenario.History}
	r.logf("crowd of %d users, %d channels, %d messages built %s in %.1f s", len(pop.people), len(pop.channels),
		r.scenario.History, pop.how, pop.took.Seconds())
	if r.scenario.Fresh && r.server.cmd != nil {
		if err := r.server.restart(); err != nil {
			return fmt.Errorf("restarting the server: %w", err)
		}
		r.sampler.setPID(r.server.pid)
		r.logf("restarted: answered after %v", r.server.startTook.Round(time.Millisecond))
		r.result.Server.Restart = r.server.startTook.Seconds()
		r.idleFigures()
	}
	return nil
}

// runPhase runs one phase of the scenario and measures it.
func (r *run) runPhase(p *Phase) error {
	r.meter = newMeter(p.Name)
	m := r.meter
	loop := r.loop
	m.begin = loop.Now()
	before := r.readCounters()
	progress := r.progress(p)
	rolling := true
	loop.Every(time.Second, func() bool {
		if rolling {
			m.roll(loop.Now())
			progress()
			if why := r.checkStop(m); why != "" && r.stopped == "" && !p.Warm {
				r.stopped = why
			}
		}
		return rolling
	})
	var err error
	if p.Kill > 0 {
		r.scheduleKill(p)
	}
	if p.Upgrade > 0 {
		r.scheduleUpgrade(p)
	}
	if p.Backup > 0 {
		r.scheduleBackup(p)
	}
	if p.replaces() || r.options.floorTarget || r.options.late < 0 {
		r.ledger.lateLimit = 0 // clients of a server that is away are late
	} else if r.ledger.lateLimit = lateLimit; r.options.late > 0 {
		r.ledger.lateLimit = r.options.late
	}
	switch {
	case r.options.traceSteps != nil:
		err = r.runReplay()
	case p.Rounds > 0:
		err = r.runRounds(p)
	case p.Closed > 0:
		err = r.runClosedLoop(p)
	case p.Burst > 0:
		err = r.runBurst(p)
	case p.Rate > 0 || p.Share > 0 || len(p.Curve) > 0:
		err = r.runOpenLoop(p)
	default:
		err = loop.RunFor(seconds(p.Seconds), func() bool { return r.stopped != "" })
	}
	if err != nil {
		return fmt.Errorf("phase %s: %w", p.Name, err)
	}
	busyEnd := loop.Now()
	err = r.drain(p)
	m.end = loop.Now()
	rolling = false
	r.recordCost(m, before)
	if p.replaces() {
		m.serverCPU = 0 // two processes served, and the counter of the first one is gone
	}
	if r.agent != nil {
		r.agentPhases = append(r.agentPhases, exportPhase(m, m.end-busyEnd))
		return err
	}
	if !p.Warm {
		r.result.addTotals(p.Name, m)
	}
	r.deliveryRates[p.Name] = float64(m.delivered) / (m.end - m.begin).Seconds()
	if !p.Warm {
		r.phaseResult(p, m, m.end-busyEnd)
	}
	return err
}

// drain waits until all sends are answered and seen, at most drainLimit.
func (r *run) drain(p *Phase) error {
	limit := drainLimit
	if r.options.drainLimit > 0 {
		limit = r.options.drainLimit
	}
	end := r.loop.Now() + limit
	err := r.loop.Run(func() bool {
		return r.loop.Now() > end || r.pool.Pending() == 0 && r.ledger.allSeen() && r.pollersAway == 0
	})
	if err == nil && r.pollersAway > 0 && !p.Warm {
		r.ledger.addViolation("away", "%d pollers had no answer within %v", r.pollersAway, limit)
	}
	return err
}

// runRounds sends one message at a time: the next one as soon as all pollers of the channel have seen the last.
func (r *run) runRounds(p *Phase) error {
	to := r.channelNamed(p.To)
	done, started := 0, time.Duration(0)
	var next func()
	next = func() {
		if done == p.Rounds {
			return
		}
		started = r.loop.Now()
		r.startSend(to, started, nil, func() {
			done++
			r.loop.At(r.loop.Now(), next)
		})
	}
	next()
	stuck := false
	err := r.loop.Run(func() bool {
		stuck = r.loop.Now()-started > roundLimit
		return done == p.Rounds || stuck
	})
	if stuck && done < p.Rounds {
		r.ledger.addViolation("stuck", "round %d of phase %s was not seen by all pollers within %v", done, p.Name,
			roundLimit)
	}
	return err
}

// channelNamed returns the index of the channel named to, -1 if to is empty or unknown. "largest" is the channel with
// the most members.
func (r *run) channelNamed(to string) int {
	switch to {
	case "":
		return -1
	case "largest":
		best := 0
		for i, c := range r.population.channels {
			if len(c.Members) > len(r.population.channels[best].Members) {
				best = i
			}
		}
		return best
	}
	for i, c := range r.population.channels {
		if c.Name == to || strings.HasSuffix(c.Name, " "+to) {
			return i
		}
	}
	return -1
}

// chooser returns a function that draws kinds of request by the weights of the phase.
func (r *run) chooser(p *Phase) func() int {
	if len(p.Mix) == 0 {
		return func() int { return kindSend }
	}
	var ks []int
	var upto []float64
	total := 0.0
	for k := 0; k < kindCount; k++ {
		for name, w := range p.Mix {
			if mixKinds[name] == k && w > 0 {
				total += w
				ks, upto = append(ks, k), append(upto, total)
			}
		}
	}
	return func() int {
		x := r.rng.Float64() * total
		for i, u := range upto {
			if x < u {
				return ks[i]
			}
		}
		return ks[len(ks)-1]
	}
}

// runOpenLoop sends requests at times that are drawn beforehand, independent of the answers to earlier requests.
func (r *run) runOpenLoop(p *Phase) error {
	rate := p.Rate
	to := r.channelNamed(p.To)
	if p.Share > 0 {
		// Share is a share of deliveries; each send makes as many as the channel has pollers.
		each := 1.0
		if to >= 0 {
			each = max(1, float64(r.ledger.audiences[r.population.channels[to].audience].pollers))
		}
		rate = r.deliveryRates[p.Of] * p.Share / each
		if rate <= 0 {
			return fmt.Errorf("phase %q has no delivery rate, so no share of it can be sent", p.Of)
		}
	}
	choose := r.chooser(p)
	m := r.meter
	begin := r.loop.Now()
	end := begin + seconds(p.Seconds)
	times := newSchedule(p, rate)
	n := 0
	over := false
	var arrive func()
	arrive = func() {
		for {
			amount := 1.0
			if !p.Even {
				amount = r.rng.ExpFloat64()
			}
			at, more := times.next(amount)
			due := begin + seconds(at)
			if !more || p.Seconds > 0 && due >= end || p.Count > 0 && n >= p.Count || r.stopped != "" {
				over = true
				return
			}
			n++
			now := r.loop.Now()
			if due > now {
				r.loop.At(due, func() {
					recordLatency(m.lateness, r.loop.Now()-due)
					r.startRequest(choose(), to, due, nil)
					arrive()
				})
				return
			}
			recordLatency(m.lateness, now-due)
			r.startRequest(choose(), to, due, nil)
			if n%64 == 0 {
				// Serve the sockets in between: otherwise a generator that is late delays itself further.
				r.loop.At(now, arrive)
				return
			}
		}
	}
	arrive()
	return r.loop.Run(func() bool { return r.stopped != "" || over && (p.Seconds == 0 || r.loop.Now() >= end) })
}

// runClosedLoop keeps p.Closed requests under way: each answer starts the next request.
func (r *run) runClosedLoop(p *Phase) error {
	choose := r.chooser(p)
	to := r.channelNamed(p.To)
	end := r.loop.Now() + seconds(p.Seconds)
	n, senders := 0, 0
	var again, after func()
	again = func() {
		if p.Seconds > 0 && r.loop.Now() >= end || p.Count > 0 && n >= p.Count || r.stopped != "" {
			senders--
			return
		}
		n++
		r.startRequest(choose(), to, r.loop.Now(), after)
	}
	after = again
	if p.Think > 0 {
		after = func() { r.loop.At(r.loop.Now()+seconds(r.rng.ExpFloat64()*p.Think), again) }
	}
	for i := 0; i < p.Closed; i++ {
		senders++
		again()
	}
	return r.loop.Run(func() bool { return senders == 0 })
}

// runBurst sends all requests at once.
func (r *run) runBurst(p *Phase) error {
	choose := r.chooser(p)
	to := r.channelNamed(p.To)
	left := p.Burst
	now := r.loop.Now()
	for i := 0; i < p.Burst; i++ {
		r.startRequest(choose(), to, now, func() { left-- })
	}
	limit := burstLimit
	if p.Seconds > 0 {
		limit = seconds(p.Seconds)
	}
	err := r.loop.RunFor(limit, func() bool { return left == 0 })
	if left > 0 {
		r.logf("%d of %d requests given up after %v", left, p.Burst, limit)
		r.pool.CancelAll()
	}
	return err
}

// seconds converts a number of seconds to a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// serveArgs returns the arguments of serve for a development server without rate limits. If exe can create the crowd
// itself it does: that takes seconds instead of minutes over HTTP.
func serveArgs(exe string, sc Scenario) []string {
	var args []string
	help := helpText(exe, "serve")
	has := func(flag string) bool { return strings.Contains(help, "-"+flag) }
	if has("demo-crowd") && sc.Name != "faults" { // through a proxy, runs create their crowds themselves
		args = append(args, "--demo-crowd",
			fmt.Sprintf("users=%d,channels=%d,zipf=%g,hundred=%d,messages=%d,realms=%d,seed=%d", sc.Users, sc.Channels,
				sc.Zipf, sc.Hundred, sc.History, max(1, sc.Realms), sc.Seed))
		if sc.Room > 0 {
			args[len(args)-1] += fmt.Sprintf(",room=%d", sc.Room)
		}
	} else {
		args = append(args, "--demo")
	}
	for _, flag := range []string{"rate-limit", "anonymous-rate-limit", "login-limit"} {
		if has(flag) {
			args = append(args, "--"+flag, "0")
		}
	}
	for _, flag := range []string{"max-connections", "max-http2-connections"} {
		if has(flag) {
			args = append(args, "--"+flag, fmt.Sprint(maxServerConnections))
		}
	}
	return args
}

// maxServerConnections leaves file descriptors for the database of a server that may open 20,000 files.
const maxServerConnections = 19700
