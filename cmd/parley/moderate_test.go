package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What goes wrong again and again takes few lines, says later how often it did, and hides nothing else.
func TestRepeatedLogLinesAreSuppressed(t *testing.T) {
	var out bytes.Buffer
	h := newLimitedHandler(slog.NewTextHandler(&out, nil))
	log := slog.New(h).With("realm", 1)
	for i := range 1000 {
		log.Error("letter lost", "n", i)
		log.Info("letter sent")
	}
	log.Warn("disk slow")
	if n := strings.Count(out.String(), "letter lost"); n != maxLinesPerMinute {
		t.Errorf("%d lines, want %d", n, maxLinesPerMinute)
	}
	for text, want := range map[string]int{"letter sent": 1000, "disk slow": 1, "realm=1": 1001 + maxLinesPerMinute, "unsaid": 0} {
		if n := strings.Count(out.String(), text); n != want {
			t.Errorf("%q %d times, want %d", text, n, want)
		}
	}
	out.Reset()
	r := slog.NewRecord(time.Now().Add(time.Minute), slog.LevelError, "letter lost", 0)
	if err := h.Handle(t.Context(), r); err != nil || !strings.Contains(out.String(), "unsaid=980") {
		t.Errorf("a minute later: %v %q, want unsaid=980", err, out.String())
	}
}
