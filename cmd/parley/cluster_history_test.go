package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// clusterHistory has clients of all nodes, which send messages, set flags and status texts, and read them, and the
// times of every request. At the end check requires that the answers are those of one server that takes one request at
// a time (linearizable): a read that began after a change was acknowledged has the change, whichever nodes answered.
type clusterHistory struct {
	t     *testing.T
	nodes []string // URLs
	seed  uint64
	began time.Time

	users  []*account
	ids    []int64 // of the users
	target int64   // the message whose flags are set
	stop   chan struct{}
	done   sync.WaitGroup

	mu       sync.Mutex
	round    int // topics and users change with it, so that histories stay short
	ops      map[string][]porcupine.Operation
	acked    map[string]int64 // ids of acknowledged messages
	sent     map[string]bool
	last     []time.Time   // when each node has begun the last change that it acknowledged
	progress time.Time     // of the last acknowledged change
	gap      time.Duration // the longest time between two of them
}

const (
	// historyPerNode is how many clients each node has.
	historyPerNode = 4
	// historyPause is the time between two requests of a client: the check takes exponentially long in the worst case.
	historyPause = 10 * time.Millisecond
	// historyTimeout is longer than a node is stopped in any test, so that its late answers are checked, too.
	historyTimeout = 30 * time.Second
)

// historyInput is a request, and historyOutput its answer.
type historyInput struct {
	kind string // "send", "set", "read"
	text string // that is written
}

type historyOutput struct {
	known bool // there was an answer
	text  string
	id    int64 // of a message
}

// startHistory starts the clients.
func startHistory(t *testing.T, seed uint64, nodes ...string) *clusterHistory {
	t.Helper()
	h := &clusterHistory{t: t, nodes: nodes, seed: seed, began: time.Now(), stop: make(chan struct{}),
		ops: map[string][]porcupine.Operation{}, acked: map[string]int64{}, sent: map[string]bool{},
		last: make([]time.Time, len(nodes))}
	for _, name := range killPeople {
		u := demoAccount(t, nodes[0], name+"@example.org")
		h.users = append(h.users, u)
		h.ids = append(h.ids, int64(u.must(t, "GET", "users/me", nil)["user_id"].(float64)))
	}
	h.next()
	for i := range historyPerNode * len(nodes) {
		h.done.Go(func() { h.run(i) })
	}
	return h
}

// next begins a round: new topics, another user and another message.
func (h *clusterHistory) next() {
	h.t.Helper()
	var id int64
	eventually(h.t, "a message for the next round is sent", func() bool {
		for _, at := range h.nodes {
			from := *h.users[0]
			from.url = at
			a, err := from.callWith(&http.Client{Timeout: time.Second}, "POST", "messages", url.Values{
				"type": {"stream"}, "to": {"general"}, "topic": {"flags"}, "content": {"a message with flags"}})
			if err == nil {
				id = int64(a["id"].(float64))
				return true
			}
		}
		return false
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.round++
	h.target = id
	h.progress, h.gap = time.Now(), 0
}

// longestGap returns the longest time without an acknowledged change in this round.
func (h *clusterHistory) longestGap() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.gap, time.Since(h.progress))
}

// lastAt returns when the last change that a node has acknowledged was sent to it.
func (h *clusterHistory) lastAt(node int) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last[node]
}

// acknowledged returns how many changes have been acknowledged.
func (h *clusterHistory) acknowledged() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.acked)
}

// run is one client.
func (h *clusterHistory) run(client int) {
	random := rand.New(rand.NewPCG(h.seed, uint64(1000+client)))
	c := &http.Client{Timeout: historyTimeout, Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	for i := 0; ; i++ {
		select {
		case <-h.stop:
			return
		case <-time.After(historyPause):
		}
		h.request(c, client, random.IntN(requestKinds), fmt.Sprintf("%d/%d", client, i), random)
	}
}

// readAt makes requests that only read at a node that does not answer now. They are checked when it answers.
func (h *clusterHistory) readAt(node, count int) {
	for i := range count {
		client := node + len(h.nodes)*(historyPerNode+i)
		h.done.Go(func() {
			c := &http.Client{Timeout: historyTimeout, Transport: &http.Transport{}}
			defer c.CloseIdleConnections()
			h.request(c, client, 1+2*(i%3), "", rand.New(rand.NewPCG(h.seed, uint64(2000+i))))
		})
	}
}

// requestKinds is the number of kinds of requests. Those with an odd number only read.
const requestKinds = 6

// request makes one request at the node of a client.
func (h *clusterHistory) request(c *http.Client, client, kind int, text string, random *rand.Rand) {
	h.mu.Lock()
	round, target := h.round, h.target
	h.mu.Unlock()
	from := *h.users[random.IntN(len(h.users))]
	from.url = h.nodes[client%len(h.nodes)]
	owner := round % len(h.users) // of the flag and the status text
	method, path, form := "POST", "", url.Values{}
	in := historyInput{kind: "read"}
	key, topic := "", fmt.Sprintf("round %d, topic %d", round, random.IntN(3))
	read := func(map[string]any) (string, int64) { return "", 0 }
	switch kind {
	case 0:
		key, in, path = topic, historyInput{"send", text}, "messages"
		form = url.Values{"type": {"stream"}, "to": {"general"}, "topic": {topic}, "content": {text}}
		read = func(a map[string]any) (string, int64) { return "", int64(a["id"].(float64)) }
	case 1:
		key, method, path = topic, "GET", "messages"
		narrow, _ := json.Marshal([][2]string{{"channel", "general"}, {"topic", topic}})
		form = url.Values{"anchor": {"newest"}, "num_before": {"1"}, "num_after": {"0"}, "narrow": {string(narrow)},
			"apply_markdown": {"false"}}
		read = newestMessage
	case 2:
		from, in = *h.users[owner], historyInput{"set", text}
		from.url = h.nodes[client%len(h.nodes)]
		key, path, form = fmt.Sprint("status ", round), "users/me/status", url.Values{"status_text": {text}}
	case 3:
		key, method, path = fmt.Sprint("status ", round), "GET", fmt.Sprintf("users/%d/status", h.ids[owner])
		read = func(a map[string]any) (string, int64) {
			s, _ := a["status"].(map[string]any)["status_text"].(string)
			return s, 0
		}
	case 4:
		from, in.kind, in.text = *h.users[owner], "set", [2]string{"", "starred"}[random.IntN(2)]
		from.url = h.nodes[client%len(h.nodes)]
		op := map[string]string{"": "remove", "starred": "add"}[in.text]
		key, path = fmt.Sprint("flag ", round), "messages/flags"
		form = url.Values{"messages": {fmt.Sprintf("[%d]", target)}, "op": {op}, "flag": {"starred"}}
	case 5:
		from = *h.users[owner]
		from.url = h.nodes[client%len(h.nodes)]
		key, method, path = fmt.Sprint("flag ", round), "GET", fmt.Sprint("messages/", target)
		read = func(a map[string]any) (string, int64) {
			if slices.Contains(a["message"].(map[string]any)["flags"].([]any), any("starred")) {
				return "starred", 0
			}
			return "", 0
		}
	}
	op := porcupine.Operation{ClientId: client, Input: in, Call: int64(time.Since(h.began))}
	if strings.HasPrefix(key, "status") && round > len(h.users) && in.kind == "read" {
		key = "" // the user has the status text of an earlier round
	}
	a, err := from.callWith(c, method, path, form)
	op.Return = int64(time.Since(h.began))
	h.record(key, op, in, a, err, read)
}

// newestMessage returns the text and the id of the last message of an answer.
func newestMessage(a map[string]any) (string, int64) {
	list := a["messages"].([]any)
	if len(list) == 0 {
		return "", 0
	}
	m := list[len(list)-1].(map[string]any)
	return m["content"].(string), int64(m["id"].(float64))
}

func (h *clusterHistory) record(
	key string, op porcupine.Operation, in historyInput, a map[string]any, err error,
	read func(map[string]any) (string, int64),
) {
	out := historyOutput{known: err == nil}
	if err == nil {
		out.text, out.id = read(a)
	} else if a != nil && !isBusy(err) && !refused(err) {
		h.t.Errorf("%s %q was refused: %v", in.kind, in.text, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if in.kind != "read" && err == nil {
		now := time.Now()
		h.gap, h.progress = max(h.gap, now.Sub(h.progress)), now
		node := op.ClientId % len(h.nodes)
		if call := h.began.Add(time.Duration(op.Call)); call.After(h.last[node]) {
			h.last[node] = call
		}
	}
	if in.kind == "send" {
		if h.sent[in.text] = true; err == nil {
			h.acked[in.text] = out.id
		}
	}
	if op.Output = out; !out.known {
		op.Return = math.MaxInt64 // it may be carried out at any time
		if in.kind == "read" {
			return
		}
	}
	if key != "" {
		h.ops[key] = append(h.ops[key], op)
	}
}

// end stops the clients. Requests that wait are awaited.
func (h *clusterHistory) end() {
	close(h.stop)
	h.done.Wait()
}

// check compares all answers with those of one server, and the stored messages with the acknowledged ones.
func (h *clusterHistory) check() {
	h.t.Helper()
	total, unknown := 0, 0
	for _, key := range slices.Sorted(maps.Keys(h.ops)) {
		ops, n := withoutUnseen(h.ops[key])
		total, unknown = total+len(ops), unknown+n
		switch porcupine.CheckOperationsTimeout(historyModel, ops, time.Minute) {
		case porcupine.Illegal:
			h.t.Errorf("the answers about %q are not those of one server:\n%s", key, describe(ops))
		case porcupine.Unknown:
			h.t.Errorf("the %d answers about %q are not checked within a minute", len(ops), key)
		}
	}
	h.checkMessages()
	h.t.Logf("%d answers in %d histories are linearizable, %d requests without an answer; %d messages acknowledged",
		total, len(h.ops), unknown, len(h.acked))
}

// withoutUnseen leaves out changes without an answer whose text no read has returned: they are as good as not made. It
// returns how many changes had no answer.
func withoutUnseen(list []porcupine.Operation) (ops []porcupine.Operation, unknown int) {
	seen := map[string]bool{"": true, "starred": true}
	for _, op := range list {
		seen[op.Output.(historyOutput).text] = true
	}
	for _, op := range list {
		if !op.Output.(historyOutput).known {
			unknown++
			if !seen[op.Input.(historyInput).text] {
				continue
			}
		}
		ops = append(ops, op)
	}
	return ops, unknown
}

// historyModel is one value: the newest message of a topic, a status text, or a flag.
var historyModel = porcupine.Model{
	Init: func() any { return historyOutput{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(historyOutput), input.(historyInput), output.(historyOutput)
		switch {
		case in.kind == "read":
			return s.text == out.text && (s.id == 0 || out.id == 0 || s.id == out.id), s
		case in.kind == "send" && out.known:
			return out.id > s.id, historyOutput{text: in.text, id: out.id}
		default:
			return true, historyOutput{text: in.text}
		}
	},
}

// describe returns the operations in the order of their beginnings, for a person who looks for a fault.
func describe(ops []porcupine.Operation) string {
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&b, "%v - %v client %d: %+v %+v\n", time.Duration(op.Call), time.Duration(op.Return), op.ClientId,
			op.Input, op.Output)
	}
	return b.String()
}

// checkMessages requires that every acknowledged message is stored once, and no message twice.
func (h *clusterHistory) checkMessages() {
	h.t.Helper()
	stored := map[string]int{}
	for anchor := "oldest"; ; {
		narrow := `[["channel","general"]]`
		a := h.users[0].must(h.t, "GET", "messages", url.Values{"anchor": {anchor}, "num_before": {"0"},
			"num_after": {"1000"}, "include_anchor": {"false"}, "narrow": {narrow}, "apply_markdown": {"false"}})
		for _, x := range a["messages"].([]any) {
			m := x.(map[string]any)
			text, id := m["content"].(string), int64(m["id"].(float64))
			anchor = strconv.FormatInt(id, 10)
			if !h.sent[text] {
				continue
			}
			stored[text]++
			if want := h.acked[text]; want != 0 && want != id {
				h.t.Errorf("message %q is stored as %d and was acknowledged as %d", text, id, want)
			}
		}
		if a["found_newest"] == true {
			break
		}
	}
	for text := range h.sent {
		if n := stored[text]; n > 1 || n == 0 && h.acked[text] != 0 {
			h.t.Errorf("message %q (acknowledged as %d) is stored %d times", text, h.acked[text], n)
		}
	}
}
