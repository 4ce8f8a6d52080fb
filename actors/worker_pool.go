package actors

import (
	"runtime"

	"github.com/asynkron/protoactor-go/actor"
)

// workerPool is a dispatcher whose goroutines stay: a new goroutine for each time a mailbox is not empty begins with a small
// stack, and growing it was a tenth of what a delivery costs.
type workerPool struct{ tasks chan func() }

// messagesPerRun is after how many messages of one mailbox others get their turn; the library's default.
const messagesPerRun = 300

// newWorkerPool makes a dispatcher of n goroutines, on which room mailboxes may wait.
func newWorkerPool(n, room int, stop <-chan struct{}) actor.Dispatcher {
	p := workerPool{make(chan func(), room)}
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

// generalWorkers is how many goroutines, each with a stack of some 16 KB, serve the journal and a few realms at once: there
// none waits for another.
const generalWorkers = Shards

func newGeneralDispatcher(stop <-chan struct{}) actor.Dispatcher {
	return newWorkerPool(generalWorkers, 0, stop)
}

// processorsPerSessionWorker is how many processors share one of the goroutines that serve the sessions, which take turns on it:
// sixteen that wake for one message take all processors at once from whoever reads the next requests, and from clients on
// the same machine. With one goroutine to two processors 100 of 10,000 pollers had seen a message a tenth sooner, for a
// tenth less CPU.
const processorsPerSessionWorker = 2

func newSessionDispatcher(stop <-chan struct{}) actor.Dispatcher {
	return newWorkerPool(max(1, runtime.GOMAXPROCS(0)/processorsPerSessionWorker), Shards, stop) // a mailbox is scheduled once at a time
}

// Schedule never waits: when no goroutine is idle, nor room to wait for one, there is a new one.
func (p workerPool) Schedule(fn func()) {
	select {
	case p.tasks <- fn:
	default:
		go fn()
	}
}

func (workerPool) Throughput() int { return messagesPerRun }
