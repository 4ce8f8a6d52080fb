// Package webhooks calls the services that outgoing-webhook bots stand for, and lets the bots say what comes back.
//
// What waits is bounded, for each bot and altogether; each bot's messages are passed on one after the other, so an
// answer never overtakes an earlier one and a slow service delays only its own bot. Addresses are checked when they are
// dialled, after names were resolved: nothing inside the server's own network can be reached through a bot.
package webhooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/markdown/preview"
)

// Limits, each against one service taking the server's memory or time.
const (
	callTimeout  = 10 * time.Second // one attempt
	attempts     = 3                // before a service counts as down
	firstPause   = time.Second      // before the second attempt; the third waits twice as long
	maxWaiting   = 1000             // calls of all bots
	maxOfOneBot  = 100              // calls of one bot
	maxRunning   = 16               // bots being called at once
	maxAnswer    = 64 << 10         // bytes of a service's answer
	reasonLength = 200              // bytes of an answer that its owner is shown
)

// House is what the calls need of the running server.
type House = wire.House

// Options of a caller.
type Options struct {
	House House
	Tools *wire.Tools
	Log   *slog.Logger
	// Allow are networks inside that may be called nevertheless.
	Allow []netip.Prefix
	Pause time.Duration // before the second attempt; 0: a second
}

// Caller calls services. It is the house's Services.
type Caller struct {
	o      Options
	client *http.Client
	slots  chan struct{}
	stop   context.CancelFunc
	ctx    context.Context
	done   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	waiting map[bot][]call
	total   int
}

type bot struct {
	realm realm.ID
	user  realm.UserID
}

type call struct {
	site wire.Site
	e    *realm.ServiceTriggered
}

// New returns a caller; Close stops it.
func New(o Options) *Caller {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Pause == 0 {
		o.Pause = firstPause
	}
	c := &Caller{o: o, slots: make(chan struct{}, maxRunning), waiting: map[bot][]call{}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	dialer := &net.Dialer{Timeout: callTimeout, Control: func(_, address string, _ syscall.RawConn) error { return c.check(address) }}
	c.client = &http.Client{Timeout: callTimeout,
		Transport:     &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c
}

// Close gives up what waits and returns when nothing runs any more.
func (c *Caller) Close() {
	c.stop()
	c.done.Wait()
	c.client.CloseIdleConnections()
}

// Trigger has a service called soon. What exceeds the limits is dropped, and logged.
func (c *Caller) Trigger(id realm.ID, site wire.Site, e *realm.ServiceTriggered) {
	b := bot{id, e.Bot.ID}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return
	}
	list, running := c.waiting[b]
	if c.total >= maxWaiting || len(list) >= maxOfOneBot {
		c.o.Log.Warn("service not called: too many calls wait", "realm", id, "bot", int64(e.Bot.ID), "waiting", len(list), "altogether", c.total)
		return
	}
	c.waiting[b], c.total = append(list, call{site, e}), c.total+1
	if !running {
		c.done.Add(1)
		go c.serve(b)
	}
}

// serve passes on what waits for one bot until nothing is left.
func (c *Caller) serve(b bot) {
	defer c.done.Done()
	for {
		c.mu.Lock()
		list := c.waiting[b]
		if len(list) == 0 || c.ctx.Err() != nil {
			c.total -= len(list)
			delete(c.waiting, b)
			c.mu.Unlock()
			return
		}
		c.waiting[b], c.total = list[1:], c.total-1
		c.mu.Unlock()
		select {
		case c.slots <- struct{}{}:
			c.pass(b, list[0])
			<-c.slots
		case <-c.ctx.Done():
		}
	}
}

// pass calls a service about one message and lets the bot answer.
func (c *Caller) pass(b bot, m call) {
	kind, body, ok := wire.ServiceRequest(m.e, wire.Context{Realm: b.realm, Site: m.site, Texts: c.o.House})
	if !ok {
		return // erased before anybody was told
	}
	answer, err := c.post(m.e.Service.URL, kind, body)
	request := &wire.Call{House: c.o.House, Tools: c.o.Tools, Realm: b.realm, Site: m.site}
	if err == nil {
		text, widget, understood := wire.ServiceAnswer(m.e, answer)
		if !understood {
			err = &unavailable{why: "The service's answer is not JSON: " + cut(answer)}
		} else if text == "" {
			return
		} else if err = wire.ServiceReply(request, m.e, text, widget); err != nil {
			err = &unavailable{why: "The service's answer could not be sent: " + err.Error()}
		}
	}
	if err == nil || c.ctx.Err() != nil {
		return
	}
	c.o.Log.Info("service failed", "realm", b.realm, "bot", int64(b.user), "error", err)
	var down *unavailable
	say := "Failure! Third party is unavailable."
	if errors.As(err, &down) && down.status != 0 {
		say = fmt.Sprintf("Failure! The webhook got a response with status code *%d*.", down.status)
	}
	if sayErr := wire.ServiceReply(request, m.e, say, ""); sayErr != nil {
		c.o.Log.Info("bot may not say that its service failed", "realm", b.realm, "bot", int64(b.user), "error", sayErr)
	}
	if tellErr := wire.ServiceFailed(request, m.e, err.Error()); tellErr != nil {
		c.o.Log.Warn("bot's owner not told of a failure", "realm", b.realm, "bot", int64(b.user), "error", tellErr)
	}
}

// unavailable is a service that did not answer as it should; the status is 0 if it did not answer at all.
type unavailable struct {
	status int
	why    string
}

func (e *unavailable) Error() string { return e.why }

// post sends a request until it is answered, refused for good, or tried often enough.
func (c *Caller) post(url, kind string, body []byte) (answer []byte, err error) {
	pause := c.o.Pause
	for n := 1; ; n++ {
		var again bool
		if answer, again, err = c.once(url, kind, body); err == nil || !again || n == attempts {
			return answer, err
		}
		select {
		case <-time.After(pause):
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
		pause *= 2
	}
}

// once is one attempt; again reports whether another may fare better.
func (c *Caller) once(url, kind string, body []byte) (answer []byte, again bool, err error) {
	r, err := http.NewRequestWithContext(c.ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, false, &unavailable{why: "The address of the service is no good: " + err.Error()}
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("User-Agent", "ParleyOutgoingWebhook/"+wire.Version)
	res, err := c.client.Do(r)
	if err != nil {
		var inside *insideError
		return nil, !errors.As(err, &inside), &unavailable{why: "The service did not answer: " + err.Error()}
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, true, &unavailable{why: "The service's answer broke off: " + err.Error()}
	case res.StatusCode >= 500:
		return nil, true, &unavailable{res.StatusCode, fmt.Sprintf("The service answered with status %d: %s", res.StatusCode, cut(answer))}
	case res.StatusCode < 200 || res.StatusCode >= 300:
		return nil, false, &unavailable{res.StatusCode, fmt.Sprintf("The service answered with status %d: %s", res.StatusCode, cut(answer))}
	case len(answer) > maxAnswer:
		return nil, false, &unavailable{why: fmt.Sprintf("The service's answer is longer than %d bytes.", maxAnswer)}
	}
	return answer, false, nil
}

func cut(b []byte) string {
	return string(bytes.ToValidUTF8(b[:min(len(b), reasonLength)], nil))
}

// insideError refuses an address within the server's own network.
type insideError struct{ address string }

func (e *insideError) Error() string { return e.address + " may not be called" }

// check refuses to connect to anything that is not plainly outside.
func (c *Caller) check(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return &insideError{address}
	}
	ip := at.Addr().Unmap().WithZone("")
	for _, p := range c.o.Allow {
		if p.Contains(ip) {
			return nil
		}
	}
	if !preview.Public(ip) {
		return &insideError{ip.String()}
	}
	return nil
}
