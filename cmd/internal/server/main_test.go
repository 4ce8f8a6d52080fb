package server

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap of the tests grow more than that of a server: the tests start hundreds of servers, and the
// collector took an eighth of their time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(300)
	os.Exit(m.Run())
}
