package main

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestClusterMixedReleases replaces the program of three cores by the next release, one after the other, then by the
// release of before, and again by the next one. Before and after each step, clients of all cores see who is active and
// who types at every core, whichever releases the two cores run, and no event queue ends. PREVIOUS and PROGRAM are the
// program files: make mixed-releases.
func TestClusterMixedReleases(t *testing.T) {
	previous, next := os.Getenv("PREVIOUS"), os.Getenv("PROGRAM")
	if previous == "" || next == "" {
		t.Skip("needs the program file of another release: make mixed-releases")
	}
	all := startCoresOf(t, previous, "a", "b", "c")
	users := slices.Clone(killPeople)
	polls := startPollsAnywhere(t, all, demoAccount(t, all.urls()[0], "olive@example.org"))
	replace := func(c *runningCore, program string) {
		t.Helper()
		install(t, program, c.file)
		led := all.leads(c)
		c.program.cmd.Process.Signal(syscall.SIGTERM)
		if code := c.program.end(); code != 0 {
			t.Errorf("core %s ended with code %d", c.name, code)
		}
		c.start(t)
		c.program.serving()
		all.retry("see the core again", func() error {
			out, _ := statusLines(c.data)
			if strings.Count(out, "connected=true") != len(all.list) {
				return fmt.Errorf("status:\n%s", out)
			}
			return nil
		})
		began := time.Now()
		all.expectTypingEverywhere()
		users = all.expectPresenceEverywhere(users, c)
		took := polls.expectSoon(fmt.Sprintf("%s runs %q", c.name, program))
		t.Logf("%s (leader: %v) runs %s: typing and presence are seen everywhere after %v, a message after %v", c.name,
			led, program, time.Since(began).Round(time.Millisecond), took.Round(time.Millisecond))
	}
	all.expectTypingEverywhere()
	for _, c := range all.list {
		replace(c, next)
	}
	for _, c := range all.list[1:] {
		replace(c, previous)
	}
	for _, c := range all.list {
		replace(c, next)
	}
	polls.end(0)
	all.expectEqual()
}

// expectTypingEverywhere requires that clients of every core see who types at every other one.
func (all *runningCores) expectTypingEverywhere() {
	all.t.Helper()
	for _, at := range all.list {
		for _, from := range all.list {
			if at != from {
				all.expectTyping(at, from)
			}
		}
	}
}

// expectPresenceEverywhere makes the first of some users active at a core, and requires that clients of every core see
// it. It returns the other users.
func (all *runningCores) expectPresenceEverywhere(users []string, c *runningCore) []string {
	all.t.Helper()
	name := users[0] + "@example.org"
	u := demoAccount(all.t, "http://"+c.listen, name)
	all.retry("report presence", func() error {
		_, err := u.call("POST", "users/me/presence", url.Values{"status": {"active"}})
		return err
	})
	for _, at := range all.list {
		asks := *u
		asks.url = "http://" + at.listen
		all.retry(fmt.Sprintf("see at %s that %s is active at %s", at.name, name, c.name), func() error {
			// A core that keeps event queues builds this answer itself.
			a, err := asks.call("POST", "register", url.Values{"event_types": {`["presence"]`},
				"client_gravatar": {"true"}})
			if err != nil {
				return err
			}
			p, _ := a["presences"].(map[string]any)[name].(map[string]any)
			if p == nil || p["aggregated"].(map[string]any)["status"] != "active" {
				return fmt.Errorf("the presence is %v", p)
			}
			return nil
		})
	}
	return users[1:]
}
