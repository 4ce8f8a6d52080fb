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
	heirCount   = "PARLEY_LISTENERS" // how many sockets Handover gave this process
	heirPassage = "PARLEY_PASSAGE"   // which file is its end of the passage
	firstFile   = 3                  // where inherited files begin, behind standard error
	maxFiles    = 64                 // more are a mistake
)

// Inherit returns the listeners this process was started with, by systemd's socket activation or by Handover, in the
// order they were given; none if there are none. It takes them: a second call finds nothing, nor do child processes.
func Inherit() ([]net.Listener, error) {
	count := os.Getenv(heirCount)
	if count == "" && os.Getenv("LISTEN_PID") == strconv.Itoa(os.Getpid()) {
		count = os.Getenv("LISTEN_FDS")
	}
	for _, name := range []string{heirCount, "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	if count == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > maxFiles {
		return nil, fmt.Errorf("inherit listeners: %q is no number of files", count)
	}
	var lns []net.Listener
	for fd := firstFile; fd < firstFile+n; fd++ {
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

// Handover starts a program that finds the listeners by Inherit, with argv (its own name first), env and this process's
// standard files. The caller goes on serving; once it calls Shutdown new connections wait for the successor's Serve,
// and none is refused. The passage is for the connections the caller has by then: see Retire. Two processes must not open one data directory: the successor is to wait until the caller has
// let go of it.
func Handover(path string, argv, env []string, lns ...net.Listener) (*os.Process, *Passage, error) {
	files := []uintptr{0, 1, 2}
	defer func() {
		for _, fd := range files[firstFile:] {
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
		return strings.HasPrefix(v, "LISTEN_") || strings.HasPrefix(v, heirCount+"=") || strings.HasPrefix(v, heirPassage+"=")
	})
	env = append(env, heirCount+"="+strconv.Itoa(len(lns)))
	passage, end, err := newPassage()
	if err != nil {
		return nil, nil, err
	}
	if passage != nil {
		env = append(env, heirPassage+"="+strconv.Itoa(len(files)))
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
	err = raw.Control(func(s uintptr) { fd, failed = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, firstFile) })
	return fd, errors.Join(err, failed)
}
