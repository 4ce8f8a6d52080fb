// Package courier does the errands of organizations: what is to leave the server, and waits in rows until it has.
//
// An errand is done at least once. Each lane (one bot's calls, one user's notifications, letters to one address) goes one
// after the other, so what is later never overtakes; lanes do not wait for each other but for a slot of their kind. What
// fails for now is tried again after a pause that its carrier chooses, and what is done, or given up, is settled in the
// organization. The next process begins with whatever was not.
package courier

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// settlePause is before another attempt to settle an errand where the organization was too busy.
const settlePause = time.Second

// Job is one errand on its way.
type Job struct {
	Realm   realm.ID
	Site    wire.Site
	Errand  realm.Errand
	Attempt int // 1 is the first of this process
	// Left is what a carrier has left over at its last attempt; nil at the first.
	Left any
}

// Outcome of an attempt.
type Outcome struct {
	Again   time.Duration // after which to try again; 0: done with
	Left    any           // what the next attempt needs to know
	Shown   bool          // a notification is on its user's devices now
	Settled bool          // the carrier has settled the errand itself
}

// Carrier does errands of one kind. Carry blocks while it tries once; when ctx ends what it does may be done again.
type Carrier interface {
	Carry(ctx context.Context, j *Job) Outcome
}

// Options of a courier.
type Options struct {
	House    wire.House
	Log      *slog.Logger
	Carriers map[realm.ErrandKind]Carrier // errands without one are dropped
	Slots    map[realm.ErrandKind]int     // attempts at a time
}

// Courier does errands. It is the house's.
type Courier struct {
	o     Options
	ctx   context.Context
	stop  context.CancelFunc
	done  sync.WaitGroup
	slots map[realm.ErrandKind]chan struct{}

	mu    sync.Mutex // guards what follows
	lanes map[lane]*queue
	known map[name]bool // errands in some lane
	begun bool
	early []errands // that came before
	ended bool
}

// errands of one organization.
type errands struct {
	realm realm.ID
	site  wire.Site
	list  []realm.Errand
}

type name struct {
	realm realm.ID
	id    int64
}

type lane struct {
	realm realm.ID
	kind  realm.ErrandKind
	of    string
}

// queue is what waits in one lane, by number; the errands themselves are in the organization.
type queue struct {
	site    wire.Site
	ids     []int64
	attempt int
	left    any
	timer   *time.Timer // of a lane that waits to try again
}

// New returns a courier that does nothing yet; Close stops it.
func New(o Options) *Courier {
	c := &Courier{o: o, slots: map[realm.ErrandKind]chan struct{}{}, lanes: map[lane]*queue{}, known: map[name]bool{}}
	if c.o.Log == nil {
		c.o.Log = slog.New(slog.DiscardHandler)
	}
	for kind := range o.Carriers {
		c.slots[kind] = make(chan struct{}, max(1, o.Slots[kind]))
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// Begin takes up, after a pause, what the last process left behind in organizations, and then what has come meanwhile:
// until then new errands wait, as those that are left go before them.
func (c *Courier) Begin(pause time.Duration, sites map[realm.ID]wire.Site) {
	time.AfterFunc(pause, func() {
		c.mu.Lock()
		if c.ended {
			c.mu.Unlock()
			return
		}
		c.done.Add(1)
		c.mu.Unlock()
		defer c.done.Done()
		if err := c.begin(sites); err != nil {
			c.o.Log.Warn("errands left by the last process are not taken up yet", "error", err)
			c.Begin(settlePause, sites)
		}
	})
}

func (c *Courier) begin(sites map[realm.ID]wire.Site) error {
	var left []errands
	for id, site := range sites {
		list, err := c.o.House.View(id, realm.Caller{System: true}, func(v realm.View) (any, error) { return v.Errands(), nil })
		if err != nil {
			return err
		}
		if n := len(list.([]realm.Errand)); n > 0 {
			c.o.Log.Info("errands left by the last process", "realm", id, "count", n)
		}
		left = append(left, errands{id, site, list.([]realm.Errand)})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range append(left, c.early...) {
		c.take(e)
	}
	c.early, c.begun = nil, true
	return nil
}

// Errands takes new errands, which are on disk. It does not block.
func (c *Courier) Errands(id realm.ID, site wire.Site, e *realm.ErrandsAdded) {
	if e.Dropped > 0 {
		c.o.Log.Error("errands dropped: too many wait", "realm", id, "count", e.Dropped)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.begun {
		c.early = append(c.early, errands{id, site, e.List})
		return
	}
	c.take(errands{id, site, e.List})
}

// take puts errands into their lanes, but for those that are there. The caller holds mu.
func (c *Courier) take(some errands) {
	for i := range some.list {
		e := &some.list[i]
		if c.ended || c.known[name{some.realm, e.ID}] {
			continue
		}
		c.known[name{some.realm, e.ID}] = true
		k := lane{some.realm, e.Kind, e.User.String()}
		switch e.Kind {
		case realm.LetterErrand:
			k.of = e.Letter.To
		case realm.UnpushErrand: // behind the notification it takes back
			k.kind = realm.PushErrand
		}
		q := c.lanes[k]
		if q == nil {
			q = &queue{site: some.site}
			c.lanes[k] = q
			c.start(k, q)
		}
		q.ids = append(q.ids, e.ID)
	}
}

// Waiting is how many errands of one organization are not done yet, at most of all, by kind.
func (c *Courier) Waiting() map[realm.ErrandKind]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	type part struct {
		realm realm.ID
		kind  realm.ErrandKind
	}
	parts, out := map[part]int64{}, map[realm.ErrandKind]int64{}
	for k, q := range c.lanes {
		p := part{k.realm, k.kind}
		parts[p] += int64(len(q.ids))
		out[k.kind] = max(out[k.kind], parts[p])
	}
	return out
}

// start has a lane go on. The caller holds mu.
func (c *Courier) start(k lane, q *queue) {
	q.timer = nil
	c.done.Add(1)
	go c.run(k, q)
}

// run does what waits in a lane until nothing is left, or something must be tried again later.
func (c *Courier) run(k lane, q *queue) {
	defer c.done.Done()
	for {
		c.mu.Lock()
		if len(q.ids) == 0 || c.ended {
			delete(c.lanes, k)
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
		if out.Again > 0 {
			if q.left = out.Left; !c.ended {
				q.timer = time.AfterFunc(out.Again, func() {
					c.mu.Lock()
					defer c.mu.Unlock()
					if !c.ended {
						c.start(k, q)
					}
				})
			}
			c.mu.Unlock()
			return
		}
		q.ids, q.attempt, q.left = q.ids[1:], 0, nil
		delete(c.known, name{k.realm, id})
		c.mu.Unlock()
	}
}

// attempt tries an errand once and settles it if it is done with. It has a slot from the first look at the organization on,
// so that thousands of errands that come together do not crowd out everybody's requests.
func (c *Courier) attempt(k lane, q *queue, id int64) Outcome {
	if slots := c.slots[k.kind]; slots != nil {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-c.ctx.Done():
			return Outcome{}
		}
	}
	v, err := c.o.House.View(k.realm, realm.Caller{System: true}, func(v realm.View) (any, error) {
		if e := v.Errand(id); e != nil {
			return *e, nil
		}
		return nil, nil
	})
	if err != nil {
		return Outcome{Again: settlePause, Left: q.left}
	}
	e, ok := v.(realm.Errand)
	if !ok {
		return Outcome{} // settled already
	}
	var out Outcome
	if carrier := c.o.Carriers[e.Kind]; carrier != nil {
		q.attempt++
		out = carrier.Carry(c.ctx, &Job{Realm: k.realm, Site: q.site, Errand: e, Attempt: q.attempt, Left: q.left})
	}
	if out.Again == 0 && !out.Settled && c.ctx.Err() == nil {
		c.settle(k.realm, id, out.Shown)
	}
	return out
}

// settle tells the organization that an errand is done with, until it has heard.
func (c *Courier) settle(id realm.ID, errand int64, shown bool) {
	cmd := realm.SettleErrands{IDs: []int64{errand}}
	if shown {
		cmd.Shown = cmd.IDs
	}
	for {
		_, err := c.o.House.Turn(id, realm.Caller{System: true, Client: "Internal"}, func(t *realm.Turn) (any, error) { return cmd.Decide(t) })
		if err == nil {
			return
		}
		c.o.Log.Warn("errand not settled yet", "realm", id, "errand", strconv.FormatInt(errand, 10), "error", err)
		select {
		case <-time.After(settlePause):
		case <-c.ctx.Done():
			return
		}
	}
}

// Close begins nothing more and waits for what is under way until ctx ends; then that is cut off. What is not done stays
// in the organizations.
func (c *Courier) Close(ctx context.Context) error {
	c.mu.Lock()
	c.ended = true
	for _, q := range c.lanes {
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
