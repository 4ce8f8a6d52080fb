package bench

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A server is the measured server: a running one at a URL, or one that the harness started in its own process.
type server struct {
	addr         netip.AddrPort
	host         string // Host header
	pid          int    // 0: its process is not visible
	metrics      string
	tls          *tls.Config // nil: plain HTTP
	tls2         *tls.Config // the same for HTTP/2; nil before its first use
	featureLevel int
	version      string

	cmd          *exec.Cmd
	successorPID int // process id of the successor after an upgrade, which is not a child process
	exe          string
	args         []string
	dir          string // temporary data directory, removed at the end
	log          *os.File
	startTook    time.Duration // time from its start to its first answer
	startLimit   time.Duration // of startTook; 0: startTimeout
	exited       chan error
}

// startSelf starts exe as a new server on a free port, with its own temporary data directory. If secure is set, the
// server speaks TLS with a new certificate.
func startSelf(exe string, extra []string, secure bool) (*server, error) {
	dir, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	s := &server{exe: copyExecutable(exe, dir), dir: dir}
	s.args = append([]string{"serve", "--data", filepath.Join(dir, "data"), "--listen", addr}, extra...)
	if secure {
		cert, err := createCertificate(dir)
		if err != nil {
			return nil, fmt.Errorf("create a certificate: %w", err)
		}
		s.tls = cert.client
		s.args = append(s.args, "--tls-cert", cert.certFile, "--tls-key", cert.keyFile)
	}
	if strings.Contains(helpText(exe, "serve"), "-debug-listen") {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		debug := fmt.Sprintf("127.0.0.1:%d", port)
		s.args = append(s.args, "--debug-listen", debug)
		s.metrics = "http://" + debug + "/metrics"
	}
	if err := s.resolve("http://"+addr, nil); err != nil {
		return nil, err
	}
	s.log, err = os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return nil, err
	}
	return s, s.start()
}

// copyExecutable copies a program to dir and returns the path of the copy, as an installed server has it. The kernel
// keeps a file that a linker has just written in large pages and maps them whole: that would add some 10 MB to the
// server's memory. If the copy cannot be run it returns exe.
func copyExecutable(exe, dir string) string {
	to := filepath.Join(dir, filepath.Base(exe))
	if copyFile(exe, to) != nil {
		return exe
	}
	var ran *exec.ExitError // a program that only prints its usage may exit with an error
	if err := exec.Command(to, "serve", "-h").Run(); err != nil && !errors.As(err, &ran) {
		return exe // for example a temporary directory without execute permission
	}
	return to
}

func copyFile(from, to string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// startTimeout is how long a server may take until its first answer.
const startTimeout = time.Minute

func (s *server) start() error {
	s.cmd = exec.Command(s.exe, s.args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	// The server must not outlive a killed harness.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	s.pid = s.cmd.Process.Pid
	died := make(chan error, 1)
	s.exited = died
	cmd := s.cmd
	go func() { died <- cmd.Wait() }()
	limit := cmp.Or(s.startLimit, startTimeout)
	for time.Since(begin) < limit {
		if s.fetchSettings() == nil {
			s.startTook = time.Since(begin)
			return nil
		}
		select {
		case err := <-died:
			died <- err
			return fmt.Errorf("the server exited before its first answer (%v): %s", err, s.logTail())
		case <-time.After(2 * time.Millisecond):
		}
	}
	return fmt.Errorf("the server did not answer within %v: %s", limit, s.logTail())
}

// kill ends the process without warning, like a crash.
func (s *server) kill() error {
	if s.cmd == nil {
		return errors.New("only a server started with --self can be killed")
	}
	if s.successorPID != 0 {
		return errors.New("cannot kill a successor: it is not a child process")
	}
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	<-s.exited
	s.exited <- nil
	return nil
}

// restart ends the process with SIGTERM and starts it again with the same data and port.
func (s *server) restart() error {
	if err := s.terminate(); err != nil {
		return err
	}
	return s.start()
}

func (s *server) terminate() error {
	if s.successorPID != 0 {
		return errors.New("cannot restart a successor: it is not a child process")
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
		s.exited <- nil
		return nil
	case <-time.After(30 * time.Second):
		s.cmd.Process.Signal(syscall.SIGQUIT) // Go writes all goroutines to the log
		select {
		case <-s.exited:
			s.exited <- nil
		case <-time.After(10 * time.Second):
			s.cmd.Process.Kill()
		}
		return errors.New("the server did not exit within 30 s of SIGTERM; its log has its goroutines")
	}
}

// close ends a server that was started here and removes its data.
func (s *server) close() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		<-s.exited
	}
	if s.successorPID != 0 {
		syscall.Kill(s.successorPID, syscall.SIGKILL)
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
	if s.log != nil {
		s.log.Close()
	}
}

func (s *server) logTail() string {
	if s.log == nil {
		return "no log"
	}
	b, _ := os.ReadFile(s.log.Name())
	if len(b) > 600 {
		b = b[len(b)-600:]
	}
	return strings.TrimSpace(string(b))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// helpText returns the flag descriptions of a command.
func helpText(exe, command string) string {
	out, _ := exec.Command(exe, command, "-h").CombinedOutput()
	return string(out)
}

// sourceAddresses returns the loopback addresses that connections use. Each has its own 28,000 ports.
func sourceAddresses(to netip.AddrPort, n int) []netip.Addr {
	if !to.Addr().IsLoopback() || n < 1 {
		return nil
	}
	var out []netip.Addr
	for i := 0; i < n && i < 250; i++ {
		out = append(out, netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)}))
	}
	return out
}

// listeningPid finds the process that listens on a local port, so that a running server on this machine can be
// measured. It returns 0 if there is none.
func listeningPid(addr netip.AddrPort) int {
	if !addr.Addr().IsLoopback() {
		return 0
	}
	inode := ""
	for _, f := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		want := fmt.Sprintf(":%04X", addr.Port())
		for _, line := range strings.Split(string(b), "\n") {
			p := strings.Fields(line)
			if len(p) > 9 && strings.HasSuffix(p[1], want) && p[3] == "0A" {
				inode = p[9]
			}
		}
	}
	if inode == "" {
		return 0
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, d := range dirs {
		if to, err := os.Readlink(d); err == nil && to == "socket:["+inode+"]" {
			pid, _ := strconv.Atoi(strings.Split(d, "/")[2])
			return pid
		}
	}
	return 0
}

func printLogTail(w io.Writer, s *server) {
	if t := s.logTail(); t != "" && t != "no log" {
		fmt.Fprintf(w, "the last lines of the server's log:\n%s\n", t)
	}
}
