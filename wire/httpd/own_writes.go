package httpd

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
)

// A client can write at one node and read at another one, which is some milliseconds behind. Browsers send a cookie
// with the last fact of their write, and the other node waits for it. For all other clients, a node that is behind does
// not refuse a request before it has every fact that the owner had at the time of the request.
const (
	// MaxCatchUpWait is how long a request waits for the facts of the owner. A replica is milliseconds behind; clients
	// repeat a request after 15 seconds or later.
	MaxCatchUpWait = 2 * time.Second
	// MaxCatchingUp limits the requests that wait so at a node: each holds a goroutine and its request, about 50 kB.
	MaxCatchingUp = 1000

	writesCookie = "parley_writes"
	// writesCookieAge is longer than a replica may be behind: cluster.MaxReplicaLag is 10 seconds.
	writesCookieAge = time.Minute
)

// errBehind is the refusal of a request that needs newer facts than this node has.
var errBehind = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"This server is behind the other servers; try again in a few seconds.")

// CatchingUp returns how many requests wait for the newest facts of the owner, and how many were refused because there
// were too many.
func (s *Server) CatchingUp() (waiting, refused int64) {
	return s.catchingUp.Load(), s.refusedCatchingUp.Load()
}

// catchUp waits until this node has the facts that the owner has now, but none after upTo. An error is a refusal: the
// owner did not answer, or the facts did not arrive, within MaxCatchUpWait.
func (s *Server) catchUp(id realm.ID, upTo realm.Seq) error {
	defer s.catchingUp.Add(-1)
	if s.catchingUp.Add(1) > MaxCatchingUp {
		s.refusedCatchingUp.Add(1)
		return errBehind
	}
	ctx, cancel := context.WithTimeout(context.Background(), MaxCatchUpWait)
	defer cancel()
	seq, err := s.options.Cluster.NewestSeq(ctx, id)
	if err == nil {
		err = s.options.Cluster.WaitFor(ctx, id, min(seq, upTo))
	}
	if err != nil {
		s.options.Log.Warn("the newest facts of the owner did not arrive", "realm", id, "err", err)
		return errBehind
	}
	return nil
}

// retryRefused waits for the facts of the owner after this node has refused a request with err, having the facts up to
// had. It returns nil if the request must be run again, or the error to answer.
func (s *Server) retryRefused(id realm.ID, had realm.Seq, err error) error {
	if behind := s.catchUp(id, math.MaxUint64); behind != nil {
		return behind
	}
	if s.options.Cluster.DurableSeq(id) == had && !s.options.Cluster.Owns(id) {
		return err
	}
	return nil
}

// mayChange reports whether err refuses a request because of the state of the organization. Newer facts may change such
// a refusal. The owner's own refusals are final.
func mayChange(err error) bool {
	var owner *ownerRefusal
	var r *realm.Refusal
	if errors.As(err, &owner) || !errors.As(err, &r) {
		return false
	}
	return r.Kind == realm.Invalid || r.Kind == realm.Forbidden || r.Kind == realm.NotFound
}

// authenticateFollowing authenticates the caller of a request. If this node does not own the organization and refuses
// credentials, which may be newer than its facts, it tries once more with the facts of the owner.
func (s *Server) authenticateFollowing(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint, r *route) error {
	follows, had := s.hasOtherOwner(c), realm.Seq(0)
	if follows {
		had = s.options.Cluster.DurableSeq(c.Realm)
	}
	err := s.authenticate(ctx, c, e, r)
	if err == nil {
		return nil
	}
	if follows && forwardedOf(ctx) == nil && hasCredentials(ctx, c) && isUnauthenticated(err) {
		if err = s.limitUnauthenticated(ctx, err); isUnauthenticated(err) {
			if err = s.retryRefused(c.Realm, had, err); err == nil {
				err = s.authenticate(ctx, c, e, r)
			}
		}
		return err
	}
	return s.limitUnauthenticated(ctx, err)
}

func isUnauthenticated(err error) bool {
	var r *realm.Refusal
	return errors.As(err, &r) && r.Kind == realm.Unauthenticated
}

// hasCredentials reports whether a request names an account or a session.
func hasCredentials(ctx *fasthttp.RequestCtx, c *wire.Call) bool {
	browser := headersOfBrowser(ctx, c.Site)
	_, key := c.Params.Get("api_key")
	return key || len(ctx.Request.Header.Peek("Authorization")) > 0 || len(browser.cookieNamed(sessionCookie)) > 0
}

// run runs an endpoint. If this node does not own the organization and refuses the request because of its state, it
// runs the endpoint once more with the facts of the owner.
func (s *Server) run(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint) (any, error) {
	if !s.hasOtherOwner(c) || forwardedOf(ctx) != nil {
		return e.Run(c)
	}
	had := s.options.Cluster.DurableSeq(c.Realm)
	a, err := e.Run(c)
	if err == nil || !mayChange(err) {
		return a, err
	}
	if err = s.retryRefused(c.Realm, had, err); err != nil {
		return nil, err
	}
	return e.Run(c)
}

// setWritesCookie tells a browser up to which fact another node must wait before it serves this browser. Only the owner
// sets it; the answers to forwarded requests contain it.
func (s *Server) setWritesCookie(ctx *fasthttp.RequestCtx, c *wire.Call) {
	if s.options.Cluster == nil || c.Realm == 0 || s.hasOtherOwner(c) {
		return
	}
	seq := s.options.Cluster.DurableSeq(c.Realm)
	setCookie(ctx, c.Site, writesCookie, strconv.FormatUint(uint64(c.Realm), 10)+"."+
		strconv.FormatUint(uint64(seq), 10), writesCookieAge)
}

// parseWrites parses the value of the cookie for an organization. It returns 0 for any other value.
func parseWrites(value []byte, id realm.ID) realm.Seq {
	of, seq, _ := bytes.Cut(value, []byte("."))
	if string(of) != strconv.FormatUint(uint64(id), 10) {
		return 0
	}
	n, err := strconv.ParseUint(string(seq), 10, 64)
	if err != nil {
		return 0
	}
	return realm.Seq(n)
}

// waitForWrites waits until this node has the writes of a browser, as its cookie says. Anybody can forge the cookie: a
// number that the owner has not reached costs one question to the owner, which many requests share. If the facts do not
// arrive in time, the request is served from the present state, as it is without the cookie.
func (s *Server) waitForWrites(ctx *fasthttp.RequestCtx, host string) {
	if len(ctx.Request.Header.Peek("Cookie")) == 0 {
		return
	}
	id, site := s.options.Realms.ByHost(host)
	if id == 0 || s.options.Cluster.Owns(id) {
		return
	}
	browser := headersOfBrowser(ctx, site)
	seq := parseWrites(browser.cookieNamed(writesCookie), id)
	if seq > s.options.Cluster.DurableSeq(id) {
		_ = s.catchUp(id, seq)
	}
}
