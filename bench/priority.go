package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// In a real deployment clients and nodes have machines of their own. A scenario that runs all of them on one machine
// gives the threads that would be elsewhere the rest of the processors, if the process may do that. Such a
// scenario needs a quiet machine: any other process takes these threads' time.

// setLoopPriority sets the priority of the thread of a client loop. Clients that measure must not wait for a processor
// that others use, and the server must not wait for one that is busy producing an overload. Call reset in the same
// goroutine, because other loops use the thread later.
func setLoopPriority(measures bool) (reset func()) {
	if measures {
		unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -15)
		return func() { unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 0) }
	}
	setPolicy(0, unix.SCHED_IDLE)
	return func() { setPolicy(0, unix.SCHED_NORMAL) }
}

// startElsewhere calls start, which starts a process, and lets that process have the rest of the processors.
// Threads and processes inherit this.
func startElsewhere(start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	setPolicy(0, unix.SCHED_IDLE)
	defer setPolicy(0, unix.SCHED_NORMAL)
	return start()
}

// moveElsewhere lets a process have the rest of the processors, or ends that.
func moveElsewhere(pid int, on bool) {
	policy := uint32(unix.SCHED_NORMAL)
	if on {
		policy = unix.SCHED_IDLE
	}
	tasks := filepath.Join("/proc", strconv.Itoa(pid), "task")
	for range 2 { // a thread that was created meanwhile may have inherited the old policy
		threads, _ := os.ReadDir(tasks)
		for _, t := range threads {
			if tid, err := strconv.Atoi(t.Name()); err == nil {
				setPolicy(tid, policy)
			}
		}
	}
}

// setPolicy sets the scheduling policy of a thread; 0 is this one.
func setPolicy(tid int, policy uint32) {
	unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy}, 0)
}
