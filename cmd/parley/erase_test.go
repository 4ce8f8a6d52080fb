package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
)

// backupOf returns the bytes of a backup of a data directory.
func backupOf(t *testing.T, data string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup")
	if out, code := runParley("backup", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The data of a person are deleted on a running server: others see it, no login and no file is left, a later backup has
// none of the bytes, and the certificate lists the removed data.
func TestUserErase(t *testing.T) {
	const message, content, draft = "zebramessage", "zebracontent", "zebradraft"
	data := t.TempDir()
	p := demo(t, data, "--rate-limit", "0")
	at := p.serving()
	olive, bo := demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "bo@example.org")
	made := olive.must(
		t,
		"POST",
		"users",
		url.Values{"email": {"zelda.zebra@example.org"}, "full_name": {"Zelda Zebra"},
			"password": {browserPassword}},
	)
	zelda := demoAccount(t, at, "zelda.zebra@example.org")
	browser := newBrowser(t, at).logIn("zelda.zebra@example.org", browserPassword)
	_, uploaded, err := zelda.upload(map[string]io.Reader{"secret.txt": strings.NewReader(content)})
	if err != nil {
		t.Fatal(err)
	}
	file := uploaded["url"].(string)
	zelda.must(t, "POST", "users/me/subscriptions", url.Values{"subscriptions": {`[{"name":"general"}]`}})
	for n := range 130 {
		if _, err := zelda.send(fmt.Sprintf("%s %d [f](%s)", message, n, file)); err != nil {
			t.Fatal(err)
		}
	}
	zelda.must(
		t,
		"POST",
		"drafts",
		url.Values{"drafts": {`[{"type":"private","to":[],"topic":"","content":"` + draft + `"}]`}},
	)
	queue := bo.must(t, "POST", "register", url.Values{"event_types": {`["delete_message","realm_user"]`}})
	before := backupOf(t, data)
	markers := []string{message, content, draft, "Zelda Zebra", "zelda.zebra@example.org"}
	for _, text := range markers {
		if !bytes.Contains(before, []byte(text)) {
			t.Fatalf("a backup does not contain %s: this test would prove nothing", text)
		}
	}
	certificate := filepath.Join(t.TempDir(), "certificate.json")
	if out, code := runParley("user", "erase", "--data", data, "--email", "zelda.zebra@example.org"); code == 0 {
		t.Fatalf("without a file for the certificate: %s", out)
	}
	out, code := runParley("user", "erase", "--data", data, "--email", "zelda.zebra@example.org", "--certificate",
		certificate)
	if code != 0 {
		t.Fatal(out)
	}
	var c struct {
		User              int `json:"user_id"`
		Removed           map[string]int
		Kept              []map[string]any
		Digest, Signature string
	}
	text, err := os.ReadFile(certificate)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil || float64(c.User) != made["user_id"] || c.Removed["messages"] != 130 || c.Removed["drafts"] != 1 ||
		c.Removed["browser sessions"] != 2 || len(c.Digest) != 64 || len(c.Signature) != 64 || len(c.Kept) == 0 {
		t.Errorf("the certificate: %v\n%s", err, text)
	}
	for _, want := range realm.RemainingReasons() {
		if !strings.Contains(out, "kept: "+want.Kinds+": "+want.Reason) {
			t.Errorf("the command does not print %+v: %s", want, out)
		}
	}
	if browser.loggedIn() {
		t.Error("a session goes on")
	}
	if _, err := zelda.call("GET", "users/me", nil); err == nil {
		t.Error("the API key goes on")
	}
	if got := status(t, at+file+"?api_key="+olive.key); got == 200 {
		t.Error("the file is still served")
	}
	events := fmt.Sprint(bo.events(t, queue["queue_id"].(string), -1))
	if !strings.Contains(events, "delete_message") || !strings.Contains(events, "Deleted user") {
		t.Errorf("events of another user: %s", events)
	}
	bo.must(t, "DELETE", "events", url.Values{"queue_id": {queue["queue_id"].(string)}})
	// The queue held events until now. Repeating the command removes their bytes and gives the same certificate.
	again := filepath.Join(t.TempDir(), "again.json")
	for deadline := time.Now().Add(binaryTimeout); ; {
		if out, code := runParley("user", "erase", "--data", data, "--id", fmt.Sprint(c.User), "--certificate",
			again); code != 0 {
			t.Fatalf("a second time: %s", out)
		}
		after := backupOf(t, data)
		left := slices.DeleteFunc(
			slices.Clone(markers),
			func(m string) bool { return !bytes.Contains(after, []byte(m)) },
		)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a later backup contains %q", left)
		}
	}
	if repeated, err := os.ReadFile(again); err != nil || !bytes.Equal(repeated, text) {
		t.Errorf("the certificate a second time is another one: %v\n%s", err, repeated)
	}
}

// An erasure that was killed continues, on a stopped server too, and its certificate counts everything.
func TestUserEraseSurvivesKill(t *testing.T) {
	data := t.TempDir()
	p := demo(t, data, "--rate-limit", "0")
	at := p.serving()
	cy := demoAccount(t, at, "cy@example.org")
	id := demoUserID(t, cy, "cy@example.org")
	for n := range 300 {
		if _, err := cy.send(fmt.Sprint("message ", n)); err != nil {
			t.Fatal(err)
		}
	}
	certificate := filepath.Join(t.TempDir(), "certificate.json")
	bo := demoAccount(t, at, "bo@example.org")
	queue := bo.must(t, "POST", "register", url.Values{"event_types": {`["delete_message"]`}})["queue_id"].(string)
	erasing := startProgram(
		t,
		parleyCommand("user", "erase", "--data", data, "--email", "cy@example.org", "--certificate",
			certificate),
	)
	bo.events(t, queue, -1) // it has begun
	p.kill()
	erasing.end()
	if out, code := runParley("user", "erase", "--data", data, "--id", fmt.Sprint(id), "--certificate",
		certificate); code != 0 {
		t.Fatal(out)
	}
	text, err := os.ReadFile(certificate)
	var c struct{ Removed map[string]int }
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil || c.Removed["messages"] < 300 {
		t.Errorf("the certificate: %v\n%s", err, text)
	}
	p = demo(t, data)
	bo.url = p.serving()
	found := bo.must(t, "GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"10"}, "num_after": {"0"},
		"narrow": {fmt.Sprintf(`[{"operator":"sender","operand":%d}]`, id)}})["messages"].([]any)
	if len(found) != 0 {
		t.Errorf("%d messages are left", len(found))
	}
}

// The erasure of a person in a cluster removes the bytes from every core: no later backup of one has them.
func TestClusterUserErase(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	olive := demoAccount(t, "http://"+all.list[0].listen, "olive@example.org")
	made := olive.must(
		t,
		"POST",
		"users",
		url.Values{"email": {"zelda.zebra@example.org"}, "full_name": {"Zelda Zebra"},
			"password": {browserPassword}},
	)
	zelda := demoAccount(t, olive.url, "zelda.zebra@example.org")
	zelda.must(t, "POST", "users/me/subscriptions", url.Values{"subscriptions": {`[{"name":"general"}]`}})
	for n := range 5 {
		if _, err := zelda.send(fmt.Sprint("zebramessage ", n)); err != nil {
			t.Fatal(err)
		}
	}
	markers := []string{"zebramessage", "Zelda Zebra", "zelda.zebra@example.org"}
	contained := func(c *runningCore) []string {
		backup := backupOf(t, c.data)
		return slices.DeleteFunc(
			slices.Clone(markers),
			func(m string) bool { return !bytes.Contains(backup, []byte(m)) },
		)
	}
	for _, c := range all.list {
		all.retry("the copy of "+c.name, func() error {
			if got := contained(c); len(got) < len(markers) {
				return fmt.Errorf("a backup has only %q: this test would prove nothing", got)
			}
			return nil
		})
	}
	out, code := runParley("user", "erase", "--data", all.list[2].data, "--id", fmt.Sprint(made["user_id"]),
		"--certificate", filepath.Join(t.TempDir(), "certificate.json"))
	if code != 0 {
		t.Fatal(out)
	}
	for _, c := range all.list {
		all.retry("the erasure at "+c.name, func() error {
			if left := contained(c); len(left) > 0 {
				return fmt.Errorf("a later backup contains %q", left)
			}
			return nil
		})
	}
}
