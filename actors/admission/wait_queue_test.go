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

// A person and the person's bots share one limit. The person's own items replace those of the bots.
func TestBotsWaitWithinTheLimitOfTheirOwner(t *testing.T) {
	r := NewWaitQueue[int64, string](100, 3)
	mustAdd(t, r, account{User: 1, Bot: true}, "bot1", "bot2", "bot3")
	if x, full := r.Add(account{User: 1, Bot: true}, "bot4", 0); !full || x != "bot4" {
		t.Errorf("a fourth item of the bots: %q, %v", x, full)
	}
	for n, refused := range []string{"bot3", "bot2", "bot1", "own4"} {
		own := fmt.Sprint("own", n+1)
		if x, full := r.Add(account{User: 1}, own, 0); !full || x != refused {
			t.Errorf("adding %s refuses %q (%v), want %q", own, x, full, refused)
		}
	}
	if x, full := r.Add(account{User: 1, Bot: true}, "bot5", 0); !full || x != "bot5" {
		t.Errorf("an item of a bot whose owner has the limit: %q, %v", x, full)
	}
	mustAdd(t, r, account{User: 2, Bot: true}, "other")
	if got, want := take(r), "own1 own2 own3 other"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
}

// An organization leaves places of a shared queue to the others. Within its part, the account with the most loses.
func TestOrganizationLeavesPlaces(t *testing.T) {
	r := NewSharedWaitQueue[int64, string](8, 4, 4)
	a := func(u int64) account { return account{User: u, Organization: "a"} }
	mustAdd(t, r, a(1), "flood1", "flood2", "flood3")
	mustAdd(t, r, a(2), "ann1")
	for _, c := range []struct {
		account       account
		item, refused string
	}{
		{a(1), "flood4", "flood4"},
		{a(3), "bo1", "flood3"},
		{a(4), "cy1", "flood2"},
		{a(5), "di1", "di1"},
	} {
		if x, full := r.Add(c.account, c.item, 0); !full || x != c.refused {
			t.Errorf("adding %s refuses %q (%v), want %q", c.item, x, full, c.refused)
		}
	}
	mustAdd(t, r, account{User: 9, Organization: "b"}, "b1", "b2", "b3", "b4")
	if got, want := take(r), "flood1 ann1 bo1 cy1 b1 b2 b3 b4"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
	mustAdd(t, r, a(1), "again1", "again2", "again3", "again4") // the counts of the organization are back at 0
	r.Expire(1)
	mustAdd(t, r, a(1), "late1", "late2", "late3", "late4")
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
