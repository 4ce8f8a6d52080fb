package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A server with several organizations has one processor of the Go runtime more than the machine has, one with a single
// organization has not.
func TestProcessorForSeveralOrganizations(t *testing.T) {
	if os.Getenv("GOMAXPROCS") != "" || runtime.GOMAXPROCS(0) != runtime.NumCPU() {
		t.Skip("GOMAXPROCS is set, or this container may use only a part of the machine")
	}
	data, debug := t.TempDir(), freeAddress(t)
	demo(t, data, "--debug-listen", debug).serving()
	expect := func(n int) {
		t.Helper()
		want := fmt.Sprintf("\ngo_sched_gomaxprocs_threads %d\n", n)
		for end := time.Now().Add(binaryTimeout); ; time.Sleep(50 * time.Millisecond) {
			if _, text := getText(t, "http://"+debug+"/metrics"); strings.Contains(text, want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the metrics do not contain %q", want)
			}
		}
	}
	expect(runtime.NumCPU())
	if out, code := runParley("realm", "create", "--name", "Other", "--realm", "other", "--data", data); code != 0 {
		t.Fatal(out)
	}
	expect(runtime.NumCPU() + 1)
}
