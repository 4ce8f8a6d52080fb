package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of the organizations command with three cores, on a machine with two processors.
const (
	coresKillGap = 500 * time.Millisecond // without an acknowledged send, after the leader is killed
	coresMoveGap = 300 * time.Millisecond // the same for a planned move
)

const (
	coresSends   = 100                    // a second, of all active organizations together
	coresSettle  = 2 * time.Second        // before each kill and move
	coresAfter   = 3 * time.Second        // until the figures of a kill or move are read
	coresRetry   = 20 * time.Millisecond  // before a request is sent to another core
	coresTimeout = 10 * time.Second       // of a send
	coresPoll    = 100 * time.Second      // of a poll; the server answers within 90 s
	coresDeliver = 30 * time.Second       // until the last messages have arrived
	coresJoin    = 10 * time.Minute       // until a core has the organizations and a vote
	coresSample  = 500 * time.Millisecond // between two readings of memory
)

// coresRun is a run with three cores: clients of the active organizations poll and send all the time, while the leader
// is killed and moved.
type coresRun struct {
	*organizationsRun
	processes clusterProcesses
	names     []string
	moves     int
	up        []atomic.Bool
	nodes     []*http.Client
	clients   []*coresClient
	stop      chan struct{} // closed when no client shall send any more
	done      chan struct{} // closed when no client shall poll any more

	mu     sync.Mutex
	acked  time.Time     // the last acknowledged send
	gap    time.Duration // the longest time between two of them
	rss    int64         // MB, the highest of a core
	awake  int           // organizations in memory at the end, the most of a core
	faults []string
}

// coresClient is a client of one active organization: it sends numbered messages to itself and polls its queue.
type coresClient struct {
	run     *coresRun
	org     int
	home    int // core that it uses at first
	user    string
	queue   string
	last    string
	mu      sync.Mutex
	got     []int
	acked   map[int]bool
	unknown map[int]bool // sent without an answer
	lost    int          // queues
	newest  float64      // highest id of a message of the queue
	early   int          // messages with a smaller id than one before them in the queue
}

func (r *coresRun) measure() (err error) {
	r.processes = clusterProcesses{out: r.out, exe: r.exe, dir: r.data, limit: organizationsMade}
	if err := os.MkdirAll(r.data, 0o700); err != nil {
		return err
	}
	r.stop, r.done = make(chan struct{}), make(chan struct{})
	r.up = make([]atomic.Bool, len(r.names))
	defer func() {
		for _, s := range r.processes.nodes {
			s.close()
		}
	}()
	if err := r.startCores(); err != nil {
		return err
	}
	var polls, sends sync.WaitGroup
	if err := r.openClients(); err != nil {
		return err
	}
	for i, c := range r.clients {
		polls.Go(c.pollUntilDone)
		sends.Go(func() { c.sendUntilStop(i) })
	}
	ended := make(chan struct{})
	go r.watchMemory(ended)
	gaps, err := r.disturb()
	close(r.stop)
	sends.Wait()
	r.awaitTexts()
	close(r.done)
	close(ended)
	if err != nil {
		return err
	}
	polls.Wait()
	for _, s := range r.processes.nodes {
		r.awake = max(r.awake, int(r.processes.count(s, "parley_organizations_awake")))
	}
	r.report(gaps)
	return r.firstOfCores()
}

// startCores makes the organizations at the first core and lets the others join.
func (r *coresRun) startCores() error {
	c := &r.processes
	peer, err := freePort()
	if err != nil {
		return err
	}
	began := time.Now()
	made := filepath.Join(c.dir, r.names[0])
	if _, err := c.command("cluster", "init", "--data", made, "--node", r.names[0], "--peer-listen",
		fmt.Sprintf("127.0.0.1:%d", peer)); err != nil {
		return err
	}
	first, err := c.node(r.names[0], append(slices.Clone(coresLimits), "--demo-crowd",
		fmt.Sprintf("users=%d,channels=%d,realms=%d,messages=%d", organizationUsers*r.count, r.count, r.count,
			organizationTexts*r.count))...)
	if err != nil {
		return err
	}
	c.nodes = append(c.nodes, first)
	fmt.Fprintf(r.out, "%d organizations with %d users each: ready after %.0f s\n", r.count, organizationUsers+1,
		time.Since(began).Seconds())
	for _, name := range r.names[1:] {
		if err := r.joinCore(name); err != nil {
			return err
		}
	}
	if err := r.restartCores(); err != nil {
		return err
	}
	for i := range c.nodes {
		r.up[i].Store(true)
		r.nodes = append(r.nodes, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * r.active}})
	}
	return r.await(organizationsRest, "the organizations are asleep", func() bool {
		for _, s := range c.nodes {
			if c.count(s, "parley_organizations_awake") > float64(r.active) {
				return false
			}
		}
		return true
	})
}

// restartCores stops all cores and starts them again, so that they do not have the memory that making the organizations
// has taken. None is loaded then.
func (r *coresRun) restartCores() error {
	for _, s := range r.processes.nodes {
		if err := s.terminate(); err != nil {
			return err
		}
	}
	began := time.Now()
	started := make(chan error)
	for _, s := range r.processes.nodes {
		s.args = withoutCrowd(s.args)
		go func() { started <- s.start() }()
	}
	var err error
	for range r.processes.nodes {
		err = errors.Join(err, <-started)
	}
	if err == nil {
		fmt.Fprintf(r.out, "the cores started again in %.1f s\n", time.Since(began).Seconds())
	}
	return err
}

// withoutCrowd returns the flags of a server without those that make a crowd.
func withoutCrowd(args []string) []string {
	if i := slices.Index(args, "--demo-crowd"); i >= 0 {
		return append(slices.Clone(args[:i]), append([]string{"--demo"}, args[i+2:]...)...)
	}
	return args
}

// joinCore starts a core that joins the first one, and waits until it has a vote.
func (r *coresRun) joinCore(name string) error {
	c, began := &r.processes, time.Now()
	first := c.nodes[0]
	token, err := c.command("cluster", "token", "--data", dataOf(first), "--role", "core")
	if err != nil {
		return err
	}
	peer, err := freePort()
	if err != nil {
		return err
	}
	args := append(slices.Clone(coresLimits), "--node", name, "--join", token, "--peer-listen",
		fmt.Sprintf("127.0.0.1:%d", peer))
	s, err := c.node(name, args...)
	if err != nil {
		return err
	}
	s.args = withoutToken(s.args)
	c.nodes = append(c.nodes, s)
	if err := r.await(coresJoin, fmt.Sprintf("%d cores have a vote", len(c.nodes)), func() bool {
		out, err := c.command("cluster", "status", "--json", "--data", dataOf(first))
		return err == nil && strings.Count(out, `"voter": true`) >= len(c.nodes)
	}); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "core %s has a vote after %.0f s\n", name, time.Since(began).Seconds())
	return nil
}

// coresLimits are the flags of every core.
var coresLimits = []string{"--sleep-after", organizationsSleep, "--rate-limit", "0", "--anonymous-rate-limit", "0",
	"--login-limit", "0"}

// await waits until a condition holds.
func (r *coresRun) await(limit time.Duration, what string, holds func() bool) error {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(coresSample) {
		if holds() {
			return nil
		}
	}
	return fmt.Errorf("not within %v: %s", limit, what)
}

// request sends a request to a core. status is 0 if there was no answer.
func (r *coresRun) request(node, org int, limit time.Duration, method, path, user string, form url.Values) (
	answer map[string]any, status int, err error,
) {
	client := *r.nodes[node]
	client.Timeout = limit
	answer, status, err = askOrganization(&client, r.processes.nodes[node].addr.String(), org, method, path, user, form)
	if err != nil {
		status = 0
	}
	return answer, status, err
}

// other waits a moment, and returns another core than the given one.
func (r *coresRun) other(at int) int {
	time.Sleep(coresRetry)
	for range len(r.names) {
		if at = (at + 1) % len(r.names); r.up[at].Load() {
			break
		}
	}
	return at
}

// openClients registers a queue in each active organization, divided among the cores.
func (r *coresRun) openClients() error {
	began := time.Now()
	r.clients = make([]*coresClient, r.active)
	errs := make(chan error, 16)
	var next atomic.Int64
	for range cap(errs) {
		go func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= r.active {
					errs <- nil
					return
				}
				c := &coresClient{run: r, org: i, home: i % len(r.names), acked: map[int]bool{},
					unknown: map[int]bool{}}
				if err := c.open(); err != nil {
					errs <- err
					return
				}
				r.clients[i] = c
			}
		}()
	}
	var err error
	for range cap(errs) {
		err = errors.Join(err, <-errs)
	}
	if err == nil {
		fmt.Fprintf(r.out, "%d active organizations with a client each: after %.1f s\n", r.active,
			time.Since(began).Seconds())
	}
	return err
}

func (c *coresClient) open() error {
	for _, step := range []func() (map[string]any, int, error){
		func() (map[string]any, int, error) {
			return c.run.request(c.home, c.org, coresTimeout, "POST", "/api/v1/dev_fetch_api_key", "", firstUser)
		},
		func() (map[string]any, int, error) {
			return c.run.request(c.home, c.org, coresTimeout, "POST", "/api/v1/register", c.user,
				url.Values{"event_types": {`["message"]`}, "fetch_event_types": {`[]`}})
		},
	} {
		a, status, err := step()
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("open the client of organization %d: %d %v %w", c.org, status, a["msg"], err)
		}
		if c.user == "" {
			c.user = fmt.Sprint(a["email"], ":", a["api_key"])
			continue
		}
		c.queue, c.last = fmt.Sprint(a["queue_id"]), fmt.Sprintf("%.0f", a["last_event_id"])
	}
	return nil
}

// pollUntilDone polls the queue.
func (c *coresClient) pollUntilDone() {
	at := c.home
	for {
		select {
		case <-c.run.done:
			return
		default:
		}
		a, status, err := c.run.request(at, c.org, coresPoll, "GET", "/api/v1/events?queue_id="+c.queue+
			"&last_event_id="+c.last, c.user, nil)
		switch {
		case err != nil || status >= 500:
			at = c.run.other(at)
		case a["code"] == "BAD_EVENT_QUEUE_ID":
			c.mu.Lock()
			c.lost++
			c.mu.Unlock()
			return
		case status != http.StatusOK:
			c.run.fault("organization %d: a poll is answered %d %v", c.org, status, a["msg"])
			return
		default:
			c.take(a)
		}
	}
}

// take notes the messages of an answer.
func (c *coresClient) take(answer map[string]any) {
	list, _ := answer["events"].([]any)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range list {
		e, _ := x.(map[string]any)
		id, _ := e["id"].(float64)
		c.last = fmt.Sprintf("%.0f", id)
		m, is := e["message"].(map[string]any)
		if !is {
			continue
		}
		text := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(m["content"]), "<p>"), "</p>")
		org, number, ok := strings.Cut(text, " ")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || org != strconv.Itoa(c.org) {
			c.run.fault("organization %d got %q", c.org, text)
			continue
		}
		c.got = append(c.got, n)
		if id, _ := m["id"].(float64); id < c.newest {
			c.early++
		} else {
			c.newest = id
		}
	}
}

// sendUntilStop sends numbered messages. One without an answer is not sent again: it may have been stored or not.
func (c *coresClient) sendUntilStop(i int) {
	pause := time.Second * time.Duration(c.run.active) / coresSends
	timer := time.NewTimer(pause * time.Duration(i) / time.Duration(c.run.active))
	at := c.home
	for n := 1; ; n++ {
		select {
		case <-c.run.stop:
			return
		case <-timer.C:
		}
		began := time.Now()
		for answered := false; !answered; {
			select {
			case <-c.run.stop:
				return
			default:
			}
			_, status, err := c.run.request(at, c.org, coresTimeout, "POST", "/api/v1/messages", c.user,
				url.Values{"type": {"direct"}, "to": {`["u0@crowd.example.org"]`},
					"content": {fmt.Sprint(c.org, " ", n)}})
			c.mu.Lock()
			switch {
			case status == http.StatusOK:
				c.acked[n], answered = true, true
				c.run.noteAcked()
			case err == nil && status < 500:
				c.run.fault("organization %d: a send is answered %d", c.org, status)
			default:
				c.unknown[n] = true
			}
			c.mu.Unlock()
			if !answered {
				n++
				at = c.run.other(at)
			}
		}
		timer.Reset(max(0, pause-time.Since(began)))
	}
}

func (r *coresRun) noteAcked() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if !r.acked.IsZero() {
		r.gap = max(r.gap, now.Sub(r.acked))
	}
	r.acked = now
}

// takeGap returns the longest time between two acknowledged sends since the last call.
func (r *coresRun) takeGap() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	gap := r.gap
	r.gap = 0
	return gap
}

func (r *coresRun) fault(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.faults) < 20 {
		r.faults = append(r.faults, fmt.Sprintf(format, args...))
	}
}

// watchMemory notes the highest memory of a core.
func (r *coresRun) watchMemory(ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(coresSample):
		}
		for _, s := range r.processes.nodes {
			used := rssOf(s.pid)
			r.mu.Lock()
			r.rss = max(r.rss, used)
			r.mu.Unlock()
		}
	}
}

// leader returns the core that leads; -1 if none does.
func (r *coresRun) leader() int {
	return slices.IndexFunc(r.processes.nodes, func(s *server) bool {
		return r.processes.count(s, "parley_cluster_leader") > 0
	})
}

// coresGaps are the longest times without an acknowledged send: after each kill and move of the leader, and in the time
// before each move, in which nothing happens. The latter shows what the machine itself adds.
type coresGaps struct{ kills, moves, calm []time.Duration }

// disturb kills and moves the leader.
func (r *coresRun) disturb() (gaps coresGaps, err error) {
	for range r.kills {
		time.Sleep(coresSettle + time.Duration(rand.IntN(500))*time.Millisecond)
		i, err := r.awaitLeader()
		if err != nil {
			return gaps, err
		}
		victim := r.processes.nodes[i]
		r.takeGap()
		r.up[i].Store(false)
		if err := victim.kill(); err != nil {
			return gaps, err
		}
		time.Sleep(coresAfter)
		gaps.kills = append(gaps.kills, r.takeGap())
		r.explain("leader "+r.names[i]+" killed", gaps.kills)
		if err := victim.start(); err != nil {
			return gaps, err
		}
		r.up[i].Store(true)
	}
	for range r.moves {
		time.Sleep(coresSettle)
		i, err := r.awaitLeader()
		if err != nil {
			return gaps, err
		}
		r.takeGap()
		time.Sleep(coresAfter)
		gaps.calm = append(gaps.calm, r.takeGap())
		if _, err := r.processes.command("cluster", "move-leader", "--data", dataOf(r.processes.nodes[0])); err != nil {
			r.fault("a planned move: %v", err)
		}
		time.Sleep(coresAfter)
		gaps.moves = append(gaps.moves, r.takeGap())
		r.explain("leadership moved from "+r.names[i], gaps.moves)
	}
	return gaps, nil
}

// awaitLeader waits until a core leads, and returns it.
func (r *coresRun) awaitLeader() (i int, err error) {
	err = r.await(coresDeliver, "a core leads", func() bool { i = r.leader(); return i >= 0 })
	return i, err
}

// explain prints the newest gap with its time of day, which leads to the lines of it in the logs of the cores.
func (r *coresRun) explain(what string, gaps []time.Duration) {
	fmt.Fprintf(r.out, "%s %s: gap %.0f ms\n", time.Now().Format(time.TimeOnly), what,
		1000*gaps[len(gaps)-1].Seconds())
}

// awaitTexts waits until each acknowledged message has arrived.
func (r *coresRun) awaitTexts() {
	for end := time.Now().Add(coresDeliver); time.Now().Before(end); time.Sleep(coresRetry) {
		if !slices.ContainsFunc(r.clients, func(c *coresClient) bool { return c.missing() > 0 }) {
			return
		}
	}
}

// missing returns how many acknowledged messages have not arrived.
func (c *coresClient) missing() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := map[int]bool{}
	for _, x := range c.got {
		have[x] = true
	}
	for x := range c.acked {
		if !have[x] {
			n++
		}
	}
	return n
}

// report prints the table and notes the figures that miss their limit.
func (r *coresRun) report(gaps coresGaps) {
	for _, x := range []struct {
		what  string
		list  []time.Duration
		limit time.Duration
	}{
		{"gap after a kill of the leader", gaps.kills, coresKillGap},
		{"gap of a planned move", gaps.moves, coresMoveGap},
	} {
		if len(x.list) == 0 {
			continue
		}
		slices.Sort(x.list)
		fmt.Fprintf(r.out, "%-46s %8.1f ms\n", x.what+", median", 1000*x.list[len(x.list)/2].Seconds())
		r.print(x.what+", longest", x.list[len(x.list)-1], x.limit)
	}
	if len(gaps.calm) > 0 {
		fmt.Fprintf(r.out, "%-46s %8.1f ms\n", "gap of the same time without either, longest",
			1000*slices.Max(gaps.calm).Seconds())
	}
	fmt.Fprintf(r.out, "%-46s %8d MB  limit %d MB\n", "RSS of a core, highest", r.rss, organizationsRSS)
	if r.rss > organizationsRSS {
		r.missed = append(r.missed, "RSS")
	}
	// Work of the server must not load the others. A tenth more may be in memory for a moment.
	most := r.active + r.active/10
	fmt.Fprintf(r.out, "%-46s %8d     limit %d\n", "organizations in memory of a core, highest", r.awake, most)
	if r.awake > most {
		r.missed = append(r.missed, "organizations in memory")
	}
	messages, lost, doubled, reordered, foreign, queues := 0, 0, 0, 0, 0, 0
	for _, c := range r.clients {
		messages, lost, queues, reordered = messages+len(c.acked), lost+c.missing(), queues+c.lost, reordered+c.early
		seen, last := map[int]bool{}, 0
		for _, n := range c.got {
			switch {
			case !c.acked[n] && !c.unknown[n]:
				foreign++
			case seen[n]:
				doubled++
			case n < last && c.acked[n]: // acknowledged before the later one was sent
				reordered++
			}
			seen[n], last = true, max(last, n)
		}
	}
	fmt.Fprintf(r.out, "%d messages acknowledged: %d lost, %d doubled, %d reordered, %d of others; %d queues lost\n",
		messages, lost, doubled, reordered, foreign, queues)
	for _, f := range r.faults {
		fmt.Fprintf(r.out, "FAULT: %s\n", f)
	}
	if lost+doubled+reordered+foreign+queues+len(r.faults) > 0 {
		r.missed = append(r.missed, "guarantees")
	}
}

// firstOfCores measures the first requests to organizations that are asleep, at all cores in turn.
func (r *coresRun) firstOfCores() error {
	node := 0
	return r.firstBy(func(i int) error {
		node = (node + 1) % len(r.names)
		a, status, err := r.request(node, i, coresTimeout, "POST", "/api/v1/dev_fetch_api_key", "", firstUser)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("first request to organization %d: %d %v", i, status, a["msg"])
		}
		return err
	})
}
