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

// Listening sockets outlive the process that opened them: a service manager opens them for the server, or a
// process passes them to its successor. Clients that connect in the meantime wait in the kernel's backlog instead
// of being refused.
const (
	listenersEnv     = "PARLEY_LISTENERS" // number of sockets that StartSuccessor passed to this process
	handoffEnv       = "PARLEY_PASSAGE"   // descriptor of its end of the handoff
	firstInheritedFD = 3                  // the first descriptor after standard error
	maxInherited     = 64                 // a larger number is a mistake
)

// InheritListeners returns the listeners with which this process was started, by systemd's socket activation or
// by StartSuccessor, in their order; without any, it returns nil. A second call returns nil, and so does a call in a
// child process.
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
		return nil, fmt.Errorf("inherit listeners: %q is not a number of files between 0 and 64", count)
	}
	var lns []net.Listener
	for fd := firstInheritedFD; fd < firstInheritedFD+n; fd++ {
		f := os.NewFile(uintptr(fd), "inherited listener")
		ln, err := net.FileListener(f) // a copy, which child processes do not get
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

// StartSuccessor starts a program that gets the listeners by InheritListeners. argv begins with the program's
// name. The program shares the standard files of this process. The caller continues to serve; after it calls
// Shutdown, new connections wait for the successor's Serve, and none is refused. The handoff takes the
// connections that the caller has then: see Server.PrepareShutdown.
//
// Two processes must not open one data directory: the successor must wait until the caller has released it.
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
			return nil, nil, fmt.Errorf("start successor: %w", err)
		}
		files = append(files, uintptr(fd))
	}
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "LISTEN_") || strings.HasPrefix(v, listenersEnv+"=") ||
			strings.HasPrefix(v, handoffEnv+"=")
	})
	env = append(env, listenersEnv+"="+strconv.Itoa(len(lns)))
	handoff, end, err := newHandoff()
	if err != nil {
		return nil, nil, err
	}
	if handoff != nil {
		env = append(env, handoffEnv+"="+strconv.Itoa(len(files)))
		files = append(files, uintptr(end))
	}
	// os/exec would make the sockets blocking, also for the caller, and a blocking accept cannot be interrupted.
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Files: files, Env: env})
	if err != nil {
		handoff.Close()
		return nil, nil, fmt.Errorf("start successor %s: %w", path, err)
	}
	p, err := os.FindProcess(pid)
	return p, handoff, err
}

// duplicate returns another descriptor of a listener's socket.
func duplicate(ln net.Listener) (fd int, err error) {
	c, ok := ln.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("listener of type %T has no file descriptor", ln)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(s uintptr) { fd, failed = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, firstInheritedFD) })
	return fd, errors.Join(err, failed)
}
