package httpd

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"parley/actors/admission"
	"parley/wire"
)

// Limits of the large answers that are built at the same time.
const (
	// ownTurnBytes is the size of the smallest answers that wait for a turn. Pages of usual messages are smaller.
	ownTurnBytes = 256 << 10
	// MaxWaitingBuilds limits the requests that wait until their answers can be built. Each of them holds a connection,
	// and up to 100 kB of results.
	MaxWaitingBuilds = 512
	// MaxWaitingBuildsOfCaller limits those of one caller. A client sends fewer requests at the same time.
	MaxWaitingBuildsOfCaller = 32
	// maxBuildWait is the time after which a waiting request is refused.
	maxBuildWait = 10 * time.Second
)

// answerBuilders lets a few large answers be built at a time. Building one takes tens of milliseconds of processor
// time; with hundreds at once, all other requests would wait for the processors. Callers take turns. It is safe for
// concurrent use.
type answerBuilders struct {
	began   time.Time
	refused atomic.Int64

	mu    sync.Mutex
	free  int
	queue *admission.WaitQueue[string, chan bool] // each channel gets one value: whether the answer can be built
}

// newAnswerBuilders uses half of the processors: the other half is for everything else.
func newAnswerBuilders() *answerBuilders {
	return &answerBuilders{began: time.Now(), free: max(1, runtime.GOMAXPROCS(0)/2),
		queue: admission.NewWaitQueue[string, chan bool](MaxWaitingBuilds, MaxWaitingBuildsOfCaller)}
}

// enter waits until the caller's answer can be built. If it reports true, leave must be called.
func (b *answerBuilders) enter(caller string) bool {
	b.mu.Lock()
	if b.free > 0 {
		b.free--
		b.mu.Unlock()
		return true
	}
	turn := make(chan bool, 1)
	if refused, full := b.queue.Add(admission.Account[string]{User: caller}, turn, time.Since(b.began)); full {
		b.refused.Add(1)
		refused <- false
	}
	b.mu.Unlock()
	select {
	case ok := <-turn:
		return ok
	case <-time.After(maxBuildWait):
		b.expire()
		return <-turn
	}
}

// leave lets the next answer be built.
func (b *answerBuilders) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if turn, _, ok := b.queue.Next(time.Since(b.began)); ok {
		turn <- true
		return
	}
	b.free++
}

// expire refuses the requests that have waited too long.
func (b *answerBuilders) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, turn := range b.queue.Expire(time.Since(b.began) - maxBuildWait) {
		b.refused.Add(1)
		turn <- false
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
	turn   bool // leave must be called
}

// holdMemory counts n more bytes. An answer that becomes large waits for its turn first.
func (a *answerBuild) holdMemory(n int) error {
	if a.bytes += n; a.bytes > ownTurnBytes {
		if err := a.waitForTurn(); err != nil {
			return err
		}
	}
	return a.server.holdMemory(a.ctx, a.call, n)
}

// waitForTurn waits unless the answer has its turn.
func (a *answerBuild) waitForTurn() error {
	if !a.turn && !a.server.builders.enter(a.server.callerKey(a.ctx, a.call)) {
		return errAnswersFull()
	}
	a.turn = true
	return nil
}

// end gives the turn back.
func (a *answerBuild) end() {
	if a.turn {
		a.server.builders.leave()
	}
}

// AnswerBuilds returns how many requests wait until their large answers can be built, and how many were refused.
func (s *Server) AnswerBuilds() (waiting, refused int64) {
	return int64(s.builders.waiting()), s.builders.refused.Load()
}
