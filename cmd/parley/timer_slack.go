package main

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is by how much the kernel may delay the timers of a server, so that several end together. While a server
// works, the monitor of the Go runtime sleeps for 20 microseconds at a time, and with the slack of defaultTimerSlack it
// woke up after 75: that took a tenth of the processor time with 20 messages a second. No timer of the server needs to
// be more exact than a millisecond.
//
// The price: if a thread is blocked in a system call, its processor of the Go runtime waits for up to two milliseconds
// before another thread uses it; see tuneProcessors.
const (
	timerSlack        = time.Millisecond
	defaultTimerSlack = 50 * time.Microsecond // of the kernel, for processes that did not choose
)

// timerSlackTried is an environment variable of a program that has executed itself.
const timerSlackTried = "PARLEY_TIMER_SLACK_TRIED"

// raiseTimerSlack gives every thread of the process timerSlack, unless its parent process chose a slack. A thread can
// only change its own slack, and inherits it to its threads and to the program that it executes. The monitor is a
// thread that began before this function. So the program executes itself, with the same process id, which takes some
// 50 ms; a successor after an upgrade inherits the slack. If that is not possible, nothing changes.
func raiseTimerSlack() {
	if os.Getenv(timerSlackTried) != "" {
		os.Unsetenv(timerSlackTried)
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || time.Duration(now) != defaultTimerSlack {
		return
	}
	exe, err := os.Executable()
	if err != nil || unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0) != nil {
		return
	}
	syscall.Exec(exe, os.Args, append(os.Environ(), timerSlackTried+"=1"))
	unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(defaultTimerSlack), 0, 0, 0)
}
