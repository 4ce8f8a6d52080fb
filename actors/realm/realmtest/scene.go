// Package realmtest plays scenes: people do things in an organization, and others hear of it or do not. When a scene
// ends, its encoded facts are replayed into a fresh organization, which must have the same rows and tell the same.
package realmtest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/snapshot/codec"
)

// StartTime is the time a scene starts at.
const StartTime = 1_700_000_000

// System is the server itself, as somebody who asks.
const System realm.UserID = 0

// Scene is one organization and what was last said in it. Everybody who joins listens with a queue.
type Scene struct {
	T     testing.TB
	Realm *realm.Realm
	Now   int64
	// Pushes: there is a service that notifies phones.
	Pushes bool
	// Bouncer: that service passes notifications on for us.
	Bouncer bool
	// Mails: missed messages are told by mail.
	Mails bool

	recorded []recordedFact
	told     []realm.Told // of the last Do or ExpectRefusal
	tokens   int
}

// recordedFact is one encoded fact, when it was recordedFact, and what it told.
type recordedFact struct {
	at      int64
	fact    []byte
	texts   map[realm.BodyRef]*realm.Body
	notices []any
}

// New founds an organization; the scene checks itself when the test ends.
func New(t testing.TB) *Scene {
	s := &Scene{T: t, Realm: realm.New(1), Now: StartTime}
	Do(s, System, realm.FoundRealm{Name: "Scene"})
	t.Cleanup(func() {
		if !t.Failed() {
			s.checkRecovery()
		}
	})
	return s
}

// Advance lets time pass.
func (s *Scene) Advance(seconds int64) { s.Now += seconds }

// Join makes an account that listens; without a role it is a member.
func (s *Scene) Join(name string, role ...realm.Role) realm.UserID {
	s.T.Helper()
	c := realm.CreateUser{Name: name, Email: strings.ToLower(strings.ReplaceAll(name, " ", ".")) + "@example.com"}
	if len(role) > 0 {
		c.Role = role[0]
	}
	u := Do(s, System, c)
	s.OpenQueue(u)
	return u
}

// JoinBot makes a generic bot of somebody's that listens.
func (s *Scene) JoinBot(name string, owner realm.UserID) realm.UserID {
	s.T.Helper()
	u := Do(s, System, realm.CreateUser{Name: name, Email: strings.ToLower(strings.ReplaceAll(name, " ", ".")) + "-bot@example.com", Role: realm.Member, Bot: realm.GenericBot, BotOwner: owner})
	s.OpenQueue(u)
	return u
}

// OpenQueue opens a queue that takes everything.
func (s *Scene) OpenQueue(u realm.UserID) realm.QueueID {
	s.T.Helper()
	r := Do(s, u, realm.Register{Queue: realm.Queue{Caps: 1<<12 - 1, Subscribers: "true"}, State: func(realm.View, *realm.Queue) (any, error) { return nil, nil }})
	return r.Queue.ID
}

// ViewAs is the organization as somebody sees it.
func (s *Scene) ViewAs(u realm.UserID) realm.View {
	s.Realm.SetClock(s.Now)
	return s.Realm.ViewAs(callerOf(u), s.Now)
}

func callerOf(u realm.UserID) realm.Caller {
	return realm.Caller{User: u, Client: "scene", System: u == System}
}

func (s *Scene) turnEnv() realm.TurnEnv {
	return realm.TurnEnv{Now: s.Now, PushEnabled: s.Pushes, PushBouncer: s.Bouncer, EmailEnabled: s.Mails, Token: func(n int) string {
		s.tokens++
		return fmt.Sprintf("%0*d", n, s.tokens)
	}, UUID: func() string {
		s.tokens++
		return fmt.Sprintf("00000000-0000-4000-8000-%012d", s.tokens)
	}, APIKey: func(u realm.UserID, epoch int64) string { return fmt.Sprintf("key-%d-%d", u, epoch) }, InviteLinkToken: func(id int64) string { return fmt.Sprintf("link-%d", id) }, Hash: func(secret string) (h [32]byte) {
		copy(h[:], secret)
		return h
	}}
}

// Try gives a command its turn and returns what came of it.
func Try[A any](s *Scene, u realm.UserID, c realm.Command[A]) (A, error) {
	return RunTurn(s, u, c.Decide)
}

// RunTurn is Try for what is not a command.
func RunTurn[A any](s *Scene, u realm.UserID, decide func(*realm.Turn) (A, error)) (A, error) {
	s.Realm.SetClock(s.Now)
	before := s.Realm.Seq()
	a, facts, told, err := realm.RunTurn(s.Realm, callerOf(u), s.turnEnv(), decide)
	s.told = told
	at := map[realm.Seq][]any{}
	for _, x := range told {
		if !x.Ephemeral {
			at[x.Seq] = encodeNotices(x)
		}
	}
	for i, f := range facts {
		p := recordedFact{at: s.Now, fact: codec.EncodeFact(f), notices: at[before+realm.Seq(i)+1]}
		if w, ok := f.(realm.TextWriter); ok {
			p.texts = maps.Collect(w.Bodies())
		}
		s.recorded = append(s.recorded, p)
	}
	return a, err
}

// Do plays a command that must not be refused.
func Do[A any](s *Scene, u realm.UserID, c realm.Command[A]) A {
	s.T.Helper()
	a, err := Try(s, u, c)
	if err != nil {
		s.T.Fatalf("%T by user %d refused: %v", c, u, err)
	}
	return a
}

// ExpectRefusal plays a command that must be refused with that text or code, and change nothing.
func ExpectRefusal[A any](s *Scene, u realm.UserID, c realm.Command[A], want string) {
	s.T.Helper()
	before := s.Realm.Seq()
	_, err := Try(s, u, c)
	var r *realm.Refusal
	if !errors.As(err, &r) {
		s.T.Fatalf("%T by user %d: got %v, want the refusal %q", c, u, err, want)
	}
	if r.Msg != want && r.Code != want {
		s.T.Fatalf("%T by user %d: refused as %s %q, want %q", c, u, r.Code, r.Msg, want)
	}
	if s.Realm.Seq() != before {
		s.T.Fatalf("%T by user %d recorded facts and refused", c, u)
	}
}

// ListEvents is the events a user was told by the last command, in order.
func (s *Scene) ListEvents(u realm.UserID) []realm.Event {
	var out []realm.Event
	for _, t := range s.told {
		for _, n := range t.Notices {
			for _, to := range n.To {
				if to == u && n.Event.EventType() != "" {
					out = append(out, n.Event)
				}
			}
		}
	}
	return out
}

// ListEventsOf is the events of one Go type that a user was told by the last command.
func ListEventsOf[E realm.Event](s *Scene, u realm.UserID) []E {
	var out []E
	for _, e := range s.ListEvents(u) {
		if x, ok := e.(E); ok {
			out = append(out, x)
		}
	}
	return out
}

// ExpectEvents requires that the last command told a user exactly these types of events, in this order: "stream", "message".
func (s *Scene) ExpectEvents(u realm.UserID, types ...string) {
	s.T.Helper()
	got := []string{}
	for _, e := range s.ListEvents(u) {
		got = append(got, e.EventType())
	}
	if strings.Join(got, " ") != strings.Join(types, " ") {
		s.T.Fatalf("user %d heard %v, want %v", u, got, types)
	}
}

// ExpectNoEvents requires that the last command told these users nothing.
func (s *Scene) ExpectNoEvents(users ...realm.UserID) {
	s.T.Helper()
	for _, u := range users {
		s.ExpectEvents(u)
	}
}

// checkRecovery plays the encoded facts into a fresh organization, and loads the rows into another.
func (s *Scene) checkRecovery() {
	s.T.Helper()
	twin := realm.New(1)
	for i, p := range s.recorded {
		f, err := codec.DecodeFact(p.fact)
		if err != nil {
			s.T.Fatalf("fact %d: %v", i+1, err)
		}
		twin.SetClock(p.at)
		told := twin.Replay(f)
		var got []any
		if len(told.Notices) > 0 {
			got = encodeNotices(told)
		}
		if !reflect.DeepEqual(got, p.notices) {
			s.T.Fatalf("fact %d (%T) tells something else when replayed:\n  then %v\n  now  %v", i+1, f, p.notices, got)
		}
	}
	for name, other := range map[string]*realm.Realm{"replayed": twin, "loaded": s.loadRows()} {
		want, got := encodeRows(s.Realm), encodeRows(other)
		for k, v := range want {
			if !reflect.DeepEqual(got[k], v) {
				s.T.Errorf("%s: row %s differs:\n  then %v\n  now  %v", name, k, v, got[k])
			}
		}
		for k := range got {
			if _, ok := want[k]; !ok {
				s.T.Errorf("%s: has row %s too many", name, k)
			}
		}
		s.T.Helper()
		if a, b := s.Realm.Derived(), other.Derived(); !reflect.DeepEqual(a, b) {
			for k := range a {
				if !reflect.DeepEqual(a[k], b[k]) {
					s.T.Errorf("%s: derived %s differs:\n  then %v\n  now  %v", name, k, a[k], b[k])
				}
			}
			for k := range b {
				if _, ok := a[k]; !ok {
					s.T.Errorf("%s: derived %s too many: %v", name, k, b[k])
				}
			}
		}
	}
}

// Restart goes on with what the organization's rows say.
func (s *Scene) Restart() { s.Realm = s.loadRows() }

// loadRows is the organization made anew from its rows.
func (s *Scene) loadRows() *realm.Realm {
	s.T.Helper()
	r := realm.New(1)
	r.SetClock(s.Now)
	s.Realm.EachRow(func(table uint16, key, row any) {
		if err := r.LoadRow(table, codec.Decoder(codec.EncodeKey(key)), codec.Decoder(codec.EncodeRow(row))); err != nil {
			s.T.Fatalf("load row %v of table %d: %v", key, table, err)
		}
	})
	r.SetSeq(s.Realm.Seq(), realm.RunSequentially)
	return r
}

func encodeRows(r *realm.Realm) map[string]any {
	out := map[string]any{}
	r.EachRow(func(table uint16, key, row any) {
		out[fmt.Sprintf("%d/%v", table, key)] = decodePlain(codec.EncodeRow(row))
	})
	return out
}

// encodeNotices is what a fact told, comparable.
func encodeNotices(t realm.Told) (out []any) {
	for _, n := range t.Notices {
		out = append(out, n.To, n.PublicOnly, realm.NumberOf(n.Event), decodePlain(codec.EncodeFact(n.Event)[2:]))
	}
	return out
}

// decodePlain is encoded data without the order maps happened to be written in.
func decodePlain(encoded []byte) any {
	var x any
	if err := codec.Decoder(encoded)(&x); err != nil {
		slices.Sort(encoded) // a map whose keys are no texts: compared without order, which still finds lost or new bytes
		return encoded
	}
	return x
}
