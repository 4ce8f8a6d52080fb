package httpd

import (
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// A session can make API keys for ten minutes after its user has entered the password: no other session can, and no
// session of another organization with the same id. The number of remembered sessions has a limit, and the newest is
// always among them.
func TestConfirmedPasswords(t *testing.T) {
	call := func(id realm.ID, session int64) *wire.Call {
		return &wire.Call{Realm: id, Session: &realm.BrowserSession{ID: session}}
	}
	var l confirmedPasswords
	start := time.Unix(1_000_000, 0)
	l.add(call(1, 7), start)
	l.add(&wire.Call{Realm: 1}, start)
	for _, c := range []struct {
		name string
		call *wire.Call
		at   time.Duration
		want bool
	}{
		{"at once", call(1, 7), 0, true},
		{"before the end", call(1, 7), confirmedTime - time.Second, true},
		{"at the end", call(1, 7), confirmedTime, false},
		{"another session", call(1, 8), 0, false},
		{"another organization", call(2, 7), 0, false},
		{"no session", &wire.Call{Realm: 1}, 0, false},
	} {
		if got := l.has(c.call, start.Add(c.at)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	for i := range int64(MaxConfirmedSessions) {
		l.list[confirmedSession{3, i}] = start
	}
	l.add(call(1, 9), start)
	if !l.has(call(1, 9), start) {
		t.Error("the newest session was forgotten")
	}
	if len(l.list) > MaxConfirmedSessions {
		t.Errorf("%d sessions are remembered", len(l.list))
	}
	l.add(call(1, 1), start.Add(confirmedTime))
	if len(l.list) != 1 {
		t.Errorf("%d expired sessions are remembered", len(l.list)-1)
	}
}
