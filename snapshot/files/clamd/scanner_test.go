package clamd

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/snapshot/files"
	"parley/snapshot/files/clamd/clamdtest"
)

// eicar is the file that every virus scanner must find, in two pieces so that this source is no such file.
const eicar = `X5O!P%@AP[4\PZX54(P^)7CC)7}` + `$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*`

// A file is sent completely, a virus is named, and a file that was not examined is treated as the operator wants.
func TestScan(t *testing.T) {
	large := bytes.Repeat([]byte("large "), 200<<10)
	at, _ := clamdtest.Start(t, 1<<20, func(file []byte) string {
		switch {
		case bytes.Contains(file, []byte("EICAR")):
			return "stream: Eicar-Test-Signature FOUND\x00"
		case bytes.Contains(file, []byte("broken")):
			return "stream: Can't allocate memory ERROR\x00"
		case bytes.Contains(file, []byte("silent")):
			return ""
		case len(file) == 300<<10 || len(file) < 20:
			return "stream: OK\x00"
		}
		return "?\x00"
	})
	down, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down.Close()
	infected := &files.InfectedError{} // stands for one with a name
	for name, x := range map[string]struct {
		file, address string
		want          error // with the policy to refuse
	}{
		"clean":         {"hello", at, nil},
		"empty":         {"", at, nil},
		"three chunks":  {strings.Repeat("x", 300<<10), at, nil},
		"virus":         {eicar, at, infected},
		"scanner fails": {"broken", at, files.ErrNotScanned},
		"no answer":     {"silent", at, files.ErrNotScanned},
		"other answer":  {strings.Repeat("x", 30), at, files.ErrNotScanned},
		"too large":     {string(large), at, files.ErrTooLargeToScan},
		"down":          {"hello", down.Addr().String(), files.ErrNotScanned},
		"no socket":     {"hello", filepath.Join(t.TempDir(), "clamd.ctl"), files.ErrNotScanned},
	} {
		for _, accept := range []bool{false, true} {
			s := New(Config{Address: x.address, Accept: accept, Log: slog.New(slog.DiscardHandler)})
			got := s.Scan(strings.NewReader(x.file))
			want := x.want
			if accept && want != infected {
				want = nil
			}
			if found := new(files.InfectedError); want == infected {
				if !errors.As(got, &found) || found.Name != "Eicar-Test-Signature" {
					t.Errorf("%s, accept %v: %v", name, accept, got)
				}
			} else if !errors.Is(got, want) {
				t.Errorf("%s, accept %v: %v, want %v", name, accept, got, want)
			}
		}
	}
}

// A frozen daemon accepts connections and never answers. Each upload is given up in time, also one that waits for
// others, and then treated as the operator wants.
func TestFrozenDaemon(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // nothing accepts: the kernel does
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const limit = 200 * time.Millisecond
	for accept, want := range map[bool]error{false: files.ErrNotScanned, true: nil} {
		s := New(Config{Address: l.Addr().String(), Accept: accept, Log: slog.New(slog.DiscardHandler),
			Timeout: limit})
		began := time.Now()
		answers := make(chan error, 2*MaxScans)
		for range 2 * MaxScans {
			go func() { answers <- s.Scan(bytes.NewReader(make([]byte, 16<<20))) }()
		}
		for range 2 * MaxScans {
			if err := <-answers; !errors.Is(err, want) {
				t.Errorf("accept %v: %v", accept, err)
			}
		}
		if took := time.Since(began); took > 50*limit {
			t.Errorf("accept %v: it took %v", accept, took)
		}
	}
}

// A real daemon finds the test file. It runs with a database that has only this signature.
func TestRealDaemon(t *testing.T) {
	program, err := exec.LookPath("clamd")
	if err != nil {
		t.Skip("clamd is not installed (apt-get install clamav-daemon), so it is not tried")
	}
	folder, err := os.MkdirTemp("/tmp", "parley-clamd-") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket := filepath.Join(folder, "s")
	config := "LocalSocket " + socket + "\nForeground yes\nDatabaseDirectory " + folder + "\nStreamMaxLength 1M\n" +
		"TemporaryDirectory " + folder + "\n"
	// a signature of the text, which is not in a file of the scanner's package
	for name, text := range map[string]string{"clamd.conf": config,
		"test.ndb": "Test.Eicar:0:0:" + hexOf(eicar) + "\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	c := exec.Command(program, "--config-file", filepath.Join(folder, "clamd.conf"))
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Skipf("clamd does not run: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		c.Process.Kill()
		<-ended
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Skipf("clamd does not run: %v\n%s", err, &out)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("clamd does not listen:\n%s", &out)
		}
	}
	s := New(Config{Address: socket, Log: slog.New(slog.DiscardHandler)})
	if err := s.Scan(strings.NewReader("hello")); err != nil {
		t.Errorf("a clean file: %v", err)
	}
	infected := new(files.InfectedError)
	if err := s.Scan(strings.NewReader(eicar)); !errors.As(err, &infected) {
		t.Errorf("the test file: %v", err)
	}
	if err := s.Scan(bytes.NewReader(make([]byte, 3<<20))); !errors.Is(err, files.ErrTooLargeToScan) {
		t.Errorf("a file above the limit: %v", err)
	}
}

func hexOf(s string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}
