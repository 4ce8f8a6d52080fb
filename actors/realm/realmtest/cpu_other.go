//go:build !linux

package realmtest

import "time"

var began = time.Now()

// CPU is the wall clock where there is no clock of a thread.
func CPU() time.Duration { return time.Since(began) }
