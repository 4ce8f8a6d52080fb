package push

import (
	"fmt"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// Limits of notifications of browsers. Users choose the addresses, so the server must not become a means to flood
// another server, nor go on with addresses that never answer. All are of one node, and in memory.
const (
	// WebPerSecond is how many notifications a second one push host gets, and maxWebBurst how many at once. The large
	// push services have most browsers of a server; MaxNotifying attempts of 0.1 s make 160 a second at most.
	WebPerSecond = 100
	maxWebBurst  = 200
	// MaxWebHosts and MaxWebFailing are the numbers of push hosts and subscriptions that are counted. Above them
	// those that were counted longest ago are forgotten.
	MaxWebHosts   = 10_000
	MaxWebFailing = 10_000
	// MaxWebFailures is the number of failures in a row after which a subscription is removed. Failures less than
	// webFailureStep apart count once, so that a push service may be away for half an hour.
	MaxWebFailures = 5
	webFailureStep = 10 * time.Minute
)

// errHostBusy is the failure of a notification that was not sent because its push host gets enough.
var errHostBusy = fmt.Errorf("%w: more than %d notifications a second to one host", wire.ErrPushFailed, WebPerSecond)

// webHosts limits the notifications of each push host, and counts the failures of subscriptions. The zero value is
// ready. It is safe for concurrent use.
type webHosts struct {
	mu      sync.Mutex
	hosts   recent[webHost]
	failing recent[webFailures]
}

type webHost struct {
	left float64 // notifications that it may get at once
	at   time.Time
}

type webFailures struct {
	n  int
	at time.Time // of the last one that was counted
}

// sizes returns the number of push hosts and of failing subscriptions that are counted.
func (w *webHosts) sizes() (hosts, failing int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosts.len(), w.failing.len()
}

// CountedWebHosts returns the number of push hosts whose notifications are counted. p can be nil.
func (p *Pusher) CountedWebHosts() int64 {
	if p == nil {
		return 0
	}
	hosts, _ := p.web.sizes()
	return hosts
}

// FailingBrowsers returns the number of subscriptions whose last notification failed. p can be nil.
func (p *Pusher) FailingBrowsers() int64 {
	if p == nil {
		return 0
	}
	_, failing := p.web.sizes()
	return failing
}

// take reports whether a push host may get one more notification now, and counts it.
func (w *webHosts) take(address string, now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	host := realm.PushHost(address)
	h, known := w.hosts.get(host)
	if !known {
		h = webHost{left: maxWebBurst, at: now}
	}
	h.left = min(maxWebBurst, h.left+now.Sub(h.at).Seconds()*WebPerSecond)
	h.at = now
	allowed := h.left >= 1
	if allowed {
		h.left--
	}
	w.hosts.put(host, h, MaxWebHosts)
	if !allowed {
		return fmt.Errorf("%w: %s", errHostBusy, host)
	}
	return nil
}

// record counts the outcome of one attempt, and reports whether the subscription must be removed.
func (w *webHosts) record(address string, failed bool, now time.Time) (remove bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, known := w.failing.get(address)
	switch {
	case !failed:
		w.failing.forget(address)
		return false
	case known && now.Sub(f.at) < webFailureStep:
		return false
	case f.n+1 >= MaxWebFailures:
		w.failing.forget(address)
		return true
	}
	w.failing.put(address, webFailures{f.n + 1, now}, MaxWebFailing)
	return false
}

// recent holds the values that were used last. The zero value is empty.
type recent[V any] struct{ young, old map[string]V }

// len returns the number of values, at most the limit of put.
func (r *recent[V]) len() int64 { return int64(len(r.young) + len(r.old)) }

func (r *recent[V]) get(key string) (V, bool) {
	if v, ok := r.young[key]; ok {
		return v, true
	}
	v, ok := r.old[key]
	return v, ok
}

// put stores a value. At most max values are kept: the half that was stored longest ago is forgotten at once.
func (r *recent[V]) put(key string, v V, max int) {
	if _, known := r.young[key]; !known && len(r.young) >= max/2 {
		r.young, r.old = nil, r.young
	}
	if r.young == nil {
		r.young = map[string]V{}
	}
	r.young[key] = v
}

func (r *recent[V]) forget(key string) {
	delete(r.young, key)
	delete(r.old, key)
}
