package assist

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"
	"unicode/utf8"

	"parley/actors/realm"
	"parley/wire"
)

// Limits of texts that users read while they are written. A reader asks again and again: so the server notices over any
// proxy and any node that it is gone, and a waiting reader holds no connection for longer than partWait.
const (
	maxParts     = 64                     // texts, those that are complete until their readers have them included
	maxReaders   = 2                      // of one text at a time: a client, and its repetition after a lost connection
	partWait     = 5 * time.Second        // that a reader waits for more
	partInterval = 500 * time.Millisecond // between two answers to a reader: two steps a second look fluent
	partUnread   = 10 * time.Second       // after which a text without readers is given up
)

var (
	// errStopped ends the request of a text that nobody reads.
	errStopped = errors.New("the reader has stopped the text")

	errUnknownText error = realm.Refuse(realm.NotFound, "BAD_REQUEST", "The text does not exist.")
	errReaders     error = realm.Refuse(realm.Busy, "SERVER_OVERLOADED", "The text is being read elsewhere.")
)

// parts has the texts that are being written for readers.
type parts struct {
	mu                     sync.Mutex
	byID                   map[string]*part
	wait, interval, unread time.Duration // shorter in tests
}

func newParts() parts {
	return parts{byID: map[string]*part{}, wait: partWait, interval: partInterval, unread: partUnread}
}

// part is a text that is being written. Its fields below mu belong to the parts.
type part struct {
	by   wire.Asker
	stop context.CancelCauseFunc

	text     string // as the service sent it
	complete bool
	err      error
	changed  chan struct{} // closed when one of the three changes
	readers  int
	answered time.Time   // the last time
	idle     *time.Timer // gives the text up
}

// BeginSummary starts to write a summary.
func (a *Assistant) BeginSummary(by wire.Asker, messages []wire.AssistedMessage) (wire.AssistedPart, error) {
	j, err := a.summary(messages)
	if err != nil {
		return wire.AssistedPart{}, err
	}
	return a.beginPart(by, j)
}

// BeginTranslation starts to write a translation.
func (a *Assistant) BeginTranslation(by wire.Asker, text, language string) (wire.AssistedPart, error) {
	j, err := a.translation(text, language)
	if err != nil {
		return wire.AssistedPart{}, err
	}
	return a.beginPart(by, j)
}

func (a *Assistant) beginPart(by wire.Asker, j job) (wire.AssistedPart, error) {
	if text, ok := a.cached(by, j); ok {
		return wire.AssistedPart{Text: text, Complete: true}, nil
	}
	r, err := a.begin(by, j)
	if err != nil {
		return wire.AssistedPart{}, err
	}
	ctx, stop := context.WithCancelCause(a.ctx)
	p := &part{by: by, stop: stop, changed: make(chan struct{})}
	id := a.parts.add(p)
	go func() {
		defer stop(nil)
		text, err := r.run(ctx, func(text string) { a.parts.show(p, text) })
		a.parts.end(p, text, err)
	}()
	return wire.AssistedPart{ID: id}, nil
}

// ReadPart returns a text when it has more than a number of characters, or is complete. It waits for a few seconds;
// then it returns the text as it is. If the service has failed, the text says so.
func (a *Assistant) ReadPart(by wire.Asker, id string, after int) (wire.AssistedPart, error) {
	p, err := a.parts.enter(by, id)
	if err != nil {
		return wire.AssistedPart{}, err
	}
	defer a.parts.leave(id, p)
	deadline := time.NewTimer(a.parts.wait)
	defer deadline.Stop()
	for late := false; ; {
		l, err := a.parts.look(id, p, after)
		if err != nil || late || l.wait == 0 {
			return l.part, err
		}
		pause := time.NewTimer(l.wait)
		select {
		case <-l.changed:
		case <-pause.C:
		case <-deadline.C:
			late = true
		case <-a.ctx.Done():
			late = true
		}
		pause.Stop()
	}
}

// StopPart ends the request of a text.
func (a *Assistant) StopPart(by wire.Asker, id string) error {
	a.parts.mu.Lock()
	defer a.parts.mu.Unlock()
	p := a.parts.byID[id]
	if p == nil || p.by != by {
		return errUnknownText
	}
	a.parts.remove(id, p)
	return nil
}

// Parts returns the number of texts that are being written, or wait for their readers.
func (a *Assistant) Parts() int64 {
	a.parts.mu.Lock()
	defer a.parts.mu.Unlock()
	return int64(len(a.parts.byID))
}

// add adds a text and returns its id. If there are too many, it forgets the complete one that was read first.
func (l *parts) add(p *part) string {
	id := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	p.idle = time.AfterFunc(l.unread, func() { l.giveUp(id, p) })
	if len(l.byID) >= maxParts { // at most maxInProgress of them are being written
		oldest := ""
		for id, x := range l.byID {
			if (x.complete || x.err != nil) && (oldest == "" || x.answered.Before(l.byID[oldest].answered)) {
				oldest = id
			}
		}
		l.remove(oldest, l.byID[oldest])
	}
	l.byID[id] = p
	return id
}

// show sets a text that is not complete.
func (l *parts) show(p *part, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.text = text
	p.wakeReaders()
}

// end sets a complete text. With an error, the text remains as it was shown.
func (l *parts) end(p *part, text string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.err = err; err == nil {
		p.text, p.complete = text, true
	}
	p.wakeReaders()
}

func (p *part) wakeReaders() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// refusalText returns the text of an error for readers.
func refusalText(err error) string {
	var r *realm.Refusal
	if errors.As(err, &r) {
		return r.Msg
	}
	return err.Error()
}

// enter returns the text with an id, if it is of this user, for one more reader.
func (l *parts) enter(by wire.Asker, id string) (*part, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.byID[id]
	switch {
	case p == nil || p.by != by:
		return nil, errUnknownText
	case p.readers >= maxReaders:
		return nil, errReaders
	}
	p.readers++
	p.idle.Stop()
	return p, nil
}

// leave ends a reader. Without another one, the text is given up after some time.
func (l *parts) leave(id string, p *part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.answered = time.Now()
	if p.readers--; p.readers == 0 && l.byID[id] == p {
		p.idle.Reset(l.unread)
	}
}

// look is the state of a text for one of its readers, which waits for a change, at most for a time; 0: not at all.
type look struct {
	part    wire.AssistedPart
	wait    time.Duration
	changed <-chan struct{} // nil: more text is not sent before the end of the time
}

func (l *parts) look(id string, p *part, after int) (look, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID[id] != p {
		return look{}, errUnknownText
	}
	text := clean(p.text)
	out := look{part: wire.AssistedPart{ID: id, Text: text, Complete: p.complete}}
	if p.err != nil {
		out.part.Error = refusalText(p.err)
		return out, nil
	}
	switch pause := l.interval - time.Since(p.answered); {
	case p.complete:
	case pause > 0:
		out.wait = pause
	case utf8.RuneCountInString(text) <= after:
		out.wait, out.changed = l.wait, p.changed
	}
	return out, nil
}

// giveUp ends a text without readers.
func (l *parts) giveUp(id string, p *part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.readers == 0 {
		l.remove(id, p)
	}
}

// remove forgets a text and ends its request. The lock must be held.
func (l *parts) remove(id string, p *part) {
	if p == nil || l.byID[id] != p {
		return
	}
	delete(l.byID, id)
	p.idle.Stop()
	p.stop(errStopped)
	p.wakeReaders()
}
