package logs

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A repeated error takes few lines, a later line counts the suppressed ones, and other texts are not affected.
func TestRepeatedLogLinesAreSuppressed(t *testing.T) {
	var out bytes.Buffer
	h := newLimitedHandler(slog.NewTextHandler(&out, nil))
	log := slog.New(h).With("realm", 1)
	for i := range 1000 {
		log.Error("email lost", "n", i)
		log.Info("email sent")
	}
	log.Warn("disk slow")
	if n := strings.Count(out.String(), "email lost"); n != MaxLinesPerMinute {
		t.Errorf("%d lines, want %d", n, MaxLinesPerMinute)
	}
	for text, want := range map[string]int{"email sent": 1000, "disk slow": 1, "realm=1": 1001 + MaxLinesPerMinute,
		"suppressed": 0} {
		if n := strings.Count(out.String(), text); n != want {
			t.Errorf("%q %d times, want %d", text, n, want)
		}
	}
	out.Reset()
	r := slog.NewRecord(time.Now().Add(time.Minute), slog.LevelError, "email lost", 0)
	if err := h.Handle(t.Context(), r); err != nil || !strings.Contains(out.String(), "suppressed=980") {
		t.Errorf("a minute later: %v %q, want suppressed=980", err, out.String())
	}
}
