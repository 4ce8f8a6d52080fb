package actors

import "github.com/asynkron/protoactor-go/actor"

// warm is a dispatcher whose goroutines stay: a new goroutine for each time a mailbox is not empty begins with a small
// stack, and growing it was a tenth of what a delivery costs.
type warm struct{ idle chan func() }

// warmWorkers is how many goroutines stay, each with a stack of some 16 KB: session actors and a few realms at once.
const warmWorkers = 2 * Shards

// batchOfMessages is after how many messages of one mailbox others get their turn; the library's default.
const batchOfMessages = 300

func newWarm(stop <-chan struct{}) actor.Dispatcher {
	w := warm{make(chan func())}
	for range warmWorkers {
		go func() {
			for {
				select {
				case fn := <-w.idle:
					fn()
				case <-stop:
					return
				}
			}
		}()
	}
	return w
}

// Schedule never waits: when no goroutine is idle there is a new one.
func (w warm) Schedule(fn func()) {
	select {
	case w.idle <- fn:
	default:
		go fn()
	}
}

func (warm) Throughput() int { return batchOfMessages }
