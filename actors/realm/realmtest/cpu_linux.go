package realmtest

import (
	"syscall"
	"time"
	"unsafe"
)

// threadClock is the kernel's clock of one thread's CPU time (CLOCK_THREAD_CPUTIME_ID).
const threadClock = 3

// ThreadCPUTime returns the CPU time of the calling thread. To measure a difference, lock the goroutine to its
// thread. Unlike the wall clock, other processes do not affect it.
func ThreadCPUTime() time.Duration {
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadClock, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}
