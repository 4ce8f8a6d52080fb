package mailbox

import (
	"github.com/asynkron/protoactor-go/actor"
)

// workerPool is a dispatcher whose goroutines are reused. With a new goroutine each time that a mailbox is not empty,
// growing its stack was a tenth of the cost of a delivery.
type workerPool struct{ tasks chan func() }

// messagesPerRun is after how many messages of one mailbox other mailboxes get their turn; protoactor's default.
const messagesPerRun = 300

// newWorkerPool makes a dispatcher of n goroutines. maxWaiting is how many mailboxes may wait for one of them.
func newWorkerPool(n, maxWaiting int, stop <-chan struct{}) actor.Dispatcher {
	p := workerPool{make(chan func(), maxWaiting)}
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

// Schedule never waits: if no goroutine is idle and maxWaiting mailboxes wait, it starts a new one.
func (p workerPool) Schedule(fn func()) {
	select {
	case p.tasks <- fn:
	default:
		go fn()
	}
}

func (workerPool) Throughput() int { return messagesPerRun }
