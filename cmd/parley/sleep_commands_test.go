package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// sleepingServer is a server whose two organizations leave memory a second after their last request.
type sleepingServer struct {
	t    *testing.T
	data string
	args []string
	p    *program
}

// list returns how many organizations are in memory and how many asleep.
func (s *sleepingServer) list() (awake, asleep int) {
	s.t.Helper()
	out, code := runParley("realm", "list", "--data", s.data)
	if code != 0 {
		s.t.Fatal(out)
	}
	asleep = strings.Count(out, "asleep=true")
	return strings.Count(out, " id=") - asleep, asleep
}

// fallAsleep waits until both organizations are asleep.
func (s *sleepingServer) fallAsleep() {
	s.t.Helper()
	for end := time.Now().Add(sleepTimeout); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, asleep := s.list(); asleep == 2 {
			return
		}
	}
	s.t.Fatal("the organizations stay in memory")
}

// stayAsleep runs a command that must not load an organization.
func (s *sleepingServer) stayAsleep(args ...string) string {
	s.t.Helper()
	out, code := runParley(args...)
	if code != 0 {
		s.t.Fatalf("%s: %s", strings.Join(args, " "), out)
	}
	if awake, _ := s.list(); awake != 0 {
		s.t.Errorf("%s has loaded %d organizations", strings.Join(args, " "), awake)
	}
	return out
}

// orgAccount returns the account that `realm create` has printed, at another server.
func orgAccount(printed, at string) *account {
	a := &account{url: "http://acme." + strings.TrimPrefix(at, "http://")}
	for line := range strings.Lines(printed) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "email":
			a.email = value
		case "api_key":
			a.key = value
		}
	}
	return a
}

// Backups, exports, kills and upgrades work with organizations that are asleep, and do not wake them; a poll, erasing a
// user and closing an organization wake theirs. Nothing is lost, and event queues go on.
func TestCommandsWhileAsleep(t *testing.T) {
	if os.Getenv("SLEEPERS") == "" {
		t.Skip("waits several minutes until organizations leave memory: make sleep-cluster")
	}
	dir := t.TempDir()
	s := &sleepingServer{t: t, data: filepath.Join(dir, "data")}
	s.args = []string{"serve", "--data", s.data, "--listen", freeAddress(t), "--demo", "--demo-content=false",
		"--sleep-after", "1s"}
	s.p = startProgram(t, parleyCommand(s.args...))
	at := s.p.serving()
	printed, code := runParley("realm", "create", "--data", s.data, "--realm", "acme", "--name", "Acme", "--owner",
		"boss@acme.example")
	if code != 0 {
		t.Fatal(printed)
	}
	boss, ann := orgAccount(printed, at), demoAccount(t, at, "ann@example.org")
	send := func(a *account, text string) {
		t.Helper()
		a.must(t, "POST", "messages", pairs("type", "stream", "to", "general", "topic", "proof", "content", text))
	}
	q := boss.must(t, "POST", "register", pairs("event_types", `["message"]`, "idle_queue_timeout", "604800"))
	last := q["last_event_id"]
	expectEvents := func(want ...string) {
		t.Helper()
		var got []string
		a := boss.must(t, "GET", "events", url.Values{"queue_id": {fmt.Sprint(q["queue_id"])}, "dont_block": {"true"},
			"last_event_id": {fmt.Sprintf("%.0f", last)}})
		for _, x := range a["events"].([]any) {
			e := x.(map[string]any)
			last = e["id"]
			if m, is := e["message"].(map[string]any); is {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(m["content"]), "<p>"), "</p>"))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the events are of %q, want %q", got, want)
		}
	}
	send(boss, "first")
	send(ann, "of ann")
	s.fallAsleep()

	// Copies of the data, a kill and an upgrade leave all asleep.
	backup, export := filepath.Join(dir, "backup"), filepath.Join(dir, "acme.jsonl")
	s.stayAsleep("backup", backup, "--data", s.data)
	s.stayAsleep("verify", backup)
	s.stayAsleep("export", export, "--realm", "acme", "--data", s.data)
	s.p.kill()
	s.p = startProgram(t, parleyCommand(slices.DeleteFunc(s.args, func(arg string) bool {
		return strings.HasPrefix(arg, "--demo") // which uses its organization at the start
	})...))
	s.p.serving()
	if awake, asleep := s.list(); awake != 0 || asleep != 2 {
		t.Errorf("after a kill: %d awake, %d asleep", awake, asleep)
	}
	s.stayAsleep("upgrade", "--data", s.data)

	// The queue goes on, and its poll wakes only its organization.
	expectEvents("first")
	if awake, asleep := s.list(); awake != 1 || asleep != 1 {
		t.Errorf("after a poll: %d awake, %d asleep", awake, asleep)
	}
	restored, imported := filepath.Join(dir, "restored"), filepath.Join(dir, "imported")
	for _, args := range [][]string{{"restore", backup, restored, "--at", time.Now().UTC().Format(time.RFC3339)},
		{"import", export, "--data", imported}} {
		if out, code := runParley(args...); code != 0 {
			t.Fatalf("%v: %s", args, out)
		}
	}
	live := digests(t, "realm", "digest", "--data", s.data)
	if got := digests(t, "realm", "digest", "--data", restored); got != live {
		t.Errorf("the live state and the restored one differ:\n%s\n%s", live, got)
	}
	other := startProgram(t, parleyCommand("serve", "--data", imported, "--listen", "127.0.0.1:0", "--demo"))
	if got := orgAccount(printed, other.serving()).texts(t); !slices.Equal(got, []string{"first"}) {
		t.Errorf("the organization that has moved has the messages %q", got)
	}
	other.stop()
	send(boss, "after the upgrade")
	expectEvents("after the upgrade")
	audit, code := runParley("audit", "list", "--realm", "acme", "--data", s.data)
	if code != 0 || !strings.Contains(audit, "boss@acme.example") {
		t.Errorf("the audit log: %s", audit)
	}

	// Changes by the operator, again while both are asleep.
	s.fallAsleep()
	if out, code := runParley("user", "erase", "--data", s.data, "--email", "ann@example.org", "--certificate",
		filepath.Join(dir, "certificate.json")); code != 0 {
		t.Fatal(out)
	}
	if _, asleep := s.list(); asleep != 1 {
		t.Errorf("to erase a user has loaded %d organizations", 2-asleep)
	}
	if _, err := ann.call("GET", "users/me", nil); err == nil {
		t.Error("a user who was erased can log in")
	}
	if strings.Contains(string(backupOf(t, s.data)), "of ann") {
		t.Error("a backup still contains the message of the user who was erased")
	}
	for _, step := range []string{"close", "reopen"} {
		if out, code := runParley("realm", step, "--data", s.data, "--realm", "acme"); code != 0 {
			t.Fatal(out)
		}
		if _, err := boss.call("GET", "users/me", nil); (err == nil) != (step == "reopen") {
			t.Errorf("after %s: %v", step, err)
		}
	}
	send(boss, "the end")
}
