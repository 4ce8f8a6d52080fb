package main

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
)

// linkOpens reports whether an invitation link leads to the registration form.
func linkOpens(t *testing.T, at, link string) bool {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return status(t, at+u.Path) == 200
}

// Invitation links that were sent before an organization moved stay valid, and the links that the new server shows are
// valid too.
func TestInvitationLinksAfterImport(t *testing.T) {
	dir := t.TempDir()
	data, file, other := filepath.Join(dir, "data"), filepath.Join(dir, "org.jsonl"), filepath.Join(dir, "other")
	p := demo(t, data)
	olive := demoAccount(t, p.serving(), "olive@example.org")
	a, err := olive.call("POST", "invites/multiuse", url.Values{"stream_ids": {"[]"}})
	if err != nil {
		t.Fatal(err)
	}
	sent := a["invite_link"].(string)
	if !linkOpens(t, olive.url, sent) || linkOpens(t, olive.url, sent+"x") {
		t.Fatal("before the move the link does not open, or a wrong one opens")
	}
	p.stop()
	if out, code := runParley("export", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	if out, code := runParley("import", file, "--data", other); code != 0 {
		t.Fatal(out)
	}
	olive.url = startProgram(t, parleyCommand("serve", "--data", other, "--listen", "127.0.0.1:0", "--demo")).serving()
	a, err = olive.call("GET", "invites", nil)
	if err != nil {
		t.Fatal(err)
	}
	i := a["invites"].([]any)[0].(map[string]any)
	shown := i["link_url"].(string)
	if shown == sent {
		t.Error("both servers have the same secret")
	}
	if !linkOpens(t, olive.url, sent) || !linkOpens(t, olive.url, shown) {
		t.Errorf("after the move: the link that was sent opens: %v, the shown link opens: %v",
			linkOpens(t, olive.url, sent), linkOpens(t, olive.url, shown))
	}
	if _, err := olive.call("DELETE", fmt.Sprintf("invites/multiuse/%v", i["id"]), nil); err != nil {
		t.Fatal(err)
	}
	if linkOpens(t, olive.url, sent) || linkOpens(t, olive.url, shown) {
		t.Error("a revoked link opens")
	}
}

// Owners who agreed to the models of one operator have not agreed to those of another one.
func TestConsentAfterImport(t *testing.T) {
	dir := t.TempDir()
	data, file, other := filepath.Join(dir, "data"), filepath.Join(dir, "org.jsonl"), filepath.Join(dir, "other")
	p := demo(t, data)
	olive := demoAccount(t, p.serving(), "olive@example.org")
	consents := func() string {
		return fmt.Sprint(placeOf(t, olive, realm.PlaceModels)["open"], placeOf(t, olive, realm.PlaceVectors)["open"])
	}
	olive.must(t, "PATCH", "realm", pairs("assistant_enabled", "true", "meaning_search_enabled", "true"))
	if got := consents(); got != "true true" {
		t.Fatal(got)
	}
	p.stop()
	if out, code := runParley("export", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	if out, code := runParley("import", file, "--data", other); code != 0 {
		t.Fatal(out)
	}
	olive.url = startProgram(t, parleyCommand("serve", "--data", other, "--listen", "127.0.0.1:0", "--demo")).serving()
	if got := consents(); got != "false false" {
		t.Errorf("after the move the places of models are open: %s", got)
	}
}

// A killed import leaves either no visible change or the whole organization. It can be repeated, and the other
// organization does not change. CUTS sets the number of kills, SEED repeats their moments.
func TestKilledImport(t *testing.T) {
	seed := uint64(environmentNumber("SEED", int(time.Now().UnixNano()%1e9)))
	t.Logf("SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "org.jsonl")
	p := demo(t, data)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	noise := make([]byte, 3<<20)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	for i := range 3 {
		ann.uploadText(t, "notes.txt", fmt.Sprint(i)+base64.StdEncoding.EncodeToString(noise))
	}
	for i := range 100 {
		if _, err := ann.send(fmt.Sprint(i, strings.Repeat(" many words", 500))); err != nil {
			t.Fatal(err)
		}
	}
	p.stop()
	if out, code := runParley("export", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	before := digests(t, "log", "replay", data)
	order := []string{"import", file, "--data", data, "--realm", "copy", "--new-keys"}
	rehearsed := filepath.Join(dir, "rehearsal")
	if out, code := runParley("import", file, "--data", rehearsed); code != 0 {
		t.Fatal(out)
	}
	began := time.Now()
	whole, code := runParley("import", file, "--data", rehearsed, "--realm", "copy", "--new-keys")
	if code != 0 {
		t.Fatal(whole)
	}
	took := time.Since(began)
	cut := 0
	for range environmentNumber("CUTS", 4) {
		cmd := parleyCommand(order...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(took)))) // a random moment
		cmd.Process.Kill()
		if cmd.Wait() == nil {
			break // the import had finished
		}
		cut++
		if out, code := runParley("log", "check", data); code != 0 {
			t.Fatalf("after %d kills: %s", cut, out)
		}
		if got := digests(t, "log", "replay", data, "--realm", "1"); got != before {
			t.Fatalf("the other organization changed:\n%s\n%s", before, got)
		}
	}
	out, code := runParley(order...)
	if code != 0 && !strings.Contains(out, "exists already") {
		t.Fatalf("after %d kills: code %d: %s", cut, code, out)
	}
	if got := digests(t, "log", "replay", data, "--realm", "2"); got != digests(t, "log", "replay", rehearsed,
		"--realm", "2") {
		t.Errorf("after %d kills the organization is\n%s, without kills\n%s", cut, got, whole)
	}
	if left, _ := filepath.Glob(filepath.Join(data, "uploads", "content", "*", "*")); len(left) != 6 {
		t.Errorf("after %d kills the two organizations have %d files", cut, len(left))
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("files left beside the data directory: %v", entries)
	}
	again := startProgram(t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0", "--demo"))
	ann.url = again.serving()
	if _, err := ann.send("still here"); err != nil {
		t.Error(err)
	}
	t.Logf("%d imports were killed; one takes %v", cut, took)
}
