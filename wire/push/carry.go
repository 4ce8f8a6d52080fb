package push

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/courier"
)

// Senders is how many users' devices are notified at a time: each waits for a service.
const Senders = 16

// Limits of notifying devices of messages.
const (
	// stale is when a notification is of no use any more (protocol: what services keep it for).
	stale = 24 * time.Hour
	// unheard is the pause before looking again whether a client has taken a message of somebody who sits at one.
	unheard = 10 * time.Second
)

// pauses before each further attempt; after the last one a notification is given up. Together about an hour.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 45 * time.Minute}

// Means is what it takes to reach a service on behalf of a house.
type Means struct {
	Push   wire.Pusher
	House  wire.House
	Log    *slog.Logger
	Now    func() time.Time
	Pauses []time.Duration // nil: the usual ones
}

// stale reports whether an errand has waited for too long.
func (m *Means) stale(e *realm.Errand) bool { return m.Now().Unix()-e.At > int64(stale/time.Second) }

// waits is the pauses before each further attempt.
func (m *Means) waits() []time.Duration {
	if m.Pauses != nil {
		return m.Pauses
	}
	return pauses
}

// Carrier notifies devices of messages.
type Carrier struct{ Means }

// Carry notifies the devices of an errand's user, unless he has the message already: he read it, or he sits at a client
// and one of them has taken it.
func (c *Carrier) Carry(_ context.Context, j *courier.Job) courier.Outcome {
	e := &j.Errand
	if c.stale(e) {
		return courier.Outcome{}
	}
	n, left := j.Left.(wire.PushNotice)
	if e.Kind == realm.PushErrand {
		online, wanted := c.wanted(j)
		if !wanted {
			return courier.Outcome{Shown: left} // a part of the devices may show it
		}
		if here, heard := c.House.Reached(j.Realm, e.User, e.Told); here && !online {
			if heard {
				return courier.Outcome{}
			}
			return courier.Outcome{Again: unheard}
		}
	}
	if !left {
		var err error
		if n, left, err = c.compose(j); err != nil {
			return courier.Outcome{Again: unheard}
		}
		if !left {
			return courier.Outcome{}
		}
	}
	rest, gone, err := c.Push.Send(n)
	wire.ForgetDevices(c.House, j.Realm, e.User, gone)
	shown := courier.Outcome{Shown: e.Kind == realm.PushErrand && !errors.Is(err, wire.ErrNoPush)}
	if err == nil || errors.Is(err, wire.ErrNoPush) || errors.Is(err, wire.ErrPushRefused) {
		return shown
	}
	waits := c.waits()
	if j.Attempt > len(waits) {
		c.Log.Error("push notification given up", "realm", j.Realm, "user", e.User.String(), "attempts", j.Attempt, "error", err)
		return shown
	}
	return courier.Outcome{Again: waits[j.Attempt-1], Left: rest}
}

// compose writes the notification; false if there is nothing to notify of any more.
func (c *Carrier) compose(j *courier.Job) (n wire.PushNotice, ok bool, err error) {
	system := realm.Caller{System: true}
	var refs []realm.BodyRef
	_, err = c.House.View(j.Realm, system, func(v realm.View) (any, error) {
		if m, unread := v.Notifiable(&j.Errand); unread {
			refs = append(refs, m.Ref)
		}
		return nil, nil
	})
	if err != nil {
		return n, false, err
	}
	text := wire.ReadAhead(c.House, j.Realm, refs)
	_, err = c.House.View(j.Realm, system, func(v realm.View) (any, error) {
		n, ok = wire.PushOf(v, &j.Errand, j.Site, text)
		return nil, nil
	})
	return n, ok, err
}

// wanted reports whether a user still wants to be notified, and whether even while he sits at a client.
func (c *Carrier) wanted(j *courier.Job) (online, ok bool) {
	type answer struct{ online, ok bool }
	v, err := c.House.View(j.Realm, realm.Caller{System: true}, func(v realm.View) (any, error) {
		u := v.Find(j.Errand.User)
		if u == nil {
			return answer{}, nil
		}
		_, unread := v.Notifiable(&j.Errand)
		return answer{u.Flag("enable_online_push_notifications"), unread}, nil
	})
	a, _ := v.(answer)
	return a.online, err == nil && a.ok
}
