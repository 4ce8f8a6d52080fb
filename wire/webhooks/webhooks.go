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

// Limits, so that one service cannot use up the server's memory or time.
const (
	callTimeout     = 10 * time.Second // of one attempt
	maxAttempts     = 3                // of one call
	firstRetryPause = time.Second      // before the second attempt; the third waits twice as long
	maxAge          = 24 * time.Hour   // of a message; older ones are not sent to services
	maxAnswer       = 64 << 10         // bytes of a service's answer
	maxQuotedAnswer = 200              // bytes of an answer that are shown to the bot's owner
)

// MaxCalling is how many bots' services are called at a time.
const MaxCalling = 16

// Options of a Client.
type Options struct {
	Server wire.Server
	Tools  *wire.Tools
	Places *wire.Places // nil: new ones
	Log    *slog.Logger
	// Allow are internal networks that may be called.
	Allow      []netip.Prefix
	RetryPause time.Duration    // before the second attempt; 0: a second
	Now        func() time.Time // nil: time.Now
}

// Client is the dispatch.Handler that calls services.
type Client struct {
	o      Options
	client *http.Client
}

// New returns a Client.
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
	if o.Places == nil {
		o.Places = wire.NewPlaces(o.Server, o.Now)
	}
	return &Client{o: o, client: NewHTTPClient(o.Allow)}
}

// NewHTTPClient returns a client for addresses that users choose. It follows no redirects, and connects to no private
// network but those of allow.
func NewHTTPClient(allow []netip.Prefix) *http.Client {
	dialer := &net.Dialer{
		Timeout: callTimeout,
		Control: func(_, address string, _ syscall.RawConn) error { return checkAddress(address, allow) },
	}
	return &http.Client{Timeout: callTimeout,
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			MaxIdleConns:           100, // users choose the addresses
			MaxIdleConnsPerHost:    1,
			IdleConnTimeout:        time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Handle calls a service about one message and sends its answer as the bot.
func (c *Client) Handle(ctx context.Context, a *dispatch.Attempt) dispatch.Outcome {
	// A turn, because the secret of the signatures is not in views. It records nothing.
	type trigger struct {
		e          *realm.ServiceTriggered
		id, secret string
	}
	v, err := c.o.Server.Turn(a.Realm, realm.System, func(t *realm.Turn) (any, error) {
		e, ok := t.ServiceCall(&a.Job)
		if !ok {
			return trigger{}, nil
		}
		return trigger{e, t.Org().UUID + "-" + strconv.FormatInt(a.Job.ID, 10), t.SigningSecret(t.Find(e.Bot.ID))}, nil
	})
	if err != nil {
		return dispatch.Outcome{RetryAfter: c.o.RetryPause}
	}
	e := v.(trigger).e
	if e == nil {
		return dispatch.Outcome{} // the message or the bot was removed
	}
	request := &wire.Call{Server: c.o.Server, Tools: c.o.Tools, Realm: a.Realm, Site: a.Site}
	d := realm.BotDelivery{ID: a.Job.ID, Message: e.Message.ID}
	if c.o.Now().Sub(time.Unix(a.Job.At, 0)) > maxAge {
		c.o.Log.Warn("outgoing webhook given up: the message is too old", "realm", a.Realm, "user", int64(a.Job.User))
		d.Why = fmt.Sprintf("The message waited for more than %v and was not sent.", maxAge)
		return dispatch.Outcome{Finished: c.record(a.Realm, e, d) == nil}
	}
	text, ok, err := c.text(a.Realm, e)
	if err != nil {
		return c.reportFailure(request, e, d, &serviceError{why: err.Error()})
	}
	if !ok {
		return dispatch.Outcome{} // erased meanwhile
	}
	out := &call{realm: a.Realm, address: e.Service.URL, id: v.(trigger).id, secret: v.(trigger).secret}
	out.kind, out.body = buildRequest(e, text, a.Realm, a.Site)
	began := time.Now()
	answer, err := c.post(ctx, out)
	d.Attempts, d.Status, d.Took = out.attempts, out.status, time.Since(began).Milliseconds()
	if err == nil {
		err = c.useAnswer(request, e, d, answer)
	}
	switch {
	case err == nil:
		return dispatch.Outcome{Finished: true}
	case ctx.Err() != nil:
		return dispatch.Outcome{RetryAfter: c.o.RetryPause}
	case errors.Is(err, wire.ErrPlaceClosed): // the bot sends nothing about it
		d.Why = "The organization does not allow calls of bots' services."
		return dispatch.Outcome{Finished: c.record(a.Realm, e, d) == nil}
	}
	return c.reportFailure(request, e, d, err)
}

// useAnswer sends the answer of a service as its bot and finishes the job in the same turn.
func (c *Client) useAnswer(request *wire.Call, e *realm.ServiceTriggered, d realm.BotDelivery, answer []byte) error {
	text, widget, isJSON := parseAnswer(e, answer)
	switch {
	case !isJSON:
		return &serviceError{why: "The service's answer is not JSON: " + quote(answer)}
	case text == "" || e.IsTest():
		d.Answer = text
		return c.record(request.Realm, e, d)
	}
	if err := wire.SendServiceReply(request, e, text, widget, &d); err != nil {
		return &serviceError{why: "The service's answer could not be sent: " + err.Error()}
	}
	return nil
}

// record records the call of a service and finishes its job.
func (c *Client) record(id realm.ID, e *realm.ServiceTriggered, d realm.BotDelivery) error {
	_, err := c.o.Server.Turn(id, realm.System, func(t *realm.Turn) (any, error) {
		t.RecordServiceCall(e.Bot.ID, d)
		return nil, nil
	})
	return err
}

// text returns the text of the message, which is in the event or on disk; false if it was erased. A damaged text is an
// error.
func (c *Client) text(id realm.ID, e *realm.ServiceTriggered) (realm.Body, bool, error) {
	if e.Message.Body != nil {
		return *e.Message.Body, true, nil
	}
	return c.o.Server.Text(id, e.Message.Ref)
}

// reportFailure records the failure, sends a message about it as the bot, and tells the bot's owner the reason. The
// failure of a test is only recorded.
func (c *Client) reportFailure(
	request *wire.Call, e *realm.ServiceTriggered, d realm.BotDelivery, err error,
) dispatch.Outcome {
	log := c.o.Log.With("realm", request.Realm, "user", int64(e.Bot.ID))
	cause := err
	var failure *serviceError
	if errors.As(err, &failure) && failure.cause != nil {
		cause = failure.cause
	}
	log.Info("outgoing webhook failed", "err", cause)
	d.Why = err.Error()
	if e.IsTest() {
		return dispatch.Outcome{Finished: c.record(request.Realm, e, d) == nil}
	}
	text := "Failure! Third party is unavailable."
	if failure != nil && failure.status != 0 {
		text = fmt.Sprintf("Failure! The webhook got a response with status code *%d*.", failure.status)
	}
	if err := wire.SendServiceReply(request, e, text, "", nil); err != nil {
		log.Info("message about a failed outgoing webhook not sent", "err", err)
	}
	request.Caller = realm.System
	if _, err := wire.Execute(request, realm.ReportServiceFailure{Bot: e.Bot.ID, Delivery: d}); err != nil {
		log.Warn("failed outgoing webhook not reported to the bot's owner", "err", err)
		return dispatch.Outcome{}
	}
	return dispatch.Outcome{Finished: true}
}

// serviceError is a service's failure. The status is 0 if the service did not answer at all.
type serviceError struct {
	status int
	why    string // shown to the bot's owner
	cause  error  // logged only; nil if why says everything
}

func (e *serviceError) Error() string { return e.why }

// call is a request to a service. The id is the same at every attempt for the same message, so a service can recognize
// a repeated call.
type call struct {
	realm                     realm.ID
	address, kind, id, secret string
	body                      []byte

	attempts int64 // so far
	status   int64 // of the last answer
}

// post sends a request until it is answered, refused for good, or was tried maxAttempts times.
func (c *Client) post(ctx context.Context, out *call) (answer []byte, err error) {
	pause := c.o.RetryPause
	for {
		if err := c.o.Places.Ask(out.realm, realm.PlaceOutgoingWebhooks); err != nil {
			return nil, err
		}
		var again bool
		out.attempts++
		if answer, again, err = c.postOnce(ctx, out); err == nil || !again || out.attempts == maxAttempts {
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

// postOnce makes one attempt; again reports whether another may succeed.
func (c *Client) postOnce(ctx context.Context, out *call) (answer []byte, again bool, err error) {
	out.status = 0
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, out.address, bytes.NewReader(out.body))
	if err != nil {
		return nil, false, &serviceError{why: "The address of the service is no good: " + err.Error()}
	}
	r.Header.Set("Content-Type", out.kind)
	r.Header.Set("Idempotency-Key", out.id)
	sign(r.Header, out, c.o.Now())
	r.Header.Set("User-Agent", "ParleyOutgoingWebhook/"+wire.Version)
	res, err := c.client.Do(r)
	if err != nil {
		// An internal address is tried as often as an address that does not answer. Otherwise the duration would reveal
		// it.
		return nil, true, &serviceError{
			why:   "The service at " + r.URL.Redacted() + " did not answer: " + publicReason(err),
			cause: err,
		}
	}
	defer res.Body.Close()
	out.status = int64(res.StatusCode)
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, true, &serviceError{why: "The service's answer broke off: " + publicReason(err), cause: err}
	case res.StatusCode >= 500:
		return nil, true, &serviceError{
			status: res.StatusCode,
			why:    fmt.Sprintf("The service answered with status %d: %s", res.StatusCode, quote(answer)),
		}
	case res.StatusCode < 200 || res.StatusCode >= 300:
		return nil, false, &serviceError{
			status: res.StatusCode,
			why:    fmt.Sprintf("The service answered with status %d: %s", res.StatusCode, quote(answer)),
		}
	case len(answer) > maxAnswer:
		return nil, false, &serviceError{why: fmt.Sprintf("The service's answer is longer than %d bytes.", maxAnswer)}
	}
	return answer, false, nil
}

// publicReason returns why a connection failed, for the bot's owner. Go's errors name IP addresses: the service's, the
// server's own, and its name server's. Only the operator may see those. A name with an internal address reads like a
// name without any address; otherwise an owner could find out which internal names exist.
func publicReason(err error) string {
	var inside *internalAddressError
	var name *net.DNSError
	var op *net.OpError
	var timeout net.Error
	var call *url.Error
	switch {
	case errors.As(err, &inside), errors.As(err, &name):
		return "there is no address outside that it stands for. The operator can allow a network of their own with " +
			"--webhooks-allow"
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

// internalAddressError rejects an address in the server's own network.
type internalAddressError struct{ address string }

func (e *internalAddressError) Error() string { return e.address + " may not be called" }

// checkAddress rejects all addresses that are not public, except those in allow.
func checkAddress(address string, allow []netip.Prefix) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return &internalAddressError{address}
	}
	if !preview.Reachable(at.Addr(), allow) {
		return &internalAddressError{at.Addr().Unmap().String()}
	}
	return nil
}
