package replicated

import (
	"context"
	"io"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// newLogger passes the messages of Raft on. Its information about each request is for debugging.
func newLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Info, Output: io.Discard})
	l.RegisterSink(logSink{log})
	return l
}

// quietLogger drops everything.
func quietLogger() hclog.Logger { return hclog.NewNullLogger() }

type logSink struct{ log *slog.Logger }

func (s logSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch {
	case msg == "failed to get log" && slices.Contains(args, any(raft.ErrLogNotFound)):
		// The leader has deleted the entries that a joining node lacks, so it sends a backup. Nothing is wrong.
	case level >= hclog.Error:
		to = slog.LevelError
	case level == hclog.Warn:
		to = slog.LevelWarn
	}
	s.log.Log(context.Background(), to, "replicated log: "+msg, args...)
}
