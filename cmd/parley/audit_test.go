package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Changes, logins and refused passwords are in the audit log after kill -9: for owners, on the command line and in
// files.
func TestAuditLogOfProgram(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	p := demo(t, data)
	at := p.serving()
	olive, ann := demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "ann@example.org")
	text := "=HYPERLINK(\"http://192.0.2.1\")"
	olive.must(t, "PATCH", "realm", url.Values{"description": {text}})
	olive.must(t, "PATCH", "audit_log", url.Values{"retention_days": {"90"}})
	if _, err := (&account{url: at}).call("POST", "fetch_api_key", url.Values{"username": {"ann@example.org"},
		"password": {"wrong"}}); err == nil {
		t.Fatal("a wrong password was accepted")
	}
	if _, err := ann.call("GET", "audit_log", nil); err == nil || !strings.Contains(err.Error(), "owner") {
		t.Errorf("a member reads the audit log: %v", err)
	}
	// Its answer comes after the note of the wrong password.
	olive.must(t, "PATCH", "realm", url.Values{"name": {"Renamed"}})
	answer := olive.must(t, "GET", "audit_log", url.Values{"kind": {"organization.setting"}, "limit": {"1"}})
	entry := answer["entries"].([]any)[0].(map[string]any)
	if entry["name"] != "name" || entry["new"] != "Renamed" || entry["address"] != "127.0.0.1" ||
		entry["via"] != "key" ||
		answer["more"] != true || answer["retention_days"] != 90.0 {
		t.Errorf("the newest change of a setting is %v", answer)
	}
	p.kill()
	p = demo(t, data)
	p.serving()
	mustRun(t, "user", "grant", "--email", "ann@example.org", "--create-users", "true", "--data", data)
	out := mustRun(t, "audit", "list", "--data", data)
	for _, want := range []string{`kind="login.failed"`, `kind="login.app"`, `name="description" new="=HYPERLINK`,
		`kind="retention.audit" by="olive@example.org"`, `via="operator" client="Operator" user="ann@example.org"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the audit log lacks %s:\n%s", want, out)
		}
	}
	table := mustRun(t, "audit", "list", "--kind", "organization", "--format", "csv", "--data", data)
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil || len(rows) < 3 || !strings.Contains(table, `"'=HYPERLINK(`) {
		t.Errorf("the table: %v\n%s", err, table)
	}
	auditFileContinues(t, data, filepath.Join(dir, "audit.jsonl"))
}

// auditFileContinues follows the log into a file, twice. The file has every entry once, also if a crash has left an
// incomplete line.
func auditFileContinues(t *testing.T, data, file string) {
	t.Helper()
	follow := func(until string) {
		c := parleyCommand("audit", "list", "--follow", "--out", file, "--data", data)
		p := startProgram(t, c)
		for end := time.Now().Add(binaryTimeout); ; time.Sleep(10 * time.Millisecond) {
			text, _ := os.ReadFile(file)
			if strings.Contains(string(text), until) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the file lacks %s: %s", until, text)
			}
		}
		c.Process.Signal(syscall.SIGTERM)
		if code := p.end(); code != 0 {
			t.Errorf("parley audit list --follow ended with code %d: %s", code, p.output())
		}
	}
	follow(`"kind":"user.rights"`)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"id":1`)
	f.Close()
	mustRun(t, "audit", "keep", "--days", "91", "--data", data)
	follow(`"new":"91"`)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for line := range strings.Lines(string(text)) {
		var e struct{ ID int }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if next != 0 && e.ID != next {
			t.Errorf("entry %d is where %d belongs", e.ID, next)
		}
		next = e.ID + 1
	}
}

// The audit log of a cluster is complete and the same on all cores after the leader was killed (kill -9) between
// changes: each core's own copy of the data has the same entries.
func TestClusterAuditLog(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	mustRun(t, "cluster", "level", "--data", all.list[0].data)
	leader := all.leader(all.list[0])
	ask := all.other(leader)
	olive := demoAccount(t, "http://"+ask.listen, "olive@example.org")
	var names []string
	rename := func() {
		t.Helper()
		name := fmt.Sprint("Organization ", len(names))
		all.retry("rename the organization", func() error {
			_, err := olive.call("PATCH", "realm", url.Values{"name": {name}})
			return err
		})
		names = append(names, name)
	}
	for range 10 {
		rename()
	}
	leader.program.kill()
	for range 10 {
		rename()
	}
	leader.start(t)
	leader.program.serving()
	logOf := func(c *runningCore) (string, error) {
		dir := t.TempDir()
		file, restored := filepath.Join(dir, "backup"), filepath.Join(dir, "restored")
		for _, args := range [][]string{{"backup", file, "--data", c.data}, {"restore", file, restored}} {
			if out, code := runParley(args...); code != 0 {
				return "", errors.New(out)
			}
		}
		out, code := runParley("audit", "list", "--format", "json", "--data", restored)
		if code != 0 {
			return "", errors.New(out)
		}
		return out, nil
	}
	want := ""
	for _, c := range all.list {
		all.retry("have all entries at "+c.name, func() error {
			log, err := logOf(c)
			if err != nil {
				return err
			}
			for _, name := range names {
				if strings.Count(log, `"`+name+`"`) == 0 {
					return fmt.Errorf("core %s lacks %s: %s", c.name, name, log)
				}
			}
			if want == "" {
				want = log
			}
			if log != want {
				return fmt.Errorf("core %s has\n%s\nbut %s has\n%s", c.name, log, all.list[0].name, want)
			}
			return nil
		})
	}
}
