package actors

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/owner"
	"parley/actors/realm"
	"parley/snapshot/codec"
)

// TestSimulation runs random clients against the real server. Users send messages, react, edit, star, leave and return
// while the disk is slow and finishes an append and a snapshot in either order. The organization leaves memory when no
// poll waits, and comes back. The process crashes with writes in progress, which may or may not have reached the disk.
// The clock belongs to the test.
//
// It checks that no client gets anything that is not on disk; that acknowledged operations are there, once; that every
// queue goes on under its id after every crash, with rising ids and no event twice; and that the state which a client
// builds from events is the state that it can read.
//
// SEED is the first seed, N the number of runs.
func TestSimulation(t *testing.T) {
	n, seed := runsAndSeed(3, uint64(time.Now().UnixNano()%1e9))
	var all simCounts
	for i := range n {
		seed := seed + uint64(i)
		runSynctest(t, func(t *testing.T) {
			s := &simulation{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), contents: newDiskContents()}
			s.play(simSteps)
			all.add(s.simCounts)
		})
		if t.Failed() {
			t.Fatalf("repeat with SEED=%d N=1", seed)
		}
	}
	t.Logf("%d runs from SEED=%d: %+v", n, seed, all)
}

// simSteps is how many steps a run has.
const simSteps = 600

type simCounts struct{ acked, unknown, events, crashes, snapshots, sleeps, waking int }

func (c *simCounts) add(o simCounts) {
	c.acked, c.unknown, c.events, c.crashes, c.snapshots = c.acked+o.acked, c.unknown+o.unknown, c.events+o.events,
		c.crashes+o.crashes, c.snapshots+o.snapshots
	c.sleeps, c.waking = c.sleeps+o.sleeps, c.waking+o.waking
}

type simulation struct {
	simCounts
	t             *testing.T
	seed          uint64
	random        *rand.Rand
	contents      *diskContents
	disk          *slowDisk
	srv           *Server
	pendingWrites []*pendingWrite
	clients       []*simClient
	messages      map[string]*simMessage // by the first text
	count         int
}

// simMessage is one message that a user tried to send, and the texts that it may have now.
type simMessage struct {
	id       int64    // 0 until acknowledged
	texts    []string // the last acknowledged text, and every text that was tried since
	reacted  map[string]bool
	starred  map[realm.UserID]bool
	original string
}

// simClient is one program of a user.
type simClient struct {
	user     realm.UserID
	queue    string
	at       realm.Seq
	last     int64
	mirror   map[int64]*simMessageView
	poll     responseChan
	op       responseChan
	onAnswer func(a response) // handles the answer to op
	onLost   func()           // is called if op gets no answer
}

// simMessageView is a message as its client knows it from events.
type simMessageView struct {
	text         string
	starredLater bool // its reader got it by a star, not when it was sent
	starred      bool
	reactions    map[string]bool
}

func (s *simulation) play(steps int) {
	s.messages = map[string]*simMessage{}
	s.open()
	people := createOrganization(s.t, s.srv, "ann", "bo", "cy", "di")
	for _, u := range append(people, people[:2]...) {
		a := mustCall(s.t, s.srv, u, "POST /register",
			params{"event_types": []string{"message", "update_message", "reaction", "update_message_flags"},
				"apply_markdown":     "false",
				"idle_queue_timeout": 604800})
		c := &simClient{user: u, queue: a["queue_id"].(string), last: -1, mirror: map[int64]*simMessageView{}}
		at, err := s.srv.View(1, realm.Caller{System: true},
			func(v realm.View) (any, error) { return v.FindQueue(realm.QueueID(c.queue)).At, nil })
		if err != nil {
			s.t.Fatal(err)
		}
		c.at = at.(realm.Seq)
		s.clients = append(s.clients, c)
	}
	s.holdWrites()
	for range steps {
		s.step()
		if s.t.Failed() {
			break
		}
	}
	s.end()
}

func (s *simulation) open() {
	s.disk = &slowDisk{diskContents: s.contents}
	s.srv = openServerWith(s.t, s.disk, Options{SleepAfter: 20 * time.Second})
}

// holdWrites makes writes wait for finishWrite from now on.
func (s *simulation) holdWrites() {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.disk.writes = make(chan *pendingWrite, 16)
}

func (s *simulation) settle() {
	synctest.Wait()
	for {
		select {
		case w := <-s.disk.writes:
			s.pendingWrites = append(s.pendingWrites, w)
			continue
		default:
		}
		break
	}
	s.collectAnswers()
}

func (s *simulation) step() {
	switch p := s.random.IntN(100); {
	case p < 40:
		s.act(s.clients[s.random.IntN(len(s.clients))])
	case p < 65:
		s.poll(s.clients[s.random.IntN(len(s.clients))])
	case p < 92:
		s.finishWrite()
	case p < 97:
		time.Sleep(time.Duration(s.random.IntN(10000)) * time.Millisecond)
	case p < 98:
		time.Sleep(owner.SnapshotAge + 10*time.Second)
	default:
		s.crash()
	}
	s.settle()
}

// finishWrite lets one of the writes in progress finish.
func (s *simulation) finishWrite() {
	if len(s.pendingWrites) == 0 {
		return
	}
	i := s.random.IntN(len(s.pendingWrites))
	w := s.pendingWrites[i]
	s.pendingWrites = slices.Delete(s.pendingWrites, i, i+1)
	if w.what == "snapshot" {
		s.snapshots++
	}
	err := w.do()
	if err != nil {
		s.t.Errorf("seed %d: %v", s.seed, err)
	}
	w.done <- err
}

// crash ends the process. Some of the writes in progress reach the disk all the same.
func (s *simulation) crash() {
	s.crashes++
	s.disk.crash()
	for _, w := range s.pendingWrites {
		if s.random.IntN(2) == 0 {
			if err := w.do(); err != nil {
				s.t.Errorf("seed %d: %v", s.seed, err)
			}
		}
		w.done <- nil
	}
	s.pendingWrites = nil
	for _, c := range s.clients {
		c.poll = nil
		if c.op != nil {
			s.unknown++
			c.onLost()
			c.op = nil
		}
	}
	s.sleeps += int(s.srv.SleepStats().Sleeps)
	closeServer(s.t, s.srv)
	s.open()
	synctest.Wait()
	s.holdWrites()
}

// poll sends a poll for a client that has none waiting.
func (s *simulation) poll(c *simClient) {
	if c.poll == nil {
		c.poll = call(s.srv, c.user, "GET /events", params{"queue_id": c.queue, "last_event_id": c.last})
	}
}

// collectAnswers handles every answer that has arrived.
func (s *simulation) collectAnswers() {
	for _, c := range s.clients {
		select {
		case a := <-c.poll:
			c.poll = nil
			s.takeEvents(c, a)
		default:
		}
		select {
		case a := <-c.op:
			c.op = nil
			s.acked++
			c.onAnswer(a)
		default:
		}
	}
}

func (s *simulation) takeEvents(c *simClient, a response) {
	if a.status == 503 { // a write of the organization that leaves memory takes long; the client polls again
		s.waking++
		return
	}
	if a.status != 200 {
		s.t.Errorf("seed %d: a poll of user %d was answered %d %v", s.seed, c.user, a.status, a.body)
		return
	}
	for _, x := range a.body["events"].([]any) {
		e := x.(map[string]any)
		id := int64(e["id"].(float64))
		if id <= c.last {
			s.t.Errorf("seed %d: event %d after %d", s.seed, id, c.last)
		}
		if n := c.at + realm.Seq(id>>8); e["type"] != "heartbeat" && n > s.contents.last() {
			s.t.Errorf("seed %d: user %d got an event of fact %d, the disk has %d: %v", s.seed, c.user, n,
				s.contents.last(), e)
		}
		c.last = id
		s.events++
		c.take(s, e)
	}
}

func (c *simClient) take(s *simulation, e map[string]any) {
	known := func() *simMessageView { // an event may be about an older message
		if m := c.mirror[int64(e["message_id"].(float64))]; m != nil {
			return m
		}
		return &simMessageView{reactions: map[string]bool{}}
	}
	switch e["type"] {
	case "message":
		m := e["message"].(map[string]any)
		id := int64(m["id"].(float64))
		if c.mirror[id] != nil {
			s.t.Errorf("seed %d: user %d got message %d twice", s.seed, c.user, id)
		}
		c.mirror[id] = newSimMessageView(m, e["flags"])
	case "update_message":
		if text, ok := e["content"].(string); ok {
			known().text = text
		}
	case "reaction":
		known().reactions[fmt.Sprint(e["user_id"], e["emoji_name"])] = e["op"] == "add"
	case "update_message_flags":
		for _, id := range e["messages"].([]any) {
			if m := c.mirror[int64(id.(float64))]; m != nil && e["flag"] == "starred" {
				m.starred = e["op"] == "add"
			}
		}
	}
}

// newSimMessageView reads a message from JSON.
func newSimMessageView(m map[string]any, flags any) *simMessageView {
	x := &simMessageView{text: m["content"].(string), reactions: map[string]bool{}}
	for _, f := range flags.([]any) {
		x.starred = x.starred || f == "starred"
		x.starredLater = x.starredLater || f == "historical"
	}
	for _, r := range m["reactions"].([]any) {
		r := r.(map[string]any)
		x.reactions[fmt.Sprint(r["user_id"], r["emoji_name"])] = true
	}
	return x
}

// act lets a client do something, unless it still waits for an answer.
func (s *simulation) act(c *simClient) {
	if c.op != nil {
		return
	}
	s.count++
	c.onAnswer, c.onLost = func(response) {}, func() {}
	var old *simMessage
	var list []*simMessage
	for _, k := range slices.Sorted(maps.Keys(s.messages)) {
		if x := s.messages[k]; x.id != 0 {
			list = append(list, x)
		}
	}
	kind := s.random.IntN(10)
	if len(list) == 0 {
		kind = 0
	} else {
		old = list[s.random.IntN(len(list))]
	}
	switch {
	case kind < 5:
		s.sendMessage(c)
	case kind == 5:
		s.edit(c, old)
	case kind == 6 || kind == 7:
		emoji := []string{"wave", "tada", "heart"}[s.random.IntN(3)]
		c.op = call(s.srv, c.user, "POST /messages/{message_id}/reactions",
			params{"message_id": old.id, "emoji_name": emoji})
		c.onAnswer = func(a response) {
			if a.status == 200 || a.body["code"] == "REACTION_ALREADY_EXISTS" {
				old.reacted[fmt.Sprint(c.user, emoji)] = true
			}
		}
	case kind == 8:
		c.op = call(s.srv, c.user, "POST /messages/flags", params{"messages": []int64{old.id}, "op": "add",
			"flag": "starred"})
		c.onAnswer = func(a response) {
			if a.status == 200 {
				old.starred[c.user] = true
			}
		}
	default:
		if s.random.IntN(2) == 0 {
			c.op = call(s.srv, c.user, "DELETE /users/me/subscriptions", params{"subscriptions": []string{"two"}})
		} else {
			c.op = call(s.srv, c.user, "POST /users/me/subscriptions",
				params{"subscriptions": []any{map[string]any{"name": "two"}}})
		}
	}
}

func (s *simulation) sendMessage(c *simClient) {
	text := fmt.Sprintf("saying %d", s.count)
	x := &simMessage{
		texts:    []string{text},
		reacted:  map[string]bool{},
		starred:  map[realm.UserID]bool{},
		original: text,
	}
	s.messages[text] = x
	p := params{"type": "stream", "to": []string{"one", "two"}[s.random.IntN(2)], "topic": "sim", "content": text}
	if s.random.IntN(4) == 0 {
		p = params{"type": "direct", "to": []realm.UserID{s.clients[s.random.IntN(4)].user}, "content": text}
	}
	c.op = call(s.srv, c.user, "POST /messages", p)
	c.onAnswer = func(a response) {
		if a.status != 200 {
			delete(s.messages, text) // the user has left the channel
			return
		}
		x.id = int64(a.body["id"].(float64))
		if !s.contents.holds(realm.MessageID(x.id), text) {
			s.t.Errorf("seed %d: %q was acknowledged as %d and is not on disk", s.seed, text, x.id)
		}
	}
}

func (s *simulation) edit(c *simClient, x *simMessage) {
	text := fmt.Sprintf("%s, edit %d", x.original, s.count)
	c.op = call(s.srv, c.user, "PATCH /messages/{message_id}", params{"message_id": x.id, "content": text})
	x.texts = append(x.texts, text)
	c.onAnswer = func(a response) {
		if a.status != 200 { // only the sender may edit
			x.texts = slices.DeleteFunc(x.texts, func(t string) bool { return t == text })
		}
	}
}

// holds reports whether the disk has a text of a message.
func (p *diskContents) holds(id realm.MessageID, text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ref, data := range p.texts {
		if b, err := codec.DecodeText(data); ref.Message == id && err == nil && b.Text == text {
			return true
		}
	}
	return false
}

// end lets everything finish, fetches every client's events, and compares.
func (s *simulation) end() {
	for i := 0; i < 1000 && (len(s.pendingWrites) > 0 || i == 0); i++ {
		for len(s.pendingWrites) > 0 {
			s.finishWrite()
		}
		s.settle()
	}
	s.disk.mu.Lock()
	s.disk.writes = nil
	s.disk.mu.Unlock()
	for _, c := range s.clients {
		if c.op != nil {
			s.t.Errorf("seed %d: user %d has no answer to its request", s.seed, c.user)
		}
	}
	for _, c := range s.clients {
		for more := true; more; {
			p := params{"queue_id": c.queue, "last_event_id": c.last, "dont_block": true}
			a := mustCall(s.t, s.srv, c.user, "GET /events", p)
			more = len(a["events"].([]any)) > 0
			s.takeEvents(c, response{a, 200})
		}
		s.compare(c)
	}
	closeServer(s.t, s.srv)
}

func (s *simulation) compare(c *simClient) {
	a := mustCall(s.t, s.srv, c.user, "GET /messages", params{"anchor": "oldest", "num_before": 0, "num_after": 5000,
		"apply_markdown": "false"})
	fresh := map[int64]*simMessageView{}
	times := map[string]int{}
	for _, x := range a["messages"].([]any) {
		m := x.(map[string]any)
		id := int64(m["id"].(float64))
		fresh[id] = newSimMessageView(m, m["flags"])
		for original, y := range s.messages {
			if y.id == id {
				times[original]++
				if !slices.Contains(y.texts, fresh[id].text) {
					s.t.Errorf("seed %d: message %d reads %q, not one of %q", s.seed, id, fresh[id].text, y.texts)
				}
				for r := range y.reacted {
					if !fresh[id].reactions[r] {
						s.t.Errorf("seed %d: reaction %s to message %d is lost", s.seed, r, id)
					}
				}
				if y.starred[c.user] && !fresh[id].starred {
					s.t.Errorf("seed %d: user %d's star of message %d is lost", s.seed, c.user, id)
				}
			}
		}
	}
	for id, m := range c.mirror {
		maps.DeleteFunc(m.reactions, func(_ string, on bool) bool { return !on })
		if f := fresh[id]; f == nil {
			s.t.Errorf("seed %d: user %d got message %d, which does not exist", s.seed, c.user, id)
		} else if fmt.Sprint(*f) != fmt.Sprint(*m) {
			s.t.Errorf("seed %d: message %d is %v when read and %v from events, for user %d", s.seed, id, *f, *m,
				c.user)
		}
	}
	for original, y := range s.messages {
		if y.id != 0 && fresh[y.id] != nil && c.mirror[y.id] == nil && !fresh[y.id].starredLater {
			s.t.Errorf("seed %d: user %d can read message %d (%s) but never got it", s.seed, c.user, y.id, original)
		}
	}
}
