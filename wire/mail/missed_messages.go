package mail

import (
	"context"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
)

// MaxChecking is how many users' missed messages are handled at a time. Each takes two views, some texts and a turn.
const MaxChecking = 4

// recheckPause is the pause before the server looks again whether an active user's client has received the messages.
const recheckPause = 10 * time.Second

// MissedMessages is the dispatch.Handler that emails users the messages they did not read in time. The emails it writes
// are outbox jobs of their own.
type MissedMessages struct {
	Server wire.Server
	Now    func() time.Time
	// HasOtherAccount reports whether the address has an account in another organization of this server.
	HasOtherAccount func(id realm.ID, email string) bool
	CanReply        bool // the server receives replies
}

// missedState is the missed messages of one user.
type missedState struct {
	email  string
	period int64             // seconds for which messages are gathered into one email
	list   []realm.OutboxJob // oldest first
	unread []realm.BodyRef   // texts of the messages that are still unread
}

var system = realm.System

// Handle waits until the oldest message has waited for the user's gathering period. Then it finishes the jobs of all
// the user's missed messages in one turn, and sends emails about those that are still unread. An active user whose
// client has received the messages gets no email.
func (h *MissedMessages) Handle(_ context.Context, a *dispatch.Attempt) dispatch.Outcome {
	s, err := h.read(a)
	if err != nil {
		return dispatch.Outcome{RetryAfter: recheckPause}
	}
	if len(s.list) == 0 {
		return dispatch.Outcome{}
	}
	cmd := realm.SendMissedEmails{}
	for _, job := range s.list {
		cmd.IDs = append(cmd.IDs, job.ID)
	}
	if len(s.unread) > 0 {
		if left := s.list[0].At + s.period - h.Now().Unix(); left > 0 {
			return dispatch.Outcome{RetryAfter: time.Duration(left) * time.Second}
		}
		newest := s.list[len(s.list)-1].Told
		switch active, delivered := h.Server.DeliveryState(a.Realm, a.Job.User, newest); {
		case active && !delivered:
			return dispatch.Outcome{RetryAfter: recheckPause}
		case !active:
			if cmd.Emails, err = h.compose(a, s); err != nil {
				return dispatch.Outcome{RetryAfter: recheckPause}
			}
		}
	}
	_, err = h.Server.Turn(a.Realm, system, func(t *realm.Turn) (any, error) { return cmd.Decide(t) })
	if err != nil {
		return dispatch.Outcome{RetryAfter: recheckPause}
	}
	return dispatch.Outcome{Finished: true}
}

func (h *MissedMessages) read(a *dispatch.Attempt) (s missedState, err error) {
	_, err = h.Server.View(a.Realm, system, func(v realm.View) (any, error) {
		s = missedState{list: v.MissedMessageJobs(a.Job.User)}
		if u := v.Find(a.Job.User); u != nil {
			s.email, s.period = u.Email, u.IntSetting("email_notifications_batching_period_seconds")
		}
		if !v.PlaceOpen(realm.PlaceMessageEmails) {
			return nil, nil // nothing waits any more
		}
		for i := range s.list {
			if m, ok := v.UnreadJobMessage(&s.list[i]); ok {
				s.unread = append(s.unread, m.Ref)
			}
		}
		return nil, nil
	})
	return s, err
}

func (h *MissedMessages) compose(a *dispatch.Attempt, s missedState) (emails []realm.Email, err error) {
	text := wire.PrefetchTexts(h.Server, a.Realm, s.unread)
	r := missedReader{site: a.Site, hasOtherAccount: h.HasOtherAccount(a.Realm, s.email),
		canReply: h.CanReply}
	_, err = h.Server.View(a.Realm, system, func(v realm.View) (any, error) {
		r.User = v.Find(a.Job.User)
		r.texts = textsIn(v.LetterheadFor(r.User).Language)
		emails = composeMissed(v, r, s.list, text)
		return nil, nil
	})
	return emails, err
}
