package bench

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Limits of `parley bench cluster-kill`.
const (
	clusterKillGap     = 3 * time.Second // without service after the kill of a core
	clusterOneVoter    = 0.8             // sends a second with the log of one core, against a single server
	clusterThreeCores  = 3.3             // CPU a send of three cores in total, against a single server
	clusterForwarded   = 1.6             // leader's CPU a send at another core, against one at the leader
	clusterCoreCount   = 3
	clusterVoteTimeout = 60 * time.Second // until a new core has a vote
	clusterReplaceP99  = 2.0              // p99 of sends while a core is replaced, against before
	// clusterSenders is how many sends are in progress at full load.
	clusterSenders = 64
	// clusterRateSeconds is how long a rate of sends is measured.
	clusterRateSeconds = 5
)

// clusterKillOptions are the flags of `parley bench cluster-kill`.
type clusterKillOptions struct {
	kills, moves    int
	organizations   int
	steady          float64
	ratios, replace bool
}

// clusterKillResult is the content of the file of --json.
type clusterKillResult struct {
	Machine     string         `json:"machine"`
	Pollers     int            `json:"pollers"`
	OtherRealms int            `json:"further_organizations,omitempty"`
	Single      *sendCost      `json:"single_server,omitempty"`
	OneVoter    *sendCost      `json:"one_core,omitempty"`
	Three       *sendCost      `json:"three_cores,omitempty"`
	Forwarded   *sendCost      `json:"three_cores_forwarded,omitempty"` // sends at another core than the leader
	SteadySends float64        `json:"steady_sends_per_s,omitempty"`
	Elections   int            `json:"elections_without_a_kill"`
	Kills       []clusterKill  `json:"kills"`
	Moved       []leaderMoved  `json:"moved,omitempty"`
	Replaced    []coreReplaced `json:"replaced,omitempty"`
	Replacing   *replacedSends `json:"replacing,omitempty"`
	Messages    int            `json:"messages"`
	Broken      []string       `json:"broken"`
	Missed      []string       `json:"missed"`
}

// clusterKill is the kill of one core.
type clusterKill struct {
	Leader  bool    `json:"leader"`
	Senders float64 `json:"senders_gap_s"` // longest time without an acknowledged send
	Pollers float64 `json:"pollers_gap_s"` // until every client had a message that was sent after the kill
	Restart float64 `json:"restart_s"`     // from the start of the core to its first answer
}

// sendCost is what sends cost at full load.
type sendCost struct {
	Rate   float64 `json:"sends_per_s"`
	CPU    float64 `json:"cpu_us_a_send"`
	Leader float64 `json:"leader_cpu_us_a_send"`
}

// clusterKillRun is one run of `parley bench cluster-kill`.
type clusterKillRun struct {
	clusterProcesses
	options clusterKillOptions
	result  clusterKillResult
}

// clusterKillMain runs `parley bench cluster-kill`.
func clusterKillMain(args []string, stdout, stderr io.Writer) int {
	s := newRunFlags("cluster-kill", stdout, stderr)
	c := &clusterKillRun{}
	o := &c.options
	s.flags.IntVar(&o.kills, "kills", 20, "how often a core is killed")
	s.flags.IntVar(&o.moves, "moves", 0, "how often the leadership is moved to another core")
	s.flags.Float64Var(&o.steady, "steady", 60, "`seconds` of full load in which there must be no election")
	s.flags.IntVar(&o.organizations, "organizations", 0, "organizations without users besides the one of the clients")
	s.flags.BoolVar(&o.replace, "replace", false, "replace all cores, one after the other")
	s.flags.BoolVar(&o.ratios, "ratios", true, "compare the cost of sends with a single server, too")
	if err := s.parse("cluster-kill", args); err != nil {
		if err != flag.ErrHelp {
			fmt.Fprintf(stderr, "parley bench cluster-kill: %v\n", err)
		}
		return 2
	}
	if !s.options.self {
		fmt.Fprintln(stderr, "parley bench cluster-kill: --self is required")
		return 2
	}
	c.clusterProcesses = newClusterProcesses(s, stdout)
	fmt.Fprintf(stdout, "parley bench cluster-kill: %d cores, %d pollers, %d kills (seed %d)\n", clusterCoreCount,
		s.scenario.Pollers, o.kills, s.scenario.Seed)
	c.result = clusterKillResult{Machine: machine(), Pollers: s.scenario.Pollers, OtherRealms: o.organizations,
		Kills: []clusterKill{}}
	if err := c.measure(); err != nil {
		fmt.Fprintf(stderr, "parley bench cluster-kill: %v\n", err)
		return 2
	}
	return s.writeResult(c.verdict(), &c.result, stderr)
}

// measure runs everything.
func (c *clusterKillRun) measure() (err error) {
	if err := c.makeDir(); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)
	if c.options.ratios {
		if err := c.measureSingleSends(); err != nil {
			return err
		}
	}
	defer c.closeAll()
	first, err := c.startFirstCore()
	if err != nil {
		return err
	}
	c.nodes, c.up = []*server{first}, []bool{true}
	c.load = newClusterLoad(&c.clusterProcesses)
	if c.options.ratios {
		if c.result.OneVoter, err = c.costOfSends("one core", c.leads); err != nil {
			return err
		}
	}
	if err := c.addOrganizations(c.options.organizations); err != nil {
		return err
	}
	if err := c.startOthers(); err != nil {
		return err
	}
	if c.options.ratios {
		if c.result.Three, err = c.costOfSends("three cores", c.leads); err != nil {
			return err
		}
		c.result.Forwarded, err = c.costOfSends("three cores, sends at another one than the leader",
			func(s *server) bool { return !c.leads(s) })
		if err != nil {
			return err
		}
	}
	c.load.resetCounts()
	if err := c.load.join(c.result.Pollers); err != nil {
		return err
	}
	if err := c.steadyLoad(); err != nil {
		return err
	}
	c.load.sendContinuously()
	if err := c.killCores(); err != nil {
		return err
	}
	if err := c.moveLeader(c.options.moves); err != nil {
		return err
	}
	if c.options.replace {
		if err := c.replaceCores(); err != nil {
			return err
		}
	}
	return c.load.finish()
}

// measureSingleSends measures a single server.
func (c *clusterKillRun) measureSingleSends() error {
	s, err := c.node("single", serveArgs(c.exe, c.run.scenario)...)
	if err != nil {
		return err
	}
	c.nodes, c.up = []*server{s}, []bool{true}
	defer func() {
		c.closeRun()
		s.close()
		c.nodes, c.up = nil, nil
	}()
	if err := c.openRun(s); err != nil {
		return err
	}
	c.load = newClusterLoad(&c.clusterProcesses)
	c.result.Single, err = c.costOfSends("single server", c.leads)
	return err
}

// addOrganizations creates organizations at the first core, which a new leader has to claim, too.
func (c *clusterKillRun) addOrganizations(count int) error {
	if count == 0 {
		return nil
	}
	return c.serve(func() error {
		for i := range count {
			_, err := c.command("realm", "create", "--data", dataOf(c.nodes[0]), "--realm", fmt.Sprint("org", i),
				"--name", fmt.Sprint("Organization ", i))
			if err != nil {
				return err
			}
		}
		fmt.Fprintf(c.out, "  %d organizations created\n", count)
		return nil
	})
}

// startOthers lets the other cores join, and waits until all have a vote.
func (c *clusterKillRun) startOthers() error {
	for _, name := range []string{"b", "c"}[:clusterCoreCount-1] {
		s, err := c.joinNode(name, "core", c.nodes[0])
		if err != nil {
			return err
		}
		c.nodes, c.up = append(c.nodes, s), append(c.up, true)
		c.load.addNode(s)
	}
	err := c.waitForVotes(c.nodes[0], clusterCoreCount)
	if err == nil {
		fmt.Fprintf(c.out, "  %d cores have a vote\n", clusterCoreCount)
	}
	return err
}

// waitForVotes waits until a number of cores have a vote, as one of them says.
func (c *clusterKillRun) waitForVotes(at *server, count int) error {
	return c.waitFor(fmt.Sprintf("%d cores have a vote", count), func() bool {
		out, err := c.command("cluster", "status", "--json", "--data", dataOf(at))
		return err == nil && strings.Count(out, `"voter": true`) == count
	})
}

// waitFor runs the load until a condition holds.
func (c *clusterKillRun) waitFor(what string, holds func() bool) error {
	for end := time.Now().Add(clusterVoteTimeout); time.Now().Before(end); {
		ok := false
		if err := c.serve(func() error { ok = holds(); return nil }); err != nil {
			return err
		}
		if ok {
			return nil
		}
		if err := c.run.loop.RunFor(20*time.Millisecond, nil); err != nil {
			return err
		}
	}
	return fmt.Errorf("not within %v: %s", clusterVoteTimeout, what)
}

// sendTo keeps clusterSenders sends in progress at the first node that is chosen, or at the only server, until stop is
// called.
func (c *clusterKillRun) sendTo(choose func(*server) bool) (stop func(), err error) {
	at := 0
	err = c.serve(func() error {
		at = max(0, slices.IndexFunc(c.nodes, choose))
		return nil
	})
	return c.load.sendAtFullLoad(c.load.senders[at]), err
}

// leads reports whether a core is the leader.
func (c *clusterKillRun) leads(s *server) bool { return c.count(s, "parley_cluster_leader") > 0 }

// costOfSends measures sends at full load to a chosen node, without pollers.
func (c *clusterKillRun) costOfSends(name string, choose func(*server) bool) (*sendCost, error) {
	leader := 0
	if err := c.serve(func() error {
		leader = max(0, slices.IndexFunc(c.nodes, c.leads))
		return nil
	}); err != nil {
		return nil, err
	}
	cpu := func() (sum, ofLeader time.Duration) {
		for i, s := range c.nodes {
			x, _ := process{s.pid}.cpu()
			if sum += x; i == leader {
				ofLeader = x
			}
		}
		return sum, ofLeader
	}
	l, loop := c.load, c.run.loop
	stop, err := c.sendTo(choose)
	if err != nil {
		return nil, err
	}
	if err := loop.RunFor(time.Second, nil); err != nil { // caches
		return nil, err
	}
	sent, began := l.sent, loop.Now()
	all, ofLeader := cpu()
	err = loop.RunFor(clusterRateSeconds*time.Second, nil)
	n, took := max(1, float64(l.sent-sent)), loop.Now()-began
	allAfter, ofLeaderAfter := cpu()
	stop()
	if err := errors.Join(err, l.awaitSends()); err != nil {
		return nil, err
	}
	perSend := func(d time.Duration) float64 { return float64(d.Microseconds()) / n }
	x := &sendCost{Rate: n / took.Seconds(), CPU: perSend(allAfter - all), Leader: perSend(ofLeaderAfter - ofLeader)}
	fmt.Fprintf(c.out, "  %s: %.0f sends/s, %.0f us of CPU a send, %.0f us of them at the leader\n", name, x.Rate,
		x.CPU, x.Leader)
	return x, nil
}

// term returns the newest term that a core knows.
func (c *clusterKillRun) term() (newest int) {
	for _, s := range c.nodes {
		newest = max(newest, int(c.count(s, "parley_cluster_term")))
	}
	return newest
}

// steadyLoad counts elections at full load: no core fails, so there must be none.
func (c *clusterKillRun) steadyLoad() error {
	if c.options.steady <= 0 {
		return nil
	}
	l, before := c.load, c.term()
	sent, began := l.sent, c.run.loop.Now()
	l.gap, l.sentAt = 0, began
	stop, err := c.sendTo(c.leads)
	if err != nil {
		return err
	}
	err = c.run.loop.RunFor(seconds(c.options.steady), nil)
	took := c.run.loop.Now() - began
	stop()
	c.result.SteadySends = float64(l.sent-sent) / took.Seconds()
	if err := errors.Join(err, l.awaitSends()); err != nil {
		return err
	}
	c.result.Elections = c.term() - before
	fmt.Fprintf(c.out, "  full load for %.0f s: %.0f sends/s to %d clients, %d elections, at most %.2f s without an "+
		"acknowledged send\n", took.Seconds(), c.result.SteadySends, len(l.clients), c.result.Elections,
		l.gap.Seconds())
	_, err = l.probe(c.run.loop.Now())
	return err
}

// killCores kills a random core and starts it again, and so on.
func (c *clusterKillRun) killCores() error {
	l, loop := c.load, c.run.loop
	for n := range c.options.kills {
		if err := loop.RunFor(time.Duration(300+c.random.IntN(700))*time.Millisecond, nil); err != nil {
			return err
		}
		i := c.random.IntN(len(c.nodes))
		victim := c.nodes[i]
		k := clusterKill{}
		if err := c.serve(func() error { k.Leader = c.leads(victim); return nil }); err != nil {
			return err
		}
		began := loop.Now()
		l.gap, l.sentAt = 0, began
		c.up[i] = false
		if err := c.serve(victim.kill); err != nil {
			return err
		}
		heard, err := l.probe(began)
		if err != nil {
			return fmt.Errorf("kill %d of a core: %w", n+1, err)
		}
		if err := c.serve(victim.start); err != nil {
			return err
		}
		c.up[i] = true
		k.Senders, k.Pollers, k.Restart = l.gap.Seconds(), heard.Seconds(), victim.startTook.Seconds()
		c.result.Kills = append(c.result.Kills, k)
	}
	return nil
}

// gapsOf returns the median and the longest gap of the kills of one kind.
func gapsOf(kills []clusterKill, leader bool, gap func(clusterKill) float64) (count int, median, longest float64) {
	var list []float64
	for _, k := range kills {
		if k.Leader == leader {
			list = append(list, gap(k))
		}
	}
	if len(list) == 0 {
		return 0, 0, 0
	}
	slices.Sort(list)
	return len(list), list[len(list)/2], list[len(list)-1]
}

// verdict prints the figures, the missed limits and the violated guarantees, and returns the exit code.
func (c *clusterKillRun) verdict() int {
	r := &c.result
	r.Broken, r.Messages = append([]string{}, c.broken...), c.messages
	r.Missed = []string{}
	miss := func(bad bool, format string, args ...any) {
		if bad {
			r.Missed = append(r.Missed, fmt.Sprintf(format, args...))
		}
	}
	for _, leader := range []bool{true, false} {
		role := "another core"
		if leader {
			role = "the leader"
		}
		n, median, longest := gapsOf(r.Kills, leader, func(k clusterKill) float64 { return k.Senders })
		if n == 0 {
			continue
		}
		_, heardMedian, heardLongest := gapsOf(r.Kills, leader, func(k clusterKill) float64 { return k.Pollers })
		_, _, restart := gapsOf(r.Kills, leader, func(k clusterKill) float64 { return k.Restart })
		fmt.Fprintf(c.out, "  %s killed %d times: longest time without an acknowledged send %.2f s, median %.2f s; "+
			"until every client heard %.2f s, median %.2f s; first answer %.2f s after its next start at most\n",
			role, n, longest, median, heardLongest, heardMedian, restart)
		miss(longest > clusterKillGap.Seconds(), "after the kill of %s: no acknowledged send for %.1f s", role, longest)
		miss(heardLongest > clusterKillGap.Seconds(), "after the kill of %s: a client got an event after %.1f s", role,
			heardLongest)
	}
	if n := c.printMoves(); n > 0 {
		miss(true, "%d sends were refused while the leadership was moved", n)
	}
	if c.options.ratios {
		oneVoter, three := r.OneVoter.Rate/r.Single.Rate, r.Three.CPU/r.Single.CPU
		fmt.Fprintf(c.out, "  against a single server: sends of one core, ratio %.2f; CPU a send of three cores, "+
			"ratio %.2f\n", oneVoter, three)
		miss(oneVoter < clusterOneVoter, "sends of one core: ratio %.2f", oneVoter)
		miss(three > clusterThreeCores, "CPU a send of three cores: ratio %.2f", three)
		forwarded := r.Forwarded.Leader / r.Three.Leader
		fmt.Fprintf(c.out, "  a send at another core than the leader: leader's CPU, ratio %.2f to one at the leader; "+
			"CPU of all, ratio %.2f to a single server\n", forwarded, r.Forwarded.CPU/r.Single.CPU)
		miss(forwarded > clusterForwarded, "leader's CPU a forwarded send: ratio %.2f", forwarded)
	}
	for _, x := range r.Replaced {
		miss(x.CatchUp > clusterVoteTimeout.Seconds(), "a new core had a vote after %.1f s", x.CatchUp)
	}
	if x := r.Replacing; x != nil {
		miss(x.During > clusterReplaceP99*x.Before, "p99 of sends while cores are replaced: %.1f ms, before %.1f ms",
			x.During, x.Before)
	}
	miss(r.Elections != 0, "%d elections at full load", r.Elections)
	if printFaults(c.out, r.Broken, r.Missed) {
		return 1
	}
	fmt.Fprintf(c.out, "%d messages, each once to %d clients, no registers; all limits kept\n", r.Messages,
		len(c.load.clients))
	return 0
}
