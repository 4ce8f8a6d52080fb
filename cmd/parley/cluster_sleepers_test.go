package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// sleeperArgs are the arguments of cores whose organizations sleep soon, if SLEEPERS says how many there are.
func sleeperArgs() []string {
	if environmentNumber("SLEEPERS", 0) == 0 {
		return nil
	}
	return []string{"--sleep-after", "1s"}
}

// sleepers are organizations that sleep and wake while the cores of a test break: clients of all cores send a message
// to one of them now and then, and scheduled messages wake others. A nil *sleepers has none.
type sleepers struct {
	t      *testing.T
	all    *runningCores
	list   []*sleeper
	stop   chan struct{}
	done   sync.WaitGroup
	asleep int // the most that one core has had asleep
}

// sleeper is one of them. A goroutine uses it.
type sleeper struct {
	name, key string
	texts     map[string]bool // that were sent; true: acknowledged
	due       time.Time       // of its scheduled message, "due"
}

const (
	sleeperOwner = "owner@example.org"
	// sleeperWorkers is how many clients send to sleeping organizations, one message each sleeperPause.
	sleeperWorkers = 4
	sleeperPause   = 500 * time.Millisecond
)

// startSleepers makes SLEEPERS organizations and begins to send to them.
func startSleepers(t *testing.T, all *runningCores) *sleepers {
	t.Helper()
	n := environmentNumber("SLEEPERS", 0)
	if n == 0 {
		return nil
	}
	x := &sleepers{t: t, all: all, stop: make(chan struct{})}
	key := regexp.MustCompile(`\b[a-zA-Z0-9]{32}\b`)
	for i := range n {
		name := fmt.Sprint("sleeper", i)
		out, code := runParley("realm", "create", "--data", all.list[0].data, "--realm", name, "--name", name,
			"--owner", sleeperOwner)
		s := &sleeper{name: name, key: key.FindString(out), texts: map[string]bool{}}
		if code != 0 || s.key == "" {
			t.Fatal(out)
		}
		x.list = append(x.list, s)
	}
	for i, s := range x.list {
		if i%3 == 0 {
			s.due = time.Now().Add(time.Duration(60+i%30) * time.Second)
			me, err := s.at(all.list[0]).call("GET", "users/me", nil)
			if err != nil {
				t.Fatal(err)
			}
			form := url.Values{"type": {"direct"}, "to": {fmt.Sprintf("[%.0f]", me["user_id"])}, "content": {"due"},
				"scheduled_delivery_timestamp": {strconv.FormatInt(s.due.Unix(), 10)}}
			if _, err := s.at(all.list[0]).call("POST", "scheduled_messages", form); err != nil {
				t.Fatal(err)
			}
		}
	}
	for end := time.Now().Add(sleepTimeout); x.asleep < n/2; x.look() {
		if time.Now().After(end) {
			t.Fatalf("%d of %d organizations are asleep", x.asleep, n)
		}
		time.Sleep(200 * time.Millisecond)
	}
	x.asleep = 0
	for w := range sleeperWorkers {
		x.done.Go(func() {
			for i := w; ; i += sleeperWorkers {
				select {
				case <-x.stop:
					return
				case <-time.After(sleeperPause): // the load of a client that has a pause between two messages
				}
				x.send(x.list[i%len(x.list)], fmt.Sprint("text ", i))
			}
		})
	}
	x.done.Go(func() {
		for {
			select {
			case <-x.stop:
				return
			case <-time.After(time.Second):
				x.look()
			}
		}
	})
	return x
}

var asleepOfCore = regexp.MustCompile(` asleep=(\d+) `)

// look records how many organizations are asleep.
func (x *sleepers) look() {
	out, _ := statusLines(x.all.list[rand.IntN(len(x.all.list))].data)
	for _, m := range asleepOfCore.FindAllStringSubmatch(out, -1) {
		n, _ := strconv.Atoi(m[1])
		x.asleep = max(x.asleep, n)
	}
}

// send sends a text at any core. A core that is not running, or has lost its answer, may have sent it.
func (x *sleepers) send(s *sleeper, text string) {
	_, err := s.at(x.all.list[rand.IntN(len(x.all.list))]).call("POST", "messages",
		url.Values{"type": {"direct"}, "to": {`["` + sleeperOwner + `"]`}, "content": {text}})
	s.texts[text] = err == nil
}

// at returns the account of the owner of an organization at a core.
func (s *sleeper) at(c *runningCore) *account {
	return &account{url: "http://" + s.name + "." + c.listen, email: sleeperOwner, key: s.key}
}

// end stops sending, and expects that each acknowledged message and each scheduled one that was due is there once, and
// that organizations have slept.
func (x *sleepers) end() {
	if x == nil {
		return
	}
	x.t.Helper()
	close(x.stop)
	x.done.Wait()
	acknowledged := 0
	for i, s := range x.list {
		if !s.due.IsZero() && time.Now().After(s.due) {
			s.texts["due"] = true
		}
		acknowledged += x.check(s, x.all.list[i%len(x.all.list)])
	}
	if x.asleep == 0 {
		x.t.Error("no organization has slept")
	}
	x.t.Logf("%d organizations, at most %d asleep at a core: %d acknowledged messages are there once", len(x.list),
		x.asleep, acknowledged)
}

// check compares the messages of an organization with those that were sent, and returns how many were acknowledged.
func (x *sleepers) check(s *sleeper, c *runningCore) (acknowledged int) {
	x.t.Helper()
	counts := map[string]int{}
	x.all.retry("read "+s.name, func() error {
		a, err := s.at(c).call("GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"5000"},
			"num_after": {"0"}, "narrow": {`[{"operator":"dm","operand":"` + sleeperOwner + `"}]`},
			"apply_markdown": {"false"}})
		if err != nil {
			return err
		}
		clear(counts)
		for _, m := range a["messages"].([]any) {
			counts[m.(map[string]any)["content"].(string)]++
		}
		if s.texts["due"] && counts["due"] == 0 && time.Since(s.due) < time.Minute {
			return fmt.Errorf("the scheduled message of %s is not sent yet", s.name)
		}
		return nil
	})
	for text, is := range s.texts {
		n := counts[text]
		if is {
			acknowledged++
		}
		if n > 1 || is && n == 0 {
			x.t.Errorf("%s: %q is there %d times, acknowledged: %t", s.name, text, n, is)
		}
		delete(counts, text)
	}
	for text := range counts {
		if text != "due" && strings.HasPrefix(text, "text ") {
			x.t.Errorf("%s: %q was never sent to it", s.name, text)
		}
	}
	return acknowledged
}
