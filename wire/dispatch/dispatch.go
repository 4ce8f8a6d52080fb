// Package courier does the errands of organizations: what is to leave the server, and waits in rows until it has.
//
// An errand is done at least once. Each lane (one bot's calls, one user's notifications, letters to one address) goes one
// after the other, so what is later never overtakes; lanes do not wait for each other but for a slot of their kind. What
// fails for now is tried again after a pause that its carrier chooses, and what is done, or given up, is settled in the
// organization. The next process begins with whatever was not.
package dispatch

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// finishRetryPause is before another attempt to settle an errand where the organization was too busy.
const finishRetryPause = time.Second

// Attempt is one errand on its way.
type Attempt struct {
	Realm  realm.ID
	Site   wire.Site
	Job    realm.OutboxJob
	Number int // 1 is the first of this process
	// Left is what a carrier has left over at its last attempt; nil at the first.
	State any
}

// Outcome of an attempt.
type Outcome struct {
	RetryAfter time.Duration // after which to try again; 0: done with
	State      any           // what the next attempt needs to know
	NotificationShown      bool          // a notification is on its user's devices now
	Finished   bool          // the carrier has settled the errand itself
}

// Handler does errands of one kind. Carry blocks while it tries once; when ctx ends what it does may be done again.
type Handler interface {
	Handle(ctx context.Context, j *Attempt) Outcome
}

// Options of a dispatch.
type Options struct {
	Server       wire.Server
	Log         *slog.Logger
	Handlers    map[realm.OutboxJobKind]Handler // realmJobs without one are dropped
	Concurrency map[realm.OutboxJobKind]int     // attempts at a time
}

// Dispatcher does errands. It is the house's.
type Dispatcher struct {
	o     Options
	ctx   context.Context
	stop  context.CancelFunc
	done  sync.WaitGroup
	slots map[realm.OutboxJobKind]chan struct{}

	mu              sync.Mutex // guards what follows
	queues          map[queueKey]*orderedQueue
	queued          map[jobKey]bool // realmJobs in some lane
	started         bool
	waitingForBegin []realmJobs // that came before
	closed          bool
}

// realmJobs of one organization.
type realmJobs struct {
	realm realm.ID
	site  wire.Site
	list  []realm.OutboxJob
}

type jobKey struct {
	realm realm.ID
	id    int64
}

type queueKey struct {
	realm     realm.ID
	kind      realm.OutboxJobKind
	recipient string
}

// orderedQueue is what waits in one lane, by number; the errands themselves are in the organization.
type orderedQueue struct {
	site    wire.Site
	ids     []int64
	attempt int
	state   any
	timer   *time.Timer // of a lane that waits to try again
}

// New returns a courier that does nothing yet; Close stops it.
func New(o Options) *Dispatcher {
	c := &Dispatcher{o: o, slots: map[realm.OutboxJobKind]chan struct{}{}, queues: map[queueKey]*orderedQueue{}, queued: map[jobKey]bool{}}
	if c.o.Log == nil {
		c.o.Log = slog.New(slog.DiscardHandler)
	}
	for kind := range o.Handlers {
		c.slots[kind] = make(chan struct{}, max(1, o.Concurrency[kind]))
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// Begin takes up, after a pause, what the last process left behind in organizations, and then what has come meanwhile:
// until then new errands wait, as those that are left go before them.
func (c *Dispatcher) Begin(pause time.Duration, sites map[realm.ID]wire.Site) {
	time.AfterFunc(pause, func() {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return
		}
		c.done.Add(1)
		c.mu.Unlock()
		defer c.done.Done()
		if err := c.begin(sites); err != nil {
			c.o.Log.Warn("errands left by the last process are not taken up yet", "error", err)
			c.Begin(finishRetryPause, sites)
		}
	})
}

func (c *Dispatcher) begin(sites map[realm.ID]wire.Site) error {
	var left []realmJobs
	for id, site := range sites {
		list, err := c.o.Server.View(id, realm.Caller{System: true}, func(v realm.View) (any, error) { return v.OutboxJobs(), nil })
		if err != nil {
			return err
		}
		if n := len(list.([]realm.OutboxJob)); n > 0 {
			c.o.Log.Info("errands left by the last process", "realm", id, "count", n)
		}
		left = append(left, realmJobs{id, site, list.([]realm.OutboxJob)})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range append(left, c.waitingForBegin...) {
		c.enqueue(e)
	}
	c.waitingForBegin, c.started = nil, true
	return nil
}

// AddJobs takes new errands, which are on disk. It does not block.
func (c *Dispatcher) AddJobs(id realm.ID, site wire.Site, e *realm.OutboxJobsAdded) {
	if e.Dropped > 0 {
		c.o.Log.Error("errands dropped: too many wait", "realm", id, "count", e.Dropped)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started {
		c.waitingForBegin = append(c.waitingForBegin, realmJobs{id, site, e.List})
		return
	}
	c.enqueue(realmJobs{id, site, e.List})
}

// enqueue puts errands into their lanes, but for those that are there. The caller holds mu.
func (c *Dispatcher) enqueue(some realmJobs) {
	for i := range some.list {
		e := &some.list[i]
		if c.closed || c.queued[jobKey{some.realm, e.ID}] {
			continue
		}
		c.queued[jobKey{some.realm, e.ID}] = true
		k := queueKey{some.realm, e.Kind, e.User.String()}
		switch e.Kind {
		case realm.OutboxEmail:
			k.recipient = e.Letter.To
		case realm.OutboxPushRemoval: // behind the notification it takes back
			k.kind = realm.OutboxPush
		}
		q := c.queues[k]
		if q == nil {
			q = &orderedQueue{site: some.site}
			c.queues[k] = q
			c.start(k, q)
		}
		q.ids = append(q.ids, e.ID)
	}
}

// Waiting is how many errands of one organization are not done yet, at most of all, by kind.
func (c *Dispatcher) Waiting() map[realm.OutboxJobKind]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	type part struct {
		realm realm.ID
		kind  realm.OutboxJobKind
	}
	parts, out := map[part]int64{}, map[realm.OutboxJobKind]int64{}
	for k, q := range c.queues {
		p := part{k.realm, k.kind}
		parts[p] += int64(len(q.ids))
		out[k.kind] = max(out[k.kind], parts[p])
	}
	return out
}

// start has a lane go on. The caller holds mu.
func (c *Dispatcher) start(k queueKey, q *orderedQueue) {
	q.timer = nil
	c.done.Add(1)
	go c.run(k, q)
}

// run does what waits in a lane until nothing is left, or something must be tried again later.
func (c *Dispatcher) run(k queueKey, q *orderedQueue) {
	defer c.done.Done()
	for {
		c.mu.Lock()
		if len(q.ids) == 0 || c.closed {
			delete(c.queues, k)
			c.mu.Unlock()
			return
		}
		id := q.ids[0]
		c.mu.Unlock()
		out := c.attempt(k, q, id)
		if c.ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		if out.RetryAfter > 0 {
			if q.state = out.State; !c.closed {
				q.timer = time.AfterFunc(out.RetryAfter, func() {
					c.mu.Lock()
					defer c.mu.Unlock()
					if !c.closed {
						c.start(k, q)
					}
				})
			}
			c.mu.Unlock()
			return
		}
		q.ids, q.attempt, q.state = q.ids[1:], 0, nil
		delete(c.queued, jobKey{k.realm, id})
		c.mu.Unlock()
	}
}

// attempt tries an errand once and settles it if it is done with. It has a slot from the first look at the organization on,
// so that thousands of errands that come together do not crowd out everybody's requests.
func (c *Dispatcher) attempt(k queueKey, q *orderedQueue, id int64) Outcome {
	if slots := c.slots[k.kind]; slots != nil {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-c.ctx.Done():
			return Outcome{}
		}
	}
	v, err := c.o.Server.View(k.realm, realm.Caller{System: true}, func(v realm.View) (any, error) {
		if e := v.OutboxJob(id); e != nil {
			return *e, nil
		}
		return nil, nil
	})
	if err != nil {
		return Outcome{RetryAfter: finishRetryPause, State: q.state}
	}
	e, ok := v.(realm.OutboxJob)
	if !ok {
		return Outcome{} // settled already
	}
	var out Outcome
	if carrier := c.o.Handlers[e.Kind]; carrier != nil {
		q.attempt++
		out = carrier.Handle(c.ctx, &Attempt{Realm: k.realm, Site: q.site, Job: e, Number: q.attempt, State: q.state})
	}
	if out.RetryAfter == 0 && !out.Finished && c.ctx.Err() == nil {
		c.finish(k.realm, id, out.NotificationShown)
	}
	return out
}

// finish tells the organization that an errand is done with, until it has heard.
func (c *Dispatcher) finish(id realm.ID, errand int64, shown bool) {
	cmd := realm.FinishOutboxJobs{IDs: []int64{errand}}
	if shown {
		cmd.Shown = cmd.IDs
	}
	for {
		_, err := c.o.Server.Turn(id, realm.Caller{System: true, Client: "Internal"}, func(t *realm.Turn) (any, error) { return cmd.Decide(t) })
		if err == nil {
			return
		}
		c.o.Log.Warn("errand not settled yet", "realm", id, "errand", strconv.FormatInt(errand, 10), "error", err)
		select {
		case <-time.After(finishRetryPause):
		case <-c.ctx.Done():
			return
		}
	}
}

// Close begins nothing more and waits for what is under way until ctx ends; then that is cut off. What is not done stays
// in the organizations.
func (c *Dispatcher) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	for _, q := range c.queues {
		if q.timer != nil {
			q.timer.Stop()
		}
	}
	c.mu.Unlock()
	idle := make(chan struct{})
	go func() { c.done.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	c.stop()
	<-idle
	return nil
}
