package mailbox

import (
	"runtime"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// sessionPool runs the session actors of all organizations on a few goroutines. The organizations take turns, so one
// with many polls and events hardly delays the others: its session actors run for sessionTurn, or for one message if
// that takes longer.
type sessionPool struct {
	mu     sync.Mutex
	wake   sync.Cond
	ready  []*realmTurns // organizations with something to do; the first one is next
	closed bool
}

// realmTurns is the dispatcher of one organization's session actors.
type realmTurns struct {
	pool  *sessionPool
	tasks []func()      // of actors that wait for a goroutine
	ready bool          // in the pool's list
	idle  time.Time     // since when it has had nothing to do
	turn  time.Duration // length of the next turn
}

// sessionTurn is how long the session actors of an organization run before others get their turn. A switch between
// actors costs less than a microsecond, besides cold caches.
const sessionTurn = 500 * time.Microsecond

// An organization that had nothing to do for some time has a longer turn: that time divided by idleTimePerTurn, up to
// maxSessionTurn. So the events of an organization with few events reach fifty polling clients in one turn, and a busy
// organization is hardly delayed.
const (
	idleTimePerTurn = 8
	maxSessionTurn  = 4 * time.Millisecond
)

// processorsPerSessionWorker is how many processors share one goroutine of the session actors. Sixteen session actors
// that run at once would take all processors from the loop that reads the next requests, and from clients on the same
// machine. With one goroutine for two processors, 100 of 10,000 polling clients got a message a tenth sooner, for a
// tenth less processor time.
const processorsPerSessionWorker = 2

func newSessionPool() *sessionPool {
	p := &sessionPool{}
	p.wake.L = &p.mu
	for range max(1, runtime.GOMAXPROCS(0)/processorsPerSessionWorker) {
		go p.work()
	}
	return p
}

// work runs session actors until the pool is closed.
func (p *sessionPool) work() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for len(p.ready) == 0 {
			if p.closed {
				return
			}
			p.wake.Wait()
		}
		r := p.ready[0]
		p.ready[0] = nil
		p.ready = p.ready[1:]
		r.ready = false
		r.takeTurn()
		p.mu.Unlock()
		// Under load this goroutine never waits. The runtime would interrupt it only after ten milliseconds, in which
		// the journal and the commands of all organizations wait for its processor.
		runtime.Gosched()
		p.mu.Lock()
	}
}

// takeTurn runs session actors of one organization for sessionTurn. An organization with little work for each actor can
// run all of them in one turn. The pool's mu is held, except while an actor runs.
func (r *realmTurns) takeTurn() {
	p, began := r.pool, time.Now()
	length := r.turn
	r.turn = sessionTurn
	for first := true; len(r.tasks) > 0 && (first || time.Since(began) < length); first = false {
		task := r.tasks[0]
		r.tasks[0] = nil
		r.tasks = r.tasks[1:]
		r.enlist() // another goroutine may run the next actor meanwhile
		p.mu.Unlock()
		task()
		p.mu.Lock()
	}
	if len(r.tasks) == 0 {
		r.idle = time.Now()
	}
	r.enlist()
}

// enlist adds the organization to the pool's ready list, if it has tasks and is not in the list. The pool's mu is held.
func (r *realmTurns) enlist() {
	if len(r.tasks) > 0 && !r.ready {
		r.ready = true
		r.pool.ready = append(r.pool.ready, r)
		r.pool.wake.Signal()
	}
}

// close ends the goroutines after they have run the remaining tasks.
func (p *sessionPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.wake.Broadcast()
}

// Schedule lets a goroutine of the pool run a session actor when it is the organization's turn.
func (r *realmTurns) Schedule(task func()) {
	p := r.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(r.tasks) == 0 {
		r.turn = min(max(r.turn, sessionTurn, time.Since(r.idle)/idleTimePerTurn), maxSessionTurn)
	}
	r.tasks = append(r.tasks, task)
	r.enlist()
}

// Throughput is not used: sessionMailbox ends a turn by time.
func (*realmTurns) Throughput() int { return 1 }

// sessionMailbox is the mailbox of a session actor. protoactor's own one runs its actor until it is empty.
type sessionMailbox struct {
	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher

	mu               sync.Mutex
	system, messages messageList // those of the actor library, which come first, and ours
	running          bool        // the actor runs or waits for its turn
}

// messageList is messages in the order of their arrival.
type messageList struct {
	list []any
	head int // of the oldest one
}

// maxEmptyCapacity is the largest capacity, in messages, that an empty list keeps.
const maxEmptyCapacity = 256

func (l *messageList) push(message any) {
	if l.head > maxEmptyCapacity && 2*l.head > len(l.list) {
		n := copy(l.list, l.list[l.head:])
		clear(l.list[n:])
		l.list, l.head = l.list[:n], 0
	}
	l.list = append(l.list, message)
}

func (l *messageList) pop() (message any, ok bool) {
	if l.head == len(l.list) {
		if l.list, l.head = l.list[:0], 0; cap(l.list) > maxEmptyCapacity {
			l.list = nil
		}
		return nil, false
	}
	message = l.list[l.head]
	l.list[l.head] = nil
	l.head++
	return message, true
}

// RegisterHandlers is called once, before the first message.
func (m *sessionMailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker, m.dispatcher = invoker, dispatcher
}

// Start does nothing: the first message starts the actor.
func (*sessionMailbox) Start() {}

// UserMessageCount returns the number of messages that wait.
func (m *sessionMailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.messages.list) - m.messages.head
}

// PostUserMessage appends a message.
func (m *sessionMailbox) PostUserMessage(message any) { m.post(&m.messages, message) }

// PostSystemMessage appends a message of the actor library.
func (m *sessionMailbox) PostSystemMessage(message any) { m.post(&m.system, message) }

func (m *sessionMailbox) post(to *messageList, message any) {
	m.mu.Lock()
	to.push(message)
	start := !m.running
	m.running = true
	m.mu.Unlock()
	if start {
		m.dispatcher.Schedule(m.run)
	}
}

// next removes and returns the next message. It reports false, and the actor does not run any more, if there is none.
func (m *sessionMailbox) next() (message any, system, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if message, ok = m.system.pop(); ok {
		return message, true, true
	}
	message, ok = m.messages.pop()
	m.running = ok
	return message, false, ok
}

// run handles messages for the time of a turn. Its actor reports panics itself; see fatalOnPanic.
func (m *sessionMailbox) run() {
	for began := time.Now(); ; {
		message, system, ok := m.next()
		switch {
		case !ok:
			return
		case system:
			m.invoker.InvokeSystemMessage(message)
		default:
			m.invoker.InvokeUserMessage(message)
		}
		if time.Since(began) >= sessionTurn {
			m.dispatcher.Schedule(m.run)
			return
		}
	}
}
