//go:build !linux

package realmtest

import "time"

var processStart = time.Now()

// ThreadCPUTime returns the time since the start of the process: this system has no clock of a thread's CPU time.
func ThreadCPUTime() time.Duration { return time.Since(processStart) }
