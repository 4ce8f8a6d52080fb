package crowd_test

import (
	"fmt"

	"parley/bench/crowd"
)

// A caller carries out each action and tells the crowd whether it succeeded, before it asks for the next one.
func ExampleCrowd() {
	plan := crowd.Plan{Users: 8, Channels: 3, Zipf: 1, Seed: 1}
	members := plan.Members()
	c := crowd.New(plan.Seed, plan.Users, members)
	for range 5 {
		action := c.Next()
		fmt.Println(action)
		c.Done(action, action.Expect != crowd.MustFail)
	}
	// Output:
	// #1 user 7: send channel 2 "bugs"
	// #2 user 3: subscribe channel 1 ""
	// #3 user 7: react message 0 octopus
	// #4 user 7: unreact message 0 octopus
	// #5 user 7: unflag message 0 read
}

// Channel sizes fall as 1/rank^Zipf; the channel of Hundred is the last.
func ExamplePlan_Members() {
	plan := crowd.Plan{Users: 1000, Channels: 4, Zipf: 1, Hundred: 100, Seed: 1}
	for i, users := range plan.Members() {
		fmt.Printf("channel %d has %d members\n", i, len(users))
	}
	// Output:
	// channel 0 has 1000 members
	// channel 1 has 500 members
	// channel 2 has 333 members
	// channel 3 has 250 members
	// channel 4 has 100 members
}
