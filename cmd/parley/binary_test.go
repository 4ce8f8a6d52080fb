package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/actors/realm"
)

// runAsParley is an environment variable that makes this test binary behave as parley, so that tests kill and upgrade
// the real program.
const runAsParley = "PARLEY_TEST_PLAY"

// clockAhead is an environment variable by which the clock of a program differs, such as "-1h". clockFile is one that
// names a file with such a difference, so that a test can set the clock while the program runs.
const clockAhead, clockFile = "PARLEY_TEST_CLOCK", "PARLEY_TEST_CLOCK_FILE"

func TestMain(m *testing.M) {
	if os.Getenv(runAsParley) != "" {
		if level, err := strconv.ParseUint(os.Getenv(runAtLevel), 10, 16); err == nil {
			realm.Level = uint16(level)
		}
		if d, err := time.ParseDuration(os.Getenv(clockAhead)); err == nil {
			wallClock = func() time.Time { return time.Now().Add(d) }
		}
		if path := os.Getenv(clockFile); path != "" {
			wallClock = clockOfFile(path)
		}
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// clockOfFile returns a clock that differs as a file says now. Without a valid file it is the system's.
func clockOfFile(path string) func() time.Time {
	var ahead atomic.Int64
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			text, _ := os.ReadFile(path)
			if d, err := time.ParseDuration(string(text)); err == nil {
				ahead.Store(int64(d))
			}
		}
	}()
	return func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
}

// binaryTimeout bounds every wait for the program. It only decides how long a broken program takes to fail.
const binaryTimeout = 60 * time.Second

// program is a running parley.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	exited chan struct{}
	serves chan string // the URL, when the program logs that it serves

	mu  sync.Mutex
	log strings.Builder
}

// parleyCommand returns a command that runs this test binary as parley.
func parleyCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), runAsParley+"=1", "PARLEY_DEMO_CONTENT=false")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// runParley runs a command to its end.
func runParley(args ...string) (output string, code int) {
	cmd := parleyCommand(args...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// startProgram starts a command. Its output is logged if the test fails.
func startProgram(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, cmd: cmd, exited: make(chan struct{}), serves: make(chan string, 8)}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go p.listen(r)
	go func() {
		cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("output of %s:\n%s", strings.Join(cmd.Args[1:], " "), p.output())
		}
	})
	return p
}

var listenAt = regexp.MustCompile(`msg=serving .*listen=(\S+)`)

// listen collects the output of the program and of successors, which have the same standard files.
func (p *program) listen(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.log.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		if m := listenAt.FindStringSubmatch(lines.Text()); m != nil {
			p.serves <- "http://" + m[1]
		}
	}
}

func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// givenPorts has the ports of all addresses that freeAddress has returned.
var givenPorts sync.Map

// freeAddress returns an address at which nothing listens. The system gives ports from 32768 on to outgoing connections
// and to servers that ask for any port. This one is lower, so that nobody gets it before a server listens there, or
// while that server is stopped.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := 10_000 + rand.IntN(20_000)
		if _, given := givenPorts.LoadOrStore(port, true); given {
			continue
		}
		address := fmt.Sprint("127.0.0.1:", port)
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("100 ports are in use")
	return ""
}

// serving waits until the program serves and returns its URL.
func (p *program) serving() string {
	p.t.Helper()
	select {
	case at := <-p.serves:
		return at
	case <-p.exited:
		p.t.Fatalf("the program ended instead of serving: %s", p.output())
	case <-time.After(binaryTimeout):
		p.t.Fatalf("the program does not serve: %s", p.output())
	}
	return ""
}

// succeeded waits until a successor serves and returns its URL. The program itself may have ended before.
func (p *program) succeeded() string {
	p.t.Helper()
	select {
	case at := <-p.serves:
		return at
	case <-time.After(binaryTimeout):
		p.t.Fatalf("no successor serves: %s", p.output())
	}
	return ""
}

// end waits until the program ends by itself and returns its exit code.
func (p *program) end() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(binaryTimeout):
		p.t.Fatalf("the program does not end: %s", p.output())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *program) kill() {
	p.cmd.Process.Kill()
	<-p.exited
}

// stop ends the program as an operator does.
func (p *program) stop() {
	p.t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.end(); code != 0 {
		p.t.Fatalf("the program ended with code %d: %s", code, p.output())
	}
}

// account sends requests to a server as one user; url may change when the server moves.
type account struct {
	url, email, key string
}

// demoAccount logs in with the development login of a demo organization.
func demoAccount(t *testing.T, at, email string) *account {
	t.Helper()
	p := &account{url: at}
	a, err := p.call("POST", "dev_fetch_api_key", url.Values{"username": {email}})
	if err != nil {
		t.Fatal(err)
	}
	p.email, p.key = email, a["api_key"].(string)
	return p
}

// call sends a request. An answer that is not a success is also returned as an error with the protocol's code.
func (p *account) call(method, path string, form url.Values) (map[string]any, error) {
	return p.callWith(&http.Client{Timeout: binaryTimeout,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: insecureTLS,
			DialContext: dialOrganization}}, method, path, form)
}

// dialOrganization connects to the address of an organization, such as acme.127.0.0.1:9991. No resolver knows the name.
func dialOrganization(ctx context.Context, network, address string) (net.Conn, error) {
	if _, rest, is := strings.Cut(address, "."); is {
		if _, err := netip.ParseAddrPort(rest); err == nil {
			address = rest
		}
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// insecureTLS is the TLS configuration of the tests' clients; it accepts every certificate.
var insecureTLS = &tls.Config{InsecureSkipVerify: true}

// must is a call that has to succeed.
func (p *account) must(t *testing.T, method, path string, form url.Values) map[string]any {
	t.Helper()
	a, err := p.call(method, path, form)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (p *account) callWith(c *http.Client, method, path string, form url.Values) (map[string]any, error) {
	target, body := p.url+"/api/v1/"+path, form.Encode()
	if method == "GET" || method == "DELETE" {
		target, body = target+"?"+body, ""
	}
	r, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if p.key != "" {
		r.SetBasicAuth(p.email, p.key)
	}
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var a map[string]any
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("%s %s: status %d, %q", method, path, resp.StatusCode, data)
	}
	if resp.StatusCode != 200 {
		return a, fmt.Errorf("%s %s: status %d, %v: %v", method, path, resp.StatusCode, a["code"], a["msg"])
	}
	return a, nil
}

// send sends a message to a channel of the demo organization and returns its id.
func (p *account) send(text string) (int64, error) {
	a, err := p.call("POST", "messages", url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"proof"},
		"content": {text}})
	if err != nil {
		return 0, err
	}
	return int64(a["id"].(float64)), nil
}

// getText makes a GET request without an Authorization header, and returns the answer and its body.
func getText(t *testing.T, address string) (*http.Response, string) {
	t.Helper()
	r, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(text)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
