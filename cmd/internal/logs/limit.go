package logs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// MaxLinesPerMinute limits the log lines per minute of one text of warnings or errors. That is enough to see which
// organizations and users are concerned. An error that happens for every message would otherwise fill the disk.
const MaxLinesPerMinute = 20

// New returns a log that writes to w, at a level of log-level, in lines of JSON or of text. It suppresses frequent
// repetitions of a warning or an error.
func New(w io.Writer, logLevel string, json bool) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(logLevel)); err != nil {
		return nil, fmt.Errorf("log-level must be debug, info, warn or error, not %q", logLevel)
	}
	o := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(newLimitedHandler(slog.NewJSONHandler(w, o))), nil
	}
	return slog.New(newLimitedHandler(slog.NewTextHandler(w, o))), nil
}

// limitedHandler writes at most MaxLinesPerMinute lines of each text of warnings and errors per minute. The first line
// of the next minute has the number of suppressed lines in its attribute "suppressed".
type limitedHandler struct {
	slog.Handler
	counts *messageCounts
}

// messageCounts counts the lines of each text. Texts are constants of the program, so there are few.
type messageCounts struct {
	mu         sync.Mutex
	byText     map[string]*textCount
	suppressed atomic.Int64 // lines suppressed since the process started
}

// textCount counts the lines of one text in the current minute.
type textCount struct {
	since             time.Time
	lines, suppressed int
}

func newLimitedHandler(h slog.Handler) limitedHandler {
	return limitedHandler{h, &messageCounts{byText: map[string]*textCount{}}}
}

// Suppressed returns the number of lines that a log made by New has suppressed.
func Suppressed(log *slog.Logger) int64 {
	if h, ok := log.Handler().(limitedHandler); ok {
		return h.counts.suppressed.Load()
	}
	return 0
}

// Handle writes a record unless its text has reached the limit.
func (h limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		suppressed, ok := h.counts.admit(r.Message, r.Time)
		if !ok {
			return nil
		}
		if suppressed > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("suppressed", suppressed))
		}
	}
	return h.Handler.Handle(ctx, r)
}

// admit reports whether another line of the text may be written, and how many lines were suppressed in the minute
// before.
func (c *messageCounts) admit(text string, now time.Time) (suppressed int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.byText[text]
	if t == nil || now.Sub(t.since) >= time.Minute {
		if t != nil {
			suppressed = t.suppressed
		}
		t = &textCount{since: now}
		c.byText[text] = t
	}
	if t.lines == MaxLinesPerMinute {
		t.suppressed++
		c.suppressed.Add(1)
		return 0, false
	}
	t.lines++
	return suppressed, true
}

// WithAttrs returns a handler that shares the limits of h.
func (h limitedHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return limitedHandler{h.Handler.WithAttrs(a), h.counts}
}

// WithGroup returns a handler that shares the limits of h.
func (h limitedHandler) WithGroup(name string) slog.Handler {
	return limitedHandler{h.Handler.WithGroup(name), h.counts}
}
