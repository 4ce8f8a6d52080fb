package actors

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/presence"
	"parley/actors/realm"
)

// Messages of a presence actor.
type (
	report struct {
		user         realm.UserID
		active, hide bool
		done         func(row presence.Row, tell bool) // must not block
	}
	since struct {
		update, oldest int64
		reply          chan []presence.Row
	}
	presenceOf struct {
		user  realm.UserID
		reply chan *presence.Row
	}
	savePresence struct{ to *actor.PID }
	savedRows    struct{ rows []realm.EncodedRow }
)

// presenceActor keeps who of one realm is here.
type presenceActor struct {
	h    *House
	book *presence.Book
	seen *sightings
}

// sightings is when each user of a realm was here at last, to be read by everybody without asking the presence actor,
// which alone writes it. It is right to sightingsStep.
type sightings struct{ last sync.Map } // realm.UserID: Unix seconds

// sightingsStep is how many seconds must have passed before a user's being here is noted anew: it only matters whether
// he was here in the last days.
const sightingsStep = 3600

func (s *sightings) note(u realm.UserID, now int64) {
	if at, ok := s.last.Load(u); !ok || now-at.(int64) >= sightingsStep {
		s.last.Store(u, now)
	}
}

// since reports whether a user was here at that time or later, or at most sightingsStep earlier.
func (s *sightings) since(u realm.UserID, oldest int64) bool {
	at, ok := s.last.Load(u)
	return ok && at.(int64)+sightingsStep > oldest
}

func (p *presenceActor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *report:
		now := p.h.now().Unix()
		if m.hide {
			m.done(p.book.Hide(m.user, now), true)
			return
		}
		row, tell := p.book.Report(m.user, m.active, now)
		p.seen.note(m.user, now)
		m.done(row, tell)
	case *since:
		m.reply <- p.book.Since(m.update, m.oldest)
	case *presenceOf:
		if r, ok := p.book.Of(m.user); ok {
			m.reply <- &r
		} else {
			m.reply <- nil
		}
	case savePresence:
		var rows []realm.EncodedRow
		for _, r := range p.book.Changed() {
			rows = append(rows, p.h.disk.EncodeRow(realm.PresenceTable, int64(r.User), &r))
		}
		p.h.stage.send(m.to, savedRows{rows})
	}
}

// ReportPresence notes that a user is active or idle; tell says whether others should hear that he came online.
func (h *House) ReportPresence(id realm.ID, u realm.UserID, active bool) (presence.Row, bool) {
	return h.report(id, &report{user: u, active: active})
}

// NotePresence is ReportPresence that nobody waits for. The presence actor calls done, which must not block.
func (h *House) NotePresence(id realm.ID, u realm.UserID, active bool, done func(row presence.Row, tell bool)) {
	if r := h.find(id); r != nil {
		h.stage.send(r.presence, &report{user: u, active: active, done: done})
	} else {
		done(presence.Row{}, false)
	}
}

// HidePresence makes a user appear offline at once.
func (h *House) HidePresence(id realm.ID, u realm.UserID) presence.Row {
	row, _ := h.report(id, &report{user: u, hide: true})
	return row
}

func (h *House) report(id realm.ID, m *report) (row presence.Row, tell bool) {
	r := h.find(id)
	if r == nil {
		return presence.Row{}, false
	}
	done := make(chan struct{})
	m.done = func(noted presence.Row, news bool) {
		row, tell = noted, news
		close(done)
	}
	h.stage.send(r.presence, m)
	<-done
	return row, tell
}

// PresenceSince is the rows that changed after an update id, or whose last contact is not older than oldest.
func (h *House) PresenceSince(id realm.ID, update, oldest int64) []presence.Row {
	r := h.find(id)
	if r == nil {
		return nil
	}
	m := &since{update, oldest, make(chan []presence.Row, 1)}
	h.stage.send(r.presence, m)
	return <-m.reply
}

// PresenceOf is one user's row, or nil.
func (h *House) PresenceOf(id realm.ID, u realm.UserID) *presence.Row {
	r := h.find(id)
	if r == nil {
		return nil
	}
	m := &presenceOf{u, make(chan *presence.Row, 1)}
	h.stage.send(r.presence, m)
	return <-m.reply
}

// SeenSince tells whether users of an organization were here at a time, in Unix seconds, or later; some who left up to an
// hour before it count as well.
func (h *House) SeenSince(id realm.ID, oldest int64) func(realm.UserID) bool {
	r := h.find(id)
	if r == nil {
		return func(realm.UserID) bool { return false }
	}
	return func(u realm.UserID) bool { return r.seen.since(u, oldest) }
}
