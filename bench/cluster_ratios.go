package bench

import (
	"fmt"
	"time"
)

// The processor time of waiting clients is taken off: the least of clusterIdleTimes, of clusterIdle each. After many
// registrations a server is busy for some seconds, because it writes their rows.
const (
	clusterIdle      = 2 * time.Second
	clusterIdleTimes = 5
)

// measureSingle measures a single server's CPU a delivery, with as many pollers as an edge has.
func (c *clusterRun) measureSingle() error {
	s, err := c.node("single", serveArgs(c.exe, c.run.scenario)...)
	if err != nil {
		return err
	}
	defer s.close()
	defer c.closeRun()
	if err := c.openRun(s); err != nil {
		return err
	}
	c.load = newClusterLoad(&c.clusterProcesses)
	pollers := c.result.Pollers / c.options.edges
	if err := c.load.join(pollers); err != nil {
		return err
	}
	cpu, err := c.cpuOfSends(s)
	c.load.finished = true
	c.result.SingleCPU = cpu[0] / float64(pollers)
	fmt.Fprintf(c.out, "  single server with %d pollers: %.1f us of CPU a delivery\n", pollers, c.result.SingleCPU)
	return err
}

// measureRatios measures the owner with a tenth of the pollers and with all of them, and one edge with its part of them
// while the other edges have few: a single server does not share the processors with others either.
func (c *clusterRun) measureRatios() error {
	if err := c.load.join(c.result.Pollers / 10); err != nil {
		return err
	}
	few, err := c.cpuOfSends(c.core)
	if err != nil {
		return err
	}
	part := c.result.Pollers / c.options.edges
	others := c.result.Pollers/10 - c.result.Pollers/10/c.options.edges
	if err := c.load.joinAt(part+others, func() int { return 0 }); err != nil {
		return err
	}
	one, err := c.cpuOfSends(c.nodes[0])
	if err != nil {
		return err
	}
	c.result.EdgeCPU = one[0] / float64(part)
	if err := c.load.join(c.result.Pollers); err != nil {
		return err
	}
	stored, sent := c.count(c.core, "parley_store_facts_total"), c.count(c.core, "parley_cluster_facts_sent_total")
	many, err := c.cpuOfSends(c.core)
	if err != nil {
		return err
	}
	c.result.OwnerFew, c.result.OwnerMany = few[0], many[0]
	if err := c.run.loop.RunFor(time.Second, nil); err != nil {
		return err
	}
	if n := c.count(c.core, "parley_store_facts_total") - stored; n > 0 {
		sent = c.count(c.core, "parley_cluster_facts_sent_total") - sent
		c.result.Copies = sent / n / float64(c.options.edges)
	}
	return nil
}

// cpuOfSends sends messages one after the other, each when every client has the one before, and returns the
// microseconds of processor time of each process for one message.
func (c *clusterRun) cpuOfSends(of ...*server) ([]float64, error) {
	l, loop := c.load, c.run.loop
	pool := c.run.pool
	read := func() (list []time.Duration) {
		for _, s := range of {
			x, _ := process{s.pid}.cpu()
			list = append(list, x)
		}
		return list
	}
	one := func() error {
		pending, id := true, int64(0)
		l.send(pool, func(x int64) { pending, id = false, x })
		checked := 0
		return loop.RunFor(clusterDrain, func() bool {
			for checked < len(l.clients) && id != 0 && l.clients[checked].message >= id {
				checked++
			}
			return !pending && (id == 0 || checked == len(l.clients))
		})
	}
	for range max(1, c.options.sends/10) { // caches
		if err := one(); err != nil {
			return nil, err
		}
	}
	rates := make([]float64, len(of))
	for n := range clusterIdleTimes {
		before, began := read(), loop.Now()
		if err := loop.RunFor(clusterIdle, nil); err != nil {
			return nil, err
		}
		after, idle := read(), loop.Now()-began
		for i := range of {
			if rate := float64(after[i]-before[i]) / float64(idle); n == 0 || rate < rates[i] {
				rates[i] = rate
			}
		}
	}
	before, began := read(), loop.Now()
	for range c.options.sends {
		if err := one(); err != nil {
			return nil, err
		}
	}
	after, took := read(), loop.Now()-began
	out := make([]float64, len(of))
	for i := range of {
		used := float64(after[i]-before[i]) - rates[i]*float64(took)
		out[i] = used / 1000 / float64(c.options.sends)
	}
	return out, nil
}
