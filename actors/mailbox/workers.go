package mailbox

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// workerPool is a dispatcher whose goroutines are reused. With a new goroutine each time that a mailbox is not empty,
// growing its stack was a tenth of the cost of a delivery.
type workerPool struct {
	tasks chan func() // taken by the goroutines that stay

	mu      sync.Mutex
	extra   int      // goroutines that end when no mailbox waits
	waiting []func() // mailboxes, the oldest first; each is in the list at most once
}

// messagesPerRun is after how many messages of one mailbox other mailboxes get their turn; protoactor's default.
const messagesPerRun = 300

// maxExtraWorkers is how many further goroutines run while all that stay are busy. When the leadership of a cluster
// changes, thousands of organizations get a message at once. If each ran in a goroutine of its own, every other
// goroutine, such as those that send the signs of life of a link, would wait a second or longer for its turn.
const maxExtraWorkers = 128

// newWorkerPool makes a dispatcher of n goroutines that stay.
func newWorkerPool(n int, stop <-chan struct{}) actor.Dispatcher {
	p := &workerPool{tasks: make(chan func())}
	for range n {
		go func() {
			for {
				select {
				case fn := <-p.tasks:
					fn()
				case <-stop:
					return
				}
			}
		}()
	}
	return p
}

// Schedule never waits: if no goroutine is idle, it starts a new one, or lets the mailbox wait for one.
func (p *workerPool) Schedule(fn func()) {
	select {
	case p.tasks <- fn:
		return
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.extra == maxExtraWorkers {
		p.waiting = append(p.waiting, fn)
		return
	}
	p.extra++
	go p.runExtra(fn)
}

// runExtra runs a mailbox, and those that wait.
func (p *workerPool) runExtra(fn func()) {
	for ; fn != nil; fn = p.next() {
		fn()
	}
}

// next removes the mailbox that has waited longest. It returns nil if none waits; then the caller ends.
func (p *workerPool) next() (fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.waiting = nil
		p.extra--
		return nil
	}
	fn, p.waiting[0] = p.waiting[0], nil
	p.waiting = p.waiting[1:]
	return fn
}

func (*workerPool) Throughput() int { return messagesPerRun }
