package main

import (
	"os"
	"runtime"
	"time"
)

// processorsInterval is the time between two looks at the number of organizations.
const processorsInterval = time.Second

// tuneProcessors gives the Go runtime one processor more than the machine has while the server has several
// organizations. While the journal syncs, its thread holds a processor for up to two milliseconds without using it; see
// timerSlack. If one organization is overloaded, another one waits for that. A server with one organization does
// without, because threads that look for work take a tenth of the processor time and more;
// .github/docs/decisions/overload.md has the figures. Nothing changes if GOMAXPROCS is set, or if a container may use
// only a part of the machine.
func tuneProcessors(organizations func() int, stop <-chan struct{}) {
	usual := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") != "" || usual != runtime.NumCPU() {
		return
	}
	t := time.NewTicker(processorsInterval)
	defer t.Stop()
	for several := false; ; {
		if now := organizations() > 1; now != several {
			several = now
			n := usual
			if several {
				n++
			}
			runtime.GOMAXPROCS(n)
		}
		select {
		case <-t.C:
		case <-stop:
			return
		}
	}
}
