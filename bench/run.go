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
	// drainLimit is how long after a phase everything sent may take to be seen before it counts as lost.
	drainLimit = 20 * time.Second
	// roundLimit ends a run in which somebody never sees a message, instead of waiting for ever.
	roundLimit = 30 * time.Second
	// burstLimit ends a burst that is never answered; a phase may set its own.
	burstLimit = 5 * time.Minute
	// backLimit is how long after a crash all pollers may take to be answered again.
	backLimit = 30 * time.Second
)

// options are what flags say about how to run, as against what to run.
type options struct {
	target, user, key, file string
	self                    bool
	exe                     string
	adopt                   bool
	hosts                   []string
	metrics                 string
	quiet                   bool
	repeat                  int
	patience                time.Duration // instead of drainLimit
	floor                   bool          // run the floor in alternation
	floorCmd                string        // instead of our own floor
	steps                   []Step        // of a trace to replay
	speed                   float64
	nobody                  bool // the server is a floor: it knows no users
	out                     io.Writer
}

// A run is one scenario on one server. Everything but the sampler belongs to the goroutine that calls it.
type run struct {
	sc    Scenario
	opt   options
	srv   *server
	loop  *swarm.Loop
	pool  *swarm.Pool
	pop   *population
	led   *ledger
	meter *meter
	smp   *sampler
	rng   *rand.Rand

	pollers      []*poller
	byAudience   map[int32]*channel
	crowd        *crowdPlayer
	scratch      []byte
	event        swarm.Event
	registerTook time.Duration
	rssBefore    int64
	heapBefore   int64
	oldest       int64 // message ids of the history
	newest       int64

	over       bool          // nothing is sent any more
	hold       bool          // the crowd waits, since the server is about to be killed
	down       bool          // the server was killed and has not answered yet
	recovering bool          // it answers again, but not yet to everybody
	away       int           // pollers without an answer since they lost the server
	firstBack  time.Duration // first and last poll answered after a crash
	pings      int           // who reports presence next
	lastBack   time.Duration
	// How many polls took longer than longBack to be answered by a server that came back, and the longest.
	longBacks   int
	longestBack time.Duration
	killed      time.Duration
	busyBefore  time.Duration // what the loop had used of CPU then
	empty       int64
	lostDown    int64
	skipped     int64 // steps of a trace that name what this crowd has not
	complaints  []string

	result   *Result
	rates    map[string]float64 // deliveries a second, by phase
	ownCrowd bool               // the server made the crowd while it started
	floors   []*Result          // of the floor, one for each repetition
}

func (r *run) say(format string, args ...any) {
	if !r.opt.quiet {
		fmt.Fprintf(r.opt.out, "  %s\n", fmt.Sprintf(format, args...))
	}
}

// Run measures one scenario and answers what it found. An error means that there is no result, not that it is bad.
func runScenario(sc Scenario, opt options) (res *Result, err error) {
	if err := sc.check(); err != nil {
		return nil, err
	}
	r := &run{sc: sc, opt: opt, rates: map[string]float64{}, byAudience: map[int32]*channel{},
		rng: rand.New(rand.NewPCG(sc.Seed, 0x72756e))}
	r.result = newResult(sc)
	begin := time.Now()
	if err := r.connect(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && r.srv.cmd != nil {
			copyTail(opt.out, r.srv)
		}
		if r.srv.cmd != nil {
			r.srv.close()
		}
	}()
	r.loop, err = swarm.Open()
	if err != nil {
		return nil, err
	}
	defer r.loop.Close()
	r.meter = newMeter("build")
	r.pool = swarm.NewPool(r.loop, r.srv.addr, sources(r.srv.addr, sc.Sources), sc.Conns, agent)
	r.smp = startSampler(r.srv.pid, r.metricsURL())
	defer r.smp.close()
	r.serverInfo()
	if err := r.build(); err != nil {
		return nil, err
	}
	r.markRSS()
	if err := r.openPollers(); err != nil {
		return nil, err
	}
	r.parkedFigures()
	r.startCrowd()
	for rep := 0; rep < max(1, opt.repeat); rep++ {
		if opt.floor {
			if err := r.floorRun(); err != nil {
				return nil, fmt.Errorf("floor: %w", err)
			}
		}
		for i := range sc.Phases {
			if err := r.phase(&sc.Phases[i]); err != nil {
				return nil, err
			}
		}
	}
	r.compareMirrors()
	r.over = true
	r.led.close()
	r.finish(time.Since(begin))
	r.combine()
	return r.result, nil
}

// connect finds or starts the server.
func (r *run) connect() error {
	if r.opt.self {
		extra := r.sc.Serve
		if len(extra) == 0 {
			extra = serveArgs(r.opt.exe, r.sc)
		}
		r.ownCrowd = len(extra) > 0 && extra[0] == "--demo-crowd"
		s, err := startSelf(r.opt.exe, extra)
		if s != nil {
			r.srv = s
		}
		if err != nil {
			if s != nil {
				s.close()
			}
			return err
		}
		r.say("started %s: answered after %v", r.opt.exe, s.started.Round(time.Millisecond))
		return nil
	}
	s := &server{}
	if err := s.resolve(r.opt.target); err != nil {
		return err
	}
	if err := s.settings(); err != nil {
		return err
	}
	s.pid = listeningPid(s.addr)
	if s.pid == os.Getpid() {
		s.pid = 0
	}
	r.srv = s
	return nil
}

func (r *run) metricsURL() string {
	if r.opt.metrics != "" {
		return r.opt.metrics
	}
	if r.srv.metrics != "" {
		return r.srv.metrics
	}
	u := "http://" + r.srv.addr.String() + "/metrics"
	if g, _ := readMetrics(u); g > 0 {
		return u
	}
	return ""
}

func (r *run) build() error {
	begin := r.loop.Now()
	var b Builder = overHTTP{}
	if r.opt.nobody {
		b = nobody{}
	} else if r.opt.adopt || r.opt.file != "" || r.ownCrowd {
		a := adopt{}
		if r.opt.file != "" {
			var err error
			if a.people, err = readCredentials(r.opt.file); err != nil {
				return err
			}
		}
		b = a
	}
	plan := crowd.Plan{Users: r.sc.Users, Channels: r.sc.Channels, Zipf: r.sc.Zipf, Hundred: r.sc.Hundred,
		Seed: r.sc.Seed}
	pop, err := b.Build(r, plan)
	if err != nil {
		return fmt.Errorf("building the crowd: %w", err)
	}
	if len(pop.channels) == 0 || len(pop.people) == 0 {
		return errors.New("building the crowd: nobody, or no channel, to speak to")
	}
	r.pop = pop
	r.led = newLedger(r.sc.Seed ^ uint64(time.Now().UnixNano()))
	for i := range pop.channels {
		c := &pop.channels[i]
		c.audience = r.led.audience("channel "+c.Name, c.Members...)
		r.byAudience[c.audience] = c
	}
	if !r.ownCrowd {
		err = r.history(r.sc.History)
	} else if r.sc.History > 0 {
		err = r.findHistory()
	}
	if err != nil {
		return fmt.Errorf("the history: %w", err)
	}
	pop.took = r.loop.Now() - begin
	if r.ownCrowd {
		pop.how = "by the server"
		pop.took += r.srv.started
	}
	r.result.Build = Building{How: pop.how, Seconds: pop.took.Seconds(), Users: len(pop.people),
		Channels: len(pop.channels), Messages: r.sc.History}
	r.say("crowd of %d users, %d channels, %d messages built %s in %.1f s", len(pop.people), len(pop.channels),
		r.sc.History, pop.how, pop.took.Seconds())
	if r.sc.Fresh && r.srv.cmd != nil {
		if err := r.srv.restart(); err != nil {
			return fmt.Errorf("restarting the server: %w", err)
		}
		r.smp.moved(r.srv.pid)
		r.say("restarted: answered after %v", r.srv.started.Round(time.Millisecond))
		r.result.Server.Restart = r.srv.started.Seconds()
		r.idleFigures()
	}
	return nil
}

// phase lets the crowd do one thing for a while and measures it.
func (r *run) phase(p *Phase) error {
	r.meter = newMeter(p.Name)
	m := r.meter
	loop := r.loop
	m.begin = loop.Now()
	before := r.counters()
	progress := r.progress(p)
	rolling := true
	loop.Every(time.Second, func() bool {
		if rolling {
			m.roll(loop.Now())
			progress()
		}
		return rolling
	})
	var err error
	if p.Kill > 0 {
		r.planKill(p)
	}
	if p.Upgrade > 0 {
		r.planUpgrade(p)
	}
	if p.Backup > 0 {
		r.planBackup(p)
	}
	switch {
	case r.opt.steps != nil:
		err = r.replay()
	case p.Rounds > 0:
		err = r.rounds(p)
	case p.Closed > 0:
		err = r.closed(p)
	case p.Burst > 0:
		err = r.burst(p)
	case p.Rate > 0 || p.Share > 0:
		err = r.open(p)
	default:
		err = loop.RunFor(seconds(p.Seconds), nil)
	}
	if err != nil {
		return fmt.Errorf("phase %s: %w", p.Name, err)
	}
	busyEnd := loop.Now()
	err = r.drain(p)
	m.end = loop.Now()
	rolling = false
	r.charge(m, before)
	if p.replaces() {
		m.cpu = 0 // of two processes, and the first one's went with it
	}
	r.rates[p.Name] = float64(m.delivered) / (m.end - m.begin).Seconds()
	if !p.Warm {
		r.phaseResult(p, m, m.end-busyEnd)
	}
	return err
}

// drain waits until all sends are answered and seen.
func (r *run) drain(p *Phase) error {
	patience := drainLimit
	if r.opt.patience > 0 {
		patience = r.opt.patience
	}
	end := r.loop.Now() + patience
	err := r.loop.Run(func() bool {
		return r.loop.Now() > end || r.pool.Under() == 0 && r.led.settled() && r.away == 0
	})
	if err == nil && r.away > 0 && !p.Warm {
		r.led.breach("away", "%d pollers had no answer within %v", r.away, patience)
	}
	return err
}

// rounds: one message, and the next when everybody has seen it.
func (r *run) rounds(p *Phase) error {
	to := r.channelNamed(p.To)
	done, started := 0, time.Duration(0)
	var next func()
	next = func() {
		if done == p.Rounds {
			return
		}
		started = r.loop.Now()
		r.actSend(to, started, nil, func() {
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
		r.led.breach("stuck", "round %d of phase %s was not seen by all within %v", done, p.Name, roundLimit)
	}
	return err
}

func (r *run) channelNamed(to string) int {
	switch to {
	case "":
		return -1
	case "largest":
		best := 0
		for i, c := range r.pop.channels {
			if len(c.Members) > len(r.pop.channels[best].Members) {
				best = i
			}
		}
		return best
	}
	for i, c := range r.pop.channels {
		if c.Name == to || strings.HasSuffix(c.Name, " "+to) {
			return i
		}
	}
	return -1
}

// chooser draws kinds of request by their weights.
func (r *run) chooser(p *Phase) func() int {
	if len(p.Mix) == 0 {
		return func() int { return kindSend }
	}
	var ks []int
	var upto []float64
	total := 0.0
	for k := 0; k < kinds; k++ {
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

// open: requests at times chosen beforehand, whatever becomes of the earlier ones.
func (r *run) open(p *Phase) error {
	rate := p.Rate
	to := r.channelNamed(p.To)
	if p.Share > 0 {
		// The share is of deliveries; each send makes as many as the channel has pollers.
		each := 1.0
		if to >= 0 {
			each = max(1, float64(r.led.audiences[r.pop.channels[to].audience].pollers))
		}
		rate = r.rates[p.Of] * p.Share / each
		if rate <= 0 {
			return fmt.Errorf("phase %q has no rate to take a share of", p.Of)
		}
	}
	choose := r.chooser(p)
	m := r.meter
	begin := r.loop.Now()
	end := begin + seconds(p.Seconds)
	gap := float64(time.Second) / rate
	at := float64(begin)
	n := 0
	over := false
	var arrive func()
	arrive = func() {
		for {
			if p.Even {
				at += gap
			} else {
				at += r.rng.ExpFloat64() * gap
			}
			due := time.Duration(at)
			if p.Seconds > 0 && due >= end || p.Count > 0 && n >= p.Count {
				over = true
				return
			}
			n++
			now := r.loop.Now()
			if due > now {
				r.loop.At(due, func() {
					record(m.late, r.loop.Now()-due)
					r.act(choose(), to, due, nil)
					arrive()
				})
				return
			}
			record(m.late, now-due)
			r.act(choose(), to, due, nil)
			if n%64 == 0 {
				// Let answers be read in between, or a generator that is behind makes itself later still.
				r.loop.At(now, arrive)
				return
			}
		}
	}
	arrive()
	return r.loop.Run(func() bool { return over && (p.Seconds == 0 || r.loop.Now() >= end) })
}

// closed: so many hands, each asking again when it is answered.
func (r *run) closed(p *Phase) error {
	choose := r.chooser(p)
	to := r.channelNamed(p.To)
	end := r.loop.Now() + seconds(p.Seconds)
	n, hands := 0, 0
	var again func()
	again = func() {
		if p.Seconds > 0 && r.loop.Now() >= end || p.Count > 0 && n >= p.Count {
			hands--
			return
		}
		n++
		r.act(choose(), to, r.loop.Now(), again)
	}
	for i := 0; i < p.Closed; i++ {
		hands++
		again()
	}
	return r.loop.Run(func() bool { return hands == 0 })
}

// burst: all at one moment.
func (r *run) burst(p *Phase) error {
	choose := r.chooser(p)
	to := r.channelNamed(p.To)
	left := p.Burst
	now := r.loop.Now()
	for i := 0; i < p.Burst; i++ {
		r.act(choose(), to, now, func() { left-- })
	}
	limit := burstLimit
	if p.Seconds > 0 {
		limit = seconds(p.Seconds)
	}
	err := r.loop.RunFor(limit, func() bool { return left == 0 })
	if left > 0 {
		r.say("%d of %d requests given up after %v", left, p.Burst, limit)
		r.pool.Cut()
	}
	return err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// serveArgs makes the server a development one without rate limits, and lets it make the crowd itself where it can: that
// takes seconds for what takes minutes over HTTP.
func serveArgs(exe string, sc Scenario) []string {
	var args []string
	help := helpOf(exe, "serve")
	has := func(flag string) bool { return strings.Contains(help, "-"+flag) }
	if has("demo-crowd") {
		args = append(args, "--demo-crowd",
			fmt.Sprintf("users=%d,channels=%d,zipf=%g,hundred=%d,messages=%d,realms=%d,seed=%d", sc.Users, sc.Channels,
				sc.Zipf, sc.Hundred, sc.History, max(1, sc.Realms), sc.Seed))
	} else {
		args = append(args, "--demo")
	}
	for _, flag := range []string{"rate-limit", "anonymous-rate-limit", "login-limit"} {
		if has(flag) {
			args = append(args, "--"+flag, "0")
		}
	}
	if has("max-connections") {
		args = append(args, "--max-connections", fmt.Sprint(serverConns))
	}
	return args
}

// serverConns leaves a server with 20,000 files what its database needs.
const serverConns = 19700
