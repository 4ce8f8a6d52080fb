package bench

import (
	"flag"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Limits of the overload scenario.
const (
	overloadGoodput  = 0.9                    // of the best rate without overload
	overloadDelivery = time.Second            // p99 from send to event
	overloadMemory   = 300                    // MB above idle
	overloadRefused  = 0.05                   // of all sends
	overloadNeighbor = 2.0                    // times the p99 of another organization alone
	overloadRecovery = 2 * time.Second        // until sends are delivered as before
	normalDelivery   = 250 * time.Millisecond // a send that all pollers get so soon is delivered as before
)

// The overload scenario: organization A has overloadPollers users in one channel, B has neighborPollers and sends
// neighborRate messages a second.
const (
	overloadPollers       = 1000
	overloadSenders       = 100
	neighborPollers       = 50
	neighborRate          = 20
	overloadThreads       = 8 // the loops must not wait for each other
	maxCalibrationSenders = 64
	calibrationTime       = 3 * time.Second // of each number of senders
)

// overloadRun is one run of the overload scenario.
type overloadRun struct {
	run        *run
	out        io.Writer
	a, b       []person
	channelA   int64
	channelB   int64
	watchA     *watch
	watchB     *watch
	idleMemory int64
	memory     atomic.Int64 // highest since the last take
	best       float64
	baseline   *hdrhistogram.Histogram // seen in B while A is silent
	answerB    *hdrhistogram.Histogram // answers to B in the last phase
	result     overloadResult
}

// overloadPhase holds the figures of one load.
type overloadPhase struct {
	Name        string  `json:"name"`
	Offered     float64 `json:"offered_per_s"`
	Acked       float64 `json:"acked_per_s"`
	Goodput     float64 `json:"delivered_messages_per_s"`
	SeenP50     float64 `json:"seen_p50_ms"`
	SeenP99     float64 `json:"seen_p99_ms"`
	AnswerP50   float64 `json:"answer_p50_ms"`
	AnswerP99   float64 `json:"answer_p99_ms"`
	Refused     float64 `json:"refused_share"`
	Memory      float64 `json:"memory_mb_above_idle"`
	NeighborP50 float64 `json:"neighbor_seen_p50_ms"`
	NeighborP99 float64 `json:"neighbor_seen_p99_ms"`
	Recovery    float64 `json:"recovery_s"`
}

// overloadResult is the content of the file of --json.
type overloadResult struct {
	Machine string          `json:"machine"`
	Phases  []overloadPhase `json:"phases"`
	Missed  []string        `json:"missed"`
	Broken  []string        `json:"broken"`
}

// overloadMain runs `parley bench overload`.
func overloadMain(args []string, stdout, stderr io.Writer) int {
	s := newRunFlags("overload", stdout, stderr)
	times := s.flags.String("times", "2,5", "`multiples` of the best rate that are offered")
	if err := s.parse("overload", args); err != nil {
		if err != flag.ErrHelp {
			fmt.Fprintf(stderr, "parley bench overload: %v\n", err)
		}
		return 2
	}
	runtime.GOMAXPROCS(max(overloadThreads, runtime.NumCPU()))
	o := &overloadRun{run: newRun(s.scenario, s.options), out: stdout}
	o.result.Machine = machine()
	err := o.measure(strings.Split(*times, ","))
	if err != nil {
		fmt.Fprintf(stderr, "parley bench overload: %v\n", err)
		return 2
	}
	return s.writeResult(o.verdict(), &o.result, stderr)
}

// measure builds the organizations and runs all phases.
func (o *overloadRun) measure(times []string) error {
	r := o.run
	defer r.closeSetup()
	if err := r.openSetup(); err != nil {
		return err
	}
	if err := o.split(); err != nil {
		return err
	}
	var err error
	if o.watchA, err = openWatch(r, o.a, newSendTable(), false); err != nil {
		return err
	}
	if o.watchB, err = openWatch(r, o.b[:neighborPollers], newSendTable(), true); err != nil {
		return err
	}
	stopSampling := o.sampleMemory()
	defer stopSampling()
	time.Sleep(time.Second)
	o.idleMemory = o.memory.Load()
	length := seconds(r.scenario.Phases[0].Seconds)
	if err := o.measureBaseline(length); err != nil {
		return err
	}
	if err := o.calibrate(length); err != nil {
		return err
	}
	for _, x := range times {
		k, err := strconv.ParseFloat(x, 64)
		if err != nil || k <= 0 {
			return fmt.Errorf("times: %q is not a number above 0", x)
		}
		if err := o.overload(k, length); err != nil {
			return err
		}
	}
	return o.finish()
}

// split finds the two organizations and their channels.
func (o *overloadRun) split() error {
	for i := range o.run.population.people {
		if p := o.run.population.people[i]; p.realm == 0 {
			o.a = append(o.a, p)
		} else {
			o.b = append(o.b, p)
		}
	}
	for _, c := range o.run.population.channels {
		if c.realm == 0 {
			o.channelA = c.ID
		} else {
			o.channelB = c.ID
		}
	}
	if len(o.a) == 0 || len(o.b) < neighborPollers || o.channelA == 0 || o.channelB == 0 {
		return fmt.Errorf("the server has %d and %d users in two organizations", len(o.a), len(o.b))
	}
	return nil
}

// sampleMemory watches the server's memory until stop is called.
func (o *overloadRun) sampleMemory() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	p := process{o.run.server.pid}
	go func() {
		defer close(ended)
		t := time.NewTicker(100 * time.Millisecond)
		defer t.Stop()
		for {
			if rss, err := p.rss(); err == nil && rss > o.memory.Load() {
				o.memory.Store(rss)
			}
			select {
			case <-t.C:
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// neighbor sends messages in B while during runs, and returns the latencies of their events.
func (o *overloadRun) neighbor(length time.Duration, during func() error) (*hdrhistogram.Histogram, error) {
	o.watchB.delay.take()
	l := openLoad(o.run, o.b[:neighborPollers], o.channelB, o.watchB.sends)
	l.measures = true
	done := make(chan error, 1)
	go func() { done <- l.openLoop(o.run, neighborRate, length) }()
	err := during()
	if e := <-done; err == nil {
		err = e
	}
	if l.acked.Load() < l.offered.Load() {
		o.result.Missed = append(o.result.Missed, fmt.Sprintf("another organization: %d of %d sends acknowledged",
			l.acked.Load(), l.offered.Load()))
	}
	o.settle(o.watchB)
	o.answerB = l.answer.take()
	return o.watchB.delay.take(), err
}

// settle waits until everything acknowledged was seen.
func (o *overloadRun) settle(w *watch) {
	for end := time.Now().Add(drainLimit); time.Now().Before(end) && !w.everythingSeen(); {
		time.Sleep(20 * time.Millisecond)
	}
}

// measureBaseline measures B alone, as long as an overload: the p99 of a few seconds would be that of its slowest send.
func (o *overloadRun) measureBaseline(length time.Duration) (err error) {
	o.baseline, err = o.neighbor(length, func() error { return nil })
	fmt.Fprintf(o.out, "  idle memory %d MB; B alone: seen p50 %.1f p99 %.1f ms\n", o.idleMemory>>20,
		ms(o.baseline.ValueAtQuantile(50)), ms(o.baseline.ValueAtQuantile(99)))
	return err
}

// calibrate finds the best rate: more and more sends under way, as long as events arrive in time. The best number is
// measured once more, as long as an overload, because a server does not hold the rate of its first seconds: later it
// also writes snapshots and compacts the store.
func (o *overloadRun) calibrate(length time.Duration) error {
	best, bestSenders := 0.0, 0
	atOnce := func(senders int, length time.Duration) (overloadPhase, error) {
		return o.phase(fmt.Sprintf("%d at once", senders), length, func(l *load, d time.Duration) error {
			return l.closedLoop(o.run, senders, d)
		})
	}
	for senders := 4; senders <= maxCalibrationSenders; senders *= 2 {
		p, err := atOnce(senders, calibrationTime)
		if err != nil {
			return err
		}
		if p.SeenP99 <= float64(overloadDelivery.Milliseconds()) && p.Goodput > best {
			best, bestSenders = p.Goodput, senders
		}
	}
	if bestSenders == 0 {
		return fmt.Errorf("no rate at which 99 %% of the events arrive within %v", overloadDelivery)
	}
	p, err := atOnce(bestSenders, length)
	o.best = p.Goodput
	return err
}

// phase runs one load and measures it.
func (o *overloadRun) phase(name string, length time.Duration, start func(*load, time.Duration) error) (overloadPhase,
	error) {
	p := overloadPhase{Name: name}
	l := openLoad(o.run, o.a[:overloadSenders], o.channelA, o.watchA.sends)
	o.watchA.delay.take()
	o.memory.Store(0)
	from := o.watchA.sends.count.Load()
	began := time.Now()
	done := make(chan error, 1)
	var progress sync.WaitGroup
	stop := make(chan struct{})
	progress.Add(1)
	go func() { defer progress.Done(); o.progress(l, name, stop) }()
	var took time.Duration
	neighbor, err := o.neighbor(length, func() error {
		go func() { done <- start(l, length) }()
		err := <-done
		took = time.Since(began)
		return err
	})
	close(stop)
	progress.Wait()
	if err != nil {
		return p, err
	}
	o.settle(o.watchA)
	if why := l.wrong.Load(); why != nil {
		o.result.Broken = append(o.result.Broken, *why)
	}
	seen, answer := o.watchA.delay.take(), l.answer.take()
	last := began.Sub(o.watchA.sends.began) + took
	for no := from; no < o.watchA.sends.count.Load(); no++ {
		last = max(last, time.Duration(o.watchA.sends.all[no].seenAt.Load()))
	}
	all := (last - began.Sub(o.watchA.sends.began)).Seconds()
	p.Offered = float64(l.offered.Load()) / length.Seconds()
	p.Acked = float64(l.acked.Load()) / took.Seconds()
	p.Goodput = float64(seen.TotalCount()) / float64(len(o.watchA.watchers)) / all
	p.SeenP50, p.SeenP99 = ms(seen.ValueAtQuantile(50)), ms(seen.ValueAtQuantile(99))
	p.AnswerP50, p.AnswerP99 = ms(answer.ValueAtQuantile(50)), ms(answer.ValueAtQuantile(99))
	if sent := l.acked.Load() + l.refused.Load() + l.failed.Load(); sent > 0 {
		p.Refused = float64(l.refused.Load()+l.failed.Load()) / float64(sent)
	}
	p.Memory = float64(o.memory.Load()-o.idleMemory) / (1 << 20)
	p.NeighborP50, p.NeighborP99 = ms(neighbor.ValueAtQuantile(50)), ms(neighbor.ValueAtQuantile(99))
	fmt.Fprintf(o.out, "  %-10s offered %6.0f/s acked %5.0f/s delivered %5.0f/s  answer p50 %.0f p99 %.0f ms  "+
		"seen p50 %.0f p99 %.0f ms  refused %.1f %%  memory +%.0f MB", name, p.Offered, p.Acked, p.Goodput, p.AnswerP50,
		p.AnswerP99, p.SeenP50, p.SeenP99, 100*p.Refused, p.Memory)
	fmt.Fprintf(o.out, "  B answer p50 %.1f p99 %.1f seen p50 %.1f p99 %.1f ms\n", ms(o.answerB.ValueAtQuantile(50)),
		ms(o.answerB.ValueAtQuantile(99)), p.NeighborP50, p.NeighborP99)
	return p, nil
}

// progress prints a line every few seconds.
func (o *overloadRun) progress(l *load, name string, stop <-chan struct{}) {
	t := time.NewTicker(5 * time.Second)
	defer t.Stop()
	acked := int64(0)
	for {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		now := l.acked.Load()
		fmt.Fprintf(o.out, "    %s: acked %d/s, refused %d, left out %d, memory at most +%d MB\n", name, (now-acked)/5,
			l.refused.Load(), l.leftOut.Load(), (o.memory.Load()-o.idleMemory)>>20)
		acked = now
	}
}

// overload offers times the best rate, and then measures how soon sends are delivered as before.
func (o *overloadRun) overload(times float64, length time.Duration) error {
	p, err := o.phase(fmt.Sprintf("%g x", times), length, func(l *load, d time.Duration) error {
		return l.openLoop(o.run, times*o.best, d)
	})
	if err != nil {
		return err
	}
	if p.Recovery, err = o.recovery(); err != nil {
		return err
	}
	o.result.Phases = append(o.result.Phases, p)
	missIf := func(bad bool, format string, args ...any) {
		if bad {
			o.result.Missed = append(o.result.Missed, fmt.Sprintf("%g x: ", times)+fmt.Sprintf(format, args...))
		}
	}
	baseline := ms(o.baseline.ValueAtQuantile(99))
	missIf(p.Goodput < overloadGoodput*o.best, "%.0f messages/s delivered, best %.0f", p.Goodput, o.best)
	missIf(p.SeenP99 > float64(overloadDelivery.Milliseconds()), "delivery p99 %.0f ms", p.SeenP99)
	missIf(p.Memory > overloadMemory, "memory %.0f MB above idle", p.Memory)
	missIf(p.Refused > overloadRefused, "%.1f %% of sends refused", 100*p.Refused)
	missIf(p.NeighborP99 > overloadNeighbor*baseline, "another organization: p99 %.1f ms, alone %.1f ms", p.NeighborP99,
		baseline)
	missIf(p.Recovery > overloadRecovery.Seconds(), "back to normal after %.1f s", p.Recovery)
	return nil
}

// recovery sends a few messages after an overload and returns the seconds after which all pollers get them in time.
func (o *overloadRun) recovery() (float64, error) {
	from := o.watchA.sends.count.Load()
	began := time.Since(o.watchA.sends.began)
	l := openLoad(o.run, o.a[:overloadSenders], o.channelA, o.watchA.sends)
	if err := l.openLoop(o.run, neighborRate, 2*overloadRecovery); err != nil {
		return 0, err
	}
	o.settle(o.watchA)
	back := time.Duration(0)
	for no := from; no < o.watchA.sends.count.Load(); no++ {
		s := &o.watchA.sends.all[no]
		if sent := time.Duration(s.intended.Load()); time.Duration(s.seenAt.Load())-sent > normalDelivery ||
			sendState(s.state.Load()) != sendAcked {
			back = sent - began + time.Second/neighborRate
		}
	}
	fmt.Fprintf(o.out, "    back to normal after %.1f s\n", back.Seconds())
	return back.Seconds(), nil
}

func (o *overloadRun) finish() error {
	for _, w := range []*watch{o.watchA, o.watchB} {
		if err := w.stop(); err != nil {
			return err
		}
		o.result.Broken = append(o.result.Broken, w.check()...)
	}
	return nil
}

// verdict prints the missed limits and violated guarantees, and returns the exit code.
func (o *overloadRun) verdict() int {
	if printFaults(o.out, o.result.Broken, o.result.Missed) {
		return 1
	}
	fmt.Fprintln(o.out, "all limits kept")
	return 0
}
