package replicated

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// While a node joins, the leader looks for entries that it has deleted, and then sends a backup. That is no error.
// Other errors of reading the log are.
func TestLoggerPassesErrors(t *testing.T) {
	var out strings.Builder
	l := newLogger(slog.New(slog.NewTextHandler(&out, nil)))
	l.Error("failed to get log", "index", 1, "error", raft.ErrLogNotFound)
	if out.Len() > 0 {
		t.Errorf("a deleted entry was logged: %s", out.String())
	}
	l.Error("failed to get log", "index", 1, "error", errors.New("the disk failed"))
	l.Error("failed to take snapshot", "error", raft.ErrLogNotFound)
	if n := strings.Count(out.String(), "level=ERROR"); n != 2 {
		t.Errorf("%d errors instead of 2: %s", n, out.String())
	}
}
