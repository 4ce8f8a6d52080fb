package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A server is what is measured: somebody's, at a URL, or one started here in a process of its own.
type server struct {
	addr    netip.AddrPort
	host    string // Host header
	pid     int    // 0: its process cannot be looked at
	metrics string
	level   int
	version string

	cmd     *exec.Cmd
	heir    int // process id of the successor after an upgrade, which is not our child
	exe     string
	args    []string
	dir     string // temporary data directory, removed at the end
	log     *os.File
	started time.Duration // how long it took to answer
	died    chan error
}

// resolve points s at a URL.
func (s *server) resolve(target string) error {
	u, err := url.Parse(target)
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if u.Scheme != "http" {
		return fmt.Errorf("target %s: only http is spoken here; measure behind the TLS front", target)
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	ips, err := net.LookupIP(u.Hostname())
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	for _, ip := range ips {
		if v4 := ip.To4(); v4 != nil {
			a, _ := netip.AddrFromSlice(v4)
			n, _ := strconv.Atoi(port)
			s.addr, s.host = netip.AddrPortFrom(a, uint16(n)), u.Host
			return nil
		}
	}
	return fmt.Errorf("target %s has no IPv4 address", target)
}

// startSelf starts exe as a fresh server on a free port, with a data directory of its own.
func startSelf(exe string, extra []string) (*server, error) {
	dir, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	s := &server{exe: installed(exe, dir), dir: dir}
	s.args = append([]string{"serve", "--data", filepath.Join(dir, "data"), "--listen", addr}, extra...)
	if strings.Contains(helpOf(exe, "serve"), "-debug-listen") {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		debug := fmt.Sprintf("127.0.0.1:%d", port)
		s.args = append(s.args, "--debug-listen", debug)
		s.metrics = "http://" + debug + "/metrics"
	}
	if err := s.resolve("http://" + addr); err != nil {
		return nil, err
	}
	s.log, err = os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return nil, err
	}
	return s, s.start()
}

// installed is a copy of a program in dir, as a server has it that was put in its place; where none can be run, the program
// itself. What a linker has just written lies in the kernel's memory in large pieces, which are mapped whole: some 10 MB more
// that would count as the server's.
func installed(exe, dir string) string {
	to := filepath.Join(dir, filepath.Base(exe))
	if copyFile(exe, to) != nil {
		return exe
	}
	var ran *exec.ExitError // which a program that says how it is used may well end with
	if err := exec.Command(to, "serve", "-h").Run(); err != nil && !errors.As(err, &ran) {
		return exe // such as where nothing in the temporary directory may be run
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

func (s *server) start() error {
	s.cmd = exec.Command(s.exe, s.args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	// The server must not outlive a harness that is killed.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	s.pid = s.cmd.Process.Pid
	died := make(chan error, 1)
	s.died = died
	cmd := s.cmd
	go func() { died <- cmd.Wait() }()
	for time.Since(begin) < 60*time.Second {
		if s.settings() == nil {
			s.started = time.Since(begin)
			return nil
		}
		select {
		case err := <-died:
			died <- err
			return fmt.Errorf("the server ended before it answered (%v): %s", err, s.tail())
		case <-time.After(2 * time.Millisecond):
		}
	}
	return fmt.Errorf("the server did not answer within 60 s: %s", s.tail())
}

// settings asks the server who it is.
func (s *server) settings() error {
	req, err := http.NewRequest("GET", "http://"+s.addr.String()+"/api/v1/server_settings", nil)
	if err != nil {
		return err
	}
	req.Host = s.host
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var v struct {
		Version string `json:"zulip_version"`
		Level   int    `json:"zulip_feature_level"`
	}
	if resp.StatusCode != 200 {
		return fmt.Errorf("server_settings: status %d", resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		return fmt.Errorf("server_settings: %w", err)
	}
	s.version, s.level = v.Version, v.Level
	return nil
}

// kill9 ends the process as a power cut would, for it.
func (s *server) kill9() error {
	if s.cmd == nil {
		return errors.New("only a server started with --self can be killed")
	}
	if s.heir != 0 {
		return errors.New("a successor is not killed")
	}
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	<-s.died
	s.died <- nil
	return nil
}

// restart ends the process politely and starts it again on the same data and port.
func (s *server) restart() error {
	if err := s.terminate(); err != nil {
		return err
	}
	return s.start()
}

func (s *server) terminate() error {
	if s.heir != 0 {
		return errors.New("a successor is not restarted")
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.died:
		s.died <- nil
		return nil
	case <-time.After(30 * time.Second):
		s.cmd.Process.Kill()
		return errors.New("the server did not end within 30 s of SIGTERM")
	}
}

// close ends a server started here and removes its data.
func (s *server) close() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		<-s.died
	}
	if s.heir != 0 {
		syscall.Kill(s.heir, syscall.SIGKILL)
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
	if s.log != nil {
		s.log.Close()
	}
}

func (s *server) tail() string {
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

// helpOf is what a command says about its flags.
func helpOf(exe, command string) string {
	out, _ := exec.Command(exe, command, "-h").CombinedOutput()
	return string(out)
}

// sources are the addresses connections come from. Each loopback source has its own 28,000 ports.
func sources(to netip.AddrPort, n int) []netip.Addr {
	if !to.Addr().IsLoopback() || n < 1 {
		return nil
	}
	var out []netip.Addr
	for i := 0; i < n && i < 250; i++ {
		out = append(out, netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)}))
	}
	return out
}

// listeningPid finds the process that listens on a local port, so that a server on this machine can be measured.
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

func copyTail(w io.Writer, s *server) {
	if t := s.tail(); t != "" && t != "no log" {
		fmt.Fprintf(w, "the server's last words:\n%s\n", t)
	}
}
