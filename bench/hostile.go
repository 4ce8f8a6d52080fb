package bench

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the hostile scenario.
const (
	hostileMemory = 400         // MB above idle
	hostileDelay  = time.Second // p99 of another member's answers and events
)

// The hostile scenario. Each attack has hostileMembers of its own, because an attack uses up their rate limits. The
// victims, victimCount members, send victimRate messages a second in total. Each victim polls once for each message:
// the rate limits of victims must allow that.
const (
	hostileMembers = 10
	victimCount    = 40
	victimRate     = 2
	// attackLength is how long the other members are measured during each attack.
	attackLength = 6 * time.Second
	// unreadTime is how long an attacker keeps a connection whose answer it does not read.
	unreadTime = attackLength + 2*time.Second
)

// attack is one kind of harm. prepare, if any, runs before the measurement; member is called for each hostile member at
// the same time.
type attack struct {
	name    string
	prepare func(h *hostileRun, p *person)
	member  func(h *hostileRun, p *person)
}

// attacks are all within the default rate limits: requests above these are answered 429 and counted.
var attacks = []attack{
	{name: "large answers, not read", prepare: (*hostileRun).sendLargeMessages, member: (*hostileRun).readNothing},
	{name: "edits of one message", member: (*hostileRun).editOften},
	{name: "history, not read", member: (*hostileRun).readNoHistory},
	{name: "huge narrows", member: (*hostileRun).narrowHugely},
	{name: "registers", member: (*hostileRun).registerOften},
	{name: "slow readers", member: (*hostileRun).readSlowly},
	{name: "uploads", member: (*hostileRun).upload},
	{name: "presence and typing", member: (*hostileRun).reportOften},
	{name: "searches", member: (*hostileRun).search},
}

// hostileRun is one run of the hostile scenario.
type hostileRun struct {
	overloadRun
	client *http.Client

	mu       sync.Mutex
	until    time.Time   // the end of this attack
	statuses map[int]int // answers to hostile members; 0: none
	edited   []int64     // messages with a long history
}

// hostileMain runs `parley bench hostile`.
func hostileMain(args []string, stdout, stderr io.Writer) int {
	s := newRunFlags("hostile", stdout, stderr)
	only := s.flags.String("only", "", "run the attacks whose name contains one of these `texts`, separated by commas")
	if err := s.parse("hostile", args); err != nil {
		if err != flag.ErrHelp {
			fmt.Fprintf(stderr, "parley bench hostile: %v\n", err)
		}
		return 2
	}
	runtime.GOMAXPROCS(max(overloadThreads, runtime.NumCPU()))
	h := &hostileRun{overloadRun: overloadRun{run: newRun(s.scenario, s.options), out: stdout},
		statuses: map[int]int{}}
	h.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	if err := h.attackAll(*only); err != nil {
		fmt.Fprintf(stderr, "parley bench hostile: %v\n", err)
		return 2
	}
	return h.verdict()
}

func (h *hostileRun) attackAll(only string) error {
	r := h.run
	defer r.closeSetup()
	if err := r.openSetup(); err != nil {
		return err
	}
	h.a, h.channelA = r.population.people, r.population.channels[0].ID
	victims, members := h.a[:victimCount], h.a[victimCount:]
	var err error
	if h.watchA, err = openWatch(r, victims, newSendTable(), false); err != nil {
		return err
	}
	defer h.sampleMemory()()
	time.Sleep(time.Second)
	h.idleMemory = h.memory.Load()
	fmt.Fprintf(h.out, "  idle memory %d MB\n", h.idleMemory>>20)
	for _, x := range attacks {
		if !slices.ContainsFunc(strings.Split(only, ","), func(s string) bool { return strings.Contains(x.name, s) }) {
			continue
		}
		attackers := members[:hostileMembers]
		members = members[hostileMembers:]
		if x.prepare != nil {
			h.until = time.Now().Add(attackLength)
			h.forEach(attackers, x.prepare)
		}
		if err := h.measureAttack(x, attackers, victims); err != nil {
			return err
		}
	}
	err = h.watchA.stop()
	h.result.Broken = append(h.result.Broken, h.watchA.check()...)
	return err
}

// forEach calls act for all members at the same time.
func (h *hostileRun) forEach(members []person, act func(*hostileRun, *person)) {
	var wg sync.WaitGroup
	for i := range members {
		wg.Add(1)
		go func() { defer wg.Done(); act(h, &members[i]) }()
	}
	wg.Wait()
}

// measureAttack runs an attack while other members send messages.
func (h *hostileRun) measureAttack(x attack, members, victims []person) error {
	h.until = time.Now().Add(attackLength)
	h.memory.Store(0)
	h.watchA.delay.take()
	h.statuses = map[int]int{}
	l := openLoad(h.run, victims, h.channelA, h.watchA.sends)
	done := make(chan error, 1)
	go func() { done <- l.openLoop(h.run, victimRate, attackLength) }()
	h.forEach(members, x.member)
	if err := <-done; err != nil {
		return err
	}
	h.settle(h.watchA)
	if why := l.wrong.Load(); why != nil {
		h.result.Broken = append(h.result.Broken, x.name+": "+*why)
	}
	answer, seen := l.answer.take().ValueAtQuantile(99), h.watchA.delay.take().ValueAtQuantile(99)
	memory := (h.memory.Load() - h.idleMemory) >> 20
	h.mu.Lock()
	fmt.Fprintf(h.out, "  %-24s memory +%4d MB  others: answer p99 %6.1f, seen p99 %6.1f ms, %d of %d sent  "+
		"hostile answers %v\n", x.name, memory, ms(answer), ms(seen), l.acked.Load(), l.offered.Load(), h.statuses)
	h.mu.Unlock()
	missIf := func(bad bool, format string, args ...any) {
		if bad {
			h.result.Missed = append(h.result.Missed, x.name+": "+fmt.Sprintf(format, args...))
		}
	}
	limit := float64(hostileDelay.Milliseconds())
	missIf(memory > hostileMemory, "memory %d MB above idle", memory)
	missIf(ms(answer) > limit || ms(seen) > limit, "another member: answer p99 %.0f ms, seen p99 %.0f ms", ms(answer),
		ms(seen))
	missIf(l.acked.Load() < l.offered.Load(), "%d of %d sends of other members acknowledged", l.acked.Load(),
		l.offered.Load())
	return nil
}

// request sends a request and returns the status and the beginning of the answer.
func (h *hostileRun) request(p *person, method, path, kind string, body io.Reader) (int, []byte) {
	if time.Now().After(h.until) {
		return 0, nil
	}
	req, err := http.NewRequest(method, "http://"+h.run.server.addr.String()+"/api/v1/"+path, body)
	if err != nil {
		return h.countStatus(0), nil
	}
	req.Host = p.Host
	req.Header.Set("Authorization", p.auth)
	req.Header.Set("Content-Type", kind)
	resp, err := h.client.Do(req)
	if err != nil {
		return h.countStatus(0), nil
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	io.Copy(io.Discard, resp.Body)
	return h.countStatus(resp.StatusCode), b
}

func (h *hostileRun) countStatus(status int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.statuses[status]++
	return status
}

// form sends a request with parameters.
func (h *hostileRun) form(p *person, method, path string, v params) (int, []byte) {
	q := v.Encode()
	if method == "GET" {
		return h.request(p, method, path+"?"+q, "", nil)
	}
	return h.request(p, method, path, "application/x-www-form-urlencoded", strings.NewReader(q))
}

// unread sends requests and reads nothing of their answers.
func (h *hostileRun) unread(p *person, requests int, target string) {
	var open []net.Conn
	for range requests {
		c, err := net.Dial("tcp", h.run.server.addr.String())
		if err != nil {
			break
		}
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(c, "GET /api/v1/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\n\r\n", target, p.Host, p.auth)
		open = append(open, c)
	}
	time.Sleep(unreadTime)
	for _, c := range open {
		c.Close()
	}
}

// largeText has as much HTML for each byte as a text can have.
var largeText = strings.Repeat(":o: ", 2490)

func (h *hostileRun) send(p *person, text string) int64 {
	_, b := h.form(p, "POST", "messages", params{"type": "channel", "to": h.channelA, "topic": "hostile",
		"content": text})
	var v struct {
		ID int64 `json:"id"`
	}
	json.Unmarshal(b, &v)
	return v.ID
}

func (h *hostileRun) sendLargeMessages(p *person) {
	for range 60 {
		h.send(p, largeText)
	}
}

const pageOfAll = "messages?anchor=newest&num_before=5000&num_after=0&apply_markdown=true"

func (h *hostileRun) readNothing(p *person) { h.unread(p, 30, pageOfAll) }

func (h *hostileRun) editOften(p *person) {
	id := h.send(p, "first")
	h.mu.Lock()
	h.edited = append(h.edited, id)
	h.mu.Unlock()
	for i := range 100 {
		h.form(p, "PATCH", fmt.Sprintf("messages/%d", id), params{"content": fmt.Sprint(i) + largeText[:9000]})
	}
}

func (h *hostileRun) readNoHistory(p *person) {
	h.mu.Lock()
	id := h.edited[0]
	h.edited = append(h.edited[1:], id)
	h.mu.Unlock()
	var wg sync.WaitGroup
	for _, target := range []string{fmt.Sprintf("messages/%d/history", id), fmt.Sprintf(
		"messages?anchor=%d&num_before=50&num_after=50", id)} {
		wg.Add(1)
		go func() { defer wg.Done(); h.unread(p, 15, target) }()
	}
	wg.Wait()
}

func (h *hostileRun) narrowHugely(p *person) {
	var terms []any
	for i := range 5000 {
		terms = append(terms, map[string]any{"operator": "search", "operand": fmt.Sprintf("word%d lazy fox", i),
			"negated": i%2 == 0})
	}
	for _, n := range []int{50, 500, 5000} {
		for range 10 {
			h.form(p, "POST", "messages/flags/narrow", params{"anchor": "newest", "num_before": 5000, "num_after": 0,
				"op": "add", "flag": "read", "narrow": terms[:n]})
		}
	}
	h.form(p, "GET", "messages", params{"anchor": "newest", "num_before": 5000, "num_after": 0, "narrow": terms[:100]})
}

func (h *hostileRun) registerOften(p *person) {
	for range 30 {
		h.form(p, "POST", "register", params{"apply_markdown": true})
	}
	h.unread(p, 30, "users")
}

// readSlowly opens queues, never acknowledges their events and reads a few bytes of each answer.
func (h *hostileRun) readSlowly(p *person) {
	var open []net.Conn
	for range 20 {
		_, b := h.form(p, "POST", "register", params{"event_types": []string{"message"},
			"fetch_event_types": []string{"message"}, "apply_markdown": true})
		var v struct {
			Queue string `json:"queue_id"`
		}
		json.Unmarshal(b, &v)
		c, err := net.Dial("tcp", h.run.server.addr.String())
		if err != nil || v.Queue == "" {
			continue
		}
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(
			c,
			"GET /api/v1/events?queue_id=%s&last_event_id=-1 HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\n\r\n",
			url.QueryEscape(v.Queue),
			p.Host,
			p.auth,
		)
		open = append(open, c)
	}
	for range 50 {
		h.send(p, largeText)
	}
	for end := time.Now().Add(attackLength / 2); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, c := range open {
			c.SetReadDeadline(time.Now().Add(time.Millisecond))
			c.Read(make([]byte, 16))
		}
	}
	for _, c := range open {
		c.Close()
	}
}

func (h *hostileRun) upload(p *person) {
	file := bytes.Repeat([]byte("hostile "), 8<<20/8)
	for i := range 5 {
		var b bytes.Buffer
		m := multipart.NewWriter(&b)
		f, err := m.CreateFormFile("file", fmt.Sprintf("f%d.bin", i))
		if err != nil {
			return
		}
		f.Write(file)
		m.Close()
		h.request(p, "POST", "user_uploads", m.FormDataContentType(), &b)
	}
}

func (h *hostileRun) reportOften(p *person) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 40 {
				h.form(p, "POST", "users/me/presence", params{"status": "active", "new_user_input": true})
				h.form(p, "POST", "typing", params{"op": "start", "type": "channel", "stream_id": h.channelA,
					"topic": "hostile"})
			}
		}()
	}
	wg.Wait()
}

func (h *hostileRun) search(p *person) {
	for i := range 40 {
		h.form(p, "GET", "messages", params{"anchor": "newest", "num_before": 5000, "num_after": 0,
			"narrow": []any{map[string]any{"operator": "search", "operand": []string{"lazy dog", "\"brown fox\"",
				"octopus o", "the quick"}[i%4]}}})
	}
}
