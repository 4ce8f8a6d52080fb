package machine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// TakenPortError explains why a server cannot listen on an address: which process listens there, and what to do. Other
// errors are returned unchanged.
func TakenPortError(address string, err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	process := "another process"
	if pid, name := listeningProcess(n); pid != 0 {
		process = fmt.Sprintf("process %d (%s)", pid, name)
	}
	return fmt.Errorf("%s listens on port %d already: stop it, or choose another port with --listen 127.0.0.1:%d "+
		"(make run PORT=%d): %w", process, n, n+1, n+1, err)
}

// listeningProcess returns the number and the name of the process that listens on a local TCP port. The number is 0 if
// it belongs to another user or cannot be found.
func listeningProcess(port int) (pid int, name string) {
	sockets := map[string]bool{}
	for _, f := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		const listening = "0A"
		for line := range strings.Lines(string(table)) {
			p := strings.Fields(line)
			if len(p) > 9 && strings.HasSuffix(p[1], fmt.Sprintf(":%04X", port)) && p[3] == listening {
				sockets["socket:["+p[9]+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return 0, ""
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, f := range files {
		if to, err := os.Readlink(f); err != nil || !sockets[to] {
			continue
		}
		process := strings.Split(f, "/")[2]
		pid, _ = strconv.Atoi(process)
		command, _ := os.ReadFile("/proc/" + process + "/comm")
		return pid, strings.TrimSpace(string(command))
	}
	return 0, ""
}
