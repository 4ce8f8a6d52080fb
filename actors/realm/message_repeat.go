package realm

import "slices"

// A scheduled message can be sent again and again. Each time it is sent, its time moves to the next one. This is an
// extension of the protocol.

// RepeatWords are how often a scheduled message can be sent.
var RepeatWords = []string{"daily", "weekdays", "weekly", "monthly"}

// lastRepeatTime is the last second at which a repeated message is sent. Clients show no later times.
const lastRepeatTime = 253402214399

// Repeat says when a scheduled message is sent again. All its times follow from the first one; see TurnEnv.NextRepeat.
type Repeat struct {
	Every string // one of RepeatWords; "": the message is sent once
	Zone  string // name of the time zone, such as Europe/Berlin
	First int64  // Unix seconds
}

// planRepeat checks a repetition, and fills its first time and its time zone, which is that of the author's settings
// if none is given.
func (t *Turn) planRepeat(me *User, p Repeat, first int64) (Repeat, error) {
	if p.Every == "" {
		return Repeat{}, nil
	}
	if t.Level() < repeatLevel {
		return Repeat{}, errLowLevel()
	}
	if !slices.Contains(RepeatWords, p.Every) {
		return Repeat{}, BadRequest("Invalid repetition")
	}
	if p.Zone == "" {
		p.Zone = me.Timezone
	}
	if p.Zone == "" {
		p.Zone = "UTC"
	}
	p.First = first
	if _, known := t.nextRepeat(p, first); !known {
		return Repeat{}, BadRequest("Invalid timezone")
	}
	return p, nil
}

// nextRepeat returns the first time of a repetition after a time; false if its time zone is not known.
func (t *Turn) nextRepeat(p Repeat, after int64) (int64, bool) {
	if t.env.NextRepeat == nil {
		return 0, false
	}
	return t.env.NextRepeat(p, after)
}

// repeatScheduled moves a repeated message to its first time after now, so that times that passed while the server did
// not run are made up for by one message. It returns false if the message is not sent again.
func (t *Turn) repeatScheduled(s ScheduledMessage) bool {
	if s.Repeat.Every == "" {
		return false
	}
	next, known := t.nextRepeat(s.Repeat, max(s.At, t.Now))
	if !known || next > lastRepeatTime {
		return false
	}
	s.At = next
	t.Record(&ScheduledChanged{s})
	return true
}
