package bench

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/bench/swarm"
)

// Limits of `parley bench cluster`.
const (
	clusterHeard    = 3 * time.Second // from the kill of an edge until every client has an event from another one
	clusterOwnerCPU = 1.1             // owner's CPU a send with all pollers on edges, against a tenth of them
	clusterEdgeCPU  = 1.1             // an edge's CPU a delivery, against a single server's
	clusterCopies   = 1.005           // copies of a fact that are sent to an edge
	clusterDrain    = 30 * time.Second
	// The clients' first polls are sent within clusterSettle and clusterSettlePoll for each client.
	clusterSettle     = 100 * time.Millisecond
	clusterSettlePoll = 250 * time.Microsecond
)

// clusterOptions are the flags of `parley bench cluster`.
type clusterOptions struct {
	edges, pollers, kills, coreKills, sends int
	rate                                    float64
	ratios                                  bool
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

// clusterRun is one run of `parley bench cluster`: a core and edges as processes, and clients of the edges. That of
// `parley bench cluster-kill` has three cores and clients of these.
type clusterRun struct {
	run     *run
	options clusterOptions
	out     io.Writer
	dir     string
	exe     string
	core    *server
	nodes   []*server // that the clients use: the edges, or all cores
	up      []bool    // nodes that can be polled
	load    *clusterLoad
	random  *rand.Rand // moments of kills
	result  clusterResult
}

// clusterMain runs `parley bench cluster`.
func clusterMain(args []string, stdout, stderr io.Writer) int {
	s := newRunFlags("cluster", stdout, stderr)
	c := &clusterRun{out: stdout}
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
	o.pollers, o.rate = s.scenario.Pollers, s.scenario.Phases[0].Rate
	c.run = newRun(s.scenario, s.options)
	c.random = rand.New(rand.NewPCG(s.scenario.Seed, 1))
	fmt.Fprintf(stdout, "parley bench cluster: %d edges, %d pollers, %d kills of edges and %d of the core (seed %d)\n",
		o.edges, o.pollers, o.kills, o.coreKills, s.scenario.Seed)
	c.result = clusterResult{Machine: machine(), Edges: o.edges, Pollers: o.pollers, Broken: []string{},
		Missed: []string{}}
	if err := c.measure(); err != nil {
		fmt.Fprintf(stderr, "parley bench cluster: %v\n", err)
		return 2
	}
	if s.jsonFile != "" {
		b, _ := json.MarshalIndent(c.result, "", " ")
		if err := writeFile(s.jsonFile, b); err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
	}
	return c.verdict()
}

// measure runs everything.
func (c *clusterRun) measure() (err error) {
	if c.dir, err = os.MkdirTemp("", "parley-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)
	c.exe = copyExecutable(c.run.options.executable, c.dir)
	if c.options.ratios {
		if err := c.measureSingle(); err != nil {
			return err
		}
	}
	defer c.closeAll()
	if err := c.start(); err != nil {
		return err
	}
	if c.options.ratios {
		if err := c.measureRatios(); err != nil {
			return err
		}
		c.load.countAgain()
	} else if err := c.load.join(c.options.pollers); err != nil {
		return err
	}
	c.load.sendAlong(c.options.rate)
	if err := c.killEdges(); err != nil {
		return err
	}
	if err := c.killCore(); err != nil {
		return err
	}
	return c.load.finish()
}

// node starts a node of the cluster, or a single server.
func (c *clusterRun) node(name string, extra ...string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	debug, err := freePort()
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	s := &server{exe: c.exe, metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", debug)}
	s.args = append([]string{"serve", "--data", filepath.Join(c.dir, name), "--listen", addr,
		"--debug-listen", fmt.Sprintf("127.0.0.1:%d", debug)}, extra...)
	if err := s.resolve("http://" + addr); err != nil {
		return nil, err
	}
	if s.log, err = os.Create(filepath.Join(c.dir, name+".log")); err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	return s, nil
}

// command runs a command of the program and returns its output.
func (c *clusterRun) command(args ...string) (string, error) {
	out, err := exec.Command(c.exe, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("parley %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// start starts the core with its crowd, and the edges.
func (c *clusterRun) start() (err error) {
	peer, err := freePort()
	if err != nil {
		return err
	}
	data := filepath.Join(c.dir, "a")
	_, err = c.command("cluster", "init", "--data", data, "--node", "a", "--peer-listen", fmt.Sprintf("127.0.0.1:%d",
		peer))
	if err != nil {
		return err
	}
	if c.core, err = c.node("a", serveArgs(c.exe, c.run.scenario)...); err != nil {
		return err
	}
	if err := c.openRun(c.core); err != nil {
		return err
	}
	limits := serveArgs(c.exe, c.run.scenario)[2:] // without the crowd
	for i := range c.options.edges {
		token, err := c.command("cluster", "token", "--data", data, "--role", "edge")
		if err != nil {
			return err
		}
		name := fmt.Sprintf("e%d", i)
		e, err := c.node(name, append([]string{"--node", name, "--join", token}, limits...)...)
		if err != nil {
			return err
		}
		e.args = withoutToken(e.args)
		c.nodes, c.up = append(c.nodes, e), append(c.up, true)
	}
	fmt.Fprintf(c.out, "  a core and %d edges run\n", c.options.edges)
	c.load = newClusterLoad(c)
	return nil
}

// withoutToken returns the arguments with which a node that has joined starts again.
func withoutToken(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--join" {
			i++
			continue
		}
		out = append(out, args[i])
	}
	return out
}

// openRun opens the load client and reads the crowd of a server.
func (c *clusterRun) openRun(s *server) (err error) {
	r := c.run
	r.server, r.crowdByServer = s, true
	if r.loop, err = swarm.Open(); err != nil {
		return err
	}
	r.meter = newMeter("build")
	r.pool = swarm.NewPool(r.loop, s.addr, sourceAddresses(s.addr, r.scenario.Sources), r.scenario.Conns, agent)
	return r.buildCrowd()
}

// closeRun ends openRun.
func (c *clusterRun) closeRun() {
	if c.run.loop != nil {
		c.run.loop.Close()
		c.run.loop = nil
	}
}

func (c *clusterRun) closeAll() {
	c.closeRun()
	for _, s := range append(slices.Clone(c.nodes), c.core) {
		if s != nil {
			s.close()
		}
	}
}

// serve runs the load client while do runs in another goroutine.
func (c *clusterRun) serve(do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	var result error
	ended := false
	c.run.loop.Every(time.Millisecond, func() bool {
		select {
		case result = <-done:
			ended = true
		default:
		}
		return !ended
	})
	return errors.Join(c.run.loop.Run(func() bool { return ended }), result)
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

// verdict prints the figures, the missed limits and the broken promises, and returns the exit code.
func (c *clusterRun) verdict() int {
	r := &c.result
	miss := func(bad bool, format string, args ...any) {
		if bad {
			r.Missed = append(r.Missed, fmt.Sprintf(format, args...))
		}
	}
	if c.options.ratios {
		fmt.Fprintf(c.out, "  owner's CPU a send: %.0f us with %d pollers on edges, %.0f us with %d: ratio %.2f\n",
			r.OwnerMany,
			c.options.pollers, r.OwnerFew, c.options.pollers/10, r.OwnerMany/r.OwnerFew)
		fmt.Fprintf(c.out, "  CPU a delivery: %.1f us on an edge, %.1f us on a single server: ratio %.2f\n", r.EdgeCPU,
			r.SingleCPU, r.EdgeCPU/r.SingleCPU)
		fmt.Fprintf(c.out, "  copies of a fact per edge %.2f\n", r.Copies)
		miss(r.OwnerMany > clusterOwnerCPU*r.OwnerFew, "owner's CPU a send: ratio %.2f", r.OwnerMany/r.OwnerFew)
		miss(r.EdgeCPU > clusterEdgeCPU*r.SingleCPU, "an edge's CPU a delivery: ratio %.2f", r.EdgeCPU/r.SingleCPU)
		miss(r.Copies > clusterCopies, "copies of a fact per edge: %.2f", r.Copies)
	}
	miss(maximum(r.EdgeKills) > clusterHeard.Seconds(), "after the kill of an edge: a client heard after %.1f s",
		maximum(r.EdgeKills))
	for i, x := range r.Broken {
		if i == maxViolations {
			break
		}
		fmt.Fprintf(c.out, "BROKEN: %s\n", x)
	}
	for _, x := range r.Missed {
		fmt.Fprintf(c.out, "MISSED: %s\n", x)
	}
	if len(r.Broken)+len(r.Missed) > 0 {
		return 1
	}
	fmt.Fprintf(c.out, "%d messages, each once to %d clients, %d registers; all limits kept\n", r.Messages,
		len(c.load.clients), r.Registers)
	return 0
}
