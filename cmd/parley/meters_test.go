package main

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestMetersNameTheirFields(t *testing.T) {
	m := struct {
		Turns       atomic.Int64
		CommitNanos int64
		P99         time.Duration
		Refused     map[string]int64
		MemTable    uint64
		hidden      int
	}{CommitNanos: 3, P99: 250 * time.Millisecond, Refused: map[string]int64{"slow": 2, "conns": 1}, MemTable: 9, hidden: 7}
	m.Turns.Store(5)
	var b strings.Builder
	writeMeters(&b, "x", &m)
	want := "x_turns 5\nx_commit_nanos 3\nx_p99_seconds 0.25\nx_refused{of=\"conns\"} 1\nx_refused{of=\"slow\"} 2\nx_mem_table 9\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
