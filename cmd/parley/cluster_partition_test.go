package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// partition is a fault of the network between three cores: the leader l, and the two others x and y.
type partition struct {
	name string
	// length is how long it lasts; half of that is enough for a new leader.
	length time.Duration
	// rule is what happens to the packets of the links. "lx ly" are the links from the leader to the others.
	rule  packetRule
	links string
	// silent are the cores that must acknowledge nothing meanwhile, and serving those that must go on.
	silent, serving string
}

// The links between one core and the others, and between all cores, in both directions.
const (
	linksOfLeader = "lx xl ly yl"
	linksOfX      = "lx xl xy yx"
	allLinks      = "lx xl ly yl xy yx"
)

var cut = packetRule{cut: true}

// testCheckpoints is so short that leaders change between two comparisons of the logs, and after few of them.
const testCheckpoints = 2 * time.Second

// debugPort is where the cores of a network have their metrics.
const debugPort = ":9993"

var partitions = []partition{
	{"the leader is cut off", 5 * time.Second, cut, linksOfLeader, "l", "xy"},
	{"a follower is cut off", 6 * time.Second, cut, linksOfX, "x", "ly"},
	{"nothing arrives from the leader", 8 * time.Second, cut, "lx ly", "l", "xy"},
	{"nothing arrives at the leader", 8 * time.Second, cut, "xl yl", "l", "xy"},
	{"nothing arrives at a follower", 6 * time.Second, cut, "lx yx", "x", "ly"},
	{"the leader and a follower are cut from each other", 6 * time.Second, cut, "lx xl", "", "y"},
	{"all packets take 100 ms", 6 * time.Second, packetRule{delay: 100 * time.Millisecond}, allLinks, "", "lxy"},
	{"all cores are cut off", 12 * time.Second, cut, allLinks, "lxy", ""},
}

// startCoresIn starts cores at the hosts 1 to 3 of a network. Their metrics are at debugPort.
func startCoresIn(t *testing.T, w *testNetwork) *runningCores {
	t.Helper()
	dir := t.TempDir()
	var cores []*runningCore
	for i, name := range []string{"a", "b", "c"} {
		ip := address(1 + i)
		cores = append(cores, &runningCore{name: name, data: filepath.Join(dir, name), listen: ip.String() + ":9991",
			peer: ip.String() + ":9992", args: append([]string{"--debug-listen", ip.String() + debugPort,
				"--checkpoint-interval", testCheckpoints.String()}, sleeperArgs()...),
			run: func(cmd *exec.Cmd) *program { return w.start(1+i, cmd) }})
	}
	return startCluster(t, cores...)
}

// TestClusterPartition lets packets between cores get lost or come late, in one direction or both, while clients of all
// cores change and read. Cores that are not in a majority acknowledge nothing, the others go on, and when the network
// is whole all serve again within 3 s. PARTITIONS=all takes every kind of fault, instead of one; SEED repeats a run:
// make partition-cluster.
func TestClusterPartition(t *testing.T) {
	w, ok := newTestNetwork(t, 3)
	if !ok {
		return
	}
	seed := uint64(environmentNumber("SEED", int(time.Now().UnixNano()%1e9)))
	list := partitions[:1]
	if os.Getenv("PARTITIONS") == "all" {
		list = partitions
	}
	t.Logf("%d partitions, SEED=%d", len(list), seed)
	all := startCoresIn(t, w)
	sleeping := startSleepers(t, all)
	h := startHistory(t, seed, all.urls()...)
	polls := startPolls(t, all, h.users[0])
	for _, p := range list {
		h.next()
		leader := all.leader(all.list[0])
		at := map[byte]int{'l': slices.Index(all.list, leader)} // places in the list of cores
		at['x'] = (at['l'] + 1) % 3
		at['y'] = (at['l'] + 2) % 3
		for _, link := range strings.Fields(p.links) {
			w.set(1+at[link[0]], 1+at[link[1]], p.rule)
		}
		began := time.Now()
		time.Sleep(p.length)
		for _, name := range []byte(p.silent) {
			if last := h.lastAt(at[name]); last.After(began) {
				t.Errorf("%s: core %c acknowledged a change of %v after the cut", p.name, name, last.Sub(began))
			}
		}
		for _, name := range []byte(p.serving) {
			if last := h.lastAt(at[name]); last.Before(time.Now().Add(-maxKillGap)) {
				t.Errorf("%s: core %c acknowledged no change any more after %v", p.name, name, last.Sub(began))
			}
		}
		gap := h.longestGap()
		w.heal()
		healed := time.Now()
		took := ""
		for i, c := range all.list {
			all.retry("send at "+c.name, func() error {
				if h.lastAt(i).Before(healed) {
					return fmt.Errorf("no change is acknowledged")
				}
				return nil
			})
			took += fmt.Sprintf(" %s %v", c.name, time.Since(healed).Round(time.Millisecond))
			if d := time.Since(healed); d > maxKillGap {
				t.Errorf("%s: %s serves %v after the network is whole", p.name, c.name, d)
			}
		}
		t.Logf("%s for %v: the longest time without an acknowledged change was %v; whole again:%s", p.name, p.length,
			gap.Round(time.Millisecond), took)
		if p.serving != "" && gap > maxKillGap {
			t.Errorf("%s: no change was acknowledged for %v", p.name, gap)
		}
		t.Logf("every client has received a new message after %v", polls.expectSoon(p.name).Round(time.Millisecond))
	}
	polls.end(0)
	h.end()
	sleeping.end()
	all.expectEqual()
	h.check()
}

// The number of random cuts, and how long a cut and the time without one last. A cut is longer or shorter than an
// election takes.
const (
	defaultCuts    = 20
	minCut, maxCut = 300 * time.Millisecond, 3 * time.Second
	maxWhole       = 1500 * time.Millisecond
)

// TestClusterCuts cuts random cores off, most often the leader, and connects them again before or after the others
// have elected a leader. So leaders write entries that they delete later, and lead again. No core stops, no
// checkpoint has a wrong sum, and all cores agree at the end. CUTS is the number of cuts, SEED repeats their order
// and lengths.
func TestClusterCuts(t *testing.T) {
	if os.Getenv("PARTITIONS") != "all" && os.Getenv("CUTS") == "" {
		t.Skip("takes more than a minute: make partition-cluster")
	}
	w, ok := newTestNetwork(t, 3)
	if !ok {
		return
	}
	cuts := environmentNumber("CUTS", defaultCuts)
	seed := uint64(environmentNumber("SEED", int(time.Now().UnixNano()%1e9)))
	t.Logf("repeat with SEED=%d CUTS=%d", seed, cuts)
	all := startCoresIn(t, w)
	h := startHistory(t, seed, all.urls()...)
	random := rand.New(rand.NewPCG(seed, 40))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(random.Int64N(int64(most-least)))
	}
	for i := range cuts {
		if i%4 == 0 {
			h.next()
		}
		pick, isLeader := random.IntN(3), random.IntN(3) > 0
		length, pause := between(minCut, maxCut), between(0, maxWhole)
		if isLeader {
			pick = slices.Index(all.list, all.leader(all.list[0]))
		}
		for to := range all.list {
			w.set(1+pick, 1+to, cut)
			w.set(1+to, 1+pick, cut)
		}
		time.Sleep(length) // the fault and the time without one last as long as the seed says
		w.heal()
		time.Sleep(pause)
		t.Logf("cut %d: %s for %v, then whole for %v", i, all.list[pick].name, length, pause)
	}
	last := time.Now()
	for i, c := range all.list {
		all.retry("send at "+c.name, func() error {
			if h.lastAt(i).Before(last) {
				return fmt.Errorf("no change is acknowledged")
			}
			return nil
		})
	}
	h.end()
	for i, c := range all.list {
		expectCompared(t, all, c, address(1+i).String()+debugPort)
	}
	all.expectEqual()
	h.check()
}

// expectCompared requires that a core goes on comparing its log, and has found no wrong sum.
func expectCompared(t *testing.T, all *runningCores, c *runningCore, debug string) {
	t.Helper()
	before := readMetric(t, debug, "parley_cluster_logs_compared_total")
	all.retry(c.name+" compares its log", func() error {
		if readMetric(t, debug, "parley_cluster_logs_compared_total") <= before {
			return fmt.Errorf("no comparison after the last cut")
		}
		return nil
	})
	if n := readMetric(t, debug, "parley_cluster_logs_wrong_sums_total"); n != 0 {
		t.Errorf("%s has found %d checkpoints with a wrong sum", c.name, n)
	}
}

// readMetric reads a whole number from the metrics of a core.
func readMetric(t *testing.T, debug, name string) int {
	t.Helper()
	_, text := getText(t, "http://"+debug+"/metrics")
	found := regexp.MustCompile(`(?m)^` + name + ` (\d+)$`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("%s is not in the metrics of %s", name, debug)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A core that does not lead is cut off from the others while clients poll it. A poll that waits there gets a heartbeat
// in time, and every other request 503. Its health check fails, so a load balancer sends its clients to another core,
// where their queues go on; those of the other clients go on when the network is whole: make partition-cluster.
func TestClusterPartitionPolls(t *testing.T) {
	if os.Getenv("PARTITIONS") != "all" {
		t.Skip("takes 90 seconds: make partition-cluster")
	}
	w, ok := newTestNetwork(t, 3)
	if !ok {
		return
	}
	all := startCoresIn(t, w)
	leader := all.leader(all.list[0])
	cutOff := slices.Index(all.list, all.other(leader))
	ann := demoAccount(t, "http://"+leader.listen, "ann@example.org")
	polls := startPolls(t, all, ann)
	for i := range all.list {
		w.set(1+cutOff, 1+i, cut)
		w.set(1+i, 1+cutOff, cut)
	}
	began := time.Now()
	if took := polls.expectMoved(cutOff); took > maxKillGap {
		t.Errorf("the client that can change to another core got a message %v after its core was cut off", took)
	}
	for i := 0; time.Since(began) < maxHeartbeat+maxPollAnswer; i++ {
		polls.send(fmt.Sprint("meanwhile ", i), maxKillGap)
		time.Sleep(5 * time.Second) // the fault lasts longer than the time between two heartbeats
	}
	busy, heartbeats := polls.answersAt(cutOff)
	if busy == 0 || heartbeats == 0 {
		t.Errorf("the client that stays got %d heartbeats and %d times 503", heartbeats, busy)
	}
	at := *ann
	at.url = all.urls()[cutOff]
	if r, text := getText(t, at.url+"/health"); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the health of the core that is cut off is %d: %s", r.StatusCode, text)
	}
	asked := time.Now()
	if _, err := at.newPoller(); err == nil || !isBusy(err) || time.Since(asked) > maxPollAnswer {
		t.Errorf("a registration at the core that is cut off ended after %v: %v", time.Since(asked), err)
	}
	w.heal()
	t.Logf("the cut took %v; the client that stays got %d heartbeats and %d times 503; every client has received a "+
		"new message %v after the end", time.Since(began).Round(time.Second), heartbeats, busy,
		polls.expectSoon("the cut").Round(time.Millisecond))
	polls.end(0)
	all.expectEqual()
}
