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

// finishRetryPause is the pause before the next attempt to read or finish a job in an organization that was too busy.
const finishRetryPause = time.Second

// Attempt is one attempt to run a job.
type Attempt struct {
	Realm  realm.ID
	Site   wire.Site
	Job    realm.OutboxJob
	Number int // 1 is the first attempt of this process
	State  any // the State of the last Outcome; nil at the first attempt
}

// Outcome is the result of an attempt.
type Outcome struct {
	RetryAfter        time.Duration // pause before the next attempt; 0 if the job is finished or given up
	State             any           // is given to the next attempt
	NotificationShown bool          // a device of the user may show the job's notification now
	Finished          bool          // the handler finished the job in a turn of its own
}

// Handler runs jobs of one kind.
type Handler interface {
	// Handle tries a job once and blocks meanwhile. When ctx ends, Handle returns soon; the job runs again in the next
	// process.
	Handle(ctx context.Context, a *Attempt) Outcome
}

// Options of a Dispatcher.
type Options struct {
	Server      wire.Server
	Site        func(realm.ID) wire.Site
	Log         *slog.Logger
	Handlers    map[realm.OutboxJobKind]Handler // jobs of other kinds are finished without being run
	Concurrency map[realm.OutboxJobKind]int     // attempts of a kind at the same time, in all organizations
}

// Dispatcher runs the outbox jobs of all organizations of a server. Its methods may be called from any goroutine.
type Dispatcher struct {
	o       Options
	ctx     context.Context // ends when Close no longer waits
	cancel  context.CancelFunc
	running sync.WaitGroup
	slots   map[realm.OutboxJobKind]chan struct{}

	// under mu
	mu      sync.Mutex
	queues  map[queueKey]*orderedQueue
	queued  map[jobKey]bool // jobs that are in a queue
	started bool            // the pause of Start is over
	owned   map[realm.ID]*ownedRealm
	closed  bool
}

// ownedRealm is an organization whose jobs this node runs.
type ownedRealm struct {
	loaded  bool        // the jobs that an earlier owner or process did not finish are in their queues
	waiting []realmJobs // jobs that were added before
}

// realmJobs is jobs of one organization.
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

// orderedQueue holds the numbers of the jobs that run one after the other. The jobs themselves stay in the realm.
type orderedQueue struct {
	site     wire.Site
	ids      []int64
	attempts int         // so far, at the first job
	state    any         // for its next attempt
	retry    *time.Timer // set while the first job waits for its next attempt
}

// New returns a Dispatcher that runs nothing before Start. The caller closes it.
func New(o Options) *Dispatcher {
	d := &Dispatcher{
		o:      o,
		slots:  map[realm.OutboxJobKind]chan struct{}{},
		queues: map[queueKey]*orderedQueue{},
		queued: map[jobKey]bool{},
		owned:  map[realm.ID]*ownedRealm{},
	}
	if d.o.Log == nil {
		d.o.Log = slog.New(slog.DiscardHandler)
	}
	for kind := range o.Handlers {
		d.slots[kind] = make(chan struct{}, max(1, o.Concurrency[kind]))
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// Start starts the work after a pause, in which clients of the last process connect again. It does not block.
func (d *Dispatcher) Start(pause time.Duration) {
	time.AfterFunc(pause, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.started = true
		for id, o := range d.owned {
			d.startLoading(id, o)
		}
	})
}

// Begin takes over the jobs of an organization: first those that its last owner did not finish, then those that were
// added meanwhile. It does not block.
func (d *Dispatcher) Begin(id realm.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owned[id] != nil {
		return
	}
	d.owned[id] = &ownedRealm{}
	if d.started {
		d.startLoading(id, d.owned[id])
	}
}

// End gives up the jobs of an organization. Attempts in progress end, and nothing new begins.
func (d *Dispatcher) End(id realm.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.owned, id)
	for k, q := range d.queues {
		if k.realm != id {
			continue
		}
		for _, job := range q.ids {
			delete(d.queued, jobKey{id, job})
		}
		q.ids = nil
		if q.retry != nil {
			q.retry.Stop()
			delete(d.queues, k)
		}
	}
}

// startLoading reads the unfinished jobs of an organization in a goroutine. d.mu is held.
func (d *Dispatcher) startLoading(id realm.ID, o *ownedRealm) {
	if d.closed || d.owned[id] != o {
		return
	}
	d.running.Add(1)
	go func() {
		defer d.running.Done()
		d.load(id, o)
	}()
}

// load queues the jobs that the last owner of an organization did not finish. If the organization is too busy to list
// its jobs, load tries again later.
func (d *Dispatcher) load(id realm.ID, o *ownedRealm) {
	v, err := d.o.Server.View(id, realm.Caller{System: true}, func(v realm.View) (any, error) {
		return v.OutboxJobs(), nil
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owned[id] != o {
		return
	}
	if err != nil {
		d.o.Log.Warn("outbox jobs of the last process not loaded yet", "realm", id, "err", err)
		time.AfterFunc(finishRetryPause, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.startLoading(id, o)
		})
		return
	}
	list := v.([]realm.OutboxJob)
	if len(list) > 0 {
		d.o.Log.Info("outbox jobs of the last process loaded", "realm", id, "jobs", len(list))
	}
	d.enqueue(realmJobs{id, d.o.Site(id), list})
	for _, jobs := range o.waiting {
		d.enqueue(jobs)
	}
	o.loaded, o.waiting = true, nil
}

// AddJobs queues new jobs, whose fact is on disk. It does not block. Jobs of an organization that this node does not
// own are left to the owner.
func (d *Dispatcher) AddJobs(id realm.ID, site wire.Site, added *realm.OutboxJobsAdded) {
	if added.Dropped > 0 {
		d.o.Log.Error("outbox jobs dropped: the outbox is full", "realm", id, "jobs", added.Dropped)
	}
	jobs := realmJobs{id, site, added.List}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch o := d.owned[id]; {
	case o == nil:
	case o.loaded:
		d.enqueue(jobs)
	default:
		o.waiting = append(o.waiting, jobs)
	}
}

// enqueue appends jobs to their queues, except jobs that are queued already. d.mu is held.
func (d *Dispatcher) enqueue(jobs realmJobs) {
	for i := range jobs.list {
		job := &jobs.list[i]
		if d.closed || d.queued[jobKey{jobs.realm, job.ID}] {
			continue
		}
		d.queued[jobKey{jobs.realm, job.ID}] = true
		k := queueKey{jobs.realm, job.Kind, job.User.String()}
		switch job.Kind {
		case realm.OutboxEmail:
			k.recipient = job.Letter.To
		case realm.OutboxPushRemoval: // runs after the notification that it removes
			k.kind = realm.OutboxPush
		}
		q := d.queues[k]
		if q == nil {
			q = &orderedQueue{site: jobs.site}
			d.queues[k] = q
			d.start(k, q)
		}
		q.ids = append(q.ids, job.ID)
	}
}

// Waiting returns, for each kind, the number of unfinished jobs of the organization that has most of them.
func (d *Dispatcher) Waiting() map[realm.OutboxJobKind]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	type realmKind struct {
		realm realm.ID
		kind  realm.OutboxJobKind
	}
	counts, largest := map[realmKind]int64{}, map[realm.OutboxJobKind]int64{}
	for k, q := range d.queues {
		rk := realmKind{k.realm, k.kind}
		counts[rk] += int64(len(q.ids))
		largest[k.kind] = max(largest[k.kind], counts[rk])
	}
	return largest
}

// start runs a queue in a goroutine. d.mu is held.
func (d *Dispatcher) start(k queueKey, q *orderedQueue) {
	q.retry = nil
	d.running.Add(1)
	go d.run(k, q)
}

// run runs the jobs of a queue until the queue is empty or its first job has to be tried again later.
func (d *Dispatcher) run(k queueKey, q *orderedQueue) {
	defer d.running.Done()
	for {
		d.mu.Lock()
		if len(q.ids) == 0 || d.closed {
			if d.queues[k] == q {
				delete(d.queues, k)
			}
			d.mu.Unlock()
			return
		}
		id := q.ids[0]
		d.mu.Unlock()
		out := d.attempt(k, q, id)
		if d.ctx.Err() != nil {
			return
		}
		d.mu.Lock()
		if out.RetryAfter > 0 && len(q.ids) > 0 {
			d.retryLater(k, q, out)
			d.mu.Unlock()
			return
		}
		q.attempts, q.state = 0, nil
		if len(q.ids) > 0 && q.ids[0] == id { // else the organization got another owner meanwhile
			q.ids = q.ids[1:]
			delete(d.queued, jobKey{k.realm, id})
		}
		d.mu.Unlock()
	}
}

// retryLater starts the queue again after a pause. d.mu is held.
func (d *Dispatcher) retryLater(k queueKey, q *orderedQueue, out Outcome) {
	q.state = out.State
	if d.closed {
		return
	}
	q.retry = time.AfterFunc(out.RetryAfter, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.closed && d.queues[k] == q {
			d.start(k, q)
		}
	})
}

// attempt tries a job once, and finishes it unless it has to be tried again. It takes a slot before it reads the job
// from the realm: thousands of jobs that are added together would otherwise delay the requests of users.
func (d *Dispatcher) attempt(k queueKey, q *orderedQueue, id int64) Outcome {
	if slots := d.slots[k.kind]; slots != nil {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-d.ctx.Done():
			return Outcome{}
		}
	}
	v, err := d.o.Server.View(k.realm, realm.Caller{System: true}, func(v realm.View) (any, error) {
		if job := v.OutboxJob(id); job != nil {
			return *job, nil
		}
		return nil, nil
	})
	if err != nil {
		return Outcome{RetryAfter: finishRetryPause, State: q.state}
	}
	job, ok := v.(realm.OutboxJob)
	if !ok {
		return Outcome{} // finished already
	}
	var out Outcome
	if h := d.o.Handlers[job.Kind]; h != nil {
		q.attempts++
		a := &Attempt{Realm: k.realm, Site: q.site, Job: job, Number: q.attempts, State: q.state}
		out = h.Handle(d.ctx, a)
	}
	if out.RetryAfter == 0 && !out.Finished && d.ctx.Err() == nil {
		d.finish(k.realm, id, out.NotificationShown)
	}
	return out
}

// finish removes a job from the realm's outbox. It blocks and tries until that succeeds, the realm gets another owner,
// or the Dispatcher is closed.
func (d *Dispatcher) finish(id realm.ID, job int64, shown bool) {
	cmd := realm.FinishOutboxJobs{IDs: []int64{job}}
	if shown {
		cmd.Shown = cmd.IDs
	}
	for {
		caller := realm.System
		_, err := d.o.Server.Turn(id, caller, func(t *realm.Turn) (any, error) { return cmd.Decide(t) })
		if err == nil {
			return
		}
		d.o.Log.Warn("outbox job not finished yet", "realm", id, "job", strconv.FormatInt(job, 10), "err", err)
		if !d.owns(id) {
			return // the next owner runs it again
		}
		select {
		case <-time.After(finishRetryPause):
		case <-d.ctx.Done():
			return
		}
	}
}

func (d *Dispatcher) owns(id realm.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.owned[id] != nil
}

// Close starts no further attempt and waits for the running ones. When ctx ends it cancels them, and then waits until
// they have returned. Unfinished jobs stay in the realms' outboxes.
func (d *Dispatcher) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	for _, q := range d.queues {
		if q.retry != nil {
			q.retry.Stop()
		}
	}
	d.mu.Unlock()
	idle := make(chan struct{})
	go func() { d.running.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	d.cancel()
	<-idle
	return nil
}
