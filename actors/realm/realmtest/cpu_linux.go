package realmtest

import (
	"syscall"
	"time"
	"unsafe"
)

// threadClock is the kernel's clock of one thread's time on a processor (CLOCK_THREAD_CPUTIME_ID).
const threadClock = 3

// ThreadCPUTime is the time the calling thread has spent on a processor. Lock the goroutine to its thread to compare two of them:
// unlike the wall clock it says nothing of who else was busy.
func ThreadCPUTime() time.Duration {
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadClock, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}
