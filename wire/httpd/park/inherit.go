//go:build unix

package park

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listening sockets outlive the process that opened them: a service manager opens them for us, or an old process hands
// them to its successor. Whoever connects meanwhile waits in the socket's backlog instead of being turned away.
const (
	listenersEnv     = "PARLEY_LISTENERS" // how many sockets StartSuccessor gave this process
	handoffEnv       = "PARLEY_PASSAGE"   // which file is its end of the passage
	firstInheritedFD = 3                  // where inherited files begin, behind standard error
	maxInherited     = 64                 // more are a mistake
)

// InheritListeners returns the listeners this process was started with, by systemd's socket activation or by StartSuccessor, in the
// order they were given; none if there are none. It takes them: a second call finds nothing, nor do child processes.
func InheritListeners() ([]net.Listener, error) {
	count := os.Getenv(listenersEnv)
	if count == "" && os.Getenv("LISTEN_PID") == strconv.Itoa(os.Getpid()) {
		count = os.Getenv("LISTEN_FDS")
	}
	for _, name := range []string{listenersEnv, "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	if count == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > maxInherited {
		return nil, fmt.Errorf("inherit listeners: %q is no number of files", count)
	}
	var lns []net.Listener
	for fd := firstInheritedFD; fd < firstInheritedFD+n; fd++ {
		f := os.NewFile(uintptr(fd), "inherited listener")
		ln, err := net.FileListener(f) // a copy; it is not passed on to children
		f.Close()
		if err != nil {
			for _, ln := range lns {
				ln.Close()
			}
			return nil, fmt.Errorf("inherit listeners: file %d: %w", fd, err)
		}
		lns = append(lns, ln)
	}
	return lns, nil
}

// StartSuccessor starts a program that finds the listeners by InheritListeners, with argv (its own name first), env and this process's
// standard files. The caller goes on serving; once it calls Shutdown new connections wait for the successor's Serve,
// and none is refused. The passage is for the connections the caller has by then: see Retire. Two processes must not open one data directory: the successor is to wait until the caller has
// let go of it.
func StartSuccessor(path string, argv, env []string, lns ...net.Listener) (*os.Process, *Handoff, error) {
	files := []uintptr{0, 1, 2}
	defer func() {
		for _, fd := range files[firstInheritedFD:] {
			unix.Close(int(fd))
		}
	}()
	for _, ln := range lns {
		fd, err := duplicate(ln)
		if err != nil {
			return nil, nil, fmt.Errorf("hand over listeners: %w", err)
		}
		files = append(files, uintptr(fd))
	}
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "LISTEN_") || strings.HasPrefix(v, listenersEnv+"=") || strings.HasPrefix(v, handoffEnv+"=")
	})
	env = append(env, listenersEnv+"="+strconv.Itoa(len(lns)))
	passage, end, err := newHandoff()
	if err != nil {
		return nil, nil, err
	}
	if passage != nil {
		env = append(env, handoffEnv+"="+strconv.Itoa(len(files)))
		files = append(files, uintptr(end))
	}
	// Not os/exec: it would make the sockets block, the caller's too, and an accept that blocks cannot be ended.
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Files: files, Env: env})
	if err != nil {
		passage.Close()
		return nil, nil, fmt.Errorf("hand over listeners: start %s: %w", path, err)
	}
	p, err := os.FindProcess(pid)
	return p, passage, err
}

// duplicate returns another descriptor of a listener's socket.
func duplicate(ln net.Listener) (fd int, err error) {
	c, ok := ln.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("%T has no file", ln)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(s uintptr) { fd, failed = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, firstInheritedFD) })
	return fd, errors.Join(err, failed)
}
