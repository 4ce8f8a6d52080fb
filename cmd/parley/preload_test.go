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

	"parley/cmd/internal/server"
)

// The same as a whole, while somebody sends and somebody listens: what was lent is damaged, or gone, or there was no room
// for it. The successor serves all the same, and no request fails.
func TestSeamlessUpgradeAfterFailedPreload(t *testing.T) {
	garbage := func(t *testing.T, pattern string) {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Errorf("nothing to damage: %v", err)
		}
		for _, name := range files {
			info, err := os.Stat(name)
			if err != nil || info.Sys().(*syscall.Stat_t).Nlink > 1 {
				t.Errorf("%s is the store's own: %v", name, err)
				continue
			}
			writeFile(t, name, "garbage")
		}
	}
	for name, spoil := range map[string]func(t *testing.T, lent string){
		"no room":          nil,
		"a damaged copy":   func(t *testing.T, lent string) { garbage(t, filepath.Join(lent, "MANIFEST-*")) },
		"a copy cut short": func(t *testing.T, lent string) { garbage(t, filepath.Join(lent, "*.log")) },
		"no copy any more": func(t *testing.T, lent string) { os.RemoveAll(lent) },
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			p := demo(t, data)
			at := p.serving()
			ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
			listening, err := bo.newPoller()
			if err != nil {
				t.Fatal(err)
			}
			heard := make(chan error, 1)
			go func() { heard <- listening.pollUntil("the end") }()
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
			// Between the two, what the successor asks its predecessor passes here.
			real := filepath.Join(data, "control.real")
			if err := os.Rename(filepath.Join(data, server.ControlSocketName), real); err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("unix", filepath.Join(data, server.ControlSocketName))
			if err != nil {
				t.Fatal(err)
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false) // the successor's will have its name
			defer l.Close()
			lends := make(chan struct{}, 1)
			proxy := &httputil.ReverseProxy{
				Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "parley" },
				Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					var d net.Dialer
					return d.DialContext(ctx, "unix", real)
				}},
				ModifyResponse: func(r *http.Response) error {
					if r.Request.URL.Path == "/lend" {
						lends <- struct{}{}
						if r.StatusCode != http.StatusOK {
							t.Errorf("lend: %s", r.Status)
						}
						spoil(t, filepath.Join(data, "heir.new", "store"))
					}
					return nil
				},
			}
			go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if spoil == nil && r.URL.Path == "/lend" {
					lends <- struct{}{}
					http.Error(w, "no space left on device", http.StatusInternalServerError)
					return
				}
				proxy.ServeHTTP(w, r)
			}))
			out, code := runParley("upgrade", "--data", data)
			if code != 0 {
				t.Fatalf("upgrade: %s\n%s", out, p.output())
			}
			t.Cleanup(func() { endSuccessor(t, data) })
			select {
			case <-lends:
			default:
				t.Error("nobody asked for a copy")
			}
			close(stop)
			if err := <-stopped; err != nil {
				t.Errorf("sender, after %d: %v", sent, err)
			}
			if _, err := ann.send("the end"); err != nil {
				t.Error(err)
			}
			if err := <-heard; err != nil {
				t.Error("listener:", err)
			}
			for i, text := range listening.texts {
				if text != fmt.Sprint(i) {
					t.Fatalf("message %d heard was %q", i, text)
				}
			}
			if len(listening.texts) != sent {
				t.Errorf("%d of %d messages heard", len(listening.texts), sent)
			}
			if serverPid(t, data) == p.cmd.Process.Pid {
				t.Error("nobody else serves")
			}
			if left, _ := filepath.Glob(filepath.Join(data, "*.new")); left != nil {
				t.Errorf("left: %v", left)
			}
			if name != "a copy cut short" && strings.Contains(p.output(), "preloaded=true") {
				t.Errorf("something was preloaded:\n%s", p.output())
			}
		})
	}
}

// A server whose predecessor's organizations were read in advance says so; what is lent is gone then, and so is what an
// runUpgrade that was cut off had left. Everything from before and in between is there.
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
			t.Errorf("left: %v", left)
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
		t.Errorf("%d of 2 successors had read in advance:\n%s", n, p.output())
	}
	a, err := ann.call("GET", "messages", map[string][]string{"anchor": {"newest"}, "num_before": {"3"}, "num_after": {"0"}, "apply_markdown": {"false"}})
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
