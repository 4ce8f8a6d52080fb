package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// writeSlackExport writes the folder of a Slack export: the owner Ann, Bo, and messages in the channel general.
func writeSlackExport(t *testing.T, messages int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var rows []map[string]any
	for n := range messages {
		rows = append(rows, map[string]any{"user": fmt.Sprint("U", 1+n%2), "text": fmt.Sprintf("message %d", n),
			"ts": fmt.Sprintf("%d.000100", 1_600_000_000+n)})
	}
	for name, v := range map[string]any{
		"users.json": []any{
			map[string]any{"id": "U1", "name": "ann", "is_owner": true,
				"profile": map[string]any{"email": "ann@x.example"}},
			map[string]any{"id": "U2", "name": "bo", "profile": map[string]any{"email": "bo@x.example"}}},
		"channels.json": []any{map[string]any{"id": "C1", "name": "general", "members": []string{"U1", "U2"}}},
		filepath.Join("general", "2020-09-13.json"): rows,
	} {
		data, err := json.Marshal(v)
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// moved reads the report of an import.
func moved(t *testing.T, file string) (r struct {
	Users, Channels, Subscriptions, Messages int
	Dropped                                  []any
}) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatalf("report: %v\n%s", err, data)
	}
	return r
}

// An import that is killed again and again shows nothing, and continues. Then a user takes over the account with a
// password reset, and has the messages.
func TestMoveInSurvivesKill(t *testing.T) {
	const messages = 40_000
	dir, data := writeSlackExport(t, messages), t.TempDir()
	report := filepath.Join(t.TempDir(), "report.json")
	command := []string{"import", "slack", dir, "--data", data, "--report", report}
	kills, seen := 0, int64(0)
	for range 4 {
		cmd := parleyCommand(command...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		exited := make(chan struct{})
		go func() { cmd.Wait(); close(exited) }()
		if grew := waitForLog(data, seen, exited); grew > seen {
			seen = grew
			kills++
		}
		cmd.Process.Kill()
		<-exited
		if out, code := runParley("realm", "list", "--data", data); code != 0 || strings.TrimSpace(out) != "" {
			t.Fatalf("an organization is visible: %s", out)
		}
	}
	if kills == 0 {
		t.Fatal("no import was killed in the middle")
	}
	if out, code := runParley(command...); code != 0 {
		t.Fatal(out)
	}
	if r := moved(t, report); r.Users != 2 || r.Channels != 1 || r.Messages != messages || len(r.Dropped) != 0 {
		t.Errorf("the report: %+v", r)
	}
	if left, _ := filepath.Glob(filepath.Join(data, "imports", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	at := startProgram(t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0")).serving()
	b := newBrowser(t, at)
	const page = "/accounts/password/reset/"
	b.submit(page, page, url.Values{"email": {"Ann@x.example"}})
	link := linkIn(t, outboxEmail(t, data, "ann@x.example", "reset"), page)
	if a := b.submit(link, link, url.Values{"new_password1": {browserPassword},
		"new_password2": {browserPassword}}); a.status != 302 {
		t.Fatalf("the new password: %d %s", a.status, a.body)
	}
	b.logIn("ann@x.example", browserPassword)
	found := b.must("GET", "messages?anchor=newest&num_before=1&num_after=0&narrow=[]", nil)["messages"].([]any)
	if text := found[0].(map[string]any)["content"]; text != fmt.Sprintf("<p>message %d</p>", messages-1) {
		t.Errorf("the last message is %v", text)
	}
	if me := b.must("GET", "users/me", nil); me["role"] != 100.0 {
		t.Errorf("Ann is %v", me)
	}
}

// waitForLog waits until the log of an interrupted import is larger than seen, or the import has ended. It returns the
// size of the log in bytes.
func waitForLog(data string, seen int64, exited <-chan struct{}) int64 {
	for {
		found, _ := filepath.Glob(filepath.Join(data, "imports", "*", "org-*", "log"))
		for _, name := range found {
			if info, err := os.Stat(name); err == nil && info.Size() > seen {
				return info.Size()
			}
		}
		select {
		case <-exited:
			return seen
		case <-time.After(time.Millisecond):
		}
	}
}

// Two imports into one subdomain of a running server at the same time: one becomes the organization, the other is
// refused and leaves nothing.
func TestTwoImportsWantOneSubdomain(t *testing.T) {
	data := t.TempDir()
	p := demo(t, data)
	p.serving()
	dirs, reports, outputs, codes := [2]string{}, [2]string{}, [2]string{}, [2]int{}
	var both sync.WaitGroup
	for i := range 2 {
		dirs[i] = writeSlackExport(t, 3000+i)
		reports[i] = filepath.Join(t.TempDir(), "report.json")
		both.Go(func() {
			outputs[i], codes[i] = runParley("import", "slack", dirs[i], "--data", data, "--realm", "moved", "--report",
				reports[i])
		})
	}
	both.Wait()
	won := 0
	if codes[0] != 0 {
		won = 1
	}
	if codes[won] != 0 || codes[1-won] != exitError {
		t.Fatalf("codes %v\n%s\n%s", codes, outputs[0], outputs[1])
	}
	if r := moved(t, reports[won]); r.Messages != 3000+won {
		t.Errorf("the report: %+v", r)
	}
	if _, err := os.Stat(reports[1-won]); err == nil {
		t.Error("the refused import has a report")
	}
	out, code := runParley("import", "slack", dirs[1-won], "--data", data, "--realm", "moved")
	if code != exitError || !strings.Contains(out, "moved") {
		t.Errorf("the refused import again: %d %s", code, out)
	}
	if left, _ := filepath.Glob(filepath.Join(data, "imports", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The retention policy of an imported organization applies to its messages: they go to the archive, from which the
// operator restores them. Messages under a legal hold stay in it, and no export has them.
func TestRetentionAfterImport(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	var messages []map[string]any
	for n := range 20 {
		messages = append(messages, map[string]any{"id": 1 + n, "sender": 10, "recipient": 2, "subject": "old",
			"content": fmt.Sprint("zebra ", n), "date_sent": 1_600_000_000 + n, "sending_client": 1})
	}
	for name, v := range map[string]any{"realm.json": map[string]any{
		"zerver_realm":  []any{map[string]any{"id": 1, "name": "Old", "message_retention_days": 30}},
		"zerver_client": []any{map[string]any{"id": 1, "name": "website"}},
		"zerver_userprofile": []any{map[string]any{"id": 10, "delivery_email": "ann@x.example", "full_name": "Ann",
			"is_active": true, "role": 100}},
		"zerver_stream": []any{map[string]any{"id": 2, "name": "general"}},
		"zerver_recipient": []any{map[string]any{"id": 1, "type": 1, "type_id": 10},
			map[string]any{"id": 2, "type": 2, "type_id": 2}},
		"zerver_subscription": []any{map[string]any{"id": 1, "user_profile": 10, "recipient": 2, "active": true}},
	}, "messages-000001.json": map[string]any{"zerver_message": messages, "zerver_usermessage": []any{}}} {
		text, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		out, code := runParley(append(args, "--data", data)...)
		if code != 0 {
			t.Fatalf("%v: %s", args, out)
		}
		return out
	}
	run("import", "zulip", dir)
	key := regexp.MustCompile(`api_key: (\S+)`).FindStringSubmatch(run("user", "api-key", "--email",
		"ann@x.example"))[1]
	at := startProgram(t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0")).serving()
	ann := &account{url: at, email: "ann@x.example", key: key}
	visible := func() int {
		t.Helper()
		return len(ann.must(t, "GET", "messages", url.Values{"anchor": {"oldest"}, "num_before": {"0"},
			"num_after": {"100"}, "narrow": {`[{"operator":"channel","operand":"general"}]`}})["messages"].([]any))
	}
	for deadline := time.Now().Add(binaryTimeout); visible() > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages of 2020 are left with a retention of 30 days", visible())
		}
	}
	run("retention", "hold", "add", "--email", "ann@x.example", "--reason", "case")
	archive := regexp.MustCompile(`archive=(\S+)`).FindStringSubmatch(run("retention", "list"))
	if archive == nil {
		t.Fatalf("there is no archive: %s", run("retention", "list"))
	}
	out := t.TempDir()
	run("export", filepath.Join(out, "all.jsonl"))
	run("export", filepath.Join(out, "zulip.tar.gz"), "--format", "zulip")
	again := filepath.Join(out, "again")
	if text, code := runParley("import", "zulip", filepath.Join(out, "zulip.tar.gz"), "--data", again); code != 0 ||
		strings.Contains(text, "20 messages") {
		t.Errorf("the export in the form of Zulip: %d %s", code, text)
	}
	ann.must(t, "PATCH", "realm", url.Values{"message_retention_days": {`"unlimited"`}}) // else it applies again
	run("retention", "restore", "--archive", archive[1])
	for deadline := time.Now().Add(binaryTimeout); visible() != 20; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages are restored", visible())
		}
	}
}
