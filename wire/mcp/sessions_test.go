package mcp

import (
	"fmt"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/wire"
)

var hello = []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)

// has reports whether a user has a session.
func (s *testServer) has(u realm.UserID, id string) bool {
	ping := []byte(`{"jsonrpc":"2.0","id":"a","method":"ping"}`)
	return s.Post(callOf(u, nil), ping, id).Status == 200
}

// TestSessionsOfManyAccounts fills a node with the sessions of few accounts. Another account gets one nevertheless, and
// no account loses its only one.
func TestSessionsOfManyAccounts(t *testing.T) {
	s := newTestServer(false)
	single := s.Post(callOf(5, nil), hello, "").Session
	const greedy = MaxSessions / MaxSessionsOfAccount
	for u := range realm.UserID(greedy) {
		for range MaxSessionsOfAccount {
			s.Post(callOf(1000+u, nil), hello, "")
		}
	}
	for u := range realm.UserID(MaxSessionsOfAccount) {
		if a := s.Post(callOf(5000+u, nil), hello, ""); a.Session == "" || !s.has(5000+u, a.Session) {
			t.Fatalf("account %d gets no session: %s", u, a.Body)
		}
	}
	// Only the last session of the last account is refused: no account has more.
	if n, refused := s.Sessions(); n != MaxSessions || refused != 1 {
		t.Errorf("%d sessions, %d were refused", n, refused)
	}
	if !s.has(5, single) {
		t.Error("an account has lost its only session, though others have many")
	}
	s.checkTable(t)

	s = newTestServer(false)
	var first string
	for u := range realm.UserID(MaxSessions) {
		if a := s.Post(callOf(1000+u, nil), hello, ""); u == 0 {
			first = a.Session
		}
	}
	if a := s.Post(callOf(5, nil), hello, ""); a.Session != "" || !s.has(1000, first) {
		t.Errorf("an account takes the only session of another one: %s", a.Body)
	}
	s.checkTable(t)
}

// checkTable compares the counts of the table with its sessions.
func (s *testServer) checkTable(t *testing.T) {
	t.Helper()
	x, n, subs := &s.sessions, 0, 0
	having := [MaxSessionsOfAccount + 1]int32{}
	for a, u := range x.accounts {
		count, own := int32(0), int32(0)
		for y := u.first; y != nil; y = y.next {
			if count++; x.list[y.id] != y || y.owner != a {
				t.Errorf("the list of an account has a session that is not its own: %+v", y)
			}
			own += int32(len(y.subs))
		}
		if count != u.count || own != u.subs || count == 0 {
			t.Errorf("an account has %d sessions and %d subscriptions, counted are %+v", count, own, u)
		}
		having[count]++
		n, subs = n+int(count), subs+int(own)
	}
	if n != len(x.list) || int64(subs) != x.subs || having != x.having ||
		x.shares.Used("1") != int64(n) || x.subShares.Used("1") != int64(subs) {
		t.Errorf("%d sessions and %d subscriptions, counted are %d and %d", n, subs, len(x.list), x.subs)
	}
}

// begun returns a new session of a user.
func (s *testServer) begun(t *testing.T, u realm.UserID) *session {
	t.Helper()
	a := s.Post(callOf(u, nil), hello, "")
	x := s.sessions.list[a.Session]
	if x == nil {
		t.Fatalf("no session: %s", a.Body)
	}
	return x
}

// TestSubscriptionsAreBounded subscribes sessions to as many resources as they can, and to one of them twice.
func TestSubscriptionsAreBounded(t *testing.T) {
	s := newTestServer(true)
	fill := func(x *session, n int) (err error) {
		for i := range n {
			if err = s.sessions.subscribe(x, subscription{fmt.Sprint(i), place{Channel: 7}}); err != nil {
				return err
			}
		}
		return nil
	}
	x := s.begun(t, 5)
	if err := fill(x, 10); err != nil || fill(x, 10) != nil || len(x.subs) != 10 {
		t.Errorf("twice 10 resources are %d subscriptions, %v", len(x.subs), err)
	}
	s.sessions.unsubscribe(x, "3")
	s.sessions.unsubscribe(x, "3")
	if len(x.subs) != 9 {
		t.Errorf("%d subscriptions after one has ended", len(x.subs))
	}
	if err := fill(x, MaxSubscriptions+1); err == nil || len(x.subs) != MaxSubscriptions {
		t.Errorf("a session has %d subscriptions, %v", len(x.subs), err)
	}
	s.checkTable(t)
	var last error
	for range MaxSubscriptionsOfAccount / MaxSubscriptions {
		last = fill(s.begun(t, 5), MaxSubscriptions)
	}
	if last == nil || s.sessions.subs != MaxSubscriptionsOfAccount {
		t.Errorf("an account has %d subscriptions, %v", s.sessions.subs, last)
	}
	s.checkTable(t)
	s.End(callOf(5, nil), x.id)
	if err := fill(s.begun(t, 5), MaxSubscriptions); err != nil {
		t.Errorf("after a session has ended: %v", err)
	}
	if err := s.sessions.subscribe(x, subscription{"x", place{}}); err == nil {
		t.Error("a session that has ended gets a subscription")
	}
	for u := range realm.UserID(20) {
		for range MaxSubscriptionsOfAccount / MaxSubscriptions {
			last = fill(s.begun(t, 100+u), MaxSubscriptions)
		}
	}
	if n, refused := s.Subscriptions(); last == nil || n != MaxSubscriptionsOfNode/2 || refused == 0 {
		t.Errorf("one of several organizations has %d subscriptions, %d were refused, %v", n, refused, last)
	}
	s.checkTable(t)
	s.now = s.now.Add(sessionIdle + sweepInterval)
	s.begun(t, 5)
	s.checkTable(t)
	if n, _ := s.Subscriptions(); n != 0 {
		t.Errorf("%d subscriptions after a day", n)
	}
}

// TestURIsAreBounded checks the largest subscription that the comment of MaxSubscriptionsOfNode names.
func TestURIsAreBounded(t *testing.T) {
	long := "parley://channel/7/topic/" + strings.Repeat("%F0%9F%8D%B2", realm.MaxTopic)
	p, ok := parseURI(long)
	if !ok || len(*p.Topic) != 4*realm.MaxTopic {
		t.Errorf("a topic of %d characters: %t", realm.MaxTopic, ok)
	}
	for _, uri := range []string{long + "x", "parley://channel/7/topic/" + strings.Repeat("x", realm.MaxTopic+1),
		"parley://channel/7/topic/a\x01b"} {
		if _, ok := parseURI(uri); ok {
			t.Errorf("%q is accepted", uri)
		}
	}
}

// BenchmarkInitialize begins sessions while the node is full: every other one ends a session of the account with the
// most.
func BenchmarkInitialize(b *testing.B) {
	s := newTestServer(false)
	n := 0
	s.options.Token = func(int) string { n++; return fmt.Sprint(n) }
	call := func(u int) *wire.Call { return callOf(realm.UserID(u), nil) }
	for u := range MaxSessions / 2 {
		s.begin(call(u))
		s.begin(call(u))
	}
	for i := 0; b.Loop(); i++ {
		s.begin(call(MaxSessions + i%(MaxSessions/4)))
	}
}
