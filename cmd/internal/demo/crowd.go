package demo

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/bench/crowd"
)

// crowdWorkers is the number of turns at a time while a crowd is created: enough for group commits, and few enough that
// the mailbox of an organization rejects none.
const crowdWorkers = 64

// crowdBatch is the number of users that one turn subscribes, so that no turn is long.
const crowdBatch = 1000

// CrowdSpec is the parsed value of demo-crowd: users=N,channels=M,zipf=Z,hundred=H,room=L,messages=K,
// realms=R,seed=S.
type CrowdSpec struct {
	plan             crowd.Plan
	messages, realms int
}

func ParseCrowd(s string) (CrowdSpec, error) {
	c := CrowdSpec{plan: crowd.Plan{Users: 100, Channels: 10, Zipf: 1, Seed: 1}, realms: 1}
	for _, kv := range strings.Split(s, ",") {
		k, v, _ := strings.Cut(kv, "=")
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || f < 0 {
			return c, fmt.Errorf("demo-crowd: %q must have the form name=number", kv)
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
		case "room":
			c.plan.Room = n
		case "messages":
			c.messages = n
		case "realms":
			c.realms = n
		case "seed":
			c.plan.Seed = uint64(n)
		default:
			return c,
				fmt.Errorf(
					"demo-crowd: unknown name %q; use users, channels, zipf, hundred, room, messages, realms or "+
						"seed",
					k,
				)
		}
	}
	if c.plan.Users < 1 || c.plan.Channels < 1 && c.plan.Room < 1 || c.realms < 1 {
		return c, errors.New("demo-crowd: users, realms, and channels or room must be at least 1")
	}
	return c, nil
}

// CreateCrowd fills an empty data directory for load tests with the crowd of bench/crowd, distributed evenly over
// organizations. The first is the root organization; the others have the subdomains r1, r2 and so on. All users log in
// with the development login.
func CreateCrowd(orgs *actors.Server, spec CrowdSpec, out io.Writer) error {
	began := time.Now()
	for r := range spec.realms {
		subdomain := ""
		if r > 0 {
			subdomain = fmt.Sprintf("r%d", r)
		}
		id, err := orgs.CreateRealm(subdomain, "Crowd "+strconv.Itoa(r))
		if err != nil {
			return err
		}
		part := spec.plan
		part.Users /= spec.realms
		part.Channels = max(min(1, part.Channels), part.Channels/spec.realms)
		part.Seed += uint64(r)
		if err := fillCrowdRealm(orgs, id, part, spec.messages/spec.realms); err != nil {
			return fmt.Errorf("crowd of organization %d: %w", r, err)
		}
	}
	fmt.Fprintf(out, "Crowd of %d users, %d channels, %d messages, %d organizations made in %.1f s\n", spec.plan.Users,
		spec.plan.Channels, spec.messages, spec.realms, time.Since(began).Seconds())
	return nil
}

// fillCrowdRealm creates the users, channels and messages of one organization.
func fillCrowdRealm(orgs *actors.Server, id realm.ID, plan crowd.Plan, messages int) error {
	create := func(email, name string, role realm.Role) (realm.UserID, error) {
		return realm.Execute(orgs, id, realm.System, realm.CreateUser{
			Email: email, Name: name, Role: role, Key: actors.Token(32), First: true, NoDefaults: true,
		})
	}
	owner, err := create("owner@crowd.example.org", "Crowd Owner", realm.Owner)
	if err != nil {
		return err
	}
	users := make([]realm.UserID, plan.Users)
	err = runConcurrently(plan.Users, func(i int) (err error) {
		users[i], err = create(fmt.Sprintf("u%d@crowd.example.org", i), fmt.Sprintf("User %d", i), realm.Member)
		return err
	})
	if err != nil {
		return err
	}
	members := plan.Members()
	channels := make([]realm.ChannelID, len(members))
	for c := range members {
		name := fmt.Sprintf("crowd %d", c)
		if plan.Hundred > 0 && c == plan.Channels {
			name = "crowd hundred"
		}
		if channels[c], err = createCrowdChannel(orgs, id, owner, name, members[c], users); err != nil {
			return err
		}
	}
	return runConcurrently(messages, func(i int) error {
		c := i * 7919 % len(channels)
		sender := users[members[c][i%len(members[c])]]
		text := fmt.Sprintf("message %d of a history that is long enough to be read page by page", i)
		_, err := realm.Execute(orgs, id, realm.Caller{User: sender, Client: "Internal"}, realm.SendMessage{
			ToChannel:    true,
			Channel:      channels[c],
			Topic:        fmt.Sprintf("topic %d", i%50),
			Body:         realm.Body{Text: text, HTML: "<p>" + text + "</p>"},
			ReadBySender: true,
		})
		return err
	})
}

// createCrowdChannel creates a channel with members, which are indexes of users.
func createCrowdChannel(orgs *actors.Server, id realm.ID, owner realm.UserID, name string, members []int32,
	users []realm.UserID) (channel realm.ChannelID, err error) {
	caller := realm.Caller{User: owner, Client: "Internal"}
	for batch := range slices.Chunk(members, crowdBatch) {
		var principals []realm.Principal
		for _, m := range batch {
			principals = append(principals, realm.Principal{ID: users[m]})
		}
		done, err := realm.Execute(orgs, id, caller, realm.Subscribe{
			Channels: []realm.ChannelToJoin{{Name: name}}, Principals: principals, AllOrNothing: true,
		})
		if err != nil {
			return 0, err
		}
		if len(done.Created) == 1 {
			channel = done.Created[0]
		}
	}
	return channel, nil
}

// runConcurrently calls run for 0 to n-1, crowdWorkers calls at a time, and returns the first error. After an error it
// starts no more calls.
func runConcurrently(n int, run func(i int) error) error {
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
				if err := run(i); err != nil {
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
