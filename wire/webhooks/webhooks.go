// Package webhooks calls the services that outgoing-webhook bots stand for, and lets the bots say what comes back.
//
// Calls are errands: organizations hold a limited number of them until they are done, and each bot's go one after the other:
// an answer never overtakes an earlier one, and a slow service delays only its own bot. Addresses are checked when they
// are dialled, after names were resolved: nothing inside the server's own network can be reached through a bot, and its
// owner does not hear which addresses names stand for. The log says it.
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
	"net/url"
	"strconv"
	"syscall"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
	"parley/wire/markdown/preview"
)

// Limits, each against one service taking the server's memory or time.
const (
	callTimeout     = 10 * time.Second // one attempt
	maxAttempts     = 3                // before a service counts as down
	firstRetryPause = time.Second      // before the second attempt; the third waits twice as long
	maxAge          = 24 * time.Hour   // after which nobody waits for an answer any more
	maxAnswer       = 64 << 10         // bytes of a service's answer
	maxQuotedAnswer = 200              // bytes of an answer that its owner is shown
)

// MaxCalling is how many bots' services are called at a time.
const MaxCalling = 16

// Server is what the calls need of the running server.
type Server = wire.Server

// Options of a caller.
type Options struct {
	Server Server
	Tools  *wire.Tools
	Log    *slog.Logger
	// Allow are networks inside that may be called nevertheless.
	Allow      []netip.Prefix
	RetryPause time.Duration    // before the second attempt; 0: a second
	Now        func() time.Time // nil: the clock
}

// Client calls services.
type Client struct {
	o      Options
	client *http.Client
}

// New returns a caller.
func New(o Options) *Client {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.RetryPause == 0 {
		o.RetryPause = firstRetryPause
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Client{o: o}
	dialer := &net.Dialer{Timeout: callTimeout, Control: func(_, address string, _ syscall.RawConn) error { return c.checkAddress(address) }}
	c.client = &http.Client{Timeout: callTimeout,
		Transport:     &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c
}

// Handle calls a service about one message and lets the bot answer.
func (c *Client) Handle(ctx context.Context, j *dispatch.Attempt) dispatch.Outcome {
	if c.o.Now().Sub(time.Unix(j.Job.At, 0)) > maxAge {
		c.o.Log.Warn("service not called: the message is too old", "realm", j.Realm, "bot", int64(j.Job.User))
		return dispatch.Outcome{}
	}
	type found struct {
		e  *realm.ServiceTriggered
		id string
	}
	v, err := c.o.Server.View(j.Realm, realm.Caller{System: true}, func(v realm.View) (any, error) {
		e, _ := v.ServiceCall(&j.Job)
		return found{e, v.Org().UUID + "-" + strconv.FormatInt(j.Job.ID, 10)}, nil
	})
	if err != nil {
		return dispatch.Outcome{RetryAfter: c.o.RetryPause}
	}
	f := v.(found)
	if f.e == nil {
		return dispatch.Outcome{} // the message, or the bot, is gone
	}
	var text realm.Body
	if f.e.Message.Body != nil {
		text = *f.e.Message.Body
	} else {
		var ok bool
		if text, ok = c.o.Server.Text(j.Realm, f.e.Message.Ref); !ok {
			return dispatch.Outcome{} // erased meanwhile
		}
	}
	kind, body := buildRequest(f.e, text, j.Realm, j.Site)
	answer, err := c.post(ctx, f.e.Service.URL, kind, f.id, body)
	request := &wire.Call{Server: c.o.Server, Tools: c.o.Tools, Realm: j.Realm, Site: j.Site}
	if err == nil {
		text, widget, understood := parseAnswer(f.e, answer)
		if !understood {
			err = &serviceError{why: "The service's answer is not JSON: " + quote(answer)}
		} else if text == "" {
			return dispatch.Outcome{}
		} else if err = wire.SendServiceReply(request, f.e, text, widget, j.Job.ID); err == nil {
			return dispatch.Outcome{Finished: true}
		} else {
			err = &serviceError{why: "The service's answer could not be sent: " + err.Error()}
		}
	}
	if ctx.Err() != nil {
		return dispatch.Outcome{RetryAfter: c.o.RetryPause}
	}
	c.reportFailure(request, f.e, err)
	return dispatch.Outcome{}
}

// reportFailure has the bot say that its service is down, and tells its owner why.
func (c *Client) reportFailure(request *wire.Call, e *realm.ServiceTriggered, err error) {
	bot := int64(e.Bot.ID)
	cause := err
	var down *serviceError
	if errors.As(err, &down) && down.cause != nil {
		cause = down.cause
	}
	c.o.Log.Info("service failed", "realm", request.Realm, "bot", bot, "error", cause)
	say := "Failure! Third party is unavailable."
	if down != nil && down.status != 0 {
		say = fmt.Sprintf("Failure! The webhook got a response with status code *%d*.", down.status)
	}
	if sayErr := wire.SendServiceReply(request, e, say, "", 0); sayErr != nil {
		c.o.Log.Info("bot may not say that its service failed", "realm", request.Realm, "bot", bot, "error", sayErr)
	}
	request.Caller = realm.Caller{System: true, Client: "Internal"}
	_, tellErr := wire.Execute(request, realm.ReportServiceFailure{Bot: e.Bot.ID, Message: e.Message.ID, Why: err.Error()})
	if tellErr != nil {
		c.o.Log.Warn("bot's owner not told of a failure", "realm", request.Realm, "bot", bot, "error", tellErr)
	}
}

// serviceError is a service that did not answer as it should; the status is 0 if it did not answer at all.
type serviceError struct {
	status int
	why    string // is shown to the bot's owner
	cause  error  // for the operator's eyes only; nil: why says all
}

func (e *serviceError) Error() string { return e.why }

// post sends a request until it is answered, refused for good, or tried often enough.
func (c *Client) post(ctx context.Context, address, kind, id string, body []byte) (answer []byte, err error) {
	pause := c.o.RetryPause
	for n := 1; ; n++ {
		var again bool
		if answer, again, err = c.postOnce(ctx, address, kind, id, body); err == nil || !again || n == maxAttempts {
			return answer, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		pause *= 2
	}
}

// postOnce is one attempt; again reports whether another may fare better. The id is the same whenever the same message is
// passed on, so that a service can tell one that comes twice.
func (c *Client) postOnce(ctx context.Context, address, kind, id string, body []byte) (answer []byte, again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, false, &serviceError{why: "The address of the service is no good: " + err.Error()}
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Idempotency-Key", id)
	r.Header.Set("User-Agent", "ParleyOutgoingWebhook/"+wire.Version)
	res, err := c.client.Do(r)
	if err != nil {
		// An address inside is tried as often as one that is not there: how long it takes says nothing either.
		return nil, true, &serviceError{why: "The service at " + r.URL.Redacted() + " did not answer: " + publicReason(err), cause: err}
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, true, &serviceError{why: "The service's answer broke off: " + publicReason(err), cause: err}
	case res.StatusCode >= 500:
		return nil, true, &serviceError{status: res.StatusCode, why: fmt.Sprintf("The service answered with status %d: %s", res.StatusCode, quote(answer))}
	case res.StatusCode < 200 || res.StatusCode >= 300:
		return nil, false, &serviceError{status: res.StatusCode, why: fmt.Sprintf("The service answered with status %d: %s", res.StatusCode, quote(answer))}
	case len(answer) > maxAnswer:
		return nil, false, &serviceError{why: fmt.Sprintf("The service's answer is longer than %d bytes.", maxAnswer)}
	}
	return answer, false, nil
}

// publicReason is why a connection failed, without the addresses that Go's errors name: the one a name stands for, the server's
// own, and that of its name server are the operator's business. A name that stands for an address inside reads as one that
// stands for nothing, so that nobody finds out by asking which names there are inside.
func publicReason(err error) string {
	var inside *internalAddressError
	var name *net.DNSError
	var op *net.OpError
	var timeout net.Error
	var call *url.Error
	switch {
	case errors.As(err, &inside), errors.As(err, &name):
		return "there is no address outside that it stands for"
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("it took more than %v", callTimeout)
	case errors.As(err, &op):
		return op.Err.Error()
	case errors.As(err, &call):
		return call.Err.Error()
	}
	return err.Error()
}

func quote(b []byte) string {
	return string(bytes.ToValidUTF8(b[:min(len(b), maxQuotedAnswer)], nil))
}

// internalAddressError refuses an address within the server's own network.
type internalAddressError struct{ address string }

func (e *internalAddressError) Error() string { return e.address + " may not be called" }

// checkAddress refuses to connect to anything that is not plainly outside.
func (c *Client) checkAddress(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return &internalAddressError{address}
	}
	if !preview.Reachable(at.Addr(), c.o.Allow) {
		return &internalAddressError{at.Addr().Unmap().String()}
	}
	return nil
}
