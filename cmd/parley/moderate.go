package main

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// maxLinesOfText is how many lines a minute a warning or an error of one text may take: enough to see who and what it
// concerns. What goes wrong for every message would otherwise fill the disk, where the data is.
const maxLinesOfText = 20

// moderate is a log in which each text of warnings and errors takes at most so many lines a minute. The next minute's first
// has as "unsaid" how many were left out.
type moderate struct {
	slog.Handler
	texts *texts
}

// texts is what the log has said of each text. They are constants of the program, so there are few.
type texts struct {
	mu     sync.Mutex
	said   map[string]*said
	unsaid atomic.Int64 // lines left out since the process began
}

type said struct {
	since         time.Time
	lines, unsaid int
}

func newModerate(h slog.Handler) moderate {
	return moderate{h, &texts{said: map[string]*said{}}}
}

func (m moderate) Handle(ctx context.Context, r slog.Record) error {
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
func (t *texts) admit(text string, now time.Time) (unsaid int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.said[text]
	if s == nil || now.Sub(s.since) >= time.Minute {
		if s != nil {
			unsaid = s.unsaid
		}
		s = &said{since: now}
		t.said[text] = s
	}
	if s.lines == maxLinesOfText {
		s.unsaid++
		t.unsaid.Add(1)
		return 0, false
	}
	s.lines++
	return unsaid, true
}

func (m moderate) WithAttrs(a []slog.Attr) slog.Handler {
	return moderate{m.Handler.WithAttrs(a), m.texts}
}

func (m moderate) WithGroup(name string) slog.Handler {
	return moderate{m.Handler.WithGroup(name), m.texts}
}
