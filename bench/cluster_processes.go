package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/bench/swarm"
)

// clusterProcesses are the nodes of a cluster as processes, and the load on them.
type clusterProcesses struct {
	run    *run
	out    io.Writer
	dir    string
	exe    string
	nodes  []*server // that the clients use: the edges, or all cores
	up     []bool    // nodes that can be polled
	load   *clusterLoad
	random *rand.Rand    // moments of kills
	limit  time.Duration // of the starts of nodes; see server.startLimit

	messages  int      // that every client has got
	registers int      // by clients that had lost their queue
	broken    []string // violated guarantees
}

func newClusterProcesses(s *runFlags, out io.Writer) clusterProcesses {
	return clusterProcesses{run: newRun(s.scenario, s.options), out: out,
		random: rand.New(rand.NewPCG(s.scenario.Seed, 1))}
}

// makeDir makes the folder of all data directories and of a copy of the program. The caller removes it.
func (c *clusterProcesses) makeDir() (err error) {
	if c.dir, err = os.MkdirTemp("", "parley-bench-"); err != nil {
		return err
	}
	c.exe = copyExecutable(c.run.options.executable, c.dir)
	return nil
}

// startFirstCore starts the first core of a cluster with its crowd, and opens the load client.
func (c *clusterProcesses) startFirstCore() (*server, error) {
	peer, err := freePort()
	if err != nil {
		return nil, err
	}
	if _, err := c.command("cluster", "init", "--data", filepath.Join(c.dir, "a"), "--node", "a", "--peer-listen",
		fmt.Sprintf("127.0.0.1:%d", peer)); err != nil {
		return nil, err
	}
	s, err := c.node("a", serveArgs(c.exe, c.run.scenario)...)
	if err != nil {
		return nil, err
	}
	if err := c.openRun(s); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// joinNode starts a node that joins the cluster with a role and with a token of a core.
func (c *clusterProcesses) joinNode(name, role string, of *server) (*server, error) {
	token, err := c.command("cluster", "token", "--data", dataOf(of), "--role", role)
	if err != nil {
		return nil, err
	}
	args := []string{"--node", name, "--join", token}
	if role == "core" {
		peer, err := freePort()
		if err != nil {
			return nil, err
		}
		args = append(args, "--peer-listen", fmt.Sprintf("127.0.0.1:%d", peer))
	}
	limits := serveArgs(c.exe, c.run.scenario)[2:] // without the crowd
	s, err := c.node(name, append(args, limits...)...)
	if err != nil {
		return nil, err
	}
	s.args = withoutToken(s.args)
	return s, nil
}

// dataOf returns the data directory of a node.
func dataOf(s *server) string { return s.args[slices.Index(s.args, "--data")+1] }

// node starts a node of the cluster, or a single server.
func (c *clusterProcesses) node(name string, extra ...string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	debug, err := freePort()
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	s := &server{exe: c.exe, startLimit: c.limit, metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", debug)}
	s.args = append([]string{"serve", "--data", filepath.Join(c.dir, name), "--listen", addr,
		"--debug-listen", fmt.Sprintf("127.0.0.1:%d", debug)}, extra...)
	if err := s.resolve("http://"+addr, nil); err != nil {
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
func (c *clusterProcesses) command(args ...string) (string, error) {
	out, err := exec.Command(c.exe, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("parley %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
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
func (c *clusterProcesses) openRun(s *server) (err error) {
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
func (c *clusterProcesses) closeRun() {
	if c.run.loop != nil {
		c.run.loop.Close()
		c.run.loop = nil
	}
}

// closeAll ends the nodes, and more of them that clients do not use.
func (c *clusterProcesses) closeAll(more ...*server) {
	c.closeRun()
	for _, s := range append(more, c.nodes...) {
		if s != nil {
			s.close()
		}
	}
}

// serve runs the load client while do runs in another goroutine.
func (c *clusterProcesses) serve(do func() error) error {
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

// count returns the sum of a metric of a node.
func (c *clusterProcesses) count(s *server, name string) (sum float64) {
	resp, err := http.Get(s.metrics)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, name); ok && (strings.HasPrefix(rest, " ") || strings.HasPrefix(rest,
			"{")) {
			x, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			sum += x
		}
	}
	return sum
}
