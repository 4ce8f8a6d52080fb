package push

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
)

// MaxNotifying is how many users' devices are notified at a time. Each attempt waits for a push service.
const MaxNotifying = 16

// Limits of notifications about messages.
const (
	// maxAge is when a notification is given up. Push services keep undelivered notifications as long (protocol).
	maxAge = 24 * time.Hour
	// recheckPause is the pause before the server looks again whether an active user's client has received the message.
	recheckPause = 10 * time.Second
	// maxWebRetries is the number of further attempts for browsers: further notifications of the user, also those for
	// phones, wait meanwhile. Users choose the addresses, so some never answer.
	maxWebRetries = 2
)

// defaultRetryPauses are the pauses before each further attempt: about an hour together. After the last one a
// notification is given up.
var defaultRetryPauses = []time.Duration{
	5 * time.Second,
	30 * time.Second,
	2 * time.Minute,
	10 * time.Minute,
	45 * time.Minute,
}

// Service sends notifications and registrations. Pusher implements it; tests have another.
type Service interface {
	// notify sends one notification. left is the notification for the devices where that failed for now, to be tried
	// again. answer has the rest of the service's answer. err is one of the failures.
	notify(n notification) (left notification, answer wire.PushAnswer, err error)
	// Register is as in wire.Pusher.
	Register(wire.PushRegistration) error
}

// Options are what Notifier and Registrar need.
type Options struct {
	Pusher      Service
	Server      wire.Server
	Log         *slog.Logger
	Now         func() time.Time
	RetryPauses []time.Duration // nil: defaultRetryPauses
	// Upload asks for an upload of the organizations to the bouncer, which does not know one; nil: there is no bouncer.
	Upload func()
}

// isTooOld reports whether a job has waited longer than maxAge.
func (o *Options) isTooOld(job *realm.OutboxJob) bool {
	return o.Now().Unix()-job.At > int64(maxAge/time.Second)
}

// retryPauses returns the pauses before each further attempt.
func (o *Options) retryPauses() []time.Duration {
	if o.RetryPauses != nil {
		return o.RetryPauses
	}
	return defaultRetryPauses
}

// Notifier is the dispatch.Handler of notifications about messages, and of their removal.
type Notifier struct{ Options }

// Handle notifies the devices of a user, unless the user has read the message, or is active in a client that has
// received it. Users can ask to be notified even then. The state of the next attempt is the notification for the
// devices that are left.
func (h *Notifier) Handle(_ context.Context, a *dispatch.Attempt) dispatch.Outcome {
	job := &a.Job
	if h.isTooOld(job) {
		return dispatch.Outcome{}
	}
	n, ok := a.State.(notification)
	if job.Kind == realm.OutboxPush {
		online, unread := h.wantsNotification(a)
		if !unread {
			return dispatch.Outcome{NotificationShown: ok} // an earlier attempt may have reached some devices
		}
		active, delivered := h.Server.DeliveryState(a.Realm, job.User, job.Told)
		if active && !online {
			if delivered {
				return dispatch.Outcome{}
			}
			return dispatch.Outcome{RetryAfter: recheckPause}
		}
	}
	if ok {
		if ok = h.dropRemoved(a, &n); !ok {
			return dispatch.Outcome{NotificationShown: true}
		}
	} else {
		var err error
		if n, ok, err = h.compose(a); err != nil {
			return dispatch.Outcome{RetryAfter: recheckPause}
		}
		if !ok {
			return dispatch.Outcome{}
		}
	}
	return h.send(a, n)
}

// send sends a notification and returns the outcome of the attempt.
func (h *Notifier) send(a *dispatch.Attempt, n notification) dispatch.Outcome {
	left, answer, err := h.Pusher.notify(n)
	wire.ApplyPushAnswer(h.Server, a.Realm, a.Job.User, answer)
	unconfigured := errors.Is(err, wire.ErrPushNotConfigured)
	done := dispatch.Outcome{NotificationShown: a.Job.Kind == realm.OutboxPush && !unconfigured}
	if isMissingRealm(err) && h.Upload != nil {
		h.Upload()
	}
	if err == nil || unconfigured || errors.Is(err, wire.ErrPushRefused) {
		return done
	}
	pauses := h.retryPauses()
	if len(left.devices) == 0 && !errors.Is(err, errHostBusy) &&
		!slices.ContainsFunc(left.tokens, func(d realm.PushToken) bool { return !isBrowser(d) }) {
		pauses = pauses[:min(len(pauses), maxWebRetries)]
	}
	if a.Number > len(pauses) {
		h.Log.Error("push notification given up",
			"realm", a.Realm, "user", a.Job.User.String(), "attempts", a.Number, "err", err)
		return done
	}
	return dispatch.Outcome{RetryAfter: pauses[a.Number-1], State: left}
}

// compose builds the notification of a job; ok is false if there is nothing to notify of any more.
func (h *Notifier) compose(a *dispatch.Attempt) (n notification, ok bool, err error) {
	system := realm.Caller{System: true}
	var refs []realm.BodyRef
	_, err = h.Server.View(a.Realm, system, func(v realm.View) (any, error) {
		if m, unread := v.PushMessage(&a.Job); unread {
			refs = append(refs, m.Ref)
		}
		return nil, nil
	})
	if err != nil {
		return n, false, err
	}
	text := wire.PrefetchTexts(h.Server, a.Realm, refs)
	_, err = h.Server.View(a.Realm, system, func(v realm.View) (any, error) {
		n, ok = newNotification(v, &a.Job, a.Site, text)
		return nil, nil
	})
	return n, ok, err
}

// dropRemoved removes the devices from a notification that were removed since the last attempt, such as a browser that
// was logged out. It reports whether a device is left.
func (h *Notifier) dropRemoved(a *dispatch.Attempt, n *notification) bool {
	_, err := h.Server.View(a.Realm, realm.Caller{System: true}, func(v realm.View) (any, error) {
		tokens := v.NotifiedPushTokens(a.Job.User)
		n.tokens = slices.DeleteFunc(slices.Clone(n.tokens), func(d realm.PushToken) bool {
			same := func(x realm.PushToken) bool { return x.Kind == d.Kind && x.Token == d.Token }
			return !slices.ContainsFunc(tokens, same)
		})
		devices := v.DevicesOf(a.Job.User)
		n.devices = slices.DeleteFunc(slices.Clone(n.devices), func(d realm.Device) bool {
			return !slices.ContainsFunc(devices, func(x realm.Device) bool { return x.ID == d.ID })
		})
		return nil, nil
	})
	return err != nil || len(n.tokens)+len(n.devices) > 0
}

// wantsNotification reports whether the message is still unread (ok), and whether the user wants to be notified even
// while active in a client (online).
func (h *Notifier) wantsNotification(a *dispatch.Attempt) (online, ok bool) {
	type answer struct{ online, ok bool }
	v, err := h.Server.View(a.Realm, realm.Caller{System: true}, func(v realm.View) (any, error) {
		u := v.Find(a.Job.User)
		if u == nil {
			return answer{}, nil
		}
		_, unread := v.PushMessage(&a.Job)
		return answer{u.BoolSetting("enable_online_push_notifications"), unread}, nil
	})
	found, _ := v.(answer)
	return found.online, err == nil && found.ok
}
