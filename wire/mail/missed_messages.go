package mail

import (
	"context"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
)

// MaxChecking is how many users' missed messages are looked at a time: it takes a look, some texts and a turn.
const MaxChecking = 4

// recheckPause is the pause before looking again whether a client has taken a message of somebody who sits at one.
const recheckPause = 10 * time.Second

// MissedMessages has mails written about messages that nobody read in time. The letters are errands like others then.
type MissedMessages struct {
	Server wire.Server
	Now    func() time.Time
	// Elsewhere reports whether the address has an account in another organization of this server.
	HasOtherAccount func(id realm.ID, email string) bool
}

// missedState is what is known of a user's missed messages.
type missedState struct {
	email  string
	period int64 // seconds
	list   []realm.OutboxJob
	refs   []realm.BodyRef // of those that are still unread
}

var system = realm.Caller{System: true, Client: "Internal"}

// Handle waits until the oldest message somebody may have missed has waited as long as he wants them gathered, and has
// letters sent of all that are unread then. Who sits at a client that has taken them needs none.
func (c *MissedMessages) Handle(_ context.Context, j *dispatch.Attempt) dispatch.Outcome {
	w, err := c.readMissed(j)
	if err != nil {
		return dispatch.Outcome{RetryAfter: recheckPause}
	}
	if len(w.list) == 0 {
		return dispatch.Outcome{}
	}
	cmd := realm.SendMissedEmails{}
	for _, e := range w.list {
		cmd.IDs = append(cmd.IDs, e.ID)
	}
	if len(w.refs) > 0 {
		if left := w.list[0].At + w.period - c.Now().Unix(); left > 0 {
			return dispatch.Outcome{RetryAfter: time.Duration(left) * time.Second}
		}
		switch here, heard := c.Server.DeliveryState(j.Realm, j.Job.User, w.list[len(w.list)-1].Told); {
		case here && !heard:
			return dispatch.Outcome{RetryAfter: recheckPause}
		case !here:
			if cmd.Emails, err = c.compose(j, w); err != nil {
				return dispatch.Outcome{RetryAfter: recheckPause}
			}
		}
	}
	if _, err := c.Server.Turn(j.Realm, system, func(t *realm.Turn) (any, error) { return cmd.Decide(t) }); err != nil {
		return dispatch.Outcome{RetryAfter: recheckPause}
	}
	return dispatch.Outcome{Finished: true}
}

func (c *MissedMessages) readMissed(j *dispatch.Attempt) (w missedState, err error) {
	_, err = c.Server.View(j.Realm, system, func(v realm.View) (any, error) {
		w = missedState{list: v.MissedMessageJobs(j.Job.User)}
		if u := v.Find(j.Job.User); u != nil {
			w.email, w.period = u.Email, u.IntSetting("email_notifications_batching_period_seconds")
		}
		for i := range w.list {
			if m, ok := v.UnreadJobMessage(&w.list[i]); ok {
				w.refs = append(w.refs, m.Ref)
			}
		}
		return nil, nil
	})
	return w, err
}

// compose writes the letters.
func (c *MissedMessages) compose(j *dispatch.Attempt, w missedState) (emails []realm.Email, err error) {
	text := wire.PrefetchTexts(c.Server, j.Realm, w.refs)
	r := missedReader{site: j.Site, hasOtherAccount: c.HasOtherAccount(j.Realm, w.email)}
	_, err = c.Server.View(j.Realm, system, func(v realm.View) (any, error) {
		r.User = v.Find(j.Job.User)
		emails = composeMissed(v, r, w.list, text)
		return nil, nil
	})
	return emails, err
}
