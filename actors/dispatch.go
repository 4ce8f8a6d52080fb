package actors

import (
	"runtime"

	"github.com/asynkron/protoactor-go/actor"
)

// warm is a dispatcher whose goroutines stay: a new goroutine for each time a mailbox is not empty begins with a small
// stack, and growing it was a tenth of what a delivery costs.
type warm struct{ idle chan func() }

// warmWorkers is how many goroutines stay, each with a stack of some 16 KB: journal, and a few realms at once.
const warmWorkers = Shards

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

// crew is a dispatcher of few goroutines, which take mailboxes in turns. It is the sessions': sixteen that wake for one
// message take all processors at once from whoever reads the next requests, and from clients on the same machine. With one
// goroutine to two processors 100 of 10,000 pollers had seen a message a tenth sooner, for a tenth less CPU.
type crew struct{ next chan func() }

// processorsPerHand is how many processors share one of the crew's goroutines.
const processorsPerHand = 2

func newCrew(stop <-chan struct{}) actor.Dispatcher {
	w := crew{make(chan func(), Shards)}
	for range max(1, runtime.GOMAXPROCS(0)/processorsPerHand) {
		go func() {
			for {
				select {
				case fn := <-w.next:
					fn()
				case <-stop:
					return
				}
			}
		}()
	}
	return w
}

// Schedule never waits: a mailbox is scheduled once at a time, so there is room for all sessions.
func (w crew) Schedule(fn func()) {
	select {
	case w.next <- fn:
	default:
		go fn()
	}
}

func (crew) Throughput() int { return batchOfMessages }
