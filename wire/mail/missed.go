package mail

import (
	"context"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/courier"
)

// Lookers is how many users' missed messages are looked at a time: it takes a look, some texts and a turn.
const Lookers = 4

// unheard is the pause before looking again whether a client has taken a message of somebody who sits at one.
const unheard = 10 * time.Second

// Missed has mails written about messages that nobody read in time. The letters are errands like others then.
type Missed struct {
	House wire.House
	Now   func() time.Time
	// Elsewhere reports whether the address has an account in another organization of this server.
	Elsewhere func(id realm.ID, email string) bool
}

// waiting is what is known of a user's missed messages.
type waiting struct {
	email  string
	period int64 // seconds
	list   []realm.Errand
	refs   []realm.BodyRef // of those that are still unread
}

var system = realm.Caller{System: true, Client: "Internal"}

// Carry waits until the oldest message somebody may have missed has waited as long as he wants them gathered, and has
// letters sent of all that are unread then. Who sits at a client that has taken them needs none.
func (c *Missed) Carry(_ context.Context, j *courier.Job) courier.Outcome {
	w, err := c.look(j)
	if err != nil {
		return courier.Outcome{Again: unheard}
	}
	if len(w.list) == 0 {
		return courier.Outcome{}
	}
	cmd := realm.MailMissed{}
	for _, e := range w.list {
		cmd.IDs = append(cmd.IDs, e.ID)
	}
	if len(w.refs) > 0 {
		if left := w.list[0].At + w.period - c.Now().Unix(); left > 0 {
			return courier.Outcome{Again: time.Duration(left) * time.Second}
		}
		switch here, heard := c.House.Reached(j.Realm, j.Errand.User, w.list[len(w.list)-1].Told); {
		case here && !heard:
			return courier.Outcome{Again: unheard}
		case !here:
			if cmd.Letters, err = c.write(j, w); err != nil {
				return courier.Outcome{Again: unheard}
			}
		}
	}
	if _, err := c.House.Turn(j.Realm, system, func(t *realm.Turn) (any, error) { return cmd.Decide(t) }); err != nil {
		return courier.Outcome{Again: unheard}
	}
	return courier.Outcome{Settled: true}
}

func (c *Missed) look(j *courier.Job) (w waiting, err error) {
	_, err = c.House.View(j.Realm, system, func(v realm.View) (any, error) {
		w = waiting{list: v.MissedBy(j.Errand.User)}
		if u := v.Find(j.Errand.User); u != nil {
			w.email, w.period = u.Email, u.Int("email_notifications_batching_period_seconds")
		}
		for i := range w.list {
			if m, ok := v.Unheard(&w.list[i]); ok {
				w.refs = append(w.refs, m.Ref)
			}
		}
		return nil, nil
	})
	return w, err
}

// write writes the letters.
func (c *Missed) write(j *courier.Job, w waiting) (letters []wire.Letter, err error) {
	text := wire.ReadAhead(c.House, j.Realm, w.refs)
	elsewhere := c.Elsewhere(j.Realm, w.email)
	_, err = c.House.View(j.Realm, system, func(v realm.View) (any, error) {
		letters = wire.MissedLetters(v, v.Find(j.Errand.User), w.list, j.Site, elsewhere, text)
		return nil, nil
	})
	return letters, err
}
