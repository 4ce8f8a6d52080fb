package server

import (
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/wire/push"
	"parley/wire/push/bouncertest"
)

// startAtBouncer starts a server that uses a bouncer, with the organization of the demo.
func startAtBouncer(t *testing.T, data, bouncer string) *demoServer {
	t.Helper()
	s := DefaultSettings()
	s.Data, s.Listen, s.Demo, s.Bouncer = data, "127.0.0.1:0", true, bouncer
	if err := s.Check(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	running, err := Start(Config{Settings: s, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return &demoServer{running, t, map[string]string{}}
}

// An operator registers the server, looks at its rights and proves its hostname, as the description of the bouncer
// demands it. The account survives a restart; a stopped server can use it too.
func TestPushRegisterStatusAndTransfer(t *testing.T) {
	bouncer := bouncertest.New()
	bouncer.Scheme = "http"
	at := httptest.NewServer(bouncer)
	defer at.Close()
	data := filepath.Join(t.TempDir(), "data")
	s := startAtBouncer(t, data, at.URL)
	refuse := func(command, text string, args map[string]string) {
		t.Helper()
		if _, err := Command(data, command, args); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s %v: %v, want %q", command, args, err, text)
		}
	}
	run := func(command string, args map[string]string) map[string]any {
		t.Helper()
		a, err := Command(data, command, args)
		if err != nil {
			t.Fatalf("%s %v: %v", command, args, err)
		}
		return a
	}
	refuse("push-status", "run parley push register", nil)
	refuse("push-register", "--contact is required", nil)
	refuse("push-register", "--agree is required", map[string]string{"contact": "ops@example.net"})
	with := func(more ...string) map[string]string {
		m := map[string]string{"contact": "ops@example.net", "agree": "true"}
		for _, k := range more {
			m[k] = "true"
		}
		return m
	}
	first := run("push-register", with())
	list, _ := first["organizations"].([]any)
	if first["created"] != true || len(list) != 1 || list[0].(map[string]any)["notifications"] != "delivered" {
		t.Errorf("registered: %v", first)
	}
	info, err := os.Stat(filepath.Join(data, push.AccountFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the account's file: %v, %v", info, err)
	}
	if again := run("push-register", with("rotate")); again["created"] != false || again["server"] != first["server"] {
		t.Errorf("with a new key: %v", again)
	}
	if err := os.Remove(filepath.Join(data, push.AccountFile)); err != nil { // the key is lost
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	stopped := with("transfer")
	stopped["hostname"] = "127.0.0.1"
	refuse("push-register", "needs a running server", stopped)
	s = startAtBouncer(t, data, at.URL)
	moved := with("transfer")
	moved["hostname"] = first["hostname"].(string)
	refuse("push-register", "onnection", moved) // no server answers at the old address
	_, host, _ := strings.Cut(s.BaseURL(), "://")
	bouncer.Move(moved["hostname"], host)
	if a := run("push-register", with("transfer")); a["server"] != first["server"] {
		t.Errorf("transferred: %v", a)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if a := run("push-status", nil); a["server"] != first["server"] || len(a["organizations"].([]any)) != 1 {
		t.Errorf("status of the stopped server: %v", a)
	}
}

// Phones of a member reach the bouncer, and the operator's test reaches the phones. What the bouncer allows is the
// setting that every client sees.
func TestPushTestThroughBouncer(t *testing.T) {
	bouncer := bouncertest.New()
	at := httptest.NewServer(bouncer)
	defer at.Close()
	s := startDemo(t)
	data := s.Data
	a, err := Command(data, "push-register", map[string]string{"contact": "ops@example.net", "agree": "true",
		"bouncer": at.URL})
	if err != nil || !strings.Contains(a["next"].(string), "parley upgrade") {
		t.Fatalf("registered: %v, %v", a, err)
	}
	keys := s.keys
	s2 := func() *demoServer {
		if err := s.Server.Close(); err != nil {
			t.Fatal(err)
		}
		d := startAtBouncer(t, data, "") // the stored account names the bouncer
		d.keys = keys
		return d
	}()
	defer s2.Close()
	const ann = "ann@example.org"
	s2.call(ann, "POST", "users/me/android_gcm_reg_id", url.Values{"token": {"phone"}})
	eventually(t, "the bouncer knows the phone", func() bool { return len(bouncer.Tokens()) == 1 })
	got, err := Command(data, "push-test", map[string]string{"email": ann})
	if err != nil || got["devices"].([]any)[0].(map[string]any)["result"] != "sent" {
		t.Errorf("test: %v, %v", got, err)
	}
	if sent := bouncer.Deliveries(); len(sent) != 1 || sent[0].Token != "phone" {
		t.Errorf("delivered %v", sent)
	}
	state := s2.call(ann, "POST", "register", url.Values{"fetch_event_types": {`["realm"]`}})
	if state["realm_push_notifications_enabled"] != true {
		t.Errorf("realm_push_notifications_enabled is %v", state["realm_push_notifications_enabled"])
	}
}
