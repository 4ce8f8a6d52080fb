package mailbox

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestWorkersAreBounded requires that thousands of mailboxes that get work at once run in a bounded number of
// goroutines, and that none is forgotten.
func TestWorkersAreBounded(t *testing.T) {
	const stay, mailboxes = 4, 5_000
	stop := make(chan struct{})
	defer close(stop)
	p := newWorkerPool(stay, stop)
	before := runtime.NumGoroutine()
	hold := make(chan struct{})
	var ran atomic.Int64
	var all sync.WaitGroup
	all.Add(mailboxes)
	for range mailboxes {
		p.Schedule(func() {
			defer all.Done()
			<-hold
			ran.Add(1)
		})
	}
	if more := runtime.NumGoroutine() - before; more > maxExtraWorkers {
		t.Errorf("%d more goroutines run, want at most %d", more, maxExtraWorkers)
	}
	close(hold)
	all.Wait()
	if ran.Load() != mailboxes {
		t.Errorf("%d of %d mailboxes ran", ran.Load(), mailboxes)
	}
	var again sync.WaitGroup // the pool still works
	again.Add(1)
	p.Schedule(again.Done)
	again.Wait()
}

// TestOldestMailboxRunsFirst requires that mailboxes that wait for a goroutine get one in the order of their messages.
func TestOldestMailboxRunsFirst(t *testing.T) {
	p := &workerPool{tasks: make(chan func()), extra: maxExtraWorkers}
	var order []int
	for i := range 5 {
		p.Schedule(func() { order = append(order, i) })
	}
	for fn := p.next(); fn != nil; fn = p.next() {
		fn()
	}
	if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
		t.Errorf("the mailboxes ran in the order %v", order)
	}
}
