package bench

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startAgent starts an agent as a process and returns its address and the function that kills it.
func startAgent(t *testing.T, token string) (addr string, kill func()) {
	t.Helper()
	exe, _ := os.Executable()
	cmd := exec.Command(exe, "bench", "agent", "--listen", "127.0.0.1:0", "--token-file", token)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill = func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	return strings.TrimSpace(strings.TrimPrefix(line, "agent listens on ")), kill
}

func writeToken(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTwoAgents requires that two agents make the load of one, that each sees the messages of the other, and that
// faults between them are found.
func TestTwoAgents(t *testing.T) {
	token := writeToken(t, strings.Repeat("0123456789abcdef", 4))
	a, _ := startAgent(t, token)
	b, _ := startAgent(t, token)
	counts := map[string][3]float64{}
	for name, agents := range map[string]string{"one": a, "two": a + "," + b} {
		f := newFake("")
		srv := httptest.NewTLSServer(f)
		file := filepath.Join(t.TempDir(), "r.json")
		code, out, errs := runMain("chat", "--target", srv.URL, "--ca", writeCA(t, srv), "--users", "12",
			"--channels", "3",
			"--history", "0", "--rate", "300", "--duration", "4", "--agents", agents, "--token-file", token,
			"--quiet", "--json",
			file, "--threshold", "lost == 0", "--threshold", "errors == 0")
		srv.CloseClientConnections()
		if code != 0 {
			t.Fatalf("%s: exit code %d:\n%s%s", name, code, out, errs)
		}
		res, err := ReadResult(file)
		if err != nil {
			t.Fatal(err)
		}
		d := res.Phases[len(res.Phases)-1]
		n := 0.0
		for k, x := range d.Kinds {
			if k != "poll" {
				n += float64(x.N)
			}
		}
		counts[name] = [3]float64{n, float64(d.Delivered), float64(d.Kinds["send"].N)}
	}
	one, two := counts["one"], counts["two"]
	// 1,200 requests at random times: 3 standard deviations are 9 %.
	if math.Abs(one[0]-two[0]) > 0.13*one[0] || two[2] == 0 || two[1] < two[2]*2 {
		t.Errorf("requests, deliveries, sends: one agent %v, two agents %v", one, two)
	}
	for fault, kind := range map[string]string{"loss": "loss", "duplicate": "duplicate", "leak": "leak"} {
		srv := httptest.NewServer(newFake(fault))
		s := smallScenario("chat")
		s.Phases = []Phase{{Name: "open", Seconds: 1, Rate: 200}}
		secret, _ := readToken(token)
		res, err := runScenario(s, options{target: srv.URL, quiet: true, out: io.Discard, drainLimit: time.Second,
			agents: []string{a, b}, token: secret})
		srv.CloseClientConnections()
		if err != nil || res.BrokenByKind[kind] == 0 {
			t.Errorf("a %s: error %v, %+v", fault, err, res)
		}
	}
}

// TestAgentsThatFail requires exit code 2 and a reason if an agent dies, is absent or has another token, and if a run
// cannot be divided.
func TestAgentsThatFail(t *testing.T) {
	token := writeToken(t, strings.Repeat("0123456789abcdef", 4))
	other := writeToken(t, strings.Repeat("fedcba9876543210", 4))
	a, _ := startAgent(t, token)
	b, kill := startAgent(t, token)
	srv := httptest.NewServer(newFake(""))
	defer srv.CloseClientConnections()
	args := func(agents, token string, more ...string) []string {
		return append([]string{"chat", "--target", srv.URL, "--users", "12", "--channels", "3", "--history", "0",
			"--duration",
			"1", "--agents", agents, "--token-file", token}, more...)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"absent":      {args("127.0.0.1:1", token), "refused"},
		"other token": {args(a, other), "agent " + a},
		"short token": {args(a, writeToken(t, "secret")), "at least 32 bytes"},
		"no token":    {args(a, ""), "token-file"},
		"few users":   {args(a+","+b, token, "--users", "1"), "divided"},
		"rounds":      {append([]string{"fanout"}, args(a, token)[1:]...), "cannot be divided"},
	} {
		if code, _, errs := runMain(c.args...); code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, want 2 and %q: %s", name, code, c.want, errs)
		}
	}
	// The agent is killed when the coordinator says that all have started.
	r, w := io.Pipe()
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			if strings.Contains(s.Text(), "start together") {
				kill()
			}
		}
	}()
	var errs strings.Builder
	code := Main(args(a+","+b, token, "--duration", "30"), w, &errs)
	if code != 2 || !strings.Contains(errs.String(), fmt.Sprintf("agent %s failed", b)) {
		t.Errorf("an agent that dies: exit code %d: %s", code, errs.String())
	}
}
