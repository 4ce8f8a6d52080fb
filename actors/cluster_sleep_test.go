package actors

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/actors/realm"
)

// asleep lets time pass until the organization has left the memory of every core that runs.
func (all *cores) asleep() {
	all.t.Helper()
	next := time.Now()
	all.wait("the organization sleeps on all cores", func() bool {
		if now := time.Now(); now.After(next) {
			next = now.Add(6 * time.Second) // of the ticks at which organizations leave memory
			for _, c := range all.list {
				c.elapsed.Add(int64((sleepRetry + 10) * time.Second))
			}
		}
		return !slices.ContainsFunc(all.list, func(c *core) bool {
			return c.node != nil && (c.srv.IsInMemory(1) || c.srv.SleepStats().Asleep != 1)
		})
	})
}

// awake waits until the organization is in memory on every core that runs, with the facts of the leader.
func (all *cores) awake() {
	all.t.Helper()
	all.wait("the organization is in memory on all cores", func() bool {
		last := all.owner().srv.DurableSeq(1)
		return !slices.ContainsFunc(all.list, func(c *core) bool {
			return c.node != nil && (!c.srv.IsInMemory(1) || c.srv.DurableSeq(1) < last)
		})
	})
}

// On every core an organization without requests leaves memory. A request wakes it at the leader, the facts of the
// leader wake it at the others. Its event queues go on through a change of the leader while it is asleep.
func TestCoresSleep(t *testing.T) {
	all := newSleepyCores(t, time.Minute, "a", "b", "c")
	people := all.found("ann", "bo")
	ann, bo := people[0], people[1]
	poller := all.register(bo)
	all.send(ann, "before")
	poller.until("before")
	all.send(ann, "unread")
	all.asleep()
	for _, c := range all.list {
		if x := c.srv.SleepStats(); x.Awake != 0 || c.srv.Metrics.OpenQueues.Load() != 0 {
			t.Errorf("core %s: %+v, %d queues", c.name, x, c.srv.Metrics.OpenQueues.Load())
		}
		if leads := c.srv.IsLeader(); c.srv.Owns(1) != leads || c.srv.IsAsleep(1) != leads {
			t.Errorf("core %s leads: %t; owns the organization: %t, asleep: %t", c.name, leads, c.srv.Owns(1),
				c.srv.IsAsleep(1))
		}
	}
	all.send(ann, "woken by a command")
	all.awake()
	all.asleep()

	old := all.owner()
	all.kill(old)
	next := all.owner()
	if next.srv.IsInMemory(1) {
		t.Error("a change of the leader wakes an organization that no client needs")
	}
	poller.until("woken by a command")
	all.send(ann, "after the kill")
	poller.until("after the kill")
	want := []string{"before", "unread", "woken by a command", "after the kill"}
	if !slices.Equal(poller.got, want) {
		t.Errorf("got %q, want %q", poller.got, want)
	}
	all.start(old)
	all.awake()
	all.expectEqual()

	// A planned move leaves it asleep, too, and a core that starts again knows that it is.
	all.asleep()
	old = all.owner()
	all.wait("another core leads", func() bool {
		if all.leader() == old {
			old.node.MoveLeader("")
		}
		return all.leader() != old
	})
	if all.owner().srv.IsInMemory(1) {
		t.Error("a move of the leadership wakes an organization")
	}
	s := all.standby()
	all.stop(s)
	s.node = nil
	all.start(s)
	if x := s.srv.SleepStats(); x.Awake != 0 || x.Asleep != 1 {
		t.Errorf("after a start: %+v", x)
	}
	all.send(ann, "last")
	poller.until("last")
	if want = append(want, "last"); !slices.Equal(poller.got, want) {
		t.Errorf("got %q, want %q", poller.got, want)
	}
	all.awake()
	all.expectEqual()
}

// A scheduled message of an organization that is asleep is sent once, by the core that leads at its time.
func TestCoresWakeWhenDue(t *testing.T) {
	all := newSleepyCores(t, time.Minute, "a", "b", "c")
	ann := all.found("ann")[0]
	at := time.Now().Add(2 * time.Hour)
	mustCall(t, all.owner().srv, ann, "POST /scheduled_messages", params{"type": "channel", "to": 1, "topic": "t",
		"content": "due", "scheduled_delivery_timestamp": at.Unix()})
	all.asleep()
	old := all.owner()
	all.kill(old)
	next := all.owner()
	before := next.srv.DurableSeq(1)
	all.wall.Store(int64(2*time.Hour + time.Second))
	all.wait("the message is sent", func() bool { return next.srv.DurableSeq(1) > before })
	all.start(old)
	all.awake()
	all.asleep()
	all.wall.Add(int64(time.Hour))
	a := mustCall(t, all.owner().srv, ann, "GET /messages", params{"anchor": "newest", "num_before": 10, "num_after": 0,
		"narrow": `[{"operator":"topic","operand":"t"}]`})
	if n := len(a["messages"].([]any)); n != 1 {
		t.Errorf("%d messages were sent", n)
	}
	for _, c := range all.list {
		if x := c.srv.SleepStats(); c != next && c != old && x.Wakes > 3 {
			t.Errorf("core %s: %+v", c.name, x)
		}
	}
	all.expectEqual()
}

// While a core of an older release can be in the cluster, all organizations stay in memory.
func TestMixedCoresDoNotSleep(t *testing.T) {
	before := realm.Level
	realm.Level = sleepLevel - 1
	defer func() { realm.Level = before }()
	all := newSleepyCores(t, time.Minute, "a")
	all.found("ann")
	c := all.list[0]
	c.elapsed.Add(int64(time.Hour))
	ticks := c.srv.second.Load()
	all.wait("ticks have passed", func() bool { return c.srv.second.Load() > ticks+7 })
	if x := c.srv.SleepStats(); x.Awake != 1 || x.Sleeps != 0 {
		t.Errorf("%+v", x)
	}
}

// The leader owns an organization from the moment at which a request finds it in memory: a request of another core that
// finds no owner would be sent again, after a pause.
func TestWokenOrganizationsAreOwned(t *testing.T) {
	const organizations = 30
	all := newSleepyCores(t, time.Minute, "a")
	all.wait("a leader", func() bool { return all.leader() != nil })
	srv := all.leader().srv
	for i := range organizations {
		if _, err := srv.CreateRealm(fmt.Sprint("o", i), "Ours"); err != nil {
			t.Fatal(err)
		}
	}
	all.wait("all organizations sleep", func() bool {
		all.list[0].elapsed.Add(int64(time.Second))
		return srv.SleepStats().Asleep == organizations
	})
	for _, id := range srv.Realms() {
		woken := make(chan error, 1)
		go func() { woken <- srv.Wake(id) }()
		for waits := true; waits; {
			if !srv.Owns(id) {
				t.Fatalf("organization %d has no owner while it wakes", id)
			}
			select {
			case err := <-woken:
				if waits = false; err != nil {
					t.Fatal(err)
				}
			default:
			}
		}
	}
}
