package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The mcp scenario. Each half opens a client for each user, usually mcpClients, sends mcpRounds messages that all of
// them see, and lets each read a page mcpReads times. Its four halves run polls, agents, agents, polls, each on a server
// that has just started.
const (
	mcpClients = 200
	mcpRounds  = 150
	mcpReads   = 20
	// mcpPause is the time between two rounds: an agent opens its stream again after 100 ms.
	mcpPause = 150 * time.Millisecond
	// mcpSettle is how long a server runs before its memory is measured: the search index opens after five seconds.
	mcpSettle = 8 * time.Second
	// mcpWait is how long a message may take to all clients.
	mcpWait  = 30 * time.Second
	formType = "application/x-www-form-urlencoded"
	// mcpBody bounds an answer in bytes.
	mcpBody = 4 << 20
)

// mcpRun compares agents that wait for updates of a resource with clients that wait for events.
type mcpRun struct {
	*run
	channel int64
	halves  []mcpHalf
}

// mcpHalf is what 200 clients of one kind cost.
type mcpHalf struct {
	agents bool
	// kB a client: what is still needed after a collection, and the pages that have some of it. Opening an agent leaves
	// more garbage between the objects that stay; later requests use that space.
	memory, pages float64
	update, read  float64 // processor microseconds an update and a read
}

// mcpClient is one agent, or one client of the events API.
type mcpClient struct {
	run     *mcpRun
	person  *person
	http    *http.Client
	agents  bool
	session string // of an agent
	queue   string // of a client of the events API
	last    int64
	seen    *atomic.Int64 // updates of all clients
	ended   *atomic.Bool
}

// mcpMain runs `parley bench mcp`.
func mcpMain(args []string, stdout, stderr io.Writer) int {
	s := newRunFlags("mcp", stdout, stderr)
	if err := s.parse("mcp", args); err != nil {
		if err != flag.ErrHelp {
			fmt.Fprintf(stderr, "parley bench mcp: %v\n", err)
		}
		return 2
	}
	if !s.options.self {
		fmt.Fprintln(stderr, "parley bench mcp: it restarts the server, so it needs --self")
		return 2
	}
	res, err := measureMCP(s.scenario, s.options)
	if err != nil {
		fmt.Fprintf(stderr, "parley bench mcp: %v\n", err)
		return 2
	}
	writeTable(stdout, res)
	return s.writeResult(0, res, stderr)
}

// measureMCP runs the four halves and returns the ratios.
func measureMCP(sc Scenario, opt options) (*Result, error) {
	r := &mcpRun{run: newRun(sc, opt)}
	defer r.closeSetup()
	if err := r.openSetup(); err != nil {
		return nil, err
	}
	begin := time.Now()
	r.channel = r.population.channels[0].ID
	for _, agents := range []bool{false, true, true, false} {
		h, err := r.half(agents)
		if err != nil {
			return nil, err
		}
		r.halves = append(r.halves, h)
	}
	r.result.Seconds = time.Since(begin).Seconds()
	r.compare()
	return r.result, nil
}

// compare adds the figures of agents, and their ratios to those of polls.
func (r *mcpRun) compare() {
	for _, x := range []struct {
		name, unit string
		of         func(mcpHalf) float64
	}{
		{"memory", "kB", func(h mcpHalf) float64 { return h.memory }},
		{"pages", "kB", func(h mcpHalf) float64 { return h.pages }},
		{"update", "us", func(h mcpHalf) float64 { return h.update }},
		{"read", "us", func(h mcpHalf) float64 { return h.read }},
	} {
		var sum, low, high [2]float64
		for _, h := range r.halves {
			i := 0
			if h.agents {
				i = 1
			}
			v := x.of(h)
			sum[i] += v
			if low[i] == 0 || v < low[i] {
				low[i] = v
			}
			high[i] = max(high[i], v)
		}
		for i, kind := range []string{"poll", "agent"} {
			r.result.add(Figure{Name: "mcp." + kind + "_" + x.name, Unit: x.unit, Value: sum[i] / 2, Low: low[i],
				High: high[i]})
		}
		if sum[0] > 0 {
			r.result.add(Figure{Name: "mcp." + x.name + "_to_poll", Unit: "x", Value: sum[1] / sum[0],
				Note: fmt.Sprintf("%.1f %s an agent, %.1f %s a poll", sum[1]/2, x.unit, sum[0]/2, x.unit)})
		}
	}
}

// half measures clients of one kind on a server that has just started.
func (r *mcpRun) half(agents bool) (h mcpHalf, err error) {
	if err := r.server.restart(); err != nil {
		return h, err
	}
	r.sampler.setPID(r.server.pid)
	if err := r.warmUp(); err != nil {
		return h, err
	}
	time.Sleep(mcpSettle)
	before, pagesBefore, err := r.liveHeap()
	if err != nil {
		return h, err
	}
	h.agents = agents
	var seen atomic.Int64
	var ended atomic.Bool
	clients := make([]*mcpClient, len(r.population.people))
	for i := range clients {
		c := &mcpClient{run: r, person: &r.population.people[i], http: &http.Client{Timeout: pollLimit,
			Transport: &http.Transport{MaxIdleConnsPerHost: 2}}, agents: agents, seen: &seen, ended: &ended}
		if err := c.open(); err != nil {
			return h, err
		}
		clients[i] = c
	}
	var waiting sync.WaitGroup
	failures := make(chan error, len(clients))
	for _, c := range clients {
		waiting.Go(func() {
			if err := c.wait(); err != nil {
				failures <- err
			}
		})
	}
	defer func() { // the streams and polls end with the queues
		ended.Store(true)
		for _, c := range clients {
			c.close()
		}
		waiting.Wait()
		select {
		case failed := <-failures:
			err = errors.Join(err, failed)
		default:
		}
	}()
	time.Sleep(time.Second)
	after, pages, err := r.liveHeap()
	if err != nil {
		return h, err
	}
	h.memory, h.pages = (after-before)/float64(len(clients))/1024, (pages-pagesBefore)/float64(len(clients))/1024
	h.update, err = r.cost(mcpRounds*len(clients), func() error { return r.rounds(clients, &seen, failures) })
	if err != nil {
		return h, err
	}
	h.read, err = r.cost(mcpReads*len(clients), func() error { return readAll(clients) })
	r.logf("agents: %v, %.1f kB a client in %.1f kB of pages, %.1f us an update, %.1f us a read", agents, h.memory,
		h.pages, h.update, h.read)
	return h, err
}

// warmUp lets one client of each kind come and go, so that the memory of clients is not that of a first request.
func (r *mcpRun) warmUp() error {
	for _, agents := range []bool{false, true} {
		c := &mcpClient{run: r, person: &r.population.people[0], http: &http.Client{Timeout: pollLimit}, agents: agents}
		if err := errors.Join(c.open(), c.read()); err != nil {
			return err
		}
		c.close()
	}
	return nil
}

// cost returns the processor time of the server for each of n parts of some work, in microseconds.
func (r *mcpRun) cost(n int, work func() error) (float64, error) {
	before, err := process{r.server.pid}.cpu()
	if err != nil {
		return 0, err
	}
	if err := work(); err != nil {
		return 0, err
	}
	after, err := process{r.server.pid}.cpu()
	return float64((after - before).Microseconds()) / float64(n), err
}

// rounds sends messages one after the other, each when all clients have seen the one before.
func (r *mcpRun) rounds(clients []*mcpClient, seen *atomic.Int64, failures chan error) error {
	for i := range mcpRounds {
		want := seen.Load() + int64(len(clients))
		v := params{"type": "channel", "to": r.channel, "topic": "round", "content": fmt.Sprint("message ", i)}
		if _, err := clients[0].call("POST", "/api/v1/messages", formType, v.Encode(), nil); err != nil {
			return err
		}
		for until := time.Now().Add(mcpWait); seen.Load() < want; time.Sleep(time.Millisecond) {
			if len(failures) > 0 {
				return <-failures
			}
			if time.Now().After(until) {
				return fmt.Errorf("%d clients did not see message %d within %v", want-seen.Load(), i, mcpWait)
			}
		}
		time.Sleep(mcpPause)
	}
	return nil
}

// readAll lets each client read the same page, four clients at a time.
func readAll(clients []*mcpClient) error {
	work, errs := make(chan *mcpClient), make(chan error, 4)
	for range 4 {
		go func() {
			var failed error
			for c := range work {
				for range mcpReads {
					if err := c.read(); err != nil {
						failed = err
						break
					}
				}
			}
			errs <- failed
		}()
	}
	for _, c := range clients {
		work <- c
	}
	close(work)
	var all []error
	for range 4 {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// liveHeap returns the memory that the server still needs after a collection, and the size of the pages that have some
// of it, in bytes.
func (r *mcpRun) liveHeap() (objects, pages float64, err error) {
	site := strings.TrimSuffix(r.server.metrics, "/metrics")
	if site == "" {
		return 0, 0, errors.New("the server has no --debug-listen")
	}
	for range 2 { // the second collection frees what finalizers kept
		resp, err := metricsClient.Get(site + "/debug/pprof/heap?gc=1")
		if err != nil {
			return 0, 0, err
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	objects, pages = readMetric(r.server.metrics, "go_memstats_heap_alloc_bytes"),
		readMetric(r.server.metrics, "go_memstats_heap_inuse_bytes")
	if objects == 0 || pages == 0 {
		return 0, 0, errors.New("the server's metrics have no heap")
	}
	return objects, pages, nil
}

// readMetric returns a metric without labels from Prometheus text; 0: there is none.
func readMetric(url, name string) (v float64) {
	resp, err := metricsClient.Get(url)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMetrics))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	v, _ = strconv.ParseFloat(value, 64)
	return v
}

// call makes a request and returns the body of its answer. head gets the headers.
func (c *mcpClient) call(method, path, kind, body string, head *http.Header) ([]byte, error) {
	req, err := http.NewRequest(method, "http://"+c.run.server.addr.String()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Host = c.person.Host
	req.Header.Set("Authorization", c.person.auth)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if c.agents {
		req.Header.Set("Accept", "application/json, text/event-stream")
		if c.session != "" {
			req.Header.Set("Mcp-Session-Id", c.session)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mcpBody))
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %.60s: status %d %.200s", method, path, resp.StatusCode, b)
	}
	if head != nil {
		*head = resp.Header
	}
	return b, err
}

// ask sends a request of the Model Context Protocol.
func (c *mcpClient) ask(method string, v any, head *http.Header) error {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": v})
	if err != nil {
		return err
	}
	b, err := c.call("POST", "/mcp", "application/json", string(body), head)
	if err == nil && !bytes.Contains(b, []byte(`"result"`)) {
		err = fmt.Errorf("%s: %.300s", method, b)
	}
	return err
}

func (c *mcpClient) uri() map[string]any {
	return map[string]any{"uri": fmt.Sprint("parley://channel/", c.run.channel)}
}

// open begins a session with a subscription, or registers a queue.
func (c *mcpClient) open() error {
	if !c.agents {
		v := params{"event_types": []string{"message"}, "fetch_event_types": []string{}, "apply_markdown": true,
			"client_gravatar": true, "client_capabilities": capabilities}
		b, err := c.call("POST", "/api/v1/register", formType, v.Encode(), nil)
		if err != nil {
			return err
		}
		c.queue, c.last, err = registered(b)
		return err
	}
	var head http.Header
	if err := c.ask("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "bench", "version": "1"}}, &head); err != nil {
		return err
	}
	c.session = head.Get("Mcp-Session-Id")
	return c.ask("resources/subscribe", c.uri(), nil)
}

// wait waits for updates until the half ends.
func (c *mcpClient) wait() error {
	for {
		var n int64
		var b []byte
		var err error
		if c.agents {
			b, err = c.call("GET", "/mcp", "", "", nil)
			n = int64(bytes.Count(b, []byte("notifications/resources/updated")))
		} else {
			path := fmt.Sprint("/api/v1/events?queue_id=", c.queue, "&last_event_id=", c.last)
			b, err = c.call("GET", path, "", "", nil)
			n = c.take(b)
		}
		if c.ended.Load() {
			return nil
		}
		if err != nil {
			return err
		}
		c.seen.Add(n)
		if c.agents { // as the stream asks for
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// take returns the number of messages of a poll.
func (c *mcpClient) take(body []byte) (n int64) {
	var a struct {
		Events []struct {
			ID   int64  `json:"id"`
			Type string `json:"type"`
		} `json:"events"`
	}
	json.Unmarshal(body, &a)
	for _, e := range a.Events {
		c.last = e.ID
		if e.Type == "message" {
			n++
		}
	}
	return n
}

// read reads the newest 50 messages of the channel.
func (c *mcpClient) read() error {
	if c.agents {
		return c.ask("resources/read", c.uri(), nil)
	}
	v := url.Values{"anchor": {"newest"}, "num_before": {"50"}, "num_after": {"0"}, "apply_markdown": {"false"},
		"client_gravatar": {"true"}, "narrow": {fmt.Sprintf(`[{"operator":"channel","operand":%d}]`, c.run.channel)}}
	_, err := c.call("GET", "/api/v1/messages?"+v.Encode(), "", "", nil)
	return err
}

// close ends the session or the queue, and with it the request that waits.
func (c *mcpClient) close() {
	if c.agents {
		c.call("DELETE", "/mcp", "", "", nil)
	} else {
		c.call("DELETE", "/api/v1/events?"+url.Values{"queue_id": {c.queue}}.Encode(), "", "", nil)
	}
	c.http.CloseIdleConnections()
}
