package bench

import (
	"os"
	"testing"
)

// TestMain lets the test binary replace parley: with the argument bench it is the harness, with serve a fake server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "bench" {
		os.Exit(Main(os.Args[2:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		os.Exit(serveFake(os.Args[2:]))
	}
	os.Exit(m.Run())
}
