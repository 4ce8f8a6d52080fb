package linkmarks

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// Timing of the link marker.
const (
	// Delay is how long the marker waits after the start, while clients reconnect.
	Delay = 10 * time.Second
	// pause is the time between two steps, so that requests come first.
	pause = 50 * time.Millisecond
	// retry is the time after which it is checked again whether this node owns an organization that is not
	// completely marked.
	retry = time.Minute
	// StepTexts is how many texts one step reads: some milliseconds of work, and one turn that changes at most as
	// many messages.
	StepTexts = 1000
)

// sleepingPause is the time before an organization is loaded only for the marker. It stays in memory for half a minute,
// so few are there because of the marker.
const sleepingPause = time.Second

// Organizations have the messages.
type Organizations interface {
	realm.Turns
	realm.Views
	// Realms returns the organizations by subdomain.
	Realms() map[string]realm.ID
	// Owns reports whether this node owns an organization.
	Owns(realm.ID) bool
	// IsAsleep reports whether an organization is not in memory.
	IsAsleep(realm.ID) bool
	// HasUncheckedLinks reports whether messages of an organization may have to be marked, without loading it.
	HasUncheckedLinks(realm.ID) bool
}

// Texts reads the newest versions of the texts of an organization from the disk, those of the messages after one, in
// their order, until yield returns false.
type Texts interface {
	NewestTexts(id realm.ID, after realm.MessageID, yield func(realm.BodyRef, realm.Body) (bool, error)) error
}

// Marker marks the messages that older programs did not count as messages with a link. It does this once for each
// organization; see realm.MarkLinks.
type Marker struct {
	orgs Organizations
	disk Texts
	log  *slog.Logger
	stop chan struct{}
	done chan struct{}
}

// Start starts a marker, which begins after a delay.
func Start(orgs Organizations, disk Texts, log *slog.Logger, delay time.Duration) *Marker {
	m := &Marker{orgs: orgs, disk: disk, log: log, stop: make(chan struct{}), done: make(chan struct{})}
	go m.run(delay)
	return m
}

func (m *Marker) run(delay time.Duration) {
	defer close(m.done)
	if !m.wait(delay) {
		return
	}
	rest := slices.Sorted(maps.Values(m.orgs.Realms()))
	for {
		var later []realm.ID // another node owns them; it marks them, unless this one becomes the owner before
		for _, id := range rest {
			done, stopped := m.mark(id)
			if stopped {
				return
			}
			if !done {
				later = append(later, id)
			}
		}
		if rest = later; len(rest) == 0 || !m.wait(retry) {
			return
		}
	}
}

// mark marks the messages of an organization. done is false if another node owns the organization and has not marked
// all of them.
func (m *Marker) mark(id realm.ID) (done, stopped bool) {
	if !m.orgs.HasUncheckedLinks(id) {
		return true, false
	}
	if !m.orgs.Owns(id) { // a core that follows must not load all organizations for it
		return false, false
	}
	if m.orgs.IsAsleep(id) && !m.wait(sleepingPause) {
		return false, true
	}
	for {
		more, err := m.step(id)
		switch {
		case err != nil && !m.orgs.Owns(id):
			return false, false
		case err != nil: // the next start continues
			m.log.Error("marking the links of old messages failed", "realm", id, "err", err)
			return true, false
		case !more:
			return true, false
		case !m.wait(pause):
			return false, true
		}
	}
}

// wait waits for d. It returns false at once if the marker is closed.
func (m *Marker) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-m.stop:
		return false
	case <-t.C:
		return true
	}
}

// step reads the next texts of an organization and reports whether there are more. It fails if another node owns the
// organization and has not marked all messages.
func (m *Marker) step(id realm.ID) (more bool, err error) {
	x, err := m.orgs.View(id, realm.System, func(v realm.View) (any, error) { return v.Org().LinksChecked, nil })
	if err != nil {
		return false, err
	}
	after := x.(realm.MessageID)
	if after == realm.MaxMessageID {
		return false, nil
	}
	if !m.orgs.Owns(id) { // do not read all texts in vain
		return false, realm.ErrNotOwner
	}
	c := realm.MarkLinks{UpTo: realm.MaxMessageID}
	n := 0
	err = m.disk.NewestTexts(id, after, func(ref realm.BodyRef, body realm.Body) (bool, error) {
		if wire.HasLink(body) {
			c.Texts = append(c.Texts, ref)
		}
		if n++; n == StepTexts {
			c.UpTo = ref.Message
		}
		return n < StepTexts, nil
	})
	if err != nil {
		return false, err
	}
	_, err = realm.Execute(m.orgs, id, realm.System, c)
	return c.UpTo != realm.MaxMessageID, err
}

// Close stops the marker after the current step.
func (m *Marker) Close() {
	close(m.stop)
	<-m.done
}

// Done returns a channel that is closed when all messages are marked, or the marker is closed.
func (m *Marker) Done() <-chan struct{} { return m.done }
