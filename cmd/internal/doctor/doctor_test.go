package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/cmd/internal/offsite"
)

// sound returns a configuration in which nothing is wrong, on a machine without faults.
func sound(t *testing.T) Config {
	t.Helper()
	return Config{Data: t.TempDir(), URL: "http://127.0.0.1:9991", Listen: "127.0.0.1:9991", MinFree: 256 << 20,
		FreeBytes:     func(string) (uint64, error) { return 10 << 30, nil },
		SyncTime:      func(string) (time.Duration, error) { return time.Millisecond, nil },
		OpenFiles:     func() (uint64, error) { return 200_000, nil },
		ClockSynced:   func() (bool, error) { return true, nil },
		ListenBacklog: func() (int, error) { return 4096, nil },
		Bucket:        func(context.Context) error { return nil },
	}
}

// find returns the result of one examination.
func find(t *testing.T, c Config, check string) Finding {
	t.Helper()
	for _, f := range Examine(context.Background(), c) {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("there is no examination %q", check)
	return Finding{}
}

// A machine without faults gets a report without faults.
func TestSoundMachine(t *testing.T) {
	var report strings.Builder
	if n := Report(&report, Examine(context.Background(), sound(t))); n != 0 {
		t.Errorf("%d faults:\n%s", n, &report)
	}
}

// Each planted fault is named with its remedy, and by one examination only.
func TestPlantedFaults(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := closed.Addr().(*net.TCPAddr).Port
	closed.Close()
	old := filepath.Join(t.TempDir(), "backup.tar")
	if err := os.WriteFile(old, []byte("backup"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key.p8")
	if err := os.WriteFile(key, []byte("<html>not found</html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, check, fault, remedy string
		plant                      func(c *Config)
	}{
		{"name without address", "DNS", "chat.invalid has no address", "A or AAAA record", func(c *Config) {
			c.URL = "http://chat.invalid"
		}},
		{"mail server down", "SMTP", "no connection to the mail server", "smtp-host", func(c *Config) {
			c.SMTPHost, c.SMTPPort, c.SMTPFrom = "127.0.0.1", port, "chat@example.org"
		}},
		{"clock not synchronized", "clock", "not synchronized", "chrony", func(c *Config) {
			c.ClockSynced = func() (bool, error) { return false, nil }
		}},
		{"disk almost full", "disk space", "300 MiB", "free or add disk space", func(c *Config) {
			c.FreeBytes = func(string) (uint64, error) { return 300 << 20, nil }
		}},
		{"slow disk", "disk speed", "one sync to disk takes 80ms", "SSD", func(c *Config) {
			c.SyncTime = func(string) (time.Duration, error) { return 80 * time.Millisecond, nil }
		}},
		{"few open files", "open files", "only 1024 files", "LimitNOFILE=200000", func(c *Config) {
			c.OpenFiles = func() (uint64, error) { return 1024, nil }
		}},
		{"short backlog", "connections", "only 128 connections", "net.core.somaxconn=4096", func(c *Config) {
			c.ListenBacklog = func() (int, error) { return 128, nil }
		}},
		{"broken push key", "push", "push-apns-key: ", "download the key again", func(c *Config) { c.APNsKey = key }},
		{"bucket without rights", "bucket", "Access Denied", "files-credentials", func(c *Config) {
			c.Bucket = func(context.Context) error { return errors.New("Access Denied") }
		}},
		{"old backup", "backups", "backup.tar, is 48 hours old", "parley backup daily", func(c *Config) {
			c.Backups, c.Now = filepath.Dir(old), func() time.Time { return time.Now().Add(48*time.Hour + time.Minute) }
		}},
		{"bucket of the backups down", "backups", "the last 7 attempts to make a backup in s3://b/f failed",
			"mend the reason", func(c *Config) {
				writeStatus(t, c, `{"interval":3600,"newest":1000,"place":"s3://b/f","failures":7,"error":"no route"}`)
			}},
		{"backups stopped", "backups", "a backup is made every 1h0m0s, but the newest one is of 1970-01-01T00:16:40Z",
			"parley-backup.service", func(c *Config) { writeStatus(t, c, `{"interval":3600,"newest":1000}`) }},
		{"certificate for another name", "settings", "tls-acme has no certificate for localhost.localdomain",
			"add the host",
			func(c *Config) { c.URL, c.ACME = "https://localhost.localdomain", "other.example.org" }},
		{"TLS without anyone who speaks it", "settings", "neither the server nor a trusted proxy",
			"tls-acme or tls-cert",
			func(c *Config) { c.URL = "https://127.0.0.1:9991" }},
		{"every proxy trusted", "settings", "trusts every address", "name only the proxies", func(c *Config) {
			c.TrustedProxies = "0.0.0.0/0"
		}},
		{"demo in the network", "exposure", "logs in as any user", "remove demo", func(c *Config) {
			c.Demo, c.Listen = true, "0.0.0.0:9991"
		}},
	} {
		c := sound(t)
		x.plant(&c)
		f := find(t, c, x.check)
		if !strings.Contains(f.Fault, x.fault) || !strings.Contains(f.Remedy, x.remedy) {
			t.Errorf("%s: %+v", x.name, f)
		}
	}
}

// Certificates that expire soon, have expired or are for another name are named, in files and at the address.
func TestPlantedCertificates(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	leaf := s.Certificate()
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	dir := t.TempDir()
	cert, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: leaf.Raw},
		keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tls.LoadX509KeyPair(cert, keyFile); err != nil {
		t.Fatal(err)
	}
	c := sound(t)
	c.TLSCert, c.TLSKey, c.Roots = cert, keyFile, roots
	for at, want := range map[time.Time]string{
		leaf.NotAfter.Add(-30 * 24 * time.Hour): "",
		leaf.NotAfter.Add(-20 * 24 * time.Hour): "expires on",
		leaf.NotAfter.Add(time.Hour):            "has expired on",
	} {
		c.Now = func() time.Time { return at }
		if f := find(t, c, "TLS files"); want == "" && f.Fault != "" || !strings.Contains(f.Fault, want) {
			t.Errorf("at %v: %+v, want %q", at, f, want)
		}
	}
	c.Now = time.Now
	c.URL = "https://chat.example.net"
	if f := find(t, c, "TLS files"); !strings.Contains(f.Fault, "chat.example.net") {
		t.Errorf("a certificate for another name: %+v", f)
	}
	c.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}
	if f := find(t, c, "TLS"); !strings.Contains(f.Fault, "browsers refuse the certificate") {
		t.Errorf("the certificate at the address of another name: %+v", f)
	}
	c.URL = "https://example.com" // the name in the certificate of httptest
	if f := find(t, c, "TLS"); f.Fault != "" {
		t.Errorf("the right certificate: %+v", f)
	}
	c.Roots = x509.NewCertPool()
	if f := find(t, c, "TLS"); !strings.Contains(f.Fault, "unknown authority") {
		t.Errorf("a certificate of an unknown authority: %+v", f)
	}
}

// The real measurements work on this machine.
func TestMeasurements(t *testing.T) {
	c := Config{}
	c.complete()
	dir := t.TempDir()
	if took, err := c.SyncTime(dir); err != nil || took <= 0 {
		t.Errorf("sync: %v, %v", took, err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Error("the measurement left a file")
	}
	if n, err := c.FreeBytes(dir); err != nil || n == 0 {
		t.Errorf("free space: %d, %v", n, err)
	}
	if n, err := c.OpenFiles(); err != nil || n == 0 {
		t.Errorf("open files: %d, %v", n, err)
	}
	if n, err := c.ListenBacklog(); err != nil || n == 0 {
		t.Errorf("backlog: %d, %v", n, err)
	}
}

// writeStatus writes the results of backups in a bucket into a data directory of its own.
func writeStatus(t *testing.T, c *Config, status string) {
	t.Helper()
	c.Data = t.TempDir()
	if err := os.WriteFile(filepath.Join(c.Data, offsite.StatusFile), []byte(status), 0o600); err != nil {
		t.Fatal(err)
	}
}
