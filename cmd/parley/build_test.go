package main

import (
	"os"
	"runtime/debug"
	"testing"
)

// The tests of `make` and of continuous integration run the program that is shipped: it contains no C code. The tests
// of this package start their own binary as the program, so the build of this binary is the one that counts.
func TestShippedProgramIsTested(t *testing.T) {
	if os.Getenv("CI") == "" {
		t.Skip("CI is not set: `go test` without make may build with C code")
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the binary does not say how it was built")
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["-race"] == "true" {
		t.Skip("the race detector needs C code")
	}
	if got := settings["CGO_ENABLED"]; got != "0" {
		t.Errorf("CGO_ENABLED is %q, want 0: run the tests through make", got)
	}
}
