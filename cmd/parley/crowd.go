package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/bench/crowd"
)

// crowdWorkers is how many turns of a crowd's making are under way at once: enough for group commit, few enough that a
// realm's mailbox does not refuse.
const crowdWorkers = 64

// crowdSpec is what --demo-crowd asks for: users=N,channels=M,zipf=Z,hundred=H,messages=K,realms=R,seed=S.
type crowdSpec struct {
	plan             crowd.Plan
	messages, realms int
}

func parseCrowd(s string) (crowdSpec, error) {
	c := crowdSpec{plan: crowd.Plan{Users: 100, Channels: 10, Zipf: 1, Seed: 1}, realms: 1}
	for _, kv := range strings.Split(s, ",") {
		k, v, _ := strings.Cut(kv, "=")
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || f < 0 {
			return c, fmt.Errorf("--demo-crowd: %q is not name=number", kv)
		}
		n := int(f)
		switch k {
		case "users":
			c.plan.Users = n
		case "channels":
			c.plan.Channels = n
		case "zipf":
			c.plan.Zipf = f
		case "hundred":
			c.plan.Hundred = n
		case "messages":
			c.messages = n
		case "realms":
			c.realms = n
		case "seed":
			c.plan.Seed = uint64(n)
		default:
			return c, fmt.Errorf("--demo-crowd: no %q; there are users, channels, zipf, hundred, messages, realms, seed", k)
		}
	}
	if c.plan.Users < 1 || c.plan.Channels < 1 || c.realms < 1 {
		return c, fmt.Errorf("--demo-crowd needs users, channels and realms")
	}
	return c, nil
}

// createCrowd fills an empty data directory for load tests: the crowd of bench/crowd, spread evenly over organizations,
// the first at the root, the others at r1, r2 and so on. Everybody logs in the development way.
func createCrowd(h *actors.Server, spec crowdSpec, out io.Writer) error {
	begin := time.Now()
	for r := 0; r < spec.realms; r++ {
		name := ""
		if r > 0 {
			name = fmt.Sprintf("r%d", r)
		}
		id, err := h.CreateRealm(name, "Crowd "+strconv.Itoa(r))
		if err != nil {
			return err
		}
		part := spec.plan
		part.Users, part.Channels, part.Seed = part.Users/spec.realms, max(1, part.Channels/spec.realms), part.Seed+uint64(r)
		if err := fillCrowdRealm(h, id, part, spec.messages/spec.realms); err != nil {
			return fmt.Errorf("crowd of organization %d: %w", r, err)
		}
	}
	fmt.Fprintf(out, "Crowd of %d users, %d channels, %d messages, %d organizations made in %.1f s\n", spec.plan.Users, spec.plan.Channels, spec.messages, spec.realms, time.Since(begin).Seconds())
	return nil
}

func fillCrowdRealm(h *actors.Server, id realm.ID, plan crowd.Plan, messages int) error {
	system := realm.Caller{System: true, Client: "Internal"}
	owner, err := execute(h, id, system, realm.CreateUser{Email: "owner@crowd.example.org", Name: "Crowd Owner", Role: realm.Owner, Key: actors.Token(32), First: true, NoDefaults: true})
	if err != nil {
		return err
	}
	users := make([]realm.UserID, plan.Users)
	err = runConcurrently(plan.Users, func(i int) (err error) {
		users[i], err = execute(h, id, system, realm.CreateUser{Email: fmt.Sprintf("u%d@crowd.example.org", i), Name: fmt.Sprintf("User %d", i), Role: realm.Member, Key: actors.Token(32), First: true, NoDefaults: true})
		return err
	})
	if err != nil {
		return err
	}
	members := plan.Members()
	channels := make([]realm.ChannelID, len(members))
	by := realm.Caller{User: owner, Client: "Internal"}
	for c, who := range members {
		name := fmt.Sprintf("crowd %d", c)
		if plan.Hundred > 0 && c == plan.Channels {
			name = "crowd hundred"
		}
		// A slice at a time, so that no turn is long.
		for at := 0; at < len(who); at += 1000 {
			var people []realm.Principal
			for _, m := range who[at:min(at+1000, len(who))] {
				people = append(people, realm.Principal{ID: users[m]})
			}
			j, err := execute(h, id, by, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: name}}, Principals: people, AllOrNothing: true})
			if err != nil {
				return err
			}
			if len(j.Created) == 1 {
				channels[c] = j.Created[0]
			}
		}
	}
	return runConcurrently(messages, func(i int) error {
		c := i * 7919 % len(channels)
		who := realm.Caller{User: users[members[c][i%len(members[c])]], Client: "Internal"}
		text := fmt.Sprintf("message %d of a history that is long enough to be read page by page", i)
		_, err := execute(h, id, who, realm.SendMessage{ToChannel: true, Channel: channels[c], Topic: fmt.Sprintf("topic %d", i%50), Body: realm.Body{Text: text, HTML: "<p>" + text + "</p>"}, ReadBySender: true})
		return err
	})
}

// runConcurrently does n things, some at once, and answers the first error.
func runConcurrently(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	next := 0
	for range min(crowdWorkers, n) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				mu.Lock()
				i := next
				next++
				over := i >= n || first != nil
				mu.Unlock()
				if over {
					return
				}
				if err := f(i); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		}()
	}
	wg.Wait()
	return first
}
