package push

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
)

// MaxNotifying is how many users' devices are notified at a time: each waits for a service.
const MaxNotifying = 16

// Limits of notifying devices of messages.
const (
	// maxAge is when a notification is of no use any more (protocol: what services keep it for).
	maxAge = 24 * time.Hour
	// recheckPause is the pause before looking again whether a client has taken a message of somebody who sits at one.
	recheckPause = 10 * time.Second
)

// defaultRetryPauses before each further attempt; after the last one a notification is given up. Together about an hour.
var defaultRetryPauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 45 * time.Minute}

// Service sends notifications and registrations. Pusher is one; tests have another.
type Service interface {
	// notify sends one notification. left is the notification for the devices where that failed for now. gone are the
	// devices that their service does not know any more. err is one of the failures.
	notify(n notification) (left notification, gone wire.UnregisteredDevices, err error)
	// Register is wire.Pusher's.
	Register(wire.PushRegistration) (code string, err error)
}

// Options is what it takes to reach a service on behalf of a house.
type Options struct {
	Pusher      Service
	Server      wire.Server
	Log         *slog.Logger
	Now         func() time.Time
	RetryPauses []time.Duration // nil: the usual ones
}

// isTooOld reports whether an errand has waited for too long.
func (m *Options) isTooOld(e *realm.OutboxJob) bool {
	return m.Now().Unix()-e.At > int64(maxAge/time.Second)
}

// retryPauses is the pauses before each further attempt.
func (m *Options) retryPauses() []time.Duration {
	if m.RetryPauses != nil {
		return m.RetryPauses
	}
	return defaultRetryPauses
}

// Notifier notifies devices of messages.
type Notifier struct{ Options }

// Handle notifies the devices of an errand's user, unless he has the message already: he read it, or he sits at a client
// and one of them has taken it.
func (c *Notifier) Handle(_ context.Context, j *dispatch.Attempt) dispatch.Outcome {
	e := &j.Job
	if c.isTooOld(e) {
		return dispatch.Outcome{}
	}
	n, left := j.State.(notification)
	if e.Kind == realm.OutboxPush {
		online, wanted := c.wantsNotification(j)
		if !wanted {
			return dispatch.Outcome{NotificationShown: left} // a part of the devices may show it
		}
		if here, heard := c.Server.DeliveryState(j.Realm, e.User, e.Told); here && !online {
			if heard {
				return dispatch.Outcome{}
			}
			return dispatch.Outcome{RetryAfter: recheckPause}
		}
	}
	if !left {
		var err error
		if n, left, err = c.compose(j); err != nil {
			return dispatch.Outcome{RetryAfter: recheckPause}
		}
		if !left {
			return dispatch.Outcome{}
		}
	}
	rest, gone, err := c.Pusher.notify(n)
	wire.RemoveUnregisteredDevices(c.Server, j.Realm, e.User, gone)
	shown := dispatch.Outcome{NotificationShown: e.Kind == realm.OutboxPush && !errors.Is(err, wire.ErrPushNotConfigured)}
	if err == nil || errors.Is(err, wire.ErrPushNotConfigured) || errors.Is(err, wire.ErrPushRefused) {
		return shown
	}
	waits := c.retryPauses()
	if j.Number > len(waits) {
		c.Log.Error("push notification given up", "realm", j.Realm, "user", e.User.String(), "attempts", j.Number, "error", err)
		return shown
	}
	return dispatch.Outcome{RetryAfter: waits[j.Number-1], State: rest}
}

// compose writes the notification; false if there is nothing to notify of any more.
func (c *Notifier) compose(j *dispatch.Attempt) (n notification, ok bool, err error) {
	system := realm.Caller{System: true}
	var refs []realm.BodyRef
	_, err = c.Server.View(j.Realm, system, func(v realm.View) (any, error) {
		if m, unread := v.PushMessage(&j.Job); unread {
			refs = append(refs, m.Ref)
		}
		return nil, nil
	})
	if err != nil {
		return n, false, err
	}
	text := wire.PrefetchTexts(c.Server, j.Realm, refs)
	_, err = c.Server.View(j.Realm, system, func(v realm.View) (any, error) {
		n, ok = newNotification(v, &j.Job, j.Site, text)
		return nil, nil
	})
	return n, ok, err
}

// wantsNotification reports whether a user still wants to be notified, and whether even while he sits at a client.
func (c *Notifier) wantsNotification(j *dispatch.Attempt) (online, ok bool) {
	type answer struct{ online, ok bool }
	v, err := c.Server.View(j.Realm, realm.Caller{System: true}, func(v realm.View) (any, error) {
		u := v.Find(j.Job.User)
		if u == nil {
			return answer{}, nil
		}
		_, unread := v.PushMessage(&j.Job)
		return answer{u.BoolSetting("enable_online_push_notifications"), unread}, nil
	})
	a, _ := v.(answer)
	return a.online, err == nil && a.ok
}
