package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/snapshot"
)

// demo starts a server with a demo organization and a data directory.
func demo(t *testing.T, dir string, flags ...string) *program {
	t.Helper()
	return startProgram(t,
		parleyCommand(append([]string{"serve", "--data", dir, "--listen", freeAddress(t), "--demo"}, flags...)...))
}

func TestDamagedStoreStopsTheStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := demo(t, dir)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	for i := range 20 {
		if _, err := ann.send(fmt.Sprintf("message %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	p.stop()
	if out, code := runParley("log", "check", dir); code != 0 || !strings.Contains(out, "are right") {
		t.Fatalf("check of an undamaged directory: %d, %s", code, out)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "store", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, table := range tables {
		data, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for i := range min(len(data)/2, 4096) {
			data[i] ^= 0x5a
		}
		if err := os.WriteFile(table, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, code := runParley("serve", "--data", dir, "--listen", "127.0.0.1:0")
	if code != exitError || !strings.Contains(out, "damaged") || !strings.Contains(out, "parley log check "+dir) {
		t.Errorf("start on damaged data: code %d, %s", code, out)
	}
	out, code = runParley("log", "check", dir)
	if code != exitError || !strings.Contains(out, "damaged places") {
		t.Errorf("check of damaged data: code %d, %s", code, out)
	}
}

// After kill -9, a damaged end of the write-ahead log is detected, up to the last second. The lost facts are named, and
// the server starts only if the operator accepts the loss.
func TestLostEndOfTheLogStopsTheStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := demo(t, dir)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	send := func(text string) {
		t.Helper()
		if _, err := ann.send(text); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * snapshot.DefaultMarkInterval) // then a mark includes the message
	}
	send("before")
	logs := map[string]int{} // how much of each log was written by then
	paths, err := filepath.Glob(filepath.Join(dir, "store", "*.log"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		logs[path] = len(data)
	}
	send("after")
	p.kill()
	out, code := runParley("log", "check", dir)
	if code != 0 || !strings.Contains(out, "did not stop cleanly") || !strings.Contains(out, "cannot be detected") {
		t.Fatalf("check after kill -9: code %d, %s", code, out)
	}
	for path, size := range logs {
		if err := os.Truncate(path, int64(size)); err != nil {
			t.Fatal(err)
		}
	}
	out, code = runParley("log", "check", dir)
	if code != exitError || !strings.Contains(out, "are lost") || !strings.Contains(out, "realm 1") {
		t.Errorf("check of a log without its end: code %d, %s", code, out)
	}
	out, code = runParley("serve", "--data", dir, "--listen", "127.0.0.1:0")
	if code != exitError || !strings.Contains(out, "were durable") || !strings.Contains(out, "parley log check "+dir) {
		t.Errorf("start on a log without its end: code %d, %s", code, out)
	}
	again := demo(t, dir, "--accept-data-loss")
	ann.url = again.serving()
	if _, err := ann.send("on"); err != nil {
		t.Error(err)
	}
	again.stop()
	out, code = runParley("log", "check", dir)
	if code != 0 || !strings.Contains(out, "stopped cleanly") {
		t.Errorf("check after a clean stop: code %d, %s", code, out)
	}
}

func TestSecondServerIsRejected(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	demo(t, dir).serving()
	out, code := runParley("serve", "--data", dir, "--listen", "127.0.0.1:0")
	if code != exitError || !strings.Contains(out, "is in use by another parley") {
		t.Errorf("code %d, %s", code, out)
	}
}
