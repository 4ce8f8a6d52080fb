package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/cmd/internal/control"
)

// An upgrade while clients send and poll, in which the copy of the store is damaged, missing or cannot be made. The
// successor serves nevertheless, and no request fails.
func TestSeamlessUpgradeAfterFailedPreload(t *testing.T) {
	damageFiles := func(t *testing.T, pattern string) {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Errorf("no files to damage: %v", err)
		}
		for _, name := range files {
			info, err := os.Stat(name)
			if err != nil || info.Sys().(*syscall.Stat_t).Nlink > 1 {
				t.Errorf("%s is linked with the store: %v", name, err)
				continue
			}
			writeFile(t, name, "garbage")
		}
	}
	for name, damage := range map[string]func(t *testing.T, store string){
		"no space":         nil,
		"a damaged copy":   func(t *testing.T, store string) { damageFiles(t, filepath.Join(store, "MANIFEST-*")) },
		"a truncated copy": func(t *testing.T, store string) { damageFiles(t, filepath.Join(store, "*.log")) },
		"a missing copy":   func(t *testing.T, store string) { os.RemoveAll(store) },
	} {
		t.Run(name, func(t *testing.T) {
			output := upgradeWithDamagedCopy(t, damage)
			if name != "a truncated copy" && strings.Contains(output, "preloaded=true") {
				t.Errorf("organizations were preloaded:\n%s", output)
			}
		})
	}
}

// upgradeWithDamagedCopy upgrades a server under load. damage is called with the folder of the copy of the store before
// the successor reads it; nil: the copy fails. It returns the log of both processes.
func upgradeWithDamagedCopy(t *testing.T, damage func(t *testing.T, store string)) string {
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data)
	at := p.serving()
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	bosQueue, err := bo.newPoller()
	if err != nil {
		t.Fatal(err)
	}
	polled := make(chan error, 1)
	go func() { polled <- bosQueue.pollUntil("the end") }()
	stop, stopped := make(chan struct{}), make(chan error, 1)
	sent := 0
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			case <-time.After(5 * time.Millisecond):
			}
			if _, err := ann.send(fmt.Sprint(sent)); err != nil {
				stopped <- err
				return
			}
			sent++
		}
	}()
	copies := proxyControl(t, data, damage)
	out, code := runParley("upgrade", "--data", data)
	if code != 0 {
		t.Fatalf("upgrade: %s\n%s", out, p.output())
	}
	t.Cleanup(func() { endSuccessor(t, data) })
	select {
	case <-copies:
	default:
		t.Error("the successor did not ask for a copy")
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Errorf("sender, after %d: %v", sent, err)
	}
	if _, err := ann.send("the end"); err != nil {
		t.Error(err)
	}
	if err := <-polled; err != nil {
		t.Error("poller:", err)
	}
	for i, text := range bosQueue.texts {
		if text != fmt.Sprint(i) {
			t.Fatalf("received message %d is %q", i, text)
		}
	}
	if len(bosQueue.texts) != sent {
		t.Errorf("%d of %d messages received", len(bosQueue.texts), sent)
	}
	if serverPid(t, data) == p.cmd.Process.Pid {
		t.Error("the predecessor still serves")
	}
	if left, _ := filepath.Glob(filepath.Join(data, "*.new")); left != nil {
		t.Errorf("files left behind: %v", left)
	}
	return p.output()
}

// proxyControl puts a proxy between the control socket of a server and its clients, which sees the requests of a
// successor. The returned channel receives a value when the successor asks for a copy of the store.
func proxyControl(t *testing.T, data string, damage func(t *testing.T, store string)) <-chan struct{} {
	real := filepath.Join(data, "control.real")
	if err := os.Rename(filepath.Join(data, control.SocketName), real); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(data, control.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // the successor's socket will have its name
	t.Cleanup(func() { l.Close() })
	copies := make(chan struct{}, 1)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "parley" },
		Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", real)
			}},
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path == "/lend" {
				copies <- struct{}{}
				if r.StatusCode != http.StatusOK {
					t.Errorf("lend: %s", r.Status)
				}
				damage(t, filepath.Join(data, "heir.new", "store"))
			}
			return nil
		},
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if damage == nil && r.URL.Path == "/lend" {
			copies <- struct{}{}
			http.Error(w, "no space left on device", http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	return copies
}

// A successor that has preloaded the organizations logs it. The copy of the store is removed then, and so is an old
// copy of an interrupted upgrade. All messages are there.
func TestUpgradePreloads(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	stale := filepath.Join(data, "heir.new", "store")
	if err := os.MkdirAll(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(stale, "000001.sst"), "left over")
	p := demo(t, data)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	gone := func() {
		t.Helper()
		if left, _ := filepath.Glob(filepath.Join(data, "*.new")); left != nil {
			t.Errorf("files left behind: %v", left)
		}
	}
	gone()
	for _, text := range []string{"before", "between", "after"} {
		if _, err := ann.send(text); err != nil {
			t.Fatal(err)
		}
		if text == "after" {
			break
		}
		if out, code := runParley("upgrade", "--data", data); code != 0 {
			t.Fatalf("upgrade: %s", out)
		}
		gone()
	}
	t.Cleanup(func() { endSuccessor(t, data) })
	if n := strings.Count(p.output(), "preloaded=true"); n != 2 {
		t.Errorf("%d of 2 successors had preloaded:\n%s", n, p.output())
	}
	a, err := ann.call("GET", "messages", map[string][]string{"anchor": {"newest"}, "num_before": {"3"},
		"num_after": {"0"}, "apply_markdown": {"false"}})
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, m := range a["messages"].([]any) {
		have = append(have, m.(map[string]any)["content"].(string))
	}
	if got := strings.Join(have, " "); got != "before between after" {
		t.Errorf("messages: %s", got)
	}
}
