package push

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"net/http"

	"parley/actors/realm"
	"parley/wire"
)

// roundTrips answers requests without a network.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// webPusher returns a pusher for browsers whose requests a function answers with a status; 0: no connection.
func webPusher(t *testing.T, status func(host string) int) *Pusher {
	return newPusher(t, Config{Web: WebConfig{Key: NewWebKey([]byte("secret")), Contact: "ops@example.com",
		Client: &http.Client{Transport: roundTrips(func(r *http.Request) (*http.Response, error) {
			code := status(r.URL.Host)
			if code == 0 {
				return nil, errors.New("no connection")
			}
			return &http.Response{StatusCode: code, Body: http.NoBody, Request: r}, nil
		})}}})
}

// A subscription that fails again and again is removed, whatever the failure is; one that works in between is not. Many
// failures at once count as one, so a push service that is away for some minutes loses no subscription.
func TestFailingBrowserIsRemoved(t *testing.T) {
	for _, failure := range []int{0, 403, 413, 429, 500, 503} {
		synctest.Test(t, func(t *testing.T) {
			status := failure
			p := webPusher(t, func(string) int { return status })
			d := newSubscriber(t).token("https://push.test/1")
			removed := func() bool {
				_, answer, _ := p.notify(notice(false, d))
				return len(answer.Tokens) == 1
			}
			for range 3 * MaxWebFailures {
				if removed() {
					t.Fatalf("%d: removed after failures at once", failure)
				}
			}
			for range MaxWebFailures - 2 {
				time.Sleep(webFailureStep)
				if removed() {
					t.Fatalf("%d: removed too early", failure)
				}
			}
			status = 201
			removed()
			status = failure
			for i := range MaxWebFailures {
				time.Sleep(webFailureStep)
				if got, want := removed(), i == MaxWebFailures-1; got != want {
					t.Errorf("%d: failure %d after a success: removed %v, want %v", failure, i+1, got, want)
				}
			}
		})
	}
}

// One push host gets few notifications at once, whatever its subdomains and ports; others get theirs. Those that were
// too many are tried again, and are no failures of the subscription.
func TestPushHostIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		p := webPusher(t, func(host string) int {
			if host != "other.test" {
				sent++
			}
			return 201
		})
		browser := newSubscriber(t)
		try := func(n int) (refused []realm.PushToken) {
			for i := range n {
				d := browser.token(fmt.Sprintf("https://push%d.victim.test:%d/%d", i, 1000+i, i))
				if left, _, err := p.notify(notice(false, d)); err != nil {
					if !errors.Is(err, wire.ErrPushFailed) {
						t.Fatal(err)
					}
					refused = append(refused, left.tokens...)
				}
			}
			return refused
		}
		if refused := try(maxWebBurst + 7); sent != maxWebBurst || len(refused) != 7 {
			t.Errorf("sent %d, to be tried again %d", sent, len(refused))
		}
		if _, _, err := p.notify(notice(false, browser.token("https://other.test/"))); err != nil {
			t.Errorf("another host: %v", err)
		}
		time.Sleep(time.Second)
		if sent = 0; len(try(WebPerSecond+3)) != 3 || sent != WebPerSecond {
			t.Errorf("a second later: sent %d", sent)
		}
	})
}

// The counts are bounded.
func TestWebHostsAreBounded(t *testing.T) {
	var r recent[int]
	for i := range 1000 {
		r.put(fmt.Sprint(i), i, 10)
		if n := len(r.young) + len(r.old); n > 10 {
			t.Fatalf("%d values", n)
		}
		if v, ok := r.get(fmt.Sprint(max(0, i-4))); !ok || v != max(0, i-4) {
			t.Fatalf("a value that was just stored is lost: %d, %v", v, ok)
		}
	}
}

// A browser that fails is tried few times, because the notifications of the user's phones wait meanwhile; a phone that
// fails is tried as often as the pauses say, and so is a browser whose push host gets enough.
func TestBrowserIsRetriedLess(t *testing.T) {
	pauses := []time.Duration{1, 2, 3, 4}
	browser, phone := realm.PushToken{Kind: realm.PushWeb, Token: "b"}, realm.PushToken{Kind: realm.PushFCM, Token: "p"}
	down := fmt.Errorf("%w: down", wire.ErrPushFailed)
	for name, x := range map[string]struct {
		left    []realm.PushToken
		devices []realm.Device
		err     error
		retries int
	}{
		"browser":                    {[]realm.PushToken{browser}, nil, down, maxWebRetries},
		"phone":                      {[]realm.PushToken{phone}, nil, down, len(pauses)},
		"both":                       {[]realm.PushToken{browser, phone}, nil, down, len(pauses)},
		"browser and encrypted":      {[]realm.PushToken{browser}, []realm.Device{{ID: 1}}, down, len(pauses)},
		"browser of a host too busy": {[]realm.PushToken{browser}, nil, errHostBusy, len(pauses)},
	} {
		s, _ := newFakeServer(t)
		h := s.notifier(&service{errs: []error{x.err}, sent: make(chan notification, 100)})
		h.RetryPauses = pauses
		a, retries := s.job(), 0
		for h.send(a, notification{tokens: x.left, devices: x.devices}).RetryAfter > 0 {
			a.Number++
			retries++
		}
		if retries != x.retries {
			t.Errorf("%s: tried again %d times, want %d", name, retries, x.retries)
		}
	}
}

// A device that was removed after the first attempt, such as a browser that was logged out, is not tried again.
func TestRemovedDeviceIsNotRetried(t *testing.T) {
	s, bo := newFakeServer(t)
	p := &service{errs: []error{fmt.Errorf("%w: down", wire.ErrPushFailed)}, sent: make(chan notification, 100)}
	h, a := s.notifier(p), s.job()
	first := h.Handle(t.Context(), a)
	a.Number, a.State = 2, first.State
	if second := h.Handle(t.Context(), a); len(p.sent) != 2 || second.RetryAfter == 0 {
		t.Fatalf("a device that remains: %d attempts, %+v", len(p.sent), second)
	}
	runCommand(s, realm.Caller{User: bo, Client: "t"}, realm.RemovePushToken{Kind: realm.PushFCM, Token: "phone"})
	a.Number = 3
	if third := h.Handle(t.Context(), a); len(p.sent) != 2 || third.RetryAfter != 0 {
		t.Errorf("a removed device: %d attempts, %+v", len(p.sent), third)
	}
}

// A push service that refuses one browser does not stop the attempts for another one that fails for now.
func TestRefusedBrowserAndFailingOne(t *testing.T) {
	for _, hosts := range [][2]string{{"refused.test", "down.test"}, {"down.test", "refused.test"}} {
		p := webPusher(t, func(host string) int {
			if host == "refused.test" {
				return 403
			}
			return 503
		})
		b := newSubscriber(t)
		left, _, err := p.notify(notice(false, b.token("https://"+hosts[0]+"/"), b.token("https://"+hosts[1]+"/")))
		if len(left.tokens) != 1 || left.tokens[0].Token != "https://down.test/" || errors.Is(err,
			wire.ErrPushRefused) {
			t.Errorf("%v: to be tried again %v, %v", hosts, left.tokens, err)
		}
	}
}
