package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestClusterFreeze stops the leader, and then another core, by a signal for some seconds, while clients of all cores
// change and read. The answers are those of one server: a stopped leader that goes on accepts nothing under its old
// epoch and answers nothing from its old state. FREEZES is the list of seconds, SEED repeats a run: make
// freeze-cluster.
func TestClusterFreeze(t *testing.T) {
	freezes := []int{2}
	if text := os.Getenv("FREEZES"); text != "" {
		freezes = nil
		for _, x := range strings.Fields(text) {
			n, err := strconv.Atoi(x)
			if err != nil {
				t.Fatal(err)
			}
			freezes = append(freezes, n)
		}
	}
	seed := uint64(environmentNumber("SEED", int(time.Now().UnixNano()%1e9)))
	t.Logf("FREEZES=%v SEED=%d", freezes, seed)
	all := startCores(t, "a", "b", "c")
	h := startHistory(t, seed, all.urls()...)
	polls := startPolls(t, all, h.users[0])
	for _, seconds := range freezes {
		for _, role := range []string{"leader", "follower"} {
			h.next()
			leader := all.leader(all.list[0])
			victim := leader
			if role == "follower" {
				victim = all.other(leader)
			}
			length := time.Duration(seconds) * time.Second
			if role == "follower" && len(freezes) == 1 {
				length = time.Second
			}
			before := h.acknowledged()
			victim.signal(syscall.SIGSTOP)
			h.readAt(slices.Index(all.list, victim), 12) // these requests wait in its sockets
			time.Sleep(length)
			during := h.acknowledged() - before
			victim.signal(syscall.SIGCONT)
			gap := h.longestGap()
			t.Logf("%s %s stopped for %v: %d messages meanwhile, the longest time without an acknowledged change was "+
				"%v", role, victim.name, length, during, gap.Round(time.Millisecond))
			if length > maxKillGap && (gap > maxKillGap || during == 0) {
				t.Errorf("%s %s stopped for %v: no change for %v, %d messages", role, victim.name, length, gap, during)
			}
			all.sendAtEach(h.users[0])
			polls.expectSoon(fmt.Sprintf("%s %s was stopped for %v", role, victim.name, length))
		}
	}
	polls.end(time.Duration(slices.Max(freezes)) * time.Second)
	h.end()
	all.expectEqual()
	h.check()
}

// urls returns the addresses of the cores for clients.
func (all *runningCores) urls() (list []string) {
	for _, c := range all.list {
		list = append(list, "http://"+c.listen)
	}
	return list
}

func (c *runningCore) signal(s syscall.Signal) {
	if err := c.program.cmd.Process.Signal(s); err != nil {
		c.program.t.Fatal(err)
	}
}

// sendAtEach waits until a message can be sent at each core.
func (all *runningCores) sendAtEach(user *account) {
	all.t.Helper()
	for _, c := range all.list {
		from := *user
		from.url = "http://" + c.listen
		all.retry("send at "+c.name, func() error {
			_, err := from.callWith(&http.Client{Timeout: 500 * time.Millisecond}, "POST", "messages", url.Values{
				"type": {"stream"}, "to": {"general"}, "topic": {"after"}, "content": {"after a fault"}})
			return err
		})
	}
}

// expectEqual waits until all cores have the same state at the same fact.
func (all *runningCores) expectEqual() {
	all.t.Helper()
	all.retry("compare the cores", func() error {
		out, code := runParley("cluster", "verify", "--data", all.list[0].data)
		if code == 0 && strings.Contains(out, "nodes="+strconv.Itoa(len(all.list))) &&
			strings.Contains(out, "equal=true") {
			return nil
		}
		return errors.New(out)
	})
}
