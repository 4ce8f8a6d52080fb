package realm_test

import (
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// Every connected user is told that the server has another page, and nothing else changes.
func TestChangeWebApp(t *testing.T) {
	s := newTestScene(t)
	do(s, realmtest.System, ChangeWebApp{})
	for _, u := range []UserID{s.ann, s.owner} {
		s.ExpectEvents(u, "web_reload_client")
	}
}

// The newest message of a channel is the newest one that the caller can read: not one from before the caller came to a
// channel with a protected history.
func TestNewestVisibleIn(t *testing.T) {
	s := newTestScene(t)
	bo := s.Join("Bo R")
	open, closed := s.channel("plaza", NewChannel{}, s.ann), s.channel("cave", NewChannel{Private: true}, s.ann)
	newest := func(u UserID, c ChannelID) MessageID { return s.ViewAs(u).NewestVisibleIn(c) }
	if got := newest(s.ann, open); got != 0 {
		t.Errorf("an empty channel: %d", got)
	}
	s.post(s.ann, open, "a", "x")
	a, b := s.post(s.ann, open, "a", "x"), s.post(s.ann, closed, "a", "x")
	s.join(bo, closed)
	for _, x := range []struct {
		u    UserID
		c    ChannelID
		want MessageID
	}{{s.ann, open, a}, {bo, open, a}, {s.ann, closed, b}, {bo, closed, 0}, {bo, 999, 0}} {
		if got := newest(x.u, x.c); got != x.want {
			t.Errorf("user %d, channel %d: %d, want %d", x.u, x.c, got, x.want)
		}
	}
	c := s.post(s.ann, closed, "a", "x")
	if got := newest(bo, closed); got != c {
		t.Errorf("after the caller came: %d, want %d", got, c)
	}
}
