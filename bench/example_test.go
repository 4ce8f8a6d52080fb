package bench_test

import (
	"fmt"

	"parley/bench"
)

// A scenario is plain data: its phases can be changed before it is written to a file for --scenario.
func ExampleScenarios() {
	send := bench.Scenarios()["send"]
	fmt.Println(send.About)
	for _, p := range send.Phases {
		fmt.Printf("%s: %.0f s, %.0f requests a second, %d senders\n", p.Name, p.Seconds, p.Rate, p.Closed)
	}
	// Output:
	// durable sends: an open loop, then 64 concurrent senders
	// warm: 2 s, 1000 requests a second, 0 senders
	// open: 30 s, 5000 requests a second, 0 senders
	// saturation: 10 s, 0 requests a second, 64 senders
}
