package bench

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// Limits of `parley bench cluster`.
const (
	clusterFailoverLimit = 3 * time.Second // from the kill of an edge until every client has an event from another one
	clusterOwnerCPU      = 1.1             // owner's CPU a send with all pollers on edges, against a tenth of them
	clusterEdgeCPU       = 1.1             // an edge's CPU a delivery, against a single server's
	clusterCopies        = 1.005           // copies of a fact that are sent to an edge
	clusterDrain         = 30 * time.Second
	// The clients' first polls are sent within clusterSettle and clusterSettlePoll for each client.
	clusterSettle     = 100 * time.Millisecond
	clusterSettlePoll = 250 * time.Microsecond
)

// clusterOptions are the flags of `parley bench cluster`.
type clusterOptions struct {
	edges, kills, coreKills, sends int
	ratios                         bool
}

// clusterResult is the content of the file of --json.
type clusterResult struct {
	Machine   string    `json:"machine"`
	Edges     int       `json:"edges"`
	Pollers   int       `json:"pollers"`
	EdgeKills []float64 `json:"edge_kills_heard_s"` // until every client had an event, for each kill
	CoreKills []float64 `json:"core_kills_heard_s"`
	Registers int       `json:"registers"` // by clients that had lost their queue
	Messages  int       `json:"messages"`
	OwnerFew  float64   `json:"owner_cpu_us_a_send_few,omitempty"`
	OwnerMany float64   `json:"owner_cpu_us_a_send_many,omitempty"`
	EdgeCPU   float64   `json:"edge_cpu_us_a_delivery,omitempty"`
	SingleCPU float64   `json:"single_cpu_us_a_delivery,omitempty"`
	Copies    float64   `json:"copies_per_edge,omitempty"`
	Broken    []string  `json:"broken"`
	Missed    []string  `json:"missed"`
}

// clusterRun is one run of `parley bench cluster`: a core and edges, and clients of the edges.
type clusterRun struct {
	clusterProcesses
	options clusterOptions
	core    *server
	result  clusterResult
}

// clusterMain runs `parley bench cluster`.
func clusterMain(args []string, stdout, stderr io.Writer) int {
	s := newRunFlags("cluster", stdout, stderr)
	c := &clusterRun{}
	o := &c.options
	s.flags.IntVar(&o.edges, "edges", 3, "edges")
	s.flags.IntVar(&o.kills, "kills", 100, "how often an edge is killed")
	s.flags.IntVar(&o.coreKills, "core-kills", 100, "how often the core is killed")
	s.flags.IntVar(&o.sends, "sends", 200, "messages for each ratio")
	s.flags.BoolVar(&o.ratios, "ratios", true, "measure the ratios of processor time, too")
	if err := s.parse("cluster", args); err != nil {
		if err != flag.ErrHelp {
			fmt.Fprintf(stderr, "parley bench cluster: %v\n", err)
		}
		return 2
	}
	if !s.options.self || o.edges < 2 {
		fmt.Fprintln(stderr, "parley bench cluster: --self and at least two --edges are required")
		return 2
	}
	c.clusterProcesses = newClusterProcesses(s, stdout)
	fmt.Fprintf(stdout, "parley bench cluster: %d edges, %d pollers, %d kills of edges and %d of the core (seed %d)\n",
		o.edges, s.scenario.Pollers, o.kills, o.coreKills, s.scenario.Seed)
	c.result = clusterResult{Machine: machine(), Edges: o.edges, Pollers: s.scenario.Pollers, Missed: []string{}}
	if err := c.measure(); err != nil {
		fmt.Fprintf(stderr, "parley bench cluster: %v\n", err)
		return 2
	}
	return s.writeResult(c.verdict(), &c.result, stderr)
}

// measure runs everything.
func (c *clusterRun) measure() (err error) {
	if err := c.makeDir(); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)
	if c.options.ratios {
		if err := c.measureSingle(); err != nil {
			return err
		}
	}
	defer func() { c.closeAll(c.core) }()
	if err := c.start(); err != nil {
		return err
	}
	if c.options.ratios {
		if err := c.measureRatios(); err != nil {
			return err
		}
		c.load.resetCounts()
	} else if err := c.load.join(c.result.Pollers); err != nil {
		return err
	}
	c.load.sendContinuously()
	if err := c.killEdges(); err != nil {
		return err
	}
	if err := c.killCore(); err != nil {
		return err
	}
	return c.load.finish()
}

// start starts the core with its crowd, and the edges.
func (c *clusterRun) start() (err error) {
	if c.core, err = c.startFirstCore(); err != nil {
		return err
	}
	for i := range c.options.edges {
		e, err := c.joinNode(fmt.Sprintf("e%d", i), "edge", c.core)
		if err != nil {
			return err
		}
		c.nodes, c.up = append(c.nodes, e), append(c.up, true)
	}
	fmt.Fprintf(c.out, "  a core and %d edges run\n", c.options.edges)
	c.load = newClusterLoad(&c.clusterProcesses)
	return nil
}

// killEdges kills one edge after the other. Its clients poll the others; when it is back, some of them return.
func (c *clusterRun) killEdges() error {
	for n := range c.options.kills {
		i := n % len(c.nodes)
		wait := time.Duration(50+c.random.IntN(200)) * time.Millisecond
		if err := c.run.loop.RunFor(wait, nil); err != nil {
			return err
		}
		began := c.run.loop.Now()
		c.up[i] = false
		if err := c.nodes[i].kill(); err != nil {
			return err
		}
		heard, err := c.load.probe(began)
		if err != nil {
			return fmt.Errorf("kill %d of an edge: %w", n+1, err)
		}
		c.result.EdgeKills = append(c.result.EdgeKills, heard.Seconds())
		if err := c.serve(c.nodes[i].start); err != nil {
			return err
		}
		c.up[i] = true
		if (n+1)%10 == 0 || n+1 == c.options.kills {
			fmt.Fprintf(c.out,
				"  edge killed %d times: every client heard within %.2f s at most, %.2f s the last time\n", n+1,
				maximum(c.result.EdgeKills), heard.Seconds())
		}
	}
	return nil
}

// killCore kills the core and starts it again.
func (c *clusterRun) killCore() error {
	for n := range c.options.coreKills {
		wait := time.Duration(50+c.random.IntN(200)) * time.Millisecond
		if err := c.run.loop.RunFor(wait, nil); err != nil {
			return err
		}
		began := c.run.loop.Now()
		if err := c.core.kill(); err != nil {
			return err
		}
		if err := c.serve(c.core.start); err != nil {
			return err
		}
		heard, err := c.load.probe(began)
		if err != nil {
			return fmt.Errorf("kill %d of the core: %w", n+1, err)
		}
		c.result.CoreKills = append(c.result.CoreKills, heard.Seconds())
		if (n+1)%10 == 0 || n+1 == c.options.coreKills {
			fmt.Fprintf(c.out,
				"  core killed %d times: the next message reached every client within %.2f s at most\n", n+1,
				maximum(c.result.CoreKills))
		}
	}
	return nil
}

func maximum(list []float64) (most float64) {
	for _, x := range list {
		most = max(most, x)
	}
	return most
}

// verdict prints the figures, the missed limits and the violated guarantees, and returns the exit code.
func (c *clusterRun) verdict() int {
	r := &c.result
	r.Broken, r.Messages, r.Registers = append([]string{}, c.broken...), c.messages, c.registers
	miss := func(bad bool, format string, args ...any) {
		if bad {
			r.Missed = append(r.Missed, fmt.Sprintf(format, args...))
		}
	}
	if c.options.ratios {
		fmt.Fprintf(c.out, "  owner's CPU a send: %.0f us with %d pollers on edges, %.0f us with %d: ratio %.2f\n",
			r.OwnerMany,
			r.Pollers, r.OwnerFew, r.Pollers/10, r.OwnerMany/r.OwnerFew)
		fmt.Fprintf(c.out, "  CPU a delivery: %.1f us on an edge, %.1f us on a single server: ratio %.2f\n", r.EdgeCPU,
			r.SingleCPU, r.EdgeCPU/r.SingleCPU)
		fmt.Fprintf(c.out, "  copies of a fact per edge %.2f\n", r.Copies)
		miss(r.OwnerMany > clusterOwnerCPU*r.OwnerFew, "owner's CPU a send: ratio %.2f", r.OwnerMany/r.OwnerFew)
		miss(r.EdgeCPU > clusterEdgeCPU*r.SingleCPU, "an edge's CPU a delivery: ratio %.2f", r.EdgeCPU/r.SingleCPU)
		miss(r.Copies > clusterCopies, "copies of a fact per edge: %.2f", r.Copies)
	}
	miss(maximum(r.EdgeKills) > clusterFailoverLimit.Seconds(),
		"after the kill of an edge: a client got an event after %.1f s", maximum(r.EdgeKills))
	if printFaults(c.out, r.Broken, r.Missed) {
		return 1
	}
	fmt.Fprintf(c.out, "%d messages, each once to %d clients, %d registers; all limits kept\n", r.Messages,
		len(c.load.clients), r.Registers)
	return 0
}
