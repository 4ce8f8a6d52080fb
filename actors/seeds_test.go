package actors

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"parley/actors/mailbox"
	"parley/actors/owner"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/stream"
	"parley/snapshot"
	"parley/snapshot/codec"
	"parley/wire"
)

// knownSeeds are seeds that once found a bug, and which.
var knownSeeds = map[uint64]string{
	281787490: "a poll that arrived before the restart event named a fact that its session actor had not received: " +
		"Event 3584 was not in this queue",
}

// runsAndSeed returns the variables N and SEED of the environment; n and seed are used where one is not set.
func runsAndSeed(n int, seed uint64) (int, uint64) {
	if x, err := strconv.Atoi(os.Getenv("N")); err == nil {
		n = x
	}
	if x, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = x
	}
	return n, seed
}

// TestSeeds runs the seeds from SEED on, N of them. The runs use the real server with its realm, journal, session and
// presence actors, on a runtime with one thread. The seed decides which actor runs next, when the disk finishes, when
// the process crashes, when the journal refuses a batch, what users do, every random value, and the clocks. The same
// seed is the same run, to the byte. In each run:
//
//   - nothing is answered or delivered that is not on disk, and nothing on disk is lost;
//   - an acknowledged message exists once, any other at most once, a deleted one never again;
//   - every queue goes on under its id, its event ids rise, and its events are exactly those that a replay of the whole
//     journal has for its user;
//   - no queue ends before its time, however the wall clock jumps;
//   - the states in memory, loaded from disk, replayed from the beginning, and of a follower in another process are
//     equal, and the follower has the same events for every user.
func TestSeeds(t *testing.T) {
	n := 150
	if testing.Short() { // one thread: the race detector finds nothing in more runs
		n = 10
	}
	n, seed := runsAndSeed(n, uint64(time.Now().UnixNano()%1e9))
	base := newSeededBase(t)
	var all seededCounts
	sum := sha256.New()
	began := time.Now()
	for i := range n {
		run := newSeededRun(t, base, seed+uint64(i))
		fmt.Fprintln(sum, run.play())
		all.add(run.seededCounts)
		if t.Failed() {
			t.Fatalf("repeat with SEED=%d N=1", seed+uint64(i))
		}
		if i%10_000 == 9999 {
			t.Logf("%d runs in %v: %+v", i+1, time.Since(began).Round(time.Second), all)
		}
	}
	t.Logf("%d runs from SEED=%d in %v, digest %x: %+v", n, seed, time.Since(began).Round(time.Millisecond),
		sum.Sum(nil)[:8], all)
}

func TestKnownSeeds(t *testing.T) {
	base := newSeededBase(t)
	for seed, found := range knownSeeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Log(found)
			newSeededRun(t, base, seed).play()
		})
	}
}

// The same seed is the same run: any difference would make a bug hard to find again.
func TestSameSeedSameRun(t *testing.T) {
	seed := uint64(time.Now().UnixNano() % 1e9)
	base, again := newSeededBase(t), newSeededBase(t)
	for i := range uint64(20) {
		if a, b := newSeededRun(t, base, seed+i).play(), newSeededRun(t, again, seed+i).play(); a != b {
			t.Fatalf("seed %d has two different runs:\n%s\n%s", seed+i, a, b)
		}
	}
}

type seededCounts struct {
	Acked, Unknown, Refused, Events, Crashes, Snapshots, Jumps, Expired int
	Refusals                                                            int // batches that the journal did not store
}

func (c *seededCounts) add(o seededCounts) {
	c.Acked, c.Unknown, c.Refused, c.Events = c.Acked+o.Acked, c.Unknown+o.Unknown, c.Refused+o.Refused,
		c.Events+o.Events
	c.Refusals += o.Refusals
	c.Crashes, c.Snapshots, c.Jumps, c.Expired = c.Crashes+o.Crashes, c.Snapshots+o.Snapshots, c.Jumps+o.Jumps,
		c.Expired+o.Expired
}

// seededRun is one run.
type seededRun struct {
	seededCounts
	t         *testing.T
	seed      uint64
	random    *rand.Rand
	base      *seededBase
	contents  *diskContents
	history   [][]byte // encoded batches
	follower  *seededFollower
	runtime   *simRuntime
	disk      seededDisk
	srv       *Server
	wallClock int64 // Unix seconds
	elapsed   int64
	queues    []*seededQueue
	ops       []*seededOp
	messages  []*seededMessage
	nextText  int
}

// seededQueue is one client: a queue and the events it has got.
type seededQueue struct {
	user    realm.UserID
	reg     *realm.Queue
	last    int64
	poll    *seededReply
	contact int64 // elapsed seconds of the last poll or answer
	events  map[int64]string
	closed  bool
}

type seededMessage struct {
	text    string
	id      realm.MessageID
	deleted bool // asked for: the message may be gone
	absent  bool // acknowledged: the message must be gone
}

// seededOp is a command in progress.
type seededOp struct {
	reply chan stream.Result
	seq   *realm.Seq // the newest fact that its turn could see
	then  func(a stream.Result)
}

type seededReply struct {
	answered bool
	status   int
	body     []byte
}

func (r *seededReply) Answer(status int, parts ...[]byte) bool {
	r.answered, r.status = true, status
	for _, p := range parts {
		r.body = append(r.body, p...)
	}
	return true
}

func newSeededRun(t *testing.T, base *seededBase, seed uint64) *seededRun {
	run := &seededRun{
		t:         t,
		seed:      seed,
		base:      base,
		random:    rand.New(rand.NewPCG(seed, 7)),
		contents:  newDiskContents(),
		wallClock: seededStart + 1000,
	}
	run.contents.table, run.contents.rows = maps.Clone(base.rows), base.at
	run.follower = &seededFollower{realm: run.loadBase()}
	return run
}

func (run *seededRun) fail(format string, args ...any) {
	run.t.Errorf("seed %d: "+format, append([]any{run.seed}, args...)...)
}

// seededSteps is how many steps a run has: a crash or two, a snapshot or two, and time for both to meet.
const seededSteps = 140

func (run *seededRun) play() string {
	run.open()
	// the others register later: at first their session actors have no queues
	for _, u := range run.base.people[:[]int{2, 4, 3}[run.seed%3]] {
		run.register(u, realm.MaxIdle)
	}
	refusal := -1 // the step after which a batch is refused; without a random number, so that known seeds stay the same
	if run.seed%4 == 3 {
		refusal = int(run.seed / 4 % (seededSteps / 2))
	}
	for i := range seededSteps {
		if refusal >= 0 && i%(seededSteps/2) == refusal {
			run.Refusals++
			run.disk.refuse++
		}
		run.step()
		run.collectAnswers()
		if run.t.Failed() {
			break
		}
	}
	return run.end()
}

func (run *seededRun) open() {
	run.runtime = &simRuntime{random: run.random, mailboxes: map[mailbox.Address]*simMailbox{}}
	run.disk = seededDisk{&slowDisk{diskContents: run.contents}, &run.history, run.follower}
	run.srv = openServerWith(run.t, run.disk, Options{
		runtime: run.runtime,
		Secret:  []byte("seeded"),
		Now:     func() time.Time { return time.Unix(run.wallClock, 0) },
		Elapsed: func() time.Duration { return time.Duration(run.elapsed) * time.Second },
		Fatal:   func(err error) { run.fail("fatal: %v", err) },
	})
}

func (run *seededRun) step() {
	switch p := run.random.IntN(100); {
	case p < 18:
		run.act()
	case p < 32:
		run.poll(run.queues[run.random.IntN(len(run.queues))])
	case p < 88:
		for range 1 + run.random.IntN(12) {
			run.runtime.runOne()
		}
	case p < 93:
		run.advance(int64(1 + run.random.IntN(30)))
	case p < 94:
		run.advance(int64(owner.SnapshotAge/time.Second) + 10)
	case p < 96:
		run.Jumps++
		run.wallClock += []int64{-86400, 86400, -3600, 3600}[run.random.IntN(4)]
		run.advance(1)
	case p < 98:
		run.runtime.Send(run.srv.find(1).pid, clockTick{run.wallClock})
	default:
		run.crash()
	}
}

// advance lets time pass and lets the server notice.
func (run *seededRun) advance(seconds int64) {
	run.wallClock, run.elapsed = run.wallClock+seconds, run.elapsed+seconds
	run.srv.sweepQueues()
	run.srv.tickRealms()
}

// crash ends the process and loses everything that is not on disk. Writes in progress may have reached the disk.
func (run *seededRun) crash() {
	run.Crashes++
	if run.random.IntN(2) == 0 {
		for j := run.runtime.mailboxes[run.srv.journal]; len(j.messages) > 0; {
			j.receiveNext()
		}
	}
	for _, do := range run.runtime.background {
		if run.random.IntN(2) == 0 {
			do()
		}
	}
	run.disk.crash()
	for _, o := range run.ops {
		select {
		case a := <-o.reply: // the client got the stream.Result just before
			run.finishOp(o, a)
		default:
			run.Unknown++
		}
	}
	run.ops = nil
	for _, q := range run.queues {
		if q.poll != nil && q.poll.answered && run.random.IntN(2) == 0 {
			run.takeEvents(q)
		}
		q.poll, q.contact = nil, run.elapsed
	}
	run.open()
}

// collectAnswers handles every stream.Result that has arrived.
func (run *seededRun) collectAnswers() {
	run.ops = slices.DeleteFunc(run.ops, func(o *seededOp) bool {
		select {
		case a := <-o.reply:
			run.finishOp(o, a)
			return true
		default:
			return false
		}
	})
	for _, q := range run.queues {
		if q.poll != nil && q.poll.answered {
			run.takeEvents(q)
		}
	}
}

func (run *seededRun) finishOp(o *seededOp, a stream.Result) {
	if *o.seq > run.contents.last() && !errors.Is(a.Err, owner.ErrOwnershipLost) {
		run.fail("the stream.Result depends on fact %d, the disk has %d", *o.seq, run.contents.last())
	}
	if a.Err != nil {
		run.Refused++
	} else {
		run.Acked++
	}
	o.then(a)
}

func (run *seededRun) poll(q *seededQueue) {
	if q.poll == nil && !q.closed {
		q.poll, q.contact = &seededReply{}, run.elapsed
		run.srv.Poll(wire.PollRequest{Realm: 1, User: q.user, Queue: q.reg.ID, Last: q.last, Reply: q.poll})
	}
}

// ephemeralTypes are the events without a fact.
var ephemeralTypes = map[string]bool{"heartbeat": true, "typing": true, "restart": true}

func (run *seededRun) takeEvents(q *seededQueue) {
	p, idle := q.poll, run.elapsed-q.contact
	q.poll, q.contact = nil, run.elapsed
	var body struct {
		Code   string
		Events []struct {
			ID   int64
			Type string
		}
	}
	if err := json.Unmarshal(p.body, &body); err != nil {
		run.fail("stream.Result %q: %v", p.body, err)
	}
	if p.status != 200 {
		if q.closed = body.Code == "BAD_EVENT_QUEUE_ID"; !q.closed || !q.mayExpire(run, idle) {
			run.fail("a poll of user %d after %d was answered %s", q.user, q.last, p.body)
		}
		return
	}
	for _, e := range body.Events {
		run.Events++
		if e.ID <= q.last {
			run.fail("user %d got event %d after %d", q.user, e.ID, q.last)
		}
		q.last = e.ID
		if n := q.reg.At + realm.Seq(e.ID>>8); n > run.contents.last() {
			run.fail("user %d got an event of fact %d, the disk has %d: %s", q.user, n, run.contents.last(), p.body)
		}
		if !ephemeralTypes[e.Type] {
			q.events[e.ID] = e.Type
		}
	}
}

// mayExpire reports whether a queue may have ended without being asked to: only one with a short lifetime.
func (q *seededQueue) mayExpire(run *seededRun, idle int64) bool {
	run.Expired++
	return q.reg.Idle < 3600 && idle >= 0
}

// do sends a command of a user; user 0 is the server itself.
func (run *seededRun) do(u realm.UserID, decide func(*realm.Turn) (any, error), then func(stream.Result)) {
	o := &seededOp{reply: make(chan stream.Result, 1), seq: new(realm.Seq), then: then}
	run.ops = append(run.ops, o)
	run.runtime.Send(run.srv.find(1).pid, &ask{caller: realm.Caller{User: u, System: u == 0, Client: "test"},
		reply: o.reply, decide: func(t *realm.Turn) (any, error) {
			a, err := decide(t)
			*o.seq = t.Seq()
			return a, err
		}})
}

// decideOf returns a command's Decide in the form that do takes.
func decideOf[A any](c realm.Command[A]) func(*realm.Turn) (any, error) {
	return func(t *realm.Turn) (any, error) { return c.Decide(t) }
}

func (run *seededRun) register(u realm.UserID, idle int64) {
	c := realm.Register{
		Queue: realm.Queue{
			Idle: idle,
			Caps: realm.CapBulkMessageDeletion | realm.CapStreamTyping | realm.CapEmptyTopicName,
		},
		State: func(realm.View, *realm.Queue) (any, error) { return nil, nil },
	}
	run.do(u, decideOf(c), func(a stream.Result) {
		if a.Err == nil {
			run.queues = append(run.queues, &seededQueue{
				user:    u,
				reg:     a.Value.(realm.Registered).Queue,
				last:    -1,
				contact: run.elapsed,
				events:  map[int64]string{},
			})
		}
	})
	for len(run.queues) == 0 { // a run needs at least one queue
		run.runtime.runOne()
		run.collectAnswers()
	}
}

// act lets a random user do something.
func (run *seededRun) act() {
	run.nextText++
	u := run.base.people[run.random.IntN(len(run.base.people))]
	nothing := func(stream.Result) {}
	var old *seededMessage
	if n := len(run.messages); n > 0 {
		old = run.messages[run.random.IntN(n)]
	}
	away := !slices.ContainsFunc(run.queues, func(q *seededQueue) bool { return q.user == u })
	switch k := run.random.IntN(24); {
	case away && k < 4:
		run.register(u, 86400)
	case k < 10 || old == nil || old.id == 0 && k < 16:
		run.sendMessage(u)
	case k < 12:
		run.do(u, decideOf(realm.AddReaction{Message: old.id, Name: "wave", NameCode: "1f44b"}), nothing)
	case k < 14:
		run.do(u, decideOf(realm.Flag{Messages: []realm.MessageID{old.id},
			Op: []string{"add", "remove"}[run.random.IntN(2)], Flag: []string{"read", "starred"}[run.random.IntN(2)]}),
			nothing)
	case k < 16:
		old.deleted = true
		run.do(run.base.people[0], decideOf(realm.DeleteMessage{Message: old.id}),
			func(a stream.Result) { old.absent = old.absent || a.Err == nil })
	case k == 16:
		run.do(u, decideOf(realm.Unsubscribe{Names: []string{"open"}}), nothing)
	case k == 17:
		run.do(u, decideOf(realm.Subscribe{
			Channels: []realm.ChannelToJoin{{Name: []string{"open", "closed"}[run.random.IntN(2)]}}}), nothing)
	case k == 18:
		run.register(u, 86400)
	case k == 19:
		// two queues that end at once may end in either order
		if !slices.ContainsFunc(run.queues, func(q *seededQueue) bool { return q.reg.Idle == 60 }) {
			run.register(u, 60)
		}
	case k == 20:
		if q := run.queues[run.random.IntN(len(run.queues))]; len(run.queues) > 3 && q.reg.Idle != 60 {
			q.closed = true
			run.do(q.user, decideOf(realm.CloseQueue{ID: q.reg.ID}), nothing)
		}
	case k == 21:
		run.do(u, decideOf(realm.SendTyping{ToChannel: true, Channel: run.base.open, Topic: "tale"}), nothing)
	default:
		m := realm.SendMessage{ToChannel: true, Channel: run.base.open, Topic: "later", Body: run.newMessage().body()}
		run.do(u, decideOf(realm.ScheduleMessage{Message: m, At: run.wallClock + 1 + run.random.Int64N(400)}), nothing)
	}
}

func (run *seededRun) newMessage() *seededMessage {
	s := &seededMessage{text: fmt.Sprintf("message %d", run.nextText)}
	run.messages = append(run.messages, s)
	return s
}

func (s *seededMessage) body() realm.Body {
	return realm.Body{Text: s.text, HTML: "<p>" + s.text + "</p>"}
}

func (run *seededRun) sendMessage(u realm.UserID) {
	s := run.newMessage()
	c := realm.SendMessage{
		ToChannel: true,
		Channel:   []realm.ChannelID{run.base.open, run.base.closed}[run.random.IntN(2)],
		Topic:     "tale",
		Body:      s.body(),
	}
	if run.random.IntN(4) == 0 {
		c = realm.SendMessage{People: []realm.Principal{{ID: run.base.people[run.random.IntN(4)]}}, Body: s.body()}
	}
	run.do(u, decideOf(c), func(a stream.Result) {
		if a.Err == nil {
			s.id = a.Value.(realm.SendResult).ID
			if _, ok := run.contents.texts[realm.BodyRef{Message: s.id}]; !ok && !s.deleted {
				run.fail("%q was acknowledged as %d and is not on disk", s.text, s.id)
			}
		}
	})
}

// end lets everything finish, fetches every client's events, and compares.
func (run *seededRun) end() string {
	run.runUntilIdle()
	if len(run.ops) > 0 {
		run.fail("%d commands have no answer", len(run.ops))
	}
	for _, q := range run.queues {
		for more := true; more && !q.closed && !run.t.Failed(); {
			was := q.last
			q.poll = &seededReply{}
			run.srv.Poll(wire.PollRequest{
				Realm:     1,
				User:      q.user,
				Queue:     q.reg.ID,
				Last:      q.last,
				DontBlock: true,
				Reply:     q.poll,
			})
			run.runUntilIdle()
			more = q.last > was
		}
	}
	live := run.runtime.mailboxes[run.srv.find(1).pid].actor.(fatalOnPanic).inner.(*realmActor)
	state := snapshot.StateDigest(live.Realm()).String()
	run.Snapshots = int(run.srv.Metrics.Snapshots.Load())
	if again := run.reload(); again != state {
		run.fail("state in memory:\n%s, loaded from disk\n%s", state, again)
	}
	replayed := &seededFollower{realm: run.loadBase()}
	for _, data := range run.history {
		if err := replayed.follow(data); err != nil {
			run.fail("replay: %v", err)
		}
	}
	run.compareFollower("replayed from the beginning", state, replayed)
	run.compareFollower("follower", state, run.follower)
	run.checkTexts()
	sum := sha256.New()
	for _, q := range run.queues {
		for _, id := range slices.Sorted(maps.Keys(q.events)) {
			fmt.Fprintln(sum, q.user, q.reg.ID, id, q.events[id])
		}
	}
	return fmt.Sprintf("seed %d: %s, events %x, %+v", run.seed, state, sum.Sum(nil)[:8], run.seededCounts)
}

func (run *seededRun) runUntilIdle() {
	for range 1_000_000 {
		if !run.runtime.runOne() {
			run.collectAnswers()
			return
		}
	}
	run.fail("the actors never become idle")
}

// reload returns the state as the next start would load it.
func (run *seededRun) reload() string {
	r := realm.New(1)
	if _, err := run.disk.Load(1, r, presence.New()); err != nil {
		run.fail("load: %v", err)
	}
	r.SetSeq(run.contents.rows, realm.RunSequentially)
	err := run.disk.Tail(1, run.contents.rows, func(x realm.Record) error {
		r.ReplayAt(x.Fact, x.Now, x.Level)
		return nil
	})
	if err != nil {
		run.fail("replay: %v", err)
	}
	return snapshot.StateDigest(r).String()
}

// loadBase returns the organization as it was at the beginning of the run.
func (run *seededRun) loadBase() *realm.Realm {
	r := realm.New(1)
	r.SetClock(seededStart)
	for _, row := range run.base.rows {
		if err := r.LoadRow(row.Table, codec.Decoder(row.Key), codec.Decoder(row.Value)); err != nil {
			run.fail("load: %v", err)
		}
	}
	r.SetSeq(run.base.at, realm.RunSequentially)
	return r
}

// compareFollower compares a replica with the state of the server, and its events with those that each queue has got.
func (run *seededRun) compareFollower(name, state string, f *seededFollower) {
	if again := snapshot.StateDigest(f.realm).String(); again != state {
		run.fail("state in memory:\n%s, %s\n%s", state, name, again)
	}
	expected := make([]map[int64]string, len(run.queues))
	for i, q := range run.queues {
		expected[i] = map[int64]string{}
		if q.closed || run.t.Failed() {
			continue
		}
		for _, t := range f.publications {
			if t.Seq > q.reg.At {
				run.addExpectedEvents(t, q, expected[i])
			}
		}
		for id, what := range q.events {
			if expected[i][id] == "" {
				run.fail("user %d got %s as event %d of queue %d, which no fact has (%s)", q.user, what, id, i, name)
			}
		}
		for id, what := range expected[i] {
			if q.events[id] == "" && what != "erased" {
				run.fail("user %d did not get %s as event %d of queue %d (%s)", q.user, what, id, i, name)
			}
		}
	}
}

// addExpectedEvents adds the events that a fact has for a queue, by id.
func (run *seededRun) addExpectedEvents(t realm.Publication, q *seededQueue, expected map[int64]string) {
	k := int64(0)
	for i := range t.Notices {
		n := &t.Notices[i]
		if n.Event.EventType() == "" || !slices.Contains(n.To, q.user) {
			continue
		}
		for _, e := range wire.NewNoticeRenderer(n, wire.RenderContext{Realm: 1, Site: testSite(""),
			Texts: run.srv}, nil).EventsFor(q.user, q.reg, wire.QueueOptionsOf(q.reg)) {
			what := n.Event.EventType()
			if json, _ := e.Bytes(); json == nil {
				what = "erased"
			}
			expected[int64(t.Seq-q.reg.At)<<8|k] = what
			k++
		}
	}
}

// checkTexts checks that the disk has each message as often as it should.
func (run *seededRun) checkTexts() {
	times := map[string]int{}
	for ref, data := range run.contents.texts {
		b, err := codec.DecodeText(data)
		if err != nil {
			run.fail("text of message %d: %v", ref.Message, err)
		}
		times[b.Text]++
	}
	for _, s := range run.messages {
		switch n := times[s.text]; {
		case n > 1:
			run.fail("%q is stored %d times", s.text, n)
		case n == 0 && s.absent:
			run.fail("%q was deleted and its text is not in the archive", s.text)
		case n == 0 && s.id != 0:
			run.fail("%q was acknowledged as %d and is lost", s.text, s.id)
		}
	}
}
