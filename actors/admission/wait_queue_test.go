package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const second = time.Second

type account = Account[int64]

// take removes all items and returns them in their order.
func take(r *WaitQueue[int64, string]) string {
	var out []string
	for {
		x, _, ok := r.Next(0)
		if !ok {
			return strings.Join(out, " ")
		}
		out = append(out, x)
	}
}

func mustAdd(t *testing.T, r *WaitQueue[int64, string], a account, items ...string) {
	t.Helper()
	for _, x := range items {
		if refused, full := r.Add(a, x, 0); full {
			t.Fatalf("%s refused for %s", refused, x)
		}
	}
}

// Accounts take turns, so one that floods delays another by one item; people come before bots.
func TestRoomIsFair(t *testing.T) {
	r := NewWaitQueue[int64, string](100, 50)
	mustAdd(t, r, account{User: 9, Bot: true}, "bot1", "bot2")
	mustAdd(t, r, account{User: 1}, "flood1", "flood2", "flood3", "flood4")
	mustAdd(t, r, account{User: 2}, "ann1", "ann2")
	mustAdd(t, r, account{User: 8, Bot: true}, "other")
	mustAdd(t, r, account{User: 3}, "bo1")
	if got, want := take(r), "flood1 ann1 bo1 flood2 ann2 flood3 flood4 bot1 other bot2"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
	if r.Len() != 0 {
		t.Errorf("%d items left", r.Len())
	}
}

// A full room refuses the newest item of the account with the most, and a bot's before a person's.
func TestFullRoom(t *testing.T) {
	r := NewWaitQueue[int64, string](4, 3)
	mustAdd(t, r, account{User: 1}, "flood1", "flood2", "flood3")
	if x, full := r.Add(account{User: 1}, "flood4", 0); !full || x != "flood4" {
		t.Errorf("an account with its share: %q, %v", x, full)
	}
	mustAdd(t, r, account{User: 9, Bot: true}, "bot1")
	for _, c := range []struct {
		account       account
		item, refused string
	}{
		{account{User: 8, Bot: true}, "other", "other"}, // no bot has more
		{account{User: 2}, "ann1", "bot1"},
		{account{User: 3}, "bo1", "flood3"},
		{account{User: 9, Bot: true}, "bot2", "bot2"},
		{account{User: 4}, "cy1", "flood2"},
		{account{User: 5}, "di1", "di1"}, // all have one
	} {
		if x, full := r.Add(c.account, c.item, 0); !full || x != c.refused {
			t.Errorf("adding %s refuses %q (%v), want %q", c.item, x, full, c.refused)
		}
	}
	if got, want := take(r), "flood1 ann1 bo1 cy1"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
}

// Items that have waited too long leave, the others stay in their order.
func TestRoomExpires(t *testing.T) {
	r := NewWaitQueue[int64, string](100, 50)
	for i := range 6 {
		r.Add(account{User: int64(i % 3), Bot: i%3 == 2}, fmt.Sprint(i), time.Duration(i)*second)
	}
	if got := r.Expire(3 * second); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("expired %v", got)
	}
	if _, waited, _ := r.Next(5 * second); waited != 2*second {
		t.Errorf("the next item waited %v", waited)
	}
	if got := take(r); got != "4 5" || r.Len() != 0 {
		t.Errorf("left %q, %d", got, r.Len())
	}
}
