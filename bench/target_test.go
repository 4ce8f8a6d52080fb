package bench

import (
	"bufio"
	"bytes"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// benchArgs are the arguments of a short run of chat.
func benchArgs(target string, more ...string) []string {
	return append([]string{"chat", "--target", target, "--users", "10", "--channels", "2", "--history", "0", "--rate",
		"50",
		"--duration", "1s", "--quiet"}, more...)
}

func runMain(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Main(args, &o, &e)
	return code, o.String(), e.String()
}

// writeCA writes the certificate of a test server to a file.
func writeCA(t *testing.T, srv *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestExitCodes requires that guarantees and thresholds decide the exit code of a run over TLS, and that the files have
// the same verdict.
func TestExitCodes(t *testing.T) {
	srv := httptest.NewTLSServer(newFake(""))
	defer srv.CloseClientConnections()
	ca := writeCA(t, srv)
	junit := filepath.Join(t.TempDir(), "junit.xml")
	htmlFile := filepath.Join(t.TempDir(), "run.html")
	csvFile := filepath.Join(t.TempDir(), "run.csv")
	code, out, errs := runMain(benchArgs(srv.URL, "--ca", ca, "--junit", junit, "--csv", csvFile, "--html", htmlFile,
		"--threshold", "p99(send) < 30s", "--threshold", "lost == 0", "--threshold", "errors < 0.1%",
		"--threshold", "rate(all, chat) > 1/s", "--threshold", "chat.send_p50 < 1m", "--threshold", "count(send)>0")...)
	if code != 0 || !strings.Contains(out, "threshold lost == 0: kept") {
		t.Fatalf("exit code %d:\n%s%s", code, out, errs)
	}
	if n := strings.Count(out, ": kept"); n != 6 {
		t.Errorf("%d thresholds were kept, want 6:\n%s", n, out)
	}
	suite := readJUnit(t, junit)
	if suite.Failures != 0 || suite.Errors != 0 || suite.Tests != len(guaranteeKinds)+6 {
		t.Errorf("JUnit: %d tests, %d failures, %d errors", suite.Tests, suite.Failures, suite.Errors)
	}
	if b, _ := os.ReadFile(htmlFile); !strings.Contains(string(b), "kept: p99(send) &lt; 30s") {
		t.Error("the report does not show the thresholds")
	}
	if b, _ := os.ReadFile(csvFile); !strings.Contains(string(b), "\nchat,send,") {
		t.Errorf("the CSV file has no row for sends:\n%s", b)
	}
	code, out, errs = runMain(benchArgs(srv.URL, "--ca", ca, "--junit", junit, "--threshold", "p99(send) < 1us",
		"--threshold", "p50(edit) < 1s")...)
	if code != 1 || !strings.Contains(out, "threshold p99(send) < 1us: MISSED") ||
		!strings.Contains(out, "no edit was answered") {
		t.Errorf("missed thresholds: exit code %d:\n%s%s", code, out, errs)
	}
	if suite = readJUnit(t, junit); suite.Failures != 2 {
		t.Errorf("JUnit has %d failures, want 2", suite.Failures)
	}
	code, _, errs = runMain(benchArgs(srv.URL, "--junit", junit)...)
	if code != 2 || !strings.Contains(errs, "certificate") {
		t.Errorf("a certificate of an unknown authority: exit code %d: %s", code, errs)
	}
	if suite = readJUnit(t, junit); suite.Errors != 1 {
		t.Errorf("JUnit has %d errors, want 1", suite.Errors)
	}
}

// A run with --http2 uses HTTP/2 for its load, and keeps its guarantees. It cannot be made against a server that knows
// only HTTP/1.1, or without TLS.
func TestRunOverHTTP2(t *testing.T) {
	var second atomic.Int64
	fake := newFake("")
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			second.Add(1)
		}
		fake.ServeHTTP(w, r)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.CloseClientConnections()
	code, out, errs := runMain(benchArgs(srv.URL, "--ca", writeCA(t, srv), "--http2", "--threshold", "lost == 0")...)
	if code != 0 || second.Load() < 50 {
		t.Errorf("exit code %d, %d requests with HTTP/2:\n%s%s", code, second.Load(), out, errs)
	}
	first := httptest.NewTLSServer(newFake(""))
	defer first.CloseClientConnections()
	code, _, errs = runMain(benchArgs(first.URL, "--ca", writeCA(t, first), "--http2")...)
	if code != 2 || !strings.Contains(errs, "does not speak HTTP/2") {
		t.Errorf("a server without HTTP/2: exit code %d: %s", code, errs)
	}
	if code, _, errs = runMain(benchArgs("http://127.0.0.1:1", "--http2")...); code != 2 ||
		!strings.Contains(errs, "needs TLS") {
		t.Errorf("without TLS: exit code %d: %s", code, errs)
	}
}

func readJUnit(t *testing.T, file string) (s junitSuite) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = xml.Unmarshal(b, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestThresholdTexts(t *testing.T) {
	for _, good := range []string{"p99(send) < 200ms", "p99.9(seen)<=1s", "lost == 0", "errors < 0.1%", "max(all) < 2",
		"rate(send, open) >= 10/s", "open.cpu_per_delivery < 12", "rate_limited != 1", " mean( typing ) > 1us "} {
		if _, err := ParseThreshold(good); err != nil {
			t.Error(err)
		}
	}
	for bad, why := range map[string]string{"": "must be", "p99(send)": "must be", "p99(sned) < 1ms": "kind",
		"p200(send) < 1ms": "statistic", "p99(send) < 5%": "unit", "lots == 0": "counter", "lost == 0ms": "unit",
		"lost == x": "must be", "p99(poll) < 1s": "polls", "lost == 0; rm": "must be",
		strings.Repeat("9", 300): "longer", "lost == 1e9": "must be", "rate(send) > 5ms": "unit"} {
		if _, err := ParseThreshold(bad); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: error %v, want one with %q", bad, err, why)
		}
		if bad == "" {
			continue
		}
		if code, _, errs := runMain(benchArgs("http://127.0.0.1:1", "--threshold", bad)...); code != 2 || errs == "" {
			t.Errorf("--threshold %q: exit code %d: %s", bad, code, errs)
		}
	}
}

// TestTargetsThatAreNoServers requires exit code 2 and a line that names the fault for whatever answers instead of a
// server of the protocol.
func TestTargetsThatAreNoServers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, c := range map[string]struct{ raw, want string }{
		"closed":     {"", "EOF"},
		"no HTTP":    {"SSH-2.0-OpenSSH_9.2\r\n", "malformed HTTP"},
		"not found":  {"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", "status 404"},
		"page":       {ok + "Content-Length: 6\r\n\r\n<html>", "not the expected JSON"},
		"other JSON": {ok + "Content-Length: 2\r\n\r\n{}", "no zulip_feature_level"},
		"huge level": {ok + "Content-Length: 50\r\n\r\n" + `{"zulip_feature_level":99999999999999999999999999}`,
			"JSON"},
		"short body": {ok + "Content-Length: 50\r\n\r\n{", "EOF"},
		"redirect": {"HTTP/1.1 302 Found\r\nLocation: https://chat.invalid/\r\nContent-Length: 0\r\n\r\n",
			"redirects to"},
		"wrong encoding": {ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk"},
	} {
		t.Run(name, func(t *testing.T) {
			target := serveRaw(t, func(conn net.Conn) { io.WriteString(conn, c.raw) })
			code, out, errs := runMain(benchArgs(target)...)
			if code != 2 || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("exit code %d, want 2 and one line with %q: %s%s", code, c.want, out, errs)
			}
		})
	}
	t.Run("endless body", func(t *testing.T) {
		target := serveRaw(t, func(conn net.Conn) {
			io.WriteString(conn, ok+"\r\n")
			for block := bytes.Repeat([]byte(" "), 1<<16); ; {
				if _, err := conn.Write(block); err != nil {
					return
				}
			}
		})
		if code, _, errs := runMain(benchArgs(target)...); code != 2 || !strings.Contains(errs, "longer than") {
			t.Errorf("exit code %d: %s", code, errs)
		}
	})
	for _, name := range ownLoads {
		if code, _, errs := runMain(name, "--target", "https://127.0.0.1:1"); code != 2 || errs == "" {
			t.Errorf("%s over https: exit code %d: %q", name, code, errs)
		}
	}
	for _, target := range []string{"http://127.0.0.1:1", "ftp://127.0.0.1", "http://", "http://127.0.0.1:0",
		"http://127.0.0.1:99999", "http://127.0.0.1/api", "http://u:p@127.0.0.1", "https://127.0.0.1:1", "://",
		"http://host.invalid"} {
		if code, _, errs := runMain(benchArgs(target)...); code != 2 || strings.Count(errs, "\n") != 1 {
			t.Errorf("target %s: exit code %d: %q", target, code, errs)
		}
	}
}

// serveRaw answers each request with what answer writes, and then closes the connection. It returns the URL.
func serveRaw(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					answer(conn)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestServersWithBadAnswers requires exit code 2 if a server with good settings sends nonsense afterwards.
func TestServersWithBadAnswers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"wrong JSON": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"direct_admins":7}`) },
		"no admin":   func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{}`) },
		"huge chunks": func(w http.ResponseWriter, r *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n")
			io.Copy(conn, io.LimitReader(zeros{}, 1<<20))
		},
		"huge length": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9000000000000000000")
			io.WriteString(w, "{")
		},
		"reset": func(w http.ResponseWriter, r *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/server_settings") {
					io.WriteString(w, `{"zulip_version":"x","zulip_feature_level":300}`)
					return
				}
				answer(w, r)
			}))
			defer srv.Close()
			code, out, errs := runMain(benchArgs(srv.URL)...)
			if code != 2 || strings.Count(errs, "\n") != 1 {
				t.Errorf("exit code %d, want 2 and one line: %s%s", code, out, errs)
			}
		})
	}
}

// zeros is an endless stream of zero bytes.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestOnlyLocalTargetsWithoutConfirmation(t *testing.T) {
	s := &server{}
	if err := s.resolve("https://192.0.2.1", nil); err != nil {
		t.Fatal(err)
	}
	if s.addr.Port() != 443 || s.tls.ServerName != "192.0.2.1" {
		t.Errorf("https has port %d and server name %s", s.addr.Port(), s.tls.ServerName)
	}
	if err := s.checkPermission(false); err == nil || !strings.Contains(err.Error(), loadThisServer) {
		t.Errorf("a target beyond this machine: error %v, want one that names the flag", err)
	}
	if err := s.checkPermission(true); err != nil {
		t.Error(err)
	}
	for _, local := range []string{"http://127.0.0.1", "http://127.8.9.1:80", "http://[::1]:9991"} {
		if err := s.resolve(local, nil); err != nil || s.checkPermission(false) != nil {
			t.Errorf("%s needs a confirmation: %v", local, err)
		}
	}
}

// TestRateLimitedUsersWait requires that a run counts answers with status 429 and sends no request of a user before
// the time that the answer names.
func TestRateLimitedUsersWait(t *testing.T) {
	f := newFake("")
	var limited, early atomic.Int64
	var until atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		if strings.HasPrefix(user, "u0-") && strings.HasSuffix(r.URL.Path, "/presence") {
			if now := time.Now().UnixMilli(); now < until.Load() {
				early.Add(1)
			} else {
				until.Store(now + 300)
			}
			limited.Add(1)
			w.Header().Set("Retry-After", "0.3")
			w.WriteHeader(429)
			io.WriteString(w, `{"result":"error","code":"RATE_LIMIT_HIT"}`)
			return
		}
		f.ServeHTTP(w, r)
	}))
	defer srv.CloseClientConnections()
	s := smallScenario("chat")
	s.Users, s.Pollers, s.Sample = 2, 2, 0
	s.Phases = []Phase{{Name: "pings", Seconds: 3, Rate: 60, Mix: map[string]float64{"presence": 1}}}
	var out bytes.Buffer
	res, err := runScenario(s, options{target: srv.URL, out: &out})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	f1, ok := res.Figure("pings.rate_limited")
	if !ok || int64(f1.Value) != limited.Load() || limited.Load() < 1 || limited.Load() > 30 {
		t.Errorf("%d answers had status 429, the figure is %v; without waiting they would be about 90", limited.Load(),
			f1.Value)
	}
	// Requests that were under way when the first answer arrived are early without a fault of the generator. The rate
	// is low, so that they are few even if a loaded machine answers late.
	if early.Load() > 12 {
		t.Errorf("%d requests were early", early.Load())
	}
}

// TestBehindProxies runs chat through haproxy and nginx with TLS, both of which buffer answers.
func TestBehindProxies(t *testing.T) {
	srv := httptest.NewServer(newFake(""))
	defer srv.CloseClientConnections()
	dir := t.TempDir()
	cert, err := createCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	both := filepath.Join(dir, "both.pem")
	a, _ := os.ReadFile(cert.certFile)
	b, _ := os.ReadFile(cert.keyFile)
	if err := os.WriteFile(both, append(a, b...), 0o600); err != nil {
		t.Fatal(err)
	}
	backend := srv.Listener.Addr().String()
	for name, config := range map[string]string{
		"haproxy": "defaults\n mode http\n timeout connect 5s\n timeout client 120s\n timeout server 120s\n" +
			"frontend f\n bind 127.0.0.1:PORT ssl crt " + both + " alpn h2,http/1.1\n default_backend b\n" +
			"backend b\n option http-buffer-request\n server s " + backend + "\n",
		"nginx": "daemon off; pid " + dir + "/pid; error_log " + dir + "/error.log; events {}\nhttp { access_log " +
			"off; " +
			"client_body_temp_path " + dir + "/body; proxy_temp_path " + dir + "/proxy; fastcgi_temp_path " + dir +
			"/f; uwsgi_temp_path " + dir + "/u; scgi_temp_path " + dir +
			"/s;\nserver { listen 127.0.0.1:PORT ssl http2; " +
			"ssl_certificate " + cert.certFile + "; ssl_certificate_key " + cert.keyFile + ";\nlocation / { " +
			"proxy_pass " +
			"http://" + backend + "; proxy_read_timeout 120s; } } }\n",
	} {
		t.Run(name, func(t *testing.T) {
			program, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed", name)
			}
			port, err := freePort()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, name+".conf")
			text := strings.ReplaceAll(config, "PORT", strconv.Itoa(port))
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"-f", file}
			if name == "nginx" {
				args = []string{"-c", file}
			}
			var log bytes.Buffer
			cmd := exec.Command(program, args...)
			cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &log, &log, 5*time.Second
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				cmd.Process.Signal(syscall.SIGTERM) // nginx ends its workers too
				cmd.Wait()
			}()
			target := fmt.Sprintf("https://127.0.0.1:%d", port)
			waitForPort(t, port, &log)
			for _, more := range [][]string{nil, {"--http2"}} {
				args := benchArgs(target, "--ca", cert.certFile, "--threshold", "errors == 0")
				if code, out, errs := runMain(append(args, more...)...); code != 0 {
					t.Errorf("%v: exit code %d:\n%s%s%s", more, code, out, errs, log.String())
				}
			}
		})
	}
}

func waitForPort(t *testing.T, port int, log *bytes.Buffer) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second); err == nil {
			c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no program listens on port %d: %s", port, log)
}
