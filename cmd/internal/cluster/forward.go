package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"parley/wire/httpd"
	"parley/wire/peer"
)

// forwardRetryDelay is how long a failed request waits for a link to another owner before it is sent again. Without
// another link, the same core may own the organization again.
const forwardRetryDelay = 50 * time.Millisecond

// Forward sends a request to the owner. See httpd.Cluster: after an error it returns when another try makes sense.
func (e *Follower) Forward(ctx context.Context, r httpd.ForwardedRequest) (a httpd.ForwardedAnswer, err error) {
	a, link, err := e.forwardOnce(ctx, r)
	if err != nil {
		e.waitForOtherLink(ctx, link, forwardRetryDelay)
	}
	return a, err
}

// waitForOtherLink returns when there is another link than the one that was tried, if any, at the latest after limit.
func (e *Follower) waitForOtherLink(ctx context.Context, tried *peer.Link, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for ctx.Err() == nil {
		e.mu.Lock()
		link, changed := e.link, e.changed
		e.mu.Unlock()
		if link != nil && link != tried {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// forwardOnce sends a request to the owner over the link that it returns; nil: there was none.
func (e *Follower) forwardOnce(
	ctx context.Context, r httpd.ForwardedRequest,
) (a httpd.ForwardedAnswer, link *peer.Link, err error) {
	waiting, cancel := context.WithTimeout(ctx, MaxLinkWait)
	defer cancel()
	if link, err = e.waitForLink(waiting, false); err != nil {
		e.Counters.NotSent.Add(1)
		return a, nil, fmt.Errorf("%w: %w", httpd.ErrNotForwarded, err)
	}
	call := link.CallShared
	if bytes.HasPrefix(r.HTTP, []byte("GET ")) || bytes.HasPrefix(r.HTTP, []byte("HEAD ")) { // the answer may be long
		call = link.CallOnce
	}
	answer, err := call(ctx, encode(callForward, (*forwardCall)(&r)))
	var notSent *peer.NotSent
	var answered *peer.CallError
	switch {
	case errors.As(err, &notSent), errors.As(err, &answered) && answered.Code == httpd.CodeNotOwner:
		e.Counters.NotSent.Add(1)
		return a, link, fmt.Errorf("%w: %w", httpd.ErrNotForwarded, err)
	case err != nil:
		e.Counters.Ambiguous.Add(1)
		return a, link, err
	}
	e.Counters.Answered.Add(1)
	return a, link, decode(answer, (*forwardAnswer)(&a))
}
