package main

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// maxLinesPerMinute is how many lines a minute a warning or an error of one text may take: enough to see who and what it
// concerns. What goes wrong for every message would otherwise fill the disk, where the data is.
const maxLinesPerMinute = 20

// limitedHandler is a log in which each text of warnings and errors takes at most so many lines a minute. The next minute's first
// has as "unsaid" how many were left out.
type limitedHandler struct {
	slog.Handler
	texts *messageCounts
}

// messageCounts is what the log has said of each text. They are constants of the program, so there are few.
type messageCounts struct {
	mu         sync.Mutex
	byText     map[string]*textCount
	suppressed atomic.Int64 // lines left out since the process began
}

type textCount struct {
	since             time.Time
	lines, suppressed int
}

func newLimitedHandler(h slog.Handler) limitedHandler {
	return limitedHandler{h, &messageCounts{byText: map[string]*textCount{}}}
}

func (m limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		unsaid, ok := m.texts.admit(r.Message, r.Time)
		if !ok {
			return nil
		}
		if unsaid > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("unsaid", unsaid))
		}
	}
	return m.Handler.Handle(ctx, r)
}

// admit says whether the text may take another line, and how many were left out before it.
func (t *messageCounts) admit(text string, now time.Time) (unsaid int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byText[text]
	if s == nil || now.Sub(s.since) >= time.Minute {
		if s != nil {
			unsaid = s.suppressed
		}
		s = &textCount{since: now}
		t.byText[text] = s
	}
	if s.lines == maxLinesPerMinute {
		s.suppressed++
		t.suppressed.Add(1)
		return 0, false
	}
	s.lines++
	return unsaid, true
}

func (m limitedHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return limitedHandler{m.Handler.WithAttrs(a), m.texts}
}

func (m limitedHandler) WithGroup(name string) slog.Handler {
	return limitedHandler{m.Handler.WithGroup(name), m.texts}
}
