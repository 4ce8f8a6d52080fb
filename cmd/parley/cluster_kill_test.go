package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestClusterKill runs three cores as processes, with clients behind a load balancer, and kills a random one again and
// again, and every fifth time all at once. It requires the same as TestKill, equal states of the cores at the end, and
// that service is back soon. KILLS, CLIENTS and SEED make the test longer or repeat it: make kill-cluster.
func TestClusterKill(t *testing.T) {
	run := newKillRun(t, "KILLS", 3, 12)
	cores := startCluster(t, newCores(t, t.TempDir(), []string{"a", "b", "c"}, sleeperArgs()...)...)
	sleeping := startSleepers(t, cores)
	at := cores.balance()
	l := newKillRecord(t, run, at)
	l.startSending()
	l.measureGaps()
	var all []time.Duration
	for i := range run.times {
		l.waitForMoment(300*time.Millisecond, 700*time.Millisecond)
		if i%5 == 2 {
			cores.killAll(&l.gaps)
			continue
		}
		victim := cores.list[run.IntN(len(cores.list))]
		role := "another core"
		if cores.leads(victim) {
			role = "the leader"
		}
		l.gaps.next()
		victim.program.kill()
		time.Sleep(time.Duration(run.IntN(3000)) * time.Millisecond)
		victim.start(t)
		victim.program.serving()
		gap := l.gaps.next()
		all = append(all, gap)
		t.Logf("kill %d, of %s (%s): the longest time without an acknowledged change was %v", i, victim.name, role,
			gap.Round(time.Millisecond))
		if gap > maxKillGap {
			t.Errorf("kill %d, of %s: no change was acknowledged for %v", i, victim.name, gap)
		}
	}
	slices.Sort(all)
	t.Logf("longest time without an acknowledged change: %v; median of all kills %v",
		all[len(all)-1].Round(time.Millisecond), all[len(all)/2].Round(time.Millisecond))
	l.end()
	sleeping.end()
	out, code := runParley("cluster", "verify", "--data", cores.list[0].data)
	if code != 0 || !strings.Contains(out, "equal=true") || !strings.Contains(out, "nodes=3") {
		t.Errorf("the cores differ: %s", out)
	}
}

// parley bench cluster-kill kills cores and moves the leadership. It finds nothing lost, and no send refused by a move.
// Its limits are for a machine with nothing else to do.
func TestClusterKillBench(t *testing.T) {
	out, _ := runParley("bench", "cluster-kill", "--self", "--ratios=false", "--steady", "1", "--kills", "2",
		"--moves", "2", "--pollers", "30", "--users", "30")
	if strings.Contains(out, "BROKEN") || !strings.Contains(out, "until every client heard") ||
		!strings.Contains(out, "acknowledged send") || !strings.Contains(out, "leadership moved 2 times") ||
		!strings.Contains(out, "0 sends refused") {
		t.Error(out)
	}
}

// maxKillGap is how long a killed node may stop the service.
const maxKillGap = 3 * time.Second

// maxRestart is how long the service may be away after all nodes were killed and started again.
const maxRestart = 5 * time.Second

// killAll kills all cores at once and starts them again.
func (all *runningCores) killAll(gaps *longestGap) {
	all.t.Helper()
	for _, c := range all.list {
		c.program.cmd.Process.Kill()
	}
	for _, c := range all.list {
		c.program.kill()
	}
	began := time.Now()
	for _, c := range all.list {
		c.start(all.t)
	}
	gaps.next()
	took := time.Since(began)
	all.t.Logf("all cores killed at once: serving %v after their start", took.Round(time.Millisecond))
	if took > maxRestart {
		all.t.Errorf("all cores killed at once: serving %v after their start", took)
	}
	for _, c := range all.list {
		c.program.serving()
	}
}

// leads reports whether a core says that it is the leader.
func (all *runningCores) leads(c *runningCore) bool {
	out, _ := statusLines(c.data)
	return slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
		return strings.Contains(line, "leader=true") && strings.Contains(line, " node="+c.name+" ")
	})
}

// runningCore is a core as a process.
type runningCore struct {
	name, data, listen string
	peer               string                   // address for the other nodes; "": a free one
	args               []string                 // more arguments of serve
	file               string                   // program file; "": this test binary
	run                func(*exec.Cmd) *program // starts a command where the core runs; nil: in this process's network
	program            *program
}

// command returns a command of the core's program.
func (c *runningCore) command(args ...string) *exec.Cmd {
	cmd := parleyCommand(args...)
	if c.file != "" {
		cmd.Path = c.file
	}
	return cmd
}

// start starts a core again.
func (c *runningCore) start(t *testing.T, more ...string) {
	args := append([]string{"serve", "--data", c.data, "--listen", c.listen, "--demo"}, c.args...)
	cmd := c.command(append(args, more...)...)
	if c.run != nil {
		c.program = c.run(cmd)
	} else {
		c.program = startProgram(t, cmd)
	}
}

type runningCores struct {
	t    *testing.T
	list []*runningCore
	next atomic.Int64 // see dial
}

// startCores makes a cluster whose first node has the demo organization.
func startCores(t *testing.T, names ...string) *runningCores {
	t.Helper()
	return startCluster(t, newCores(t, t.TempDir(), names)...)
}

// newCores returns cores that are not running, with data directories in a folder, and with more arguments of serve.
func newCores(t *testing.T, dir string, names []string, args ...string) (list []*runningCore) {
	t.Helper()
	for _, name := range names {
		list = append(list, &runningCore{name: name, data: filepath.Join(dir, name), listen: freeAddress(t),
			args: slices.Clone(args)})
	}
	return list
}

// joinCores makes a node that is not running the first core of a cluster, and adds others.
func joinCores(t *testing.T, dir string, first *runningCore, others ...string) *runningCores {
	t.Helper()
	return startCluster(t, append([]*runningCore{first}, newCores(t, dir, others)...)...)
}

// startCluster makes the first of some cores that are not running a cluster, and lets the others join it.
func startCluster(t *testing.T, list ...*runningCore) *runningCores {
	t.Helper()
	all := &runningCores{t: t}
	for i, c := range list {
		if c.peer == "" {
			c.peer = freeAddress(t)
		}
		if i > 0 {
			all.join(c)
			continue
		}
		if out, code := runParley("cluster", "init", "--data", c.data, "--node", c.name, "--peer-listen",
			c.peer); code != 0 {
			t.Fatal(out)
		}
		c.start(t)
		c.program.serving()
		all.list = append(all.list, c)
	}
	all.waitForVotes()
	return all
}

// join lets a core with an empty directory join the cluster. It does not wait for its vote.
func (all *runningCores) join(c *runningCore) {
	all.t.Helper()
	token, code := runParley("cluster", "token", "--data", all.list[0].data, "--role", "core")
	if code != 0 {
		all.t.Fatal(token)
	}
	c.start(all.t, "--node", c.name, "--peer-listen", c.peer, "--join", strings.TrimSpace(token))
	c.program.serving()
	all.list = append(all.list, c)
}

// waitForVotes waits until all cores have a vote.
func (all *runningCores) waitForVotes() {
	all.t.Helper()
	all.retry("give all cores a vote", func() error {
		if out, _ := statusLines(all.list[0].data); strings.Count(out,
			"voter=true") < len(all.list) {
			return fmt.Errorf("status:\n%s", out)
		}
		return nil
	})
}

// balance starts a load balancer, which gives each connection to the next core that accepts it.
func (all *runningCores) balance() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		all.t.Fatal(err)
	}
	all.t.Cleanup(func() { l.Close() })
	go func() {
		for next := 0; ; next++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go all.pass(c, next)
		}
	}()
	return "http://" + l.Addr().String()
}

// pass connects a client to a core.
func (all *runningCores) pass(client net.Conn, next int) {
	defer client.Close()
	for i := range all.list {
		core, err := net.Dial("tcp", all.list[(next+i)%len(all.list)].listen)
		if err != nil {
			continue
		}
		defer core.Close()
		go func() {
			io.Copy(core, client)
			core.Close()
		}()
		io.Copy(client, core)
		return
	}
}

// longestGap measures the time between acknowledged changes.
type longestGap struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
}

// measure sets the status text of a user again and again.
func (g *longestGap) measure(stop chan struct{}, from *account) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
		form := url.Values{"status_text": {fmt.Sprint("alive ", i)}}
		if _, err := from.call("POST", "users/me/status", form); err == nil {
			g.mu.Lock()
			if !g.last.IsZero() {
				g.longest = max(g.longest, time.Since(g.last))
			}
			g.last = time.Now()
			g.mu.Unlock()
		}
	}
}

// next waits for the next acknowledged change and returns the longest time between two of them since the last call.
func (g *longestGap) next() time.Duration {
	called := time.Now()
	for {
		g.mu.Lock()
		if g.last.After(called) {
			defer g.mu.Unlock()
			gap := g.longest
			g.longest = 0
			return gap
		}
		g.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}
