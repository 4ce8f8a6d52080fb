package httpd

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"parley/actors/admission"
	"parley/wire"
	"parley/wire/httpd/park"
)

// Limits of the large answers that are built at the same time.
const (
	// largeBuildBytes is the size of the smallest answers that wait for a slot. Pages of usual messages are smaller.
	largeBuildBytes = 256 << 10
	// MaxWaitingBuilds limits the requests that wait until their answers can be built. Each of them holds a connection,
	// and up to 100 kB of results.
	MaxWaitingBuilds = 512
	// MaxWaitingBuildsOfCaller limits those of one caller. A client sends fewer requests at the same time.
	MaxWaitingBuildsOfCaller = 32
	// MaxWaitingBuildsOfOrganization limits those of one organization, so that it leaves half to the others.
	MaxWaitingBuildsOfOrganization = MaxWaitingBuilds / 2
	// maxBuildWait is the time after which a waiting request is refused.
	maxBuildWait = 10 * time.Second
)

// answerBuilders limits how many large answers are built at a time: each needs a slot. Building one takes tens of
// milliseconds of processor time; with hundreds at once, all other requests would wait for the processors. The callers
// get slots round-robin. It is safe for concurrent use.
type answerBuilders struct {
	began   time.Time
	refused atomic.Int64

	mu    sync.Mutex
	free  int
	queue *admission.WaitQueue[string, chan bool] // each channel gets one value: whether the answer has a slot
}

// newAnswerBuilders uses half of the processors: the other half is for everything else.
func newAnswerBuilders() *answerBuilders {
	return &answerBuilders{began: time.Now(), free: max(1, runtime.GOMAXPROCS(0)/2),
		queue: admission.NewSharedWaitQueue[string, chan bool](MaxWaitingBuilds, MaxWaitingBuildsOfCaller,
			MaxWaitingBuildsOfOrganization)}
}

// enter waits for a slot for an answer to the caller. If it reports true, leave must be called.
func (b *answerBuilders) enter(caller park.Caller) bool {
	b.mu.Lock()
	if b.free > 0 {
		b.free--
		b.mu.Unlock()
		return true
	}
	slot := make(chan bool, 1)
	account := admission.Account[string]{User: caller.Account, Organization: caller.Organization}
	if refused, full := b.queue.Add(account, slot, time.Since(b.began)); full {
		b.refused.Add(1)
		refused <- false
	}
	b.mu.Unlock()
	select {
	case ok := <-slot:
		return ok
	case <-time.After(maxBuildWait):
		b.expire()
		return <-slot
	}
}

// leave gives the slot to the next answer.
func (b *answerBuilders) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slot, _, ok := b.queue.Next(time.Since(b.began)); ok {
		slot <- true
		return
	}
	b.free++
}

// expire refuses the requests that have waited too long.
func (b *answerBuilders) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, slot := range b.queue.Expire(time.Since(b.began) - maxBuildWait) {
		b.refused.Add(1)
		slot <- false
	}
}

// waiting returns how many requests wait.
func (b *answerBuilders) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.Len()
}

// answerBuild counts the memory of one answer while its endpoint runs.
type answerBuild struct {
	server *Server
	ctx    *fasthttp.RequestCtx
	call   *wire.Call
	bytes  int
	slot   bool // leave must be called
}

// reserveMemory counts n more bytes. An answer that becomes large waits for a slot first.
func (a *answerBuild) reserveMemory(n int) error {
	if a.bytes += n; a.bytes > largeBuildBytes {
		if err := a.waitForSlot(); err != nil {
			return err
		}
	}
	return a.server.reserveMemory(a.ctx, a.call, n)
}

// waitForSlot waits unless the answer has a slot.
func (a *answerBuild) waitForSlot() error {
	if !a.slot && !a.server.builders.enter(a.server.callerOf(a.ctx, a.call)) {
		return errAnswersFull()
	}
	a.slot = true
	return nil
}

// end frees the slot.
func (a *answerBuild) end() {
	if a.slot {
		a.server.builders.leave()
	}
}

// AnswerBuilds returns how many requests wait until their large answers can be built, and how many were refused.
func (s *Server) AnswerBuilds() (waiting, refused int64) {
	return int64(s.builders.waiting()), s.builders.refused.Load()
}
