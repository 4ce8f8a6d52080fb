package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Each thread of a server has the slack, also the monitor of the Go runtime. A slack that the parent chose is kept.
func TestServerHasTimerSlack(t *testing.T) {
	for _, c := range []struct{ parent, want time.Duration }{
		{defaultTimerSlack, timerSlack},
		{200 * time.Microsecond, 200 * time.Microsecond},
	} {
		p := startWithTimerSlack(t, c.parent)
		p.serving()
		for _, got := range threadTimerSlacks(t, p.cmd.Process.Pid) {
			if got != c.want {
				t.Errorf("a thread of a child of a process with %v has a timer slack of %v, not %v", c.parent, got,
					c.want)
			}
		}
		p.stop()
	}
}

// startWithTimerSlack starts a server as the child of a thread with a timer slack.
func startWithTimerSlack(t *testing.T, slack time.Duration) *program {
	runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine of the test
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0); err != nil {
		t.Skip("this kernel has no timer slack: ", err)
	}
	return startProgram(t, parleyCommand("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo"))
}

// threadTimerSlacks returns the timer slack of each thread of a process.
func threadTimerSlacks(t *testing.T, pid int) (all []time.Duration) {
	tasks, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*"))
	if err != nil || len(tasks) < 2 {
		t.Fatalf("process %d has threads %v: %v", pid, tasks, err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile(filepath.Join("/proc", filepath.Base(task), "timerslack_ns"))
		if os.IsPermission(err) {
			t.Skip("this user may not see the timer slack of another process: ", err)
		}
		if err != nil {
			continue // the thread has ended
		}
		d, err := time.ParseDuration(strings.TrimSpace(string(b)) + "ns")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}
