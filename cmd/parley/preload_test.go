package main

import (
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/snapshot"
)

// A successor that cannot read its predecessor's store before it stops reads it afterwards: whatever the reason, it goes
// on without, and leaves nothing behind.
func TestAFailedPreloadIsNoFailedUpgrade(t *testing.T) {
	for name, lend := range map[string]http.HandlerFunc{
		"an older program": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `no command "lend"`, http.StatusBadRequest)
		},
		"no room": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no space left", http.StatusInternalServerError)
		},
		"nothing is there":  func(http.ResponseWriter, *http.Request) {},
		"it ends meanwhile": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := net.Listen("unix", filepath.Join(dir, controlSocket))
			if err != nil {
				t.Fatal(err)
			}
			mux := http.NewServeMux()
			mux.HandleFunc("POST /lend", lend)
			s := &http.Server{Handler: mux}
			go s.Serve(l)
			defer s.Close()
			if p := preload(dir, slog.New(slog.DiscardHandler)); p != nil {
				t.Error("something was loaded")
			}
			store, err := snapshot.Open(dir, snapshot.Options{})
			if err != nil {
				t.Fatalf("the store afterwards: %v", err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); left != nil {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A server whose predecessor's organizations were read in advance says so; what is lent is gone then, and so is what an
// upgrade that was cut off had left. Everything from before and in between is there.
func TestAnUpgradeReadsInAdvance(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	stale := filepath.Join(data, "heir.new", "store")
	if err := os.MkdirAll(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(stale, "000001.sst"), "left over")
	p := demo(t, data)
	ann := demoPerson(t, p.serving(), "ann@example.org")
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
