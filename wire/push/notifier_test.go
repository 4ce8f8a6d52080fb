package push

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
)

const then = 1_700_000_000

// fakeServer is a realm without actors and disk. It runs every turn at once.
type fakeServer struct {
	wire.Server
	t                 *testing.T
	mu                sync.Mutex
	r                 *realm.Realm
	texts             map[realm.BodyRef]realm.Body
	active, delivered bool // the result of DeliveryState for every user
}

func (s *fakeServer) Turn(_ realm.ID, c realm.Caller, decide func(*realm.Turn) (any, error)) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, facts, _, err := realm.RunTurn(
		s.r,
		c,
		realm.TurnEnv{
			Now:         then,
			PushEnabled: true,
			Token:       func(n int) string { return strings.Repeat("t", n) },
			UUID:        func() string { return "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee" },
			Hash:        func(string) (h [32]byte) { return h },
		},
		decide,
	)
	for _, f := range facts {
		if m, ok := f.(*realm.MessageSent); ok {
			s.texts[realm.BodyRef{Message: m.ID}] = m.Body
		}
	}
	return a, err
}

func (s *fakeServer) View(_ realm.ID, c realm.Caller, read func(realm.View) (any, error)) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return read(s.r.ViewAs(c, then))
}

func (s *fakeServer) Text(_ realm.ID, ref realm.BodyRef) (realm.Body, bool, error) {
	b, ok := s.texts[ref]
	return b, ok, nil
}

func (s *fakeServer) DeliveryState(realm.ID, realm.UserID, realm.Seq) (active, delivered bool) {
	return s.active, s.delivered
}

// service is a push service that answers with the errors in order, and repeats the last one.
type service struct {
	Service
	errs []error
	sent chan notification
}

func (p *service) notify(n notification) (left notification, answer wire.PushAnswer, err error) {
	if err = p.errs[0]; len(p.errs) > 1 {
		p.errs = p.errs[1:]
	}
	p.sent <- n
	if errors.Is(err, wire.ErrDeviceUnknown) {
		return left, wire.PushAnswer{Tokens: n.tokens}, nil
	}
	return n, answer, err
}

func runCommand[A any](s *fakeServer, c realm.Caller, cmd realm.Command[A]) A {
	s.t.Helper()
	a, err := s.Turn(1, c, func(t *realm.Turn) (any, error) {
		a, err := cmd.Decide(t)
		return a, err
	})
	if err != nil {
		s.t.Fatalf("%T: %v", cmd, err)
	}
	v, _ := a.(A)
	return v
}

// newFakeServer returns a realm with a message from Ann to Bo. Bo has a phone.
func newFakeServer(t *testing.T) (s *fakeServer, bo realm.UserID) {
	s = &fakeServer{t: t, r: realm.New(1), texts: map[realm.BodyRef]realm.Body{}}
	system := realm.Caller{System: true}
	runCommand(s, system, realm.FoundRealm{Name: "Acme"})
	ann := runCommand(s, system, realm.CreateUser{Name: "Ann", Email: "ann@example.org"})
	bo = runCommand(s, system, realm.CreateUser{Name: "Bo", Email: "bo@example.org"})
	runCommand(s, realm.Caller{User: bo, Client: "t"}, realm.AddPushToken{Kind: realm.PushFCM, Token: "phone"})
	runCommand(s, realm.Caller{User: ann, Client: "t"},
		realm.SendMessage{People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "hi", HTML: "<p>hi</p>"}})
	return s, bo
}

func (s *fakeServer) outboxLength() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.r.ViewAs(realm.Caller{System: true}, then).OutboxJobs())
}

func (s *fakeServer) notifier(p *service) *Notifier {
	return &Notifier{
		Options{
			Pusher:      p,
			Server:      s,
			Log:         slog.New(slog.DiscardHandler),
			Now:         func() time.Time { return time.Unix(then, 0) },
			RetryPauses: []time.Duration{time.Millisecond, time.Millisecond},
		},
	}
}

func (s *fakeServer) job() *dispatch.Attempt {
	return &dispatch.Attempt{Realm: 1, Number: 1, Job: s.r.ViewAs(realm.Caller{System: true}, then).OutboxJobs()[0]}
}

func TestNotifierRetries(t *testing.T) {
	down := errors.New("down")
	for name, x := range map[string]struct {
		errs   []error
		sent   int
		tokens int // that Bo has at the end
	}{
		"at once":     {[]error{nil}, 1, 1},
		"at last":     {[]error{down, down, nil}, 3, 1},
		"never":       {[]error{down}, 3, 1},
		"refused":     {[]error{wire.ErrPushRefused}, 1, 1},
		"dead device": {[]error{wire.ErrDeviceUnknown}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, bo := newFakeServer(t)
			p := &service{errs: x.errs, sent: make(chan notification, 100)}
			c := dispatch.New(dispatch.Options{
				Server:   s,
				Site:     func(realm.ID) wire.Site { return wire.Site{URL: "https://chat.example.org"} },
				Handlers: map[realm.OutboxJobKind]dispatch.Handler{realm.OutboxPush: s.notifier(p)},
			})
			c.Begin(1)
			c.Start(0)
			for range x.sent {
				select {
				case n := <-p.sent:
					if n.fcm["content"] != "hi" || n.fcm["realm_url"] != "https://chat.example.org" ||
						n.key != "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee-1" {
						t.Errorf("sent %v as %s", n.fcm, n.key)
					}
				case <-time.After(time.Minute):
					t.Fatal("nothing more was sent")
				}
			}
			for end := time.Now().Add(time.Minute); s.outboxLength() > 0 && time.Now().Before(end); {
				time.Sleep(time.Millisecond) // the dispatcher finishes the job after the last attempt
			}
			c.Close(context.Background())
			if len(p.sent) != 0 || s.outboxLength() != 0 || len(s.r.PushTokensOf(bo)) != x.tokens {
				t.Errorf("%d sent too often, %d jobs left, %d devices",
					len(p.sent), s.outboxLength(), len(s.r.PushTokensOf(bo)))
			}
		})
	}
}

func TestActiveUserIsNotifiedOnlyIfUndelivered(t *testing.T) {
	s, bo := newFakeServer(t)
	p := &service{errs: []error{nil}, sent: make(chan notification, 10)}
	c := s.notifier(p)
	runCommand(s, realm.Caller{User: bo, Client: "t"},
		realm.ChangeSettings{Values: []realm.SettingValue{{Name: "enable_online_push_notifications", Value: false}}})
	s.active = true
	if out := c.Handle(context.Background(), s.job()); out.RetryAfter == 0 || len(p.sent) != 0 {
		t.Errorf("undelivered: %+v, %d sent", out, len(p.sent))
	}
	s.delivered = true
	if out := c.Handle(context.Background(), s.job()); out != (dispatch.Outcome{}) || len(p.sent) != 0 {
		t.Errorf("delivered: %+v, %d sent", out, len(p.sent))
	}
	s.active, s.delivered = false, false
	if out := c.Handle(context.Background(), s.job()); !out.NotificationShown || len(p.sent) != 1 {
		t.Errorf("inactive: %+v, %d sent", out, len(p.sent))
	}
	old := s.job()
	old.Job.At -= 2 * 24 * 3600
	if out := c.Handle(context.Background(), old); out != (dispatch.Outcome{}) || len(p.sent) != 1 {
		t.Errorf("two days later: %+v, %d sent", out, len(p.sent))
	}
}

func TestLeftoverJobsRunFirst(t *testing.T) {
	s, bo := newFakeServer(t)
	ann := realm.Caller{User: bo - 1, Client: "t"}
	runCommand(s, ann,
		realm.SendMessage{People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "again", HTML: "<p>again</p>"}})
	all := s.r.ViewAs(realm.Caller{System: true}, then).OutboxJobs()
	p := &service{errs: []error{nil}, sent: make(chan notification, 100)}
	c := dispatch.New(dispatch.Options{
		Server:   s,
		Site:     func(realm.ID) wire.Site { return wire.Site{} },
		Handlers: map[realm.OutboxJobKind]dispatch.Handler{realm.OutboxPush: s.notifier(p)},
	})
	defer c.Close(context.Background())
	c.Begin(1)
	c.AddJobs(1, wire.Site{}, &realm.OutboxJobsAdded{List: all[1:]})
	c.Start(0)
	for _, want := range []string{"hi", "again"} {
		select {
		case n := <-p.sent:
			if n.fcm["content"] != want {
				t.Errorf("sent %v, want %q", n.fcm["content"], want)
			}
		case <-time.After(time.Minute):
			t.Fatal("nothing more was sent")
		}
	}
}

// Only the owner of an organization sends its notifications. A node that becomes the owner sends those that wait.
func TestOnlyTheOwnerSends(t *testing.T) {
	s, _ := newFakeServer(t)
	p := &service{errs: []error{nil}, sent: make(chan notification, 100)}
	c := dispatch.New(dispatch.Options{
		Server:   s,
		Site:     func(realm.ID) wire.Site { return wire.Site{} },
		Handlers: map[realm.OutboxJobKind]dispatch.Handler{realm.OutboxPush: s.notifier(p)},
	})
	defer c.Close(context.Background())
	c.Start(0)
	all := s.r.ViewAs(realm.Caller{System: true}, then).OutboxJobs()
	add := func() { c.AddJobs(1, wire.Site{}, &realm.OutboxJobsAdded{List: all}) }
	expectNothing := func(when string) {
		t.Helper()
		select {
		case n := <-p.sent:
			t.Fatalf("%s: sent %v", when, n)
		case <-time.After(50 * time.Millisecond):
		}
	}
	add()
	expectNothing("before the node is the owner")
	c.Begin(1)
	for range all {
		select {
		case <-p.sent:
		case <-time.After(time.Minute):
			t.Fatal("the new owner sends nothing")
		}
	}
	c.End(1)
	add()
	expectNothing("after the organization got another owner")
}
