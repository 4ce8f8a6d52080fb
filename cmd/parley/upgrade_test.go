package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/cmd/internal/control"
)

// poller polls one queue until it receives a last message, on one connection as long as the server keeps it open.
type poller struct {
	*account
	queue string
	last  int64
	texts []string
}

func (p *account) newPoller() (*poller, error) {
	a, err := p.call("POST", "register", url.Values{"event_types": {`["message"]`}, "apply_markdown": {"false"}})
	if err != nil {
		return nil, err
	}
	return &poller{account: p, queue: a["queue_id"].(string), last: int64(a["last_event_id"].(float64))}, nil
}

// pollUntil polls until it receives a message with the text word. It does not retry: every answer that is not a success
// is an error.
func (l *poller) pollUntil(word string) error {
	client := &http.Client{Timeout: binaryTimeout, Transport: &http.Transport{TLSClientConfig: insecureTLS}}
	defer client.CloseIdleConnections()
	for {
		a, err := l.callWith(client, "GET", "events",
			url.Values{"queue_id": {l.queue}, "last_event_id": {fmt.Sprint(l.last)}})
		if err != nil {
			return err
		}
		for _, x := range a["events"].([]any) {
			e := x.(map[string]any)
			if id := int64(e["id"].(float64)); id <= l.last {
				return fmt.Errorf("event %d after %d", id, l.last)
			} else {
				l.last = id
			}
			if e["type"] == "message" {
				text := e["message"].(map[string]any)["content"].(string)
				if text == word {
					return nil
				}
				l.texts = append(l.texts, text)
			}
		}
	}
}

// A server is replaced UPGRADES times (2) under load. No request fails, no queue is lost, every message arrives once
// and in order.
func TestSeamlessUpgrade(t *testing.T) { withAndWithoutTLS(t, testSeamlessUpgrade) }

// withAndWithoutTLS runs a test with a demo server that speaks HTTP, and with one that speaks TLS.
func withAndWithoutTLS(t *testing.T, test func(t *testing.T, p *program, data, at string)) {
	t.Run("plain", func(t *testing.T) {
		data := filepath.Join(t.TempDir(), "data")
		p := demo(t, data)
		test(t, p, data, p.serving())
	})
	t.Run("TLS", func(t *testing.T) {
		data := filepath.Join(t.TempDir(), "data")
		cert, key := selfSigned(t, t.TempDir(), "localhost")
		p := demo(t, data, "--tls-cert", cert, "--tls-key", key)
		test(t, p, data, "https"+strings.TrimPrefix(p.serving(), "http"))
	})
}

func testSeamlessUpgrade(t *testing.T, p *program, data, at string) {
	pid := p.cmd.Process.Pid
	const pollers, senders = 12, 3
	var everybody []*poller
	for _, name := range []string{"ann", "bo", "cy", "di"} {
		who := demoAccount(t, at, name+"@example.org")
		for range pollers / 4 {
			l, err := who.newPoller()
			if err != nil {
				t.Fatal(err)
			}
			everybody = append(everybody, l)
		}
	}
	var polling, sending sync.WaitGroup
	for i, l := range everybody {
		polling.Add(1)
		go func() {
			defer polling.Done()
			if err := l.pollUntil("the end"); err != nil {
				t.Errorf("poller %d: %v", i, err)
			}
		}()
	}
	stop := make(chan struct{})
	sent, took := make([]int, senders), make([][]time.Duration, senders)
	for i := range senders {
		sending.Add(1)
		go func() {
			defer sending.Done()
			who := *everybody[i].account
			client := &http.Client{Timeout: binaryTimeout, Transport: &http.Transport{TLSClientConfig: insecureTLS}}
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond): // a steady load that does not use the whole machine
				}
				began := time.Now()
				_, err := who.callWith(client, "POST", "messages",
					url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"upgrade"},
						"content": {fmt.Sprintf("%d %d", i, sent[i])}})
				if err != nil {
					t.Errorf("sender %d: %v", i, err)
					return
				}
				sent[i]++
				took[i] = append(took[i], time.Since(began))
			}
		}()
	}
	if out, code := runParley("upgrade", "--data", data); code != 0 {
		t.Fatalf("upgrade: %s", out)
	}
	p.succeeded()
	if code := p.end(); code != 0 {
		t.Errorf("the predecessor ended with code %d", code)
	}
	t.Cleanup(func() { endSuccessor(t, data) })
	upgrades := 2
	if n, err := strconv.Atoi(os.Getenv("UPGRADES")); err == nil {
		upgrades = n
	}
	for n := 1; n < upgrades && !t.Failed(); n++ {
		next := serverPid(t, data)
		if next == pid {
			t.Fatalf("process %d serves again", pid)
		}
		pid = next
		syscall.Kill(pid, syscall.SIGHUP)
		p.succeeded()
	}
	if serverPid(t, data) == pid {
		t.Errorf("process %d is still there", pid)
	}
	close(stop)
	sending.Wait()
	last := *everybody[0].account
	if _, err := last.send("the end"); err != nil {
		t.Fatal(err)
	}
	polling.Wait()
	for i, l := range everybody {
		next := make([]int, senders)
		for _, text := range l.texts {
			var who, n int
			if _, err := fmt.Sscanf(text, "%d %d", &who, &n); err != nil || next[who] != n {
				t.Fatalf("poller %d received %q, expected number %v: %v", i, text, next, err)
			}
			next[who]++
		}
		if fmt.Sprint(next) != fmt.Sprint(sent) {
			t.Errorf("poller %d received %v of %v messages", i, next, sent)
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	t.Logf("%v messages to each of %d queues across %d upgrades; a send took %v (median), %v (p99.9), %v (maximum)",
		sent, pollers, upgrades,
		all[len(all)/2].Round(time.Microsecond), all[len(all)*999/1000].Round(time.Microsecond),
		all[len(all)-1].Round(time.Microsecond))
	for line := range strings.Lines(p.output()) {
		if strings.Contains(line, "level=ERROR") {
			t.Errorf("logged %s", line)
		}
	}
}

func serverPid(t *testing.T, data string) int {
	t.Helper()
	info, ran, err := control.Send(data, "server-info", nil)
	if !ran || err != nil {
		t.Fatal("no server is running:", err)
	}
	return int(info["pid"].(float64))
}

// A successor that cannot start leaves the server as it is.
func TestFailedUpgrade(t *testing.T) {
	dir := t.TempDir()
	data, config := filepath.Join(dir, "data"), filepath.Join(dir, "parley.toml")
	writeFile(t, config, "log-level = \"info\"\n")
	p := demo(t, data, "--config", config)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	writeFile(t, config, "no-such-setting = 1\n")
	out, code := runParley("upgrade", "--data", data)
	if code != exitError || !strings.Contains(out, "the old server continues") {
		t.Errorf("upgrade: code %d, %s", code, out)
	}
	if _, err := ann.send("still here"); err != nil {
		t.Error(err)
	}
	if serverPid(t, data) != p.cmd.Process.Pid {
		t.Error("another process serves")
	}
	writeFile(t, config, "log-level = \"info\"\n")
	if out, code := runParley("upgrade", "--data", data); code != 0 {
		t.Errorf("upgrade with a good configuration: %s", out)
	}
	endSuccessor(t, data)
}

// A successor that does not take over does not prevent the next upgrade: one that hangs is ended, and the server goes
// on serving.
func TestUpgradeToABrokenProgram(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "parley")
	install := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(file+".new", content, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	real, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	install(real)
	cmd := parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0", "--demo", "--upgrade-timeout", "5s")
	cmd.Path = file
	p := startProgram(t, cmd)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	poller, err := ann.newPoller()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, program, answer string }{
		{"hangs", "#!/bin/sh\nexec sleep 1000\n", "the old server continues"},
		{"exits", "#!/bin/sh\nexit 3\n", "the old server continues"},
		{"is another program", "#!/bin/sh\nexec echo\n", "the old server continues"},
		{"is no program", "not a program", "exec format error"},
	} {
		install([]byte(c.program))
		began := time.Now()
		out, code := runParley("upgrade", "--data", data)
		if code != exitError || !strings.Contains(out, c.answer) {
			t.Errorf("upgrade to a program that %s: code %d, %s", c.what, code, out)
		}
		if took := time.Since(began); took > binaryTimeout/2 {
			t.Errorf("upgrade to a program that %s: took %v", c.what, took)
		}
		if serverPid(t, data) != p.cmd.Process.Pid {
			t.Errorf("upgrade to a program that %s: another process serves", c.what)
		}
		if _, err := ann.send("after a program that " + c.what); err != nil {
			t.Errorf("upgrade to a program that %s: %v", c.what, err)
		}
	}
	if out := p.output(); !strings.Contains(out, "the successor hangs; killing it") {
		t.Errorf("the log does not report that a successor hung: %s", out)
	}
	install(real)
	if out, code := runParley("upgrade", "--data", data); code != 0 {
		t.Errorf("upgrade to a good program: %s", out)
	}
	ann.url = p.succeeded()
	if _, err := ann.send("last"); err != nil {
		t.Error(err)
	}
	if err := poller.pollUntil("last"); err != nil {
		t.Error(err)
	}
	endSuccessor(t, data)
}

// Unfinished requests do not delay an upgrade. Half a request continues at the successor, and half an email has to be
// sent again.
func TestUpgradeWithUnfinishedRequests(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	gate := freeAddress(t)
	p := demo(t, data, "--mail-listen", gate)
	at := p.serving()
	ann := demoAccount(t, at, "ann@example.org")
	body := url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"halves"},
		"content": {strings.Repeat("half ", 1000)}}.Encode()
	half, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	fmt.Fprintf(half,
		"POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Type: "+
			"application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", ann.auth(), len(body),
		body[:len(body)/2])
	mail, err := net.Dial("tcp", gate)
	if err != nil {
		t.Fatal(err)
	}
	defer mail.Close()
	fmt.Fprintf(mail, "EHLO x\r\n") // an unfinished dialog
	began := time.Now()
	if out, code := runParley("upgrade", "--data", data); code != 0 {
		t.Fatalf("upgrade: %s", out)
	}
	t.Cleanup(func() { endSuccessor(t, data) })
	if took := time.Since(began); took > 12*time.Second { // requests in progress may delay it by 15 s
		t.Errorf("the upgrade took %v", took)
	}
	if _, err := ann.send("whole"); err != nil {
		t.Error(err)
	}
	io.WriteString(half, body[len(body)/2:])
	if a, err := http.ReadResponse(bufio.NewReader(half), nil); err != nil || a.StatusCode != 200 {
		t.Errorf("the unfinished request: %v, %v", a, err)
	}
	mail.SetReadDeadline(time.Now().Add(binaryTimeout))
	if said, err := io.ReadAll(mail); err != nil || !strings.Contains(string(said), "\r\n421 ") {
		t.Errorf("the unfinished email: %q, %v", said, err)
	}
}

// An upload in progress is finished by the old server, which serves all clients until then. A download in progress is
// finished by the old server too, while the successor serves.
func TestUpgradeFinishesTransfers(t *testing.T) { withAndWithoutTLS(t, testUpgradeFinishesTransfers) }

func testUpgradeFinishesTransfers(t *testing.T, p *program, data, at string) {
	ann := demoAccount(t, at, "ann@example.org")
	whole := strings.Repeat("a file ", 3<<20)
	const begin, end = "--b\r\nContent-Disposition: form-data; name=file; filename=a.txt\r\n\r\n", "\r\n--b--\r\n"
	dial := func(head string, args ...any) (net.Conn, *bufio.Reader) {
		scheme, addr, _ := strings.Cut(at, "://")
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if scheme == "https" {
			c = tls.Client(c, insecureTLS)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(binaryTimeout))
		fmt.Fprintf(c, head+"Host: x\r\nAuthorization: %s\r\n\r\n", append(args, ann.auth())...)
		return c, bufio.NewReader(c)
	}
	upload, uploaded := dial("POST /api/v1/user_uploads HTTP/1.1\r\nContent-Type: multipart/form-data; "+
		"boundary=b\r\nContent-Length: %d\r\n", len(begin+whole+end))
	io.WriteString(upload, begin+whole[:len(whole)/2])
	done := make(chan error, 1)
	go func() {
		if out, code := runParley("upgrade", "--data", data); code != 0 {
			done <- errors.New(out)
		}
		close(done)
	}()
	for end := time.Now().Add(binaryTimeout); !strings.Contains(p.output(),
		"waiting for long requests"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server does not wait for the upload")
		}
	}
	if _, err := ann.send("meanwhile"); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done:
		t.Fatal("the upgrade did not wait for the upload:", err)
	default:
	}
	io.WriteString(upload, whole[len(whole)/2:]+end)
	a, err := http.ReadResponse(uploaded, nil)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ URL string }
	if err := json.NewDecoder(a.Body).Decode(&file); err != nil || a.StatusCode != 200 || file.URL == "" {
		t.Fatal(a.Status, err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endSuccessor(t, data) })
	if code := p.end(); code != 0 {
		t.Errorf("the predecessor ended with code %d", code)
	}

	_, download := dial("GET %s HTTP/1.1\r\n", file.URL)
	if _, err := download.Peek(1); err != nil {
		t.Fatal(err)
	}
	old := serverPid(t, data)
	if out, code := runParley("upgrade", "--data", data); code != 0 {
		t.Fatal(out)
	}
	if serverPid(t, data) == old {
		t.Fatal("no successor took over")
	}
	a, err = http.ReadResponse(download, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(a.Body); err != nil || string(got) != whole {
		t.Errorf("%d of %d bytes: %v", len(got), len(whole), err)
	}
}

// endSuccessor kills the last successor, which is not a child of this process, and waits until it has ended.
func endSuccessor(t *testing.T, data string) {
	pid := serverPid(t, data)
	syscall.Kill(pid, syscall.SIGKILL)
	for end := time.Now().Add(binaryTimeout); syscall.Kill(pid, 0) == nil && time.Now().Before(end); {
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil &&
			strings.Contains(string(state), ") Z ") {
			return // ended, but its parent has not waited for it
		}
		time.Sleep(time.Millisecond)
	}
}
